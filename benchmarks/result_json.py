"""How fast the rows of a result become JSON text, next to the ways that go through Python values.

A million rows of a string, an integer, a float, a moment and a truth value. The peers first turn
the columns into dicts and then write those: orjson, the standard library, and orjson once more with
moments as plain numbers, which is less to do. Goal: faster than all of them.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import time
from collections.abc import Callable

import numpy as np
import orjson
import pyarrow as pa

from omnigraph.language.types import PropType, Scalar
from omnigraph.read.result import Result
from omnigraph.versioning.commits import CommitId

TYPES = (Scalar.STRING, Scalar.I64, Scalar.F64, Scalar.DATETIME, Scalar.BOOL)
MOMENTS = orjson.OPT_NAIVE_UTC | orjson.OPT_UTC_Z


def sample(rows: int) -> pa.Table:
    chance = np.random.default_rng(7)
    return pa.table(
        {
            "p.name": pa.array([f"person {number} é" for number in range(rows)]),
            "p.age": pa.array(chance.integers(0, 2**40, rows)),
            "p.score": pa.array(chance.normal(size=rows)),
            "p.joined": pa.array(chance.integers(0, 2**40, rows)).cast(pa.date64(), safe=False),
            "p.active": pa.array(chance.integers(0, 2, rows).astype(bool)),
        }
    )


def written_moment(moment: object) -> str:
    assert isinstance(moment, dt.datetime)
    return moment.isoformat(timespec="milliseconds") + "Z"


def seconds(work: Callable[[], object], repeats: int) -> float:
    """The least processor time of several runs, which a busy machine hardly changes."""
    times = []
    for _ in range(repeats):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    table = sample(options.rows)
    types = tuple(PropType(scalar) for scalar in TYPES)
    commit = CommitId("01ARZ3NDEKTSV4RRFFQ69G5FAV")
    result = Result("q", table, types, branch="main", snapshot=None, commit_id=commit)
    timed, plain = (
        table.set_column(3, "p.joined", table.column(3).cast(type))
        for type in (pa.timestamp("ms"), pa.int64())
    )
    ways: dict[str, Callable[[], object]] = {
        "Result.to_json": result.to_json,
        "orjson over to_pylist": lambda: orjson.dumps(timed.to_pylist(), option=MOMENTS),
        "json over to_pylist": lambda: json.dumps(timed.to_pylist(), default=written_moment),
        "orjson, plain numbers": lambda: orjson.dumps(plain.to_pylist()),
        "Result.to_dicts": result.to_dicts,
        "to_pylist": timed.to_pylist,
    }
    ours = 0.0
    for name, work in ways.items():
        taken = seconds(work, options.repeats)
        ours = ours or taken
        print(
            f"{name:24} {taken:7.2f} s  {options.rows / taken:12,.0f} rows/s  {taken / ours:5.1f}x"
        )


if __name__ == "__main__":
    main()
