"""Codes of query files that need no schema, and those of lint.

Each example is a whole query file. Those of lint go with the example schema.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from omnigraph.error_codes.entry import entry

_code = partial(entry, "compiler")
_lint = partial(entry, "lint")

QUERY_CODES: Final = (
    _lint(
        "Q000",
        "query file does not parse",
        """
        What `omnigraph lint` reports for a file it cannot read as queries; none of its queries is
        checked then. The message and the position are those of the first mistake (Q001 to Q008).
        """,
        """
        query people() {
            match { $p: Person }
        }
        """,
    ),
    _code(
        "Q001",
        "query syntax",
        """
        The text does not follow the grammar of query files; the message says what was expected at
        the marked place. Frequent causes: a query name that starts with an upper-case letter, empty
        braces after a type, `limit` before `order`, hop bounds with one number (`{1,2}` has two), a
        negative number or `null` (pass both as parameters), `contains` in a `where`.
        """,
        """
        query adults() {
            match {
                $p: Person
                $p.age > -1
            }
            return { $p.name }
        }
        """,
    ),
    _code(
        "Q002",
        "unknown escape in a string",
        r"""
        A backslash in a string may be followed by `"`, `\`, `n`, `r` or `t` only. Write `\\` for a
        backslash.
        """,
        r"""
        query folder() {
            match { $p: Person { name: "C:\dir" } }
            return { $p }
        }
        """,
    ),
    _code(
        "Q003",
        "two queries of one name",
        """
        Queries of a file are picked by name, so each name may occur once. Rename one of them.
        """,
        """
        query people() {
            match { $p: Person }
            return { $p }
        }

        query people() {
            match { $p: Person }
            return { $p.name }
        }
        """,
    ),
    _code(
        "Q004",
        "two parameters of one name",
        """
        A query declares the same parameter twice. Leave one out, or rename it.
        """,
        """
        query by_age($age: I32, $age: I32) {
            match { $p: Person { age: $age } }
            return { $p }
        }
        """,
    ),
    _code(
        "Q005",
        "two columns of one alias",
        """
        `return` gives the same alias twice. Aliases are the names of the result's columns and may
        be used in `order`, so each must stand for one expression.
        """,
        """
        query people() {
            match { $p: Person }
            return { $p.name as n, $p.email as n }
        }
        """,
    ),
    _code(
        "Q006",
        "description or instruction repeated",
        """
        A query takes one `@description` and one `@instruction`. Merge the texts.
        """,
        """
        query people() @description("All people") @description("Everyone") {
            match { $p: Person }
            return { $p }
        }
        """,
    ),
    _code(
        "Q007",
        "number out of range",
        """
        An integer in a query must fit a signed 64-bit integer, a float a 64-bit float. If the
        digits are an identifier, keep them in a String.
        """,
        """
        query ancient() {
            match {
                $p: Person
                $p.age > 9223372036854775808
            }
            return { $p }
        }
        """,
    ),
    _code(
        "Q008",
        "limit out of range",
        """
        The number after `limit` must fit an unsigned 64-bit integer. Leave `limit` out to get all
        rows.
        """,
        """
        query people() {
            match { $p: Person }
            return { $p }
            limit 18446744073709551616
        }
        """,
    ),
)

LINT_CODES: Final = (
    _lint(
        "L201",
        "property that no update sets",
        """
        The file updates a node type, but none of its updates ever sets this optional property, so
        users of the file can never change it. A warning: add the property to an update, or ignore
        it if the property is not meant to be changed. Keys and `@embed` vectors are not reported.
        """,
        """
        query rename($email: String, $name: String) {
            update Person set { name: $name } where email = $email
        }
        """,
    ),
)
