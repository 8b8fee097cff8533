"""`omnigraph analyze`."""

from __future__ import annotations

import json

import pytest

import omnigraph as og


@pytest.mark.acceptance("U-159", partly="--out; the algorithm is called degrees")
def test_values_are_printed_in_every_format(cli, full):
    code, out, _ = cli("analyze", "degrees", full, "--edge", "Cites", "--undirected", "--json")
    document = json.loads(out)
    assert (code, document["query_name"], document["row_count"]) == (0, "degrees", 2)
    assert document["rows"][0] == {"type": "Book", "id": "b1", "degree": 1}
    code, out, _ = cli("analyze", "k_hop", full, "-p", "hops=1", "--top", "1", "--format", "csv")
    assert (code, out.splitlines()[0]) == (0, "type,id,hop_1")
    code, _, err = cli("analyze", "k_hop", full, "-p", "hops=many")
    assert code == 1
    assert "parameter 'hops' of k_hop must be a whole number" in err


def test_values_are_written_as_one_commit(cli, full):
    graph = full
    code, _, err = cli("analyze", "degrees", graph, "--node", "Author", "--write", "degree=fame")
    assert code == 1
    assert "has no property 'fame'" in err
    code, out, _ = cli(
        "analyze", "degrees", graph, "--edge", "Wrote", "--node", "Author", "--node", "Book",
        "--write", "degree=born", "--json",
    )  # fmt: skip
    assert code == 1
    wider = og.open(graph)
    wider.schema.apply(wider.schema.source.replace("born: I32?", "born: I32?\n    fame: I64?"))
    words = (
        "analyze",
        "degrees",
        graph,
        "--node",
        "Author",
        "--write",
        "degree=fame",
        "-m",
        "fame",
    )
    code, out, _ = cli(*words, "--json")
    document = json.loads(out)
    assert (code, document["write"], document["operation"]) == (0, {"degree": "fame"}, "load")
    code, out, _ = cli(*words)
    assert code == 0
    assert out.splitlines()[0].endswith("degrees on branch main, wrote degree to fame")


def test_options_that_exclude_each_other(cli, full):
    for words in (
        ("--write", "degree=born", "--top", "1"),
        ("-m", "text"),
        ("--json", "--format", "csv"),
        ("--write", "degree"),
        ("--branch", "main", "--snapshot", "main"),
    ):
        assert cli("analyze", "degrees", full, *words)[0] == 2
