"""The page on configuration has every key of the operator config, and its examples are valid."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import fields

from omnigraph.config.legacy import NEW_HOMES, parse_legacy_config
from omnigraph.config.operator import Binding, Display, OperatorConfig, parse_operator_config
from tests.docs.markdown import Page
from tests.docs.test_user_docs import FOLDER, PAGES

PATH = Path("/home/ada/.omnigraph/config.yaml")
PAGE = Page(FOLDER / "configuration.md")
EXAMPLES = [block for block in PAGES["configuration.md"] if block.language == "yaml"]
COMPLETE = EXAMPLES[-1]


@pytest.mark.parametrize("block", EXAMPLES, ids=str)
def test_an_example_is_valid_and_has_no_unknown_key(block):
    if block.file == "omnigraph.yaml":
        assert parse_legacy_config(block.text, Path(block.file)).present
    else:
        assert parse_operator_config(block.text, PATH).warnings == ()


def test_the_complete_example_sets_everything():
    config = parse_operator_config(COMPLETE.text, PATH)
    empty = OperatorConfig(PATH)
    unset = [
        field.name
        for field in fields(OperatorConfig)
        if getattr(config, field.name) == getattr(empty, field.name)
    ]
    assert unset == ["path", "warnings"]
    assert None not in (config.display.output, config.display.max_column_width)
    assert config.display != Display()
    assert config.defaults == Binding(server="prod", default_graph="team")
    assert {field.name for field in fields(config.aliases["person"])} == {
        "name", "server", "query", "graph", "args", "params", "format"
    }  # fmt: skip


def test_the_table_has_every_key_of_the_project_file():
    listed = "\n".join(row[0] for row in PAGE.table("The project file"))
    for key in NEW_HOMES:
        assert f"`{key}" in listed, key
