"""The workshop example most suites use: its schema, kept with the text cases."""

from pathlib import Path

_FOLDER = Path(__file__).parent / "cases"

WORKSHOP = (_FOLDER / "workshop.pg").read_text(encoding="utf-8")
