"""The registry of error codes is complete, its examples are true, and the page is current."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import omnigraph
from omnigraph import errors
from omnigraph.catalog.compile import compile_schema
from omnigraph.catalog.migrate.steps import MigrationCode
from omnigraph.error_codes import (
    EXAMPLE_SCHEMA,
    FAMILIES,
    REGISTRY,
    ErrorCode,
    index_codes,
    parse_family,
)
from omnigraph.language.syntax import Source
from tests.docs.compiling import codes_of
from tests.docs.markdown import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

(EXCEPTION_CODES,) = (family.codes for family in FAMILIES if family.title == "Exceptions")
PACKAGE = Path(omnigraph.__file__).parent
PAGE = ROOT / "docs" / "user" / "errors.md"
CATALOG = compile_schema(Source("example.pg", EXAMPLE_SCHEMA))

NOT_IN_THE_SOURCE = {
    "T16": "retired; its number stays taken",
    "T18": "retired; its number stays taken",
}

WITHOUT_EXAMPLE = {
    **dict.fromkeys(
        [code.code for code in EXCEPTION_CODES], "no source text raises a class by itself"
    ),
    **{
        code.value: "reserved; no plan carries it"
        for code in MigrationCode
        if code not in (MigrationCode.REQUIRED_WITHOUT_BACKFILL, MigrationCode.PROPERTY_TYPE_CHANGE)
    },
    **NOT_IN_THE_SOURCE,
}

# The examples are true


@pytest.mark.parametrize(
    "entry", [entry for entry in REGISTRY.values() if entry.example], ids=lambda entry: entry.code
)
def test_an_example_gets_exactly_its_code(entry):
    assert codes_of(entry.example, entry.code, CATALOG) == {entry.code}


def test_a_correct_text_gets_no_code():
    query = "query q() { match { $p: Person } return { $p.age } }"
    assert codes_of(query, "T6", CATALOG) == set()
    assert codes_of("node Lamp { watt: I32 }", "S1", CATALOG) == set()
    assert codes_of("// accepted: node L { a: I32 }\nnode L { a: I32 }", "OG-MF-106", CATALOG) == (
        set()
    )


def test_every_code_has_an_example_or_a_reason_for_having_none():
    without = {code for code, entry in REGISTRY.items() if entry.example is None}
    assert without == set(WITHOUT_EXAMPLE)


# The registry is complete


def codes_in(source: str) -> Iterator[str]:
    """The strings of a module that are nothing but a code."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"^(?:[STQL]\d+|OG-[A-Z]+-\d+)\Z", node.value)


def sources_of_the_package() -> Iterator[str]:
    """The text of every module but those of the registry."""
    registry = PACKAGE / "error_codes"
    modules = (path for path in PACKAGE.rglob("*.py") if registry not in path.parents)
    return (path.read_text(encoding="utf-8") for path in modules)


def test_codes_are_found_in_source_text():
    text = 'a("T6"); b = "OG-L-001"; f"T7: x"; "S3 bucket"; "Q"; x.T8; "see T9"'
    assert set(codes_in(text)) == {"T6", "OG-L-001"}


def test_the_registry_holds_exactly_the_codes_in_use():
    used = {code for source in sources_of_the_package() for code in codes_in(source)}
    assert set(REGISTRY) - set(NOT_IN_THE_SOURCE) == used


def test_the_numbering_has_no_holes():
    # Numbers between are taken by another implementation of the language.
    compiler_numbers = (*range(1, 24), *range(31, 38), 39, 40, 41, 44, 45, *range(60, 69))
    expected = [f"S{n}" for n in range(1, 48)] + [f"Q{n:03}" for n in range(12)]
    expected += [f"T{n}" for n in compiler_numbers]
    compiler = [code for code in REGISTRY if code[0] in "SQT"]
    assert compiler == expected


def exception_classes(sources: Iterable[str]) -> dict[str, str | None]:
    """The exception classes of our own in some modules, each with the code it declares.

    Read from the text, because importing every module would load every library there is.
    """
    nodes = (node for text in sources for node in ast.walk(ast.parse(text)))
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    codes: dict[str, str | None] = {}

    def is_new(cls: ast.ClassDef) -> bool:
        bases = {base.id for base in cls.bases if isinstance(base, ast.Name)}
        bases |= {base.attr for base in cls.bases if isinstance(base, ast.Attribute)}
        return cls.name not in codes and (cls.name == "OmnigraphError" or bool(bases & set(codes)))

    while new := [cls for cls in classes if is_new(cls)]:
        for cls in new:
            fields = [node for node in cls.body if isinstance(node, ast.Assign | ast.AnnAssign)]
            declared = [code for field in fields for code in codes_in(ast.unparse(field))]
            codes[cls.name] = declared[0] if declared else None
    return codes


def test_exception_classes_are_found_in_source_text():
    text = """
class Later(errors.Early): code, retry = "OG-C-001", 1
class Early(OmnigraphError): pass
class OmnigraphError(Exception): code: str = "OG-X-000"
class Other(ValueError): code = "OG-C-002"
"""
    assert exception_classes([text]) == {
        "OmnigraphError": "OG-X-000",
        "Early": None,
        "Later": "OG-C-001",
    }


def test_every_exception_class_has_a_code_of_its_own():
    codes = exception_classes(sources_of_the_package())
    without = {name for name, code in codes.items() if code is None}
    assert not without
    declared = sorted(code for code in codes.values() if code is not None)
    assert declared == sorted(entry.code for entry in EXCEPTION_CODES)


@pytest.mark.parametrize("entry", EXCEPTION_CODES, ids=lambda entry: entry.code)
def test_an_exception_and_its_entry_agree(entry):
    name = entry.explanation.partition(":")[0].strip("`")
    assert (getattr(errors, name).code, getattr(errors, name).kind) == (entry.code, entry.kind)


# The registry is well-formed


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.title)
def test_a_family_is_in_natural_order(family):
    assert list(family.codes) == sorted(family.codes, key=lambda entry: entry.natural_key)
    assert REGISTRY["T2"].natural_key < REGISTRY["T10"].natural_key


def test_a_title_is_a_few_words_and_an_explanation_says_more():
    for entry in REGISTRY.values():
        assert len(entry.title) <= 48, entry.code
        assert not entry.title.endswith("."), entry.code
        assert entry.explanation.endswith((".", "?", ".)")), entry.code
        assert max(map(len, entry.explanation.splitlines())) <= 96, entry.code


def test_a_code_cannot_be_registered_twice():
    entry = REGISTRY["T6"]
    with pytest.raises(ValueError, match="T6 is registered twice"):
        index_codes([entry, entry])


@pytest.mark.parametrize(
    "fields",
    [
        ("6T", "compiler", "title", "text"),
        ("T6", "", "title", "text"),
        ("T6", "compiler", "title ", "text"),
        ("T6", "compiler", "title", "\ntext"),
        ("T6", "compiler", "title", "text", ""),
    ],
)
def test_a_malformed_entry_is_refused(fields):
    with pytest.raises(ValueError, match=r"valid error code|empty or has surrounding whitespace"):
        ErrorCode(*fields)


FAMILY = """
title = "Queries"
introduction = "About queries."
[[codes]]
code = "T6"
kind = "compiler"
title = "unknown property"
explanation = "Check the spelling."
"""


def test_a_data_file_becomes_a_family():
    family = parse_family(FAMILY)
    assert (family.title, family.language) == ("Queries", None)
    entry = ErrorCode("T6", "compiler", "unknown property", "Check the spelling.")
    assert family.codes == (entry,)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (FAMILY.replace('kind = "compiler"', ""), "missing required field `kind`"),
        (FAMILY.replace("introduction", "intro"), "unknown field `intro`"),
        (FAMILY + 'exmaple = "query"', "unknown field `exmaple`"),
        (FAMILY + "example = 7", "Expected `str | null`, got `int`"),
        (FAMILY.replace('"T6"', '"6T"'), "'6T' is not a valid error code"),
        (FAMILY + 'code = "T7"', "Cannot overwrite a value"),
    ],
)
def test_a_malformed_data_file_is_refused(text, problem):
    with pytest.raises(ValueError, match=re.escape(problem)):
        parse_family(text)


# The page is current


def test_the_page_is_what_the_registry_says():
    command = [sys.executable, "-m", "omnigraph.error_codes"]
    printed = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    assert PAGE.read_text(encoding="utf-8") == printed, (
        "docs/user/errors.md is stale; run: "
        ".venv/bin/python -m omnigraph.error_codes > docs/user/errors.md"
    )
