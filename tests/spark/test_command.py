"""`omnigraph load` with both engines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from uuid import uuid4

import pytest

from omnigraph.cli.main import main
from tests.spark.graphs import SCHEMA, town
from tests.spark.processes import processes_with


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
        commit = document["commit"]
        assert commit["graph_commit_id"] == document["graph_commit_id"]
        passing = {"uri", "graph_commit_id", "parent_commit_id", "load_id", "commit"}
        documents[engine] = {k: v for k, v in document.items() if k not in passing}
    assert documents["inline"].pop("engine") == "inline"
    assert documents["spark"].pop("engine") == "spark"
    assert documents["spark"] == documents["inline"]


def test_a_load_on_spark_leaves_no_process_and_no_file_behind(tmp_path):
    (tmp_path / "town.pg").write_text(SCHEMA)
    (tmp_path / "town.jsonl").write_text(town(20))
    assert main(["init", "--schema", str(tmp_path / "town.pg"), str(tmp_path / "g")]) == 0
    temporary, cache = tmp_path / "tmp", tmp_path / "cache"
    temporary.mkdir()
    mark = f"mark-{uuid4()}"
    own = {"OMNIGRAPH_TEST_MARK": mark, "TMPDIR": str(temporary)}
    own["OMNIGRAPH_SPARK_CACHE"] = str(cache)
    code = "from omnigraph.cli.entry import run; raise SystemExit(run())"
    load = ["load", "g", "--data", "town.jsonl", "--mode", "append", "--engine", "spark"]
    done = subprocess.run(
        [sys.executable, "-c", code, *load],
        cwd=tmp_path,
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert processes_with(mark) == []
    assert list(temporary.iterdir()) == []
    assert not cache.exists()
