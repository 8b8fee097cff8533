"""One bad key among many records: only rows with suspicious keys come to the driver."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from contextlib import nullcontext
from typing import Any

import pytest

from omnigraph.api.graph import init
from omnigraph.errors import LoadError
from omnigraph.load import spark_load, spark_validation
from omnigraph.spark.tasks import noting_jobs
from tests.spark.graphs import SCHEMA, comparable, edge, exported, person, town
from tests.spark.in_process import patched, tasks_in_this_process

COUNTED = SCHEMA + "edge Owes: Person -> Person @card(2..3)\n"


def rows_brought(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows that came to the driver, once for every time."""
    found: list[int] = []
    all_rows = spark_validation.all_rows

    def noted(*arguments: Any) -> Any:
        tables = all_rows(*arguments)
        found.append(sum(table.num_rows for table in tables.values()))
        return tables

    monkeypatch.setattr(spark_validation, "all_rows", noted)
    return found


WRONG = {
    "key twice": ("append", [person("p0")], 2),
    "unique value twice": ("append", [person("new", email="p1@example.org")], 2),
    "missing ends": ("append", [edge("Knows", "p0", "nobody"), edge("Knows", "nil", "p0")], 2),
    "too many edges": ("append", [edge("LivesIn", "p0", "Ulm")], 2),
    "taken key": ("append", [person("old1")], 1),
    "taken value": ("merge", [person("new", email="old1@example.org")], 1),
    "too few edges": ("append", [edge("Owes", "p1", "p2")], 1),
    "too few of one id": (
        "merge",
        [edge("Owes", "p1", "p2", id="e"), edge("Owes", "p1", "p3"), edge("Owes", "p2", "p3", id="e")],
        3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_rows_with_suspicious_keys_are_enough_to_say_what_is_wrong(tmp_path, what, monkeypatch):
    mode, more, count = WRONG[what]
    old = "\n".join(person(f"old{n}", email=f"old{n}@example.org") for n in range(3))
    found, brought = [], rows_brought(monkeypatch)
    for engine in ("inline", "spark"):
        graph = init(str(tmp_path / engine), COUNTED)
        graph.load(old.encode(), "append", engine="inline")
        text = (town(100) + "\n".join(more)).encode()
        with tasks_in_this_process(2000), pytest.raises(LoadError) as caught:
            graph.load(text, mode, engine=engine, load_id="x")
        found.append((str(caught.value), caught.value.load_errors))
    assert found[0] == found[1]
    assert 0 < max(brought) <= count


def test_rows_that_are_replaced_elsewhere_in_the_load_own_nothing(tmp_path, monkeypatch):
    """A value moves from one row to another, and only the row that gets it is suspicious."""
    brought = rows_brought(monkeypatch)
    before = "\n".join(person(f"p{n}", email=f"e{n}") for n in range(60))
    moved = "\n".join(person(f"p{n}", email=f"e{(n + 1) % 60}") for n in range(60))
    edges = [edge("Knows", "p1", "p2", id="k"), edge("Knows", "p3", "p4", id="k")]
    found = []
    for engine in ("inline", "spark"):
        graph = init(str(tmp_path / engine), SCHEMA)
        graph.load(before.encode(), "append", engine="inline")
        with tasks_in_this_process(500), patched((spark_load, "_bucket_count", lambda _: 7)):
            text = moved + "\n" + "\n".join(edges)
            result = graph.load(text.encode(), "merge", engine=engine, load_id="x")
        found.append((comparable(result), exported(graph)))
    assert found[0] == found[1]
    assert brought


@pytest.mark.parametrize("wrong", [False, True])
def test_spark_sends_the_driver_little_more_for_a_duplicate(spark, tmp_path, wrong):
    """The keys of 20,000 records are about 400 kB."""
    graph = init(str(tmp_path / "graph"), "node Maker { handle: String @key }")
    line = '{"type":"Maker","data":{"handle":"a-rather-long-handle-%d"}}\n'
    lines = [line % n for n in range(20_000)]
    text = "".join([*lines, lines[7]] if wrong else lines).encode()
    refused = pytest.raises(LoadError, match="records 8 and 20001") if wrong else nullcontext()
    with noting_jobs() as jobs, patched((spark_load, "LOAD_RANGE_BYTES", 200_000)), refused:
        graph.load(text, "append", engine="spark")
    names = [job.name for job in jobs]
    assert ("bring suspicious rows together" in names) == wrong
    assert sum(job.bytes for job in jobs) < 60_000
    assert all(job.tasks > 3 for job in jobs)


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_committed_rows_are_compared_in_portions(tmp_path, mode, monkeypatch):
    """Of a scan of committed rows only those that matter are kept, however many portions there are."""
    old = town(60) + "\n".join(edge("Owes", f"p{n}", f"p{n + 1}") for n in range(50))
    text = "\n".join(
        [person("p7"), person("q", email="p9@example.org"), edge("LivesIn", "p3", "Ulm")]
    )
    text += "\n" + "\n".join(edge("Owes", "p8", f"p{n}") for n in range(20, 22))
    found = []
    for rows in (10**6, 7):
        graph = init(
            str(tmp_path / f"{rows}"), SCHEMA + "edge Owes: Person -> Person @card(0..2)\n"
        )
        graph.load(old.encode(), "append", engine="inline")
        monkeypatch.setattr("omnigraph.storage.scan.SCANNED_ROWS", rows)
        monkeypatch.setattr("omnigraph.versioning.snapshot_rows.LOOKUP_VALUES", 0)
        monkeypatch.setattr("omnigraph.storage.scan.ROWS_SCANNED_PER_LOOKUP", 10**6)
        with pytest.raises(LoadError) as caught:
            graph.load(text.encode(), mode, engine="inline", load_id="x")
        found.append(caught.value.load_errors)
    assert found[0] == found[1]
    assert len(found[0]) == (4 if mode == "append" else 3)


DRIVER = """
    import sys
    from pathlib import Path
    import omnigraph as og
    from omnigraph.spark import session
    folder, seed, heap = sys.argv[1:]
    session._heap_bytes = lambda: int(heap)
    graph = og.init(folder, "node Maker { handle: String @key }")
    try:
        print(graph.load(seed, "append", engine=og.Spark("local[2,4]")).engine)
    except og.errors.LoadError as error:
        print(str(error).splitlines()[1].partition("record")[2])
    processes = ["self", session._own[0].gateway.process.pid]
    for status in (Path(f"/proc/{one}/status").read_text() for one in processes):
        print(int(status.partition("VmHWM:")[2].split()[0]) // 1024)
"""


@pytest.mark.slow
def test_a_driver_with_little_memory_finds_one_duplicate_among_millions(tmp_path):
    """The keys alone have about 100 MB; Java has half a gigabyte for everything."""
    line = '{"type":"Maker","data":{"handle":"a-rather-long-handle-of-a-maker-%d"}}\n'
    count, found = 2_000_000, {}
    for kind in ("clean", "duplicate"):
        seed = tmp_path / f"{kind}.jsonl"
        with seed.open("w") as file:
            file.writelines(line % n for n in range(count))
            if kind == "duplicate":
                file.write(line % 7)
        command = [sys.executable, "-c", textwrap.dedent(DRIVER)]
        done = subprocess.run(
            [*command, str(tmp_path / kind), str(seed), str(512 << 20)],
            capture_output=True, text=True, timeout=1500, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        said, python, java = done.stdout.splitlines()
        found[kind] = (said.strip(), int(python) + int(java))
    assert found["clean"][0] == "spark"
    assert "appears in records 8 and 2000001" in found["duplicate"][0]
    assert found["duplicate"][1] < found["clean"][1] + 200, found
