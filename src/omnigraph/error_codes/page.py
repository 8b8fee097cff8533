"""The reference page of error codes, made from the registry. Tests: tests/docs/test_error_codes.py."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill

from omnigraph.error_codes.entry import ErrorCode
from omnigraph.error_codes.example_schema import EXAMPLE_SCHEMA
from omnigraph.error_codes.registry import FAMILIES, Family

_INTRODUCTION = f"""\
# Error codes

<!-- Made by `python -m omnigraph.error_codes`; changes by hand are lost. -->

A code keeps its meaning for good; messages may be reworded. `omnigraph errors` lists the codes,
`omnigraph errors T6` explains one, and `--json` prints either as a document. The word in
parentheses behind a title is the kind, which is what a program branches on. The command line prints
the code in front of a message, `error[OG-N-002]: branch 'x' not found`; an error in a file starts with
its place, and names the rule: `lib.gq:5:12: type error: T6: …`.

Every example is the smallest text that gets the code. The queries among them are written against
this schema:

```pg
{EXAMPLE_SCHEMA}```
"""


def error_page() -> str:
    """The whole page."""
    return "\n".join([_INTRODUCTION, *(block for family in FAMILIES for block in _section(family))])


def _section(family: Family) -> Iterator[str]:
    yield f"## {family.title}\n\n{fill(family.introduction, 100)}\n"
    for code in family.codes:
        # The heading is the code alone, so that a link to it survives a better title.
        yield f"### {code.code}\n\n**{code.title}** (`{code.kind}`)\n\n{code.explanation}\n"
        if code.example is not None:
            yield _example(family, code)


def _example(family: Family, code: ErrorCode) -> str:
    return f"```{family.language} error={code.code}\n{code.example}\n```\n"
