"""Source texts that show where an error belongs: `node L { v: Vector(«0») }`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from omnigraph.diagnostics import Diagnostic
from omnigraph.errors import LanguageError
from omnigraph.language.span import Source


class Marked(NamedTuple):
    """A text without its marks, and the bytes between them."""

    text: str
    start: int
    end: int


def unmark(text: str) -> Marked:
    """Take the marks `«…»` out. An empty pair is a place between two characters: one is meant."""
    before, opening, rest = text.partition("«")
    inner, closing, after = rest.partition("»")
    assert opening, f"no mark in {text!r}"
    assert closing, f"no closing mark in {text!r}"
    start = len(before.encode())
    return Marked(before + inner + after, start, start + max(1, len(inner.encode())))


def refusal(
    use: Callable[[Source], object], text: str, *, name: str = "<text>", marked: bool = True
) -> Diagnostic:
    """The one diagnostic of a text that must be refused, at the marked place if there is one."""
    place = unmark(text) if marked else Marked(text, 0, 0)
    with pytest.raises(LanguageError) as caught:
        use(Source(name, place.text))
    assert len(caught.value.diagnostics) == 1
    diagnostic = caught.value.diagnostic
    if marked:
        at = diagnostic.position
        found = place.text.encode()[at.start : at.end].decode()
        assert (at.start, at.end) == (place.start, place.end), f"points at {found!r}: {diagnostic}"
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
