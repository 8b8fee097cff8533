"""`omnigraph queries list` and `queries validate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

TOP = """\
queries:
  by_slug: {file: lib.gq, mcp: {tool_name: find_author}}
  add_author: {file: lib.gq, mcp: {expose: false}}
"""
NAMED = "graphs: {g: {uri: G, queries: {all_authors: {file: lib.gq}}}, h: {uri: H}}\n"


@pytest.fixture
def project(full: str, monkeypatch, tmp_path) -> Path:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OMNIGRAPH_SUPPRESS_YAML_DEPRECATION", "1")
    path = Path("omnigraph.yaml")
    path.write_text(TOP)
    return path


def test_the_registry_is_listed(cli, project):
    assert cli("queries", "list").out == (
        "mutation  add_author($slug: String, $born: I32)\n"
        "read  by_slug($slug: String) [mcp: find_author]\n"
    )
    code, out, _err = cli("queries", "list", "--json")
    assert code == 0
    assert json.loads(out) == {
        "queries": [
            {
                "name": "add_author",
                "mcp_expose": False,
                "tool_name": None,
                "mutation": True,
                "params": [
                    {"name": "slug", "type": "String", "nullable": False},
                    {"name": "born", "type": "I32", "nullable": False},
                ],
            },
            {
                "name": "by_slug",
                "mcp_expose": True,
                "tool_name": "find_author",
                "mutation": False,
                "params": [{"name": "slug", "type": "String", "nullable": False}],
            },
        ]
    }


def test_a_graph_is_selected_by_name(cli, project):
    project.write_text(NAMED)
    code, out, err = cli("queries", "list")
    assert (code, out) == (1, "")
    assert "--target g" in err
    assert cli("queries", "list", "--target", "g").out == "read  all_authors() [mcp: all_authors]\n"
    assert cli("queries", "list", "--target", "h").out == "(no stored queries registered)\n"
    assert "graph 'k' not found" in cli("queries", "list", "--target", "k").err
    project.write_text(NAMED + "cli: {graph: g}\n")
    assert cli("queries", "list").out.startswith("read  all_authors")


def test_nothing_is_registered_without_a_file(cli, project):
    project.unlink()
    assert cli("queries", "list").out == "(no stored queries registered)\n"


def test_stored_queries_are_checked_against_the_graph(cli, project):
    code, out, _err = cli("queries", "validate", "G")
    assert (code, out) == (0, "OK  2 stored queries type-check against the schema\n")
    assert json.loads(cli("queries", "validate", "G", "--json").out) == {
        "ok": True,
        "breakages": [],
        "warnings": [],
    }


def test_breakages_are_printed_and_fail(cli, project):
    Path("bad.gq").write_text(
        "query bad($v: Vector(2)) { match { $a: Author } return { $a.dead } }"
    )
    project.write_text(TOP + "  bad: {file: bad.gq}\n")
    code, out, _err = cli("queries", "validate", "G", "--json")
    document = json.loads(out)
    assert (code, document["ok"]) == (1, False)
    assert [one["query"] for one in document["breakages"]] == ["bad"]
    assert [one["query"] for one in document["warnings"]] == ["bad"]
    code, out, _err = cli("queries", "validate", "G")
    assert code == 1
    assert out.startswith("ERROR  query 'bad': ")
    assert "\nWARN   query 'bad': " in out


@pytest.mark.acceptance("U-105", partly="the command line")
def test_mistakes_of_the_registry_are_reported_together(cli, project):
    project.write_text(
        "queries:\n  by_slug: {file: lib.gq, mcp: {tool_name: t}}\n"
        "  all_authors: {file: lib.gq, mcp: {tool_name: t}}\n  gone: {file: gone.gq}\n"
    )
    for words in (("queries", "list"), ("queries", "validate", "G")):
        code, out, err = cli(*words)
        assert (code, out) == (1, "")
        assert "queries 'all_authors' and 'by_slug' have the same tool name 't'" in err
        assert "no such file" in err


def test_a_server_is_no_storage(cli, project):
    code, _out, err = cli("queries", "validate", "http://localhost:1")
    assert code == 1
    assert "`queries validate` is a storage-plane command and needs direct storage access" in err
