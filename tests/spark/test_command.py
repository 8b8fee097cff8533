"""`omnigraph load` with both engines."""

from __future__ import annotations

import json

import pytest

from omnigraph.cli.main import main
from tests.spark.graphs import SCHEMA, town


@pytest.mark.acceptance("U-144")
def test_both_engines_print_equal_documents(spark, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "town.pg").write_text(SCHEMA)
    (tmp_path / "town.jsonl").write_text(town(20))
    documents = {}
    for engine in ("inline", "spark"):
        assert main(["init", "--schema", "town.pg", engine]) == 0
        capsys.readouterr()
        load = ["load", engine, "--data", "town.jsonl", "--mode", "append", "--json"]
        assert main([*load, "--engine", engine]) == 0
        document = json.loads(capsys.readouterr().out)
        passing = {"uri", "graph_commit_id", "parent_commit_id", "load_id"}
        documents[engine] = {k: v for k, v in document.items() if k not in passing}
    assert documents["inline"].pop("engine") == "inline"
    assert documents["spark"].pop("engine") == "spark"
    assert documents["spark"] == documents["inline"]
