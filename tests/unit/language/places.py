"""Source texts that show where an error belongs: `node L { v: Vector(«0») }`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from omnigraph.diagnostics import Diagnostic, Position
from omnigraph.errors import LanguageError
from omnigraph.language.syntax import Source

NAME = "<text>"


def unmark(text: str) -> tuple[str, Position]:
    """The text without its marks `«…»`, and the place between them.

    An empty pair stands between two characters; the place is then one character wide.
    """
    before, opening, rest = text.partition("«")
    inner, closing, after = rest.partition("»")
    assert opening, f"no mark in {text!r}"
    assert closing, f"no closing mark in {text!r}"
    wide = inner or "?"
    first = len(before.encode())
    line, column = _line_and_column(before)
    last_line, last_column = _line_and_column(before + wide[:-1])
    place = Position(
        file=NAME,
        line=line,
        column=column,
        end_line=last_line,
        end_column=last_column + 1,
        start=first,
        end=first + len(wide.encode()),
    )
    return before + inner + after, place


def _line_and_column(before: str) -> tuple[int, int]:
    lines = before.split("\n")
    return len(lines), len(lines[-1]) + 1


def refusal(use: Callable[[Source], object], text: str, *, marked: bool = True) -> Diagnostic:
    """The one diagnostic of a text that must be refused, at the marked place if there is one."""
    plain, place = unmark(text) if marked else (text, None)
    with pytest.raises(LanguageError) as caught:
        use(Source(NAME, plain))
    assert len(caught.value.diagnostics) == 1
    diagnostic = caught.value.diagnostic
    if place is not None:
        found = plain.encode()[diagnostic.position.start : diagnostic.position.end].decode()
        assert diagnostic.position == place, f"points at {found!r}: {diagnostic}"
    return diagnostic


def raises(category: str, code: str, fragment: str, diagnostic: Diagnostic) -> None:
    """Check what a refusal says; the fragment must stand in the headline."""
    assert fragment in diagnostic.message, diagnostic.headline
    assert f": {category} error: " in diagnostic.headline
    assert (diagnostic.category, diagnostic.code) == (category, code)


def table(*rows: tuple[str, ...]) -> list[Any]:
    """Parametrize rows of (code, marked text, fragment), with the acceptance row they prove, if any."""
    params = []
    for code, text, fragment, *proves in rows:
        marks = [pytest.mark.acceptance(*proves)] if proves else []
        shown = text.replace("«", "").replace("»", "")[:70].strip()
        params.append(pytest.param(code, text, fragment, id=f"{code}: {shown!a}", marks=marks))
    return params
