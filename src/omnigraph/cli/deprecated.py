"""Old spellings of commands, rewritten before the command is looked up."""

from __future__ import annotations

from collections.abc import Sequence

SPELLINGS = {
    ("change",): "mutate",
    ("check",): "lint",
    ("read",): "query",
    ("query", "lint"): "lint",
    ("query", "check"): "lint",
}


def rewrite(words: Sequence[str]) -> tuple[list[str], str | None]:
    """The words with an old spelling at their start replaced, and the warning to print."""
    for old, new in SPELLINGS.items():
        if tuple(words[: len(old)]) == old:
            spelt = " ".join(old)
            warning = f"`omnigraph {spelt}` is deprecated; use `omnigraph {new}` instead"
            return [new, *words[len(old) :]], warning
    return list(words), None
