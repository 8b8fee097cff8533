"""The guides for users are true: their schemas and queries compile, their commands print what they show.

How a block of a page under docs/user is fenced says what is done with it:

    pg                  a part of the page's schema
    gq                  queries that fit the page's schema
    pg before           a schema of its own, the accepted one for the blocks marked `after`
    pg after            a schema that the last `before` can be changed to
    … error=CODE        gets this code instead; with `pg` alone it is a schema of its own
    … file=NAME         is also the content of this file from here on
    console             commands behind `$`, each followed by all it prints
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from omnigraph.catalog.compile import compile_schema
from omnigraph.catalog.model import Catalog
from omnigraph.error_codes import EXAMPLE_SCHEMA
from omnigraph.language.format import format_queries, format_schema
from omnigraph.language.syntax import Source
from omnigraph.plan.compile import compile_query
from omnigraph.plan.params import bind_parameters
from tests.docs.compiling import codes_of, migration_codes, query_codes, schema_codes
from tests.docs.markdown import ROOT, Page

FOLDER = ROOT / "docs" / "user"
_FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page; `role` is `before`, `after` or nothing."""

    page: str
    line: int
    language: str
    text: str
    role: str | None = None
    error: str | None = None
    file: str | None = None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_part_of_the_schema(self) -> bool:
        return self.language == "pg" and not self.role and not self.error


def blocks_of(path: Path) -> list[Block]:
    page = path.read_text(encoding="utf-8")
    return [
        _block(path.name, page.count("\n", 0, match.start()) + 1, match)
        for match in _FENCE.finditer(page)
    ]


def _block(page: str, line: int, match: re.Match[str]) -> Block:
    role, marks = None, {}
    for word in match[2].split():
        name, is_mark, value = word.partition("=")
        if is_mark and name in ("error", "file"):
            marks[name] = value
        elif word in ("before", "after"):
            role = word
        else:
            raise ValueError(f"{page}:{line}: nobody knows what `{word}` means behind a fence")
    return Block(page, line, match[1], match[3], role, marks.get("error"), marks.get("file"))


PAGES = {path.name: blocks_of(path) for path in sorted(FOLDER.glob("*.md"))}
BLOCKS = [block for blocks in PAGES.values() for block in blocks]


def catalog_of(blocks: list[Block]) -> Catalog:
    schema = "\n".join(block.text for block in blocks if block.is_part_of_the_schema)
    return compile_schema(Source("page.pg", schema))


def codes_found(block: Block, page: list[Block]) -> set[str]:
    """The codes a block gets, by the rules at the top of this file."""
    if block.role == "after":
        before = [b for b in page[: page.index(block)] if b.role == "before"][-1]
        return migration_codes(before.text, block.text)
    if block.error is not None:
        return codes_of(block.text, block.error, catalog_of(page))
    if block.language == "gq":
        return query_codes(block.text, catalog_of(page))
    if block.role == "before":
        return schema_codes(block.text)
    return schema_codes("\n".join(b.text for b in page if b.is_part_of_the_schema))


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language in ("pg", "gq")], ids=str)
def test_a_block_compiles_or_gets_the_code_it_names(block):
    expected = {block.error} if block.error else set()
    assert codes_found(block, PAGES[block.page]) == expected


GUIDES = [block for page in ("schema.md", "queries.md") for block in PAGES[page]]
NOT_PARSED = {"S2"}
"""Errors on those pages that leave nothing to lay out."""


@pytest.mark.parametrize(
    "block",
    [b for b in GUIDES if b.language in ("pg", "gq") and b.error not in NOT_PARSED],
    ids=str,
)
def test_a_block_of_a_guide_is_laid_out_the_standard_way(block):
    layout = format_schema if block.language == "pg" else format_queries
    assert layout(Source(str(block), block.text)) == block.text


def test_the_guide_to_queries_uses_the_schema_of_the_error_codes():
    schema, *_ = (block for block in PAGES["queries.md"] if block.language == "pg")
    assert schema.text == EXAMPLE_SCHEMA


def parameter_rows() -> list[tuple[str, object]]:
    """Each type of the table of parameters with each of the JSON values shown for it."""
    rows = Page(FOLDER / "queries.md").table("Pass parameters")
    spans = re.compile(r"`([^`]+)`")
    # Where a row stands for several types, its values fit the first of them.
    return [
        (spans.findall(types)[0], json.loads(value))
        for types, _, values in rows
        for value in spans.findall(values)
    ]


@pytest.mark.parametrize(("declared", "value"), parameter_rows())
def test_a_parameter_takes_the_values_shown_for_it(declared, value):
    text = f"query q($x: {declared}) {{ match {{ $p: Person }} return {{ $x }} }}"
    query = compile_query(Source("q.gq", text), compile_schema(Source("s.pg", EXAMPLE_SCHEMA)))
    assert bind_parameters(query.plan.parameters, {"x": value})["x"] is not None


def commands_of(block: Block) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output shown."""
    found = _COMMAND.findall(block.text)
    assert "".join(f"$ {command}\n{output}" for command, output in found) == block.text
    return found


def run(command: str, folder: Path) -> str:
    """All that a command prints, on a machine where the package is installed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={"PATH": path, "LANG": "C.UTF-8", "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return result.stdout.decode()


# The rules at the top catch what they should


def page_of(tmp_path: Path, text: str) -> list[Block]:
    path = tmp_path / "page.md"
    path.write_text(text, encoding="utf-8")
    return blocks_of(path)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("```pg\nnode L { a: I32 }\n```\n", set()),
        ("```pg\nnode L { a: I3 }\n```\n", {"S1"}),
        ("```pg\nnode L { a: I32 }\n```\n```pg\nnode L { a: I32 }\n```\n", {"S40"}),
        ("```pg error=S1\nnode L { a: I32 }\n```\n", set()),
        ("```pg\nnode L { a: I32 }\n```\n```gq\nquery q() { delete L where b = 1 }\n```\n", {"T11"}),
        ("```pg before\nnode L { a: I32 }\n```\n```pg after\nnode L { a: Date }\n```\n", {"OG-MF-106"}),
    ],
)  # fmt: skip
def test_a_block_that_is_not_what_it_claims_is_found(tmp_path, text, codes):
    page = page_of(tmp_path, text)
    assert codes_found(page[-1], page) == codes


def test_an_unknown_mark_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"page\.md:3: nobody knows what `eror=S1` means"):
        page_of(tmp_path, "# Page\n\n```pg eror=S1\nnode L { }\n```\n")


def test_commands_and_their_output_are_told_apart(tmp_path):
    (block,) = page_of(tmp_path, "```console\n$ true\n$ printf 'a\\n\\nb\\n'\na\n\nb\n```\n")
    assert commands_of(block) == [("true", ""), ("printf 'a\\n\\nb\\n'", "a\n\nb\n")]
    assert [run(command, tmp_path) for command, _ in commands_of(block)] == ["", "a\n\nb\n"]
