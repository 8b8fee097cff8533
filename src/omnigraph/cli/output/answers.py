"""What a command prints: a JSON document or lines, and the text of single values.

Most text is ASCII, where characters and terminal cells are the same. The width tables for other text are
loaded when the first such character turns up."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from omnigraph.cli.exits import warn

if TYPE_CHECKING:
    from msgspec import Struct

    from omnigraph.history.commits import Receipt


Cell: TypeAlias = "bool | int | float | str | Sequence[Cell] | Mapping[str, Cell] | None"


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows in column order. `rows` is walked once, so it may be a stream."""

    headline: str
    columns: Sequence[str]
    rows: Iterable[Sequence[Cell]]

    @classmethod
    def from_objects(
        cls, headline: str, columns: Sequence[str] | None, objects: Sequence[Cell]
    ) -> Rows:
        """Arrange the row objects of a JSON document, which may not say its columns.

        Without columns, the keys of all rows are used, sorted. A row that is not an object has
        one value, in the column `value`.
        """
        mappings = [row if isinstance(row, Mapping) else {"value": row} for row in objects]
        if columns is None:
            columns = sorted({key for row in mappings for key in row})
        return cls(headline, columns, [[row.get(name) for name in columns] for row in mappings])


def compact(value: Cell) -> str:
    """JSON on one line without blanks."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def write_document(document: Mapping[str, object], out: TextIO) -> None:
    """One pretty-printed document, as every `--json` prints it."""
    json.dump(document, out, ensure_ascii=False, allow_nan=False, indent=2)
    out.write("\n")


def cell_text(value: Cell) -> str:
    """Strings as they are, everything else as compact JSON."""
    return value if isinstance(value, str) else compact(value)


def one_line(text: str) -> str:
    """Line breaks as the escapes people know; raw ones would tear a table or a list apart."""
    return text.replace("\r", "\\r").replace("\n", "\\n")


def value_text(value: Cell) -> str:
    """A cell where nothing is written out, since a line has no empty cells."""
    return "null" if value is None else cell_text(value)


def measure(text: str) -> int:
    """Terminal cells the text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def pad(text: str, width: int) -> str:
    """The text with blanks behind it up to a width."""
    return text + " " * (width - measure(text))


def truncate(text: str, width: int) -> str:
    """The text if it fits, else its beginning with an ellipsis at the end."""
    if measure(text) <= width:
        return text
    beginning = wrap(text, width - 1)[0] if width > 1 else ""
    return beginning + "…"


def wrap(text: str, width: int) -> list[str]:
    """The text split into parts that fit; at least one, even for empty text."""
    if measure(text) <= width:
        return [text]
    if text.isascii():
        return [text[start : start + width] for start in range(0, len(text), width)]
    from rich.cells import chop_cells

    return chop_cells(text, width)


def write_answer(document: Mapping[str, object], lines: Iterable[str], *, as_json: bool) -> None:
    """Print one of the two to standard output."""
    if as_json:
        write_document(document, sys.stdout)
    else:
        write_lines(lines)


def write_lines(lines: Iterable[str]) -> None:
    """Print lines to standard output."""
    sys.stdout.writelines(f"{line}\n" for line in lines)


_FIELDS = ("graph_commit_id", "parent_commit_id", "manifest_version", "operation", "counts")


def receipt_fields(receipt: Receipt) -> dict[str, Any]:
    """The part of a receipt that a command's document contains."""
    document = receipt.to_json()
    fields = {name: document[name] for name in _FIELDS}
    if receipt.replayed:
        fields["replayed"] = True
    return fields | {"warnings": document["warnings"]} if document["warnings"] else fields


def as_document(answer: Struct) -> dict[str, Any]:
    """A document of the HTTP API as plain values."""
    from msgspec import to_builtins

    return without_details(to_builtins(answer))


_DETAILS = ("operation_id", "created_at", "source_commit_id")


def without_details(document: dict[str, Any]) -> dict[str, Any]:
    """The document of a write without what only programs that rebuild a receipt need."""
    return {name: value for name, value in document.items() if name not in _DETAILS}


def written_lines(document: Mapping[str, Any]) -> list[str]:
    """The end of the lines for people about a write that is known as a document."""
    found = document.get("graph_commit_id")
    return [] if found is None else [f"commit {found}"]


def warn_of_document(document: Mapping[str, Any]) -> None:
    """Print the warnings of a write that is known as a document."""
    if document.get("replayed"):
        warn("an earlier call with this idempotency key made the commit; nothing was changed")
    for warning in document.get("warnings", ()):
        warn(warning["message"])


def commit_lines(receipt: Receipt) -> list[str]:
    """The end of the lines for people: nothing, when nothing was committed."""
    return [f"commit {receipt.graph_commit_id}"] if receipt.graph_commit_id is not None else []


def warn_of(receipt: Receipt) -> None:
    """Print the warnings of a receipt to standard error."""
    if receipt.replayed:
        warn("an earlier call with this idempotency key made the commit; nothing was changed")
    for warning in receipt.warnings:
        warn(warning.message)
