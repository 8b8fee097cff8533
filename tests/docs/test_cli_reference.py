"""The reference of the command line says what the commands say."""

from __future__ import annotations

from pathlib import Path

from omnigraph.cli.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "user" / "cli.md"


def test_the_page_is_what_the_commands_say():
    assert PAGE.read_text(encoding="utf-8") == reference(), (
        "docs/user/cli.md is stale; run: "
        ".venv/bin/python -m omnigraph.cli.reference > docs/user/cli.md"
    )
