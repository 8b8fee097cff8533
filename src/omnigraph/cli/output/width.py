"""How wide text is on a terminal, and cutting it to a width.

Most text is ASCII, where characters and terminal cells are the same; the tables for everything
else are loaded when the first other character turns up.
"""

from __future__ import annotations


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
    """The text in pieces that fit; at least one piece, even for an empty text."""
    if measure(text) <= width:
        return [text]
    if text.isascii():
        return [text[start : start + width] for start in range(0, len(text), width)]
    from rich.cells import chop_cells

    return chop_cells(text, width)
