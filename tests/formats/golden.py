"""Files that show what is stored or printed: today's code must read and write exactly these.

A file is written when it does not exist and `WRITE_FORMATS` is set; one that exists is never
overwritten, so a format changes only by a new file beside the old one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[1] / "fixtures" / "formats"


def golden(name: str, written: str) -> str:
    """The text of a file, which must be what the code writes today."""
    path = FOLDER / name
    if not path.exists() and os.environ.get("WRITE_FORMATS"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(written.encode())
    text = path.read_bytes().decode()
    assert written == text
    return text


def read_golden(name: str) -> str:
    return (FOLDER / name).read_bytes().decode()
