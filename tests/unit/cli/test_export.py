"""`omnigraph export`: the lines, the filters, and the file they can go to."""

from __future__ import annotations

import json
import os

import pytest

ROWS = {"edge:Cites": 1, "edge:Wrote": 2, "node:Author": 3, "node:Book": 2}


def rows(cli, uri: str) -> dict[str, int]:
    document = json.loads(cli("snapshot", uri, "--json").out)
    return {table["table_key"]: table["row_count"] for table in document["tables"]}


@pytest.mark.acceptance("U-028")
def test_edges_come_first_and_every_node_has_its_type_and_id(cli, full):
    code, out, err = cli("export", full)
    assert (code, err) == (0, "")
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line.get("edge") or line["type"] for line in lines] == [
        "Cites",
        "Wrote",
        "Wrote",
        "Author",
        "Author",
        "Author",
        "Book",
        "Book",
    ]
    assert [line["data"]["id"] for line in lines[3:]] == ["ada", "bob", "cy", "b1", "b2"]
    assert lines[5] == {"data": {"id": "cy", "slug": "cy", "born": None}, "type": "Author"}


@pytest.mark.acceptance("U-029")
def test_one_type_alone(cli, full):
    code, out, _ = cli("export", full, "--type", "Author")
    assert code == 0
    assert [json.loads(line)["type"] for line in out.splitlines()] == ["Author"] * 3


@pytest.mark.acceptance("U-029")
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--type", "Nope"], "unknown export type"),
        (["--table", "node:Nope"], "unknown export table"),
    ],
)
def test_an_unknown_type_is_an_error_and_nothing_is_printed(cli, full, args, message):
    code, out, err = cli("export", full, *args)
    assert (code, out) == (1, "")
    assert message in err
    assert "Nope" in err


def test_filters_add_up(cli, full):
    code, out, _ = cli(
        "export", full, "--type", "Author", "--table", "edge:Cites", "--table", "node:Author"
    )
    assert code == 0
    assert len(out.splitlines()) == 4


@pytest.mark.acceptance("U-030")
def test_an_export_loads_into_a_fresh_graph(cli, full, library):
    assert cli("export", full, "--out", "all.jsonl").code == 0
    assert cli("init", "--schema", "library.pg", "copy").code == 0
    assert cli("load", "--mode", "overwrite", "--data", "all.jsonl", "copy").code == 0
    assert rows(cli, "copy") == rows(cli, full) == ROWS
    assert cli("export", "copy").out == cli("export", full).out


def test_another_branch(cli, full):
    cli("branch", "create", "--uri", full, "draft")
    assert cli("export", full, "--branch", "draft").out == cli("export", full).out
    message = "error[OG-N-002]: branch 'gone' not found\n"
    assert cli("export", full, "--branch", "gone") == (1, "", message)


def test_a_file_gets_the_same_lines(cli, full, library):
    expected = cli("export", full).out
    code, out, err = cli("export", full, "--out", "all.jsonl")
    assert (code, out, err) == (0, "", "exported 8 nodes and edges to all.jsonl\n")
    assert (library / "all.jsonl").read_text() == expected


def test_a_failure_leaves_the_file_as_it_was(cli, full, library):
    (library / "all.jsonl").write_text("precious\n")
    before = sorted(os.listdir(library))
    assert cli("export", full, "--type", "Nope", "--out", "all.jsonl").code == 1
    assert (library / "all.jsonl").read_text() == "precious\n"
    assert sorted(os.listdir(library)) == before


@pytest.mark.parametrize("out", ["missing/all.jsonl", "G"])
def test_a_place_that_takes_no_file_is_named(cli, full, out):
    code, _, err = cli("export", full, "--out", out)
    assert code == 1
    assert err.startswith(f"error[OG-I-010]: '{out}' cannot be written: ")


def test_the_old_flag_for_the_format_is_accepted_and_useless(cli, full):
    code, out, err = cli("export", full, "--jsonl")
    assert (code, out) == (0, cli("export", full).out)
    assert "--jsonl has no effect" in err
    assert "--jsonl" not in cli("export", "--help").out


def test_an_empty_graph_exports_nothing(cli, empty):
    assert cli("export", empty) == (0, "", "")


def test_parquet_files_load_into_a_fresh_graph(cli, full, library):
    code, out, err = cli("export", full, "--format", "parquet", "--out", "all")
    assert (code, out) == (0, "")
    assert err == "exported 8 nodes and edges to all\n"
    assert sorted(path.name for path in (library / "all").iterdir()) == [
        "Author.parquet",
        "Book.parquet",
        "Cites.parquet",
        "Wrote.parquet",
    ]
    assert cli("init", "--schema", "library.pg", "copy").code == 0
    assert cli("load", "--mode", "overwrite", "--data", "all", "copy").code == 0
    assert cli("export", "copy").out == cli("export", full).out


def test_parquet_files_of_selected_types_and_of_a_commit(cli, full, library):
    first = json.loads(cli("commit", "list", full, "--json").out)["commits"][0]["graph_commit_id"]
    selected = ("--format", "parquet", "--type", "Author", "--snapshot", first)
    assert cli("export", full, *selected, "--out", "authors").code == 0
    assert [path.name for path in (library / "authors").iterdir()] == ["Author.parquet"]
    overwrite = ("load", "--mode", "overwrite", "--data", "authors", "--cascade", full)
    assert cli(*overwrite).code == 0
    assert rows(cli, full)["node:Author"] == 0


def test_parquet_goes_to_a_new_folder_only(cli, full, library):
    code, _, err = cli("export", full, "--format", "parquet")
    assert code == 2
    assert "say where with --out" in err
    code, _, err = cli("export", full, "--format", "parquet", "--out", ".")
    assert code == 1
    assert err == "error[OG-I-010]: '.' is not an empty directory; choose another target\n"
    (library / "new").mkdir()
    assert cli("export", full, "--format", "parquet", "--out", "new").code == 0


def test_a_branch_and_a_commit_exclude_each_other(cli, full):
    assert cli("export", full, "--branch", "main", "--snapshot", "x").code == 2
