"""SVG text: boxes, links and labels, and the picture that a notebook shows.

Widths of texts are estimated, so that nothing has to be measured and the same input gives the same picture.
Tests: tests/unit/engine/test_pictures.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape, quoteattr

LINE_HEIGHT: Final = 18
CHARACTER_WIDTH: Final = 7.4
"""Of the monospaced font at 12 px."""
PADDING: Final = 10
COLOURS: Final = (
    "#dbeafe", "#dcfce7", "#fef3c7", "#fce7f3", "#ede9fe", "#ffedd5", "#cffafe", "#fee2e2",
)  # fmt: skip

_CLASS: Final = "omnigraph-picture"
_STYLE: Final = "".join(
    f".{_CLASS} {rule}"
    for rule in (
        "text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1f2937}",
        ".title{font-weight:700}",
        ".note{fill:#6b7280}",
        ".box{stroke:#6b7280;stroke-width:1}",
        ".link{stroke:#6b7280;stroke-width:1.2;fill:none}",
        ".paper{fill:#ffffff}",
    )
)
"""A notebook is one page, so the rules hold inside of pictures alone."""

_ARROW: Final = (
    '<marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
    'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="#6b7280"/></marker>'
)


class Picture:
    """A drawing as SVG text. Notebooks show it; `save` writes it to a file."""

    def __init__(self, svg: str, summary: str) -> None:
        self.svg = svg
        self._summary = summary

    def __repr__(self) -> str:
        return f"<picture: {self._summary}>"

    def __str__(self) -> str:
        return self.svg

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> None:
        """Write the picture to an `.svg` file, or to an `.html` file that holds nothing else."""
        target = Path(path)
        text = self.svg
        if target.suffix in (".html", ".htm"):
            title = escape(self._summary)
            text = f'<!doctype html><meta charset="utf-8"><title>{title}</title>\n{text}'
        target.write_text(text + "\n", encoding="utf-8")


@dataclass(slots=True)
class Drawing:
    """A drawing under way; it is as large as what was drawn."""

    parts: list[str] = field(default_factory=list)
    width: float = 0
    height: float = 0

    def box(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        self._reach(x + width, y + height)
        self.parts.append(
            f'<rect class="box" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
            f'rx="6" fill={quoteattr(colour)}/>'
        )

    def circle(self, x: float, y: float, radius: float, colour: str, title: str = "") -> None:
        self._reach(x + radius, y + radius)
        about = f"<title>{escape(title)}</title>" if title else ""
        self.parts.append(
            f'<circle class="box" cx="{x:g}" cy="{y:g}" r="{radius:g}" '
            f"fill={quoteattr(colour)}>{about}</circle>"
        )

    def text(
        self, x: float, y: float, text: str, style: str = "", anchor: str = "start", title: str = ""
    ) -> None:
        width = text_width(text)
        self._reach(x + {"start": width, "middle": width / 2, "end": 0}[anchor], y + 4)
        kind = f' class="{style}"' if style else ""
        about = f"<title>{escape(title)}</title>" if title else ""
        self.parts.append(
            f'<text{kind} x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}{about}</text>'
        )

    def link(self, path: str, *, arrow: bool = True) -> None:
        end = ' marker-end="url(#arrow)"' if arrow else ""
        # Links lie below boxes.
        self.parts.insert(0, f'<path class="link" d={quoteattr(path)}{end}/>')

    def finish(self, summary: str) -> Picture:
        width, height = self.width + PADDING, self.height + PADDING
        body = "\n".join(self.parts)
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{_CLASS}" width="{width:g}" height="{height:g}" '
            f'viewBox="0 0 {width:g} {height:g}" role="img" aria-label={quoteattr(summary)}>\n'
            f"<style>{_STYLE}</style><defs>{_ARROW}</defs>\n"
            f'<rect class="paper" width="100%" height="100%"/>\n{body}\n</svg>'
        )
        return Picture(svg, summary)

    def _reach(self, x: float, y: float) -> None:
        self.width, self.height = max(self.width, x), max(self.height, y)


def text_width(text: str) -> float:
    return len(text) * CHARACTER_WIDTH


def shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
