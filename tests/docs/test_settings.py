"""The page of environment variables lists exactly the table in the code."""

from __future__ import annotations

import re

from omnigraph.settings import OWN_PREFIX, VARIABLES, Variable
from tests.docs.markdown import ROOT

PAGE = ROOT / "docs" / "user" / "settings.md"
ROW = re.compile(r"^\| `[A-Z]", re.MULTILINE)


def shown(default: object) -> str:
    if isinstance(default, bool):
        return f"`{int(default)}`"
    return (
        ""
        if default in (None, "")
        else f"`{default:g}`"
        if isinstance(default, float)
        else f"`{default}`"
    )


def row(variable: Variable) -> str:
    if not variable.name.startswith(OWN_PREFIX):
        return f"| `{variable.name}` | {variable.meaning} |"
    kind, default = variable.kind.accepts, shown(variable.default)
    return f"| `{variable.name}` | {kind} | {default} | {variable.meaning} |".replace("|  |", "| |")


def test_the_page_lists_every_variable_and_no_other():
    listed = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if ROW.match(line)]
    assert listed == [row(variable) for variable in VARIABLES]
