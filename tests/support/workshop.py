"""The workshop example most suites use: its schema and rows, kept with the text cases."""

from pathlib import Path

_FOLDER = Path(__file__).parents[1] / "cases"

WORKSHOP = (_FOLDER / "workshop.pg").read_text(encoding="utf-8")
WORKSHOP_ROWS = (_FOLDER / "workshop.jsonl").read_text(encoding="utf-8")
