"""In one process, as one task and as several: whatever the input, the graphs are equal."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.api.graph import init
from omnigraph.errors import DanglingEdges, LoadError
from omnigraph.load import spark_load
from tests.spark.graphs import comparable, exported
from tests.spark.in_process import tasks_in_this_process
from tests.unit.load.inputs import DENSE, dense_inputs

MODES = st.sampled_from(["append", "merge", "overwrite", "patch"])
EVERYTHING = 10**6


@contextmanager
def tasks_of_spark(step: int) -> Iterator[None]:
    with patch.object(spark_load, "LOAD_RANGE_BYTES", step):
        yield


def outcome(
    uri: Path, earlier: str, text: str, mode: str, quarantine: bool, cascade: bool, engine: str
) -> Any:
    """All that can be seen of two loads, one after the other."""
    graph = init(str(uri), DENSE)
    options: dict[str, Any] = {"max_errors": EVERYTHING}
    seen: list[Any] = []
    for number, (records, how) in enumerate([(earlier, "merge"), (text, mode)]):
        folder = uri.parent / f"{uri.name}-bad-{number}"
        if quarantine or number == 0:
            options["quarantine"] = folder
        else:
            options.pop("quarantine", None)
        options["cascade"] = how == "overwrite" and cascade
        try:
            result = graph.load(
                records.encode(), how, engine=engine, load_id=f"load-{number}", **options
            )
            seen.append(comparable(result))
        except LoadError as error:
            seen.append((str(error), error.load_errors, error.bad_records))
        except DanglingEdges as error:
            seen.append(str(error))
        kept = folder / f"load-{number}" / "bad.jsonl"
        seen.append(kept.read_text() if kept.exists() else None)
        seen.append(exported(graph))
    return seen


def assert_equal(
    tasks: Any, earlier: str, text: str, mode: str, quarantine: bool, cascade: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:
        given = (earlier, text, mode, quarantine, cascade)
        inline = outcome(Path(name) / "inline", *given, "inline")
        for step in (EVERYTHING, 300):
            with tasks(step):
                assert outcome(Path(name) / f"spark-{step}", *given, "spark") == inline


@settings(max_examples=5, suppress_health_check=list(HealthCheck))
@given(
    earlier=dense_inputs(),
    text=dense_inputs(),
    mode=MODES,
    quarantine=st.booleans(),
    cascade=st.booleans(),
)
def test_any_number_of_tasks_leaves_the_same_graph(earlier, text, mode, quarantine, cascade):
    assert_equal(tasks_in_this_process, earlier, text, mode, quarantine, cascade)


@pytest.mark.slow
@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(
    earlier=dense_inputs(),
    text=dense_inputs(),
    mode=MODES,
    quarantine=st.booleans(),
    cascade=st.booleans(),
)
def test_any_number_of_tasks_leaves_the_same_graph_for_many_inputs(
    earlier, text, mode, quarantine, cascade
):
    assert_equal(tasks_in_this_process, earlier, text, mode, quarantine, cascade)


@pytest.mark.slow
@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(
    earlier=dense_inputs(),
    text=dense_inputs(),
    mode=MODES,
    quarantine=st.booleans(),
    cascade=st.booleans(),
)
def test_tasks_of_spark_leave_the_same_graph(spark, earlier, text, mode, quarantine, cascade):
    assert_equal(tasks_of_spark, earlier, text, mode, quarantine, cascade)
