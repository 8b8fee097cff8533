"""Reading `.gqt` files.

A line that begins with `===` starts a case and gives its title. A line that begins with `---` starts
a step: its verb, words, and options written `key=value`, where a value may be JSON. The lines below
belong to the step. `schema` and `seed` above the first case hold for all cases of the file; each
takes a file name or the text below it. Lines that begin with `##` are comments.
Tests: tests/unit/testing/test_cases.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.cases.block import BadStep, Block
from tests.support.cases.story import Case, Step
from tests.support.cases.verbs import read_step
from tests.support.outcome import Json

_SETTINGS = frozenset({"proves", "schema", "seed"})
_ROW_ID = re.compile(r"[LSU]-[0-9]{3}\Z")
_OPTION = re.compile(r"([a-z_]+)=")
_WORD = re.compile(r"\S+")


class CaseError(ValueError):
    """A case file that cannot be read. The text begins with file and line."""

    def __init__(self, path: Path, line: int, problem: str) -> None:
        super().__init__(f"{path}:{line}: {problem}")


@dataclass(frozen=True, slots=True)
class _Settings:
    """What a case is set in."""

    proves: tuple[str, ...] = ()
    schema: str | None = None
    seed: str | None = None


def read_cases(path: Path) -> tuple[Case, ...]:
    """All cases of a file. Raises `CaseError`."""
    return tuple(parse_cases(path, path.read_text()))


def parse_cases(path: Path, text: str) -> Iterator[Case]:
    shared = _Settings()
    titles: set[str] = set()
    for line, title, blocks in _split(path, text):
        settings = shared
        steps: list[Step] = []
        for block in blocks:
            try:
                if block.verb in _SETTINGS:
                    if steps:
                        raise BadStep(f"`{block.verb}` stands before the steps")
                    settings = _set(settings, block, path)
                else:
                    steps.append(Step(block.line, read_step(block)))
            except BadStep as error:
                raise CaseError(path, block.line, str(error)) from error
        if title is None:
            if steps:
                raise CaseError(path, steps[0].line, "a step stands before the first case")
            shared = settings
            continue
        if title in titles:
            raise CaseError(path, line, f"another case is called '{title}'")
        titles.add(title)
        if settings.schema is None:
            raise CaseError(path, line, "the case has no schema")
        if not steps:
            raise CaseError(path, line, "the case has no steps")
        yield Case(
            path=path,
            line=line,
            title=title,
            proves=settings.proves,
            schema=settings.schema,
            seed=settings.seed,
            steps=tuple(steps),
        )


def _split(path: Path, text: str) -> Iterator[tuple[int, str | None, list[Block]]]:
    """The cases of a file with line, title and steps; what stands above the first has no title."""
    line, title = 1, None
    blocks: list[Block] = []
    for number, content in enumerate(text.splitlines(), 1):
        if content.startswith("##"):
            continue
        if content.startswith("==="):
            yield line, title, blocks
            line, title, blocks = number, content.removeprefix("===").strip(), []
            if not title:
                raise CaseError(path, number, "a case needs a title")
        elif content.startswith("---"):
            try:
                blocks.append(_read_head(number, content.removeprefix("---")))
            except BadStep as error:
                raise CaseError(path, number, str(error)) from error
        elif blocks:
            blocks[-1] = replace(blocks[-1], body=(*blocks[-1].body, content))
        elif content.strip():
            raise CaseError(path, number, "expected a step, a line that begins with `---`")
    yield line, title, blocks


def _read_head(line: int, head: str) -> Block:
    words: list[str] = []
    options: dict[str, Json] = {}
    position = 0
    while (found := _WORD.search(head, position)) is not None:
        option = _OPTION.match(head, found.start())
        if option is None:
            words.append(found[0])
            position = found.end()
        elif option[1] in options:
            raise BadStep(f"`{option[1]}` is given twice")
        else:
            options[option[1]], position = _read_value(head, option.end())
    if not words:
        raise BadStep("a step needs a verb")
    return Block(line, words[0], tuple(words[1:]), options)


def _read_value(head: str, start: int) -> tuple[Json, int]:
    if head[start : start + 1] in ("{", "[", '"'):
        try:
            return json.JSONDecoder().raw_decode(head, start)
        except ValueError as error:
            raise BadStep(f"not JSON: {error}") from error
    found = _WORD.match(head, start)
    if found is None:
        raise BadStep("an option needs a value")
    try:
        return json.loads(found[0]), found.end()
    except ValueError:
        return found[0], found.end()


def _set(settings: _Settings, block: Block, path: Path) -> _Settings:
    block.allow_options()
    if block.verb == "proves":
        block.refuse_body()
        for id in block.words:
            if not _ROW_ID.match(id):
                raise BadStep(f"'{id}' is no acceptance row")
        return replace(settings, proves=block.words)
    if len(block.words) > 1 or not (block.words or block.text):
        raise BadStep(f"`{block.verb}` takes one file name, or text below it, or both")
    text = block.text
    for name in block.words:
        try:
            text = (path.parent / name).read_text() + text
        except OSError as error:
            raise BadStep(f"cannot read '{name}': {error.strerror}") from error
    return (
        replace(settings, schema=text) if block.verb == "schema" else replace(settings, seed=text)
    )
