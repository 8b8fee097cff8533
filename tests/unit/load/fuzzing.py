"""Loads of damaged bytes, run in a process of their own: a reader that crashes takes only that with it.

`python -m tests.unit.load.fuzzing SEED ROUNDS` ends with 0 when every load ended as it should.
"""

from __future__ import annotations

import gzip
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

from omnigraph.errors import LoadError, OmnigraphError
from omnigraph.load.json_text import MalformedText, read_value
from omnigraph.load.records import Problem
from omnigraph.load.sources import JsonSource
from omnigraph.load.splits import Split, count_split, located, read_split, split_sources
from tests.unit.load.loading import Anywhere, catalog_of, load

CATALOG = catalog_of("""
node P {
    k: String @key
    n: I64?
    f: F64?
    day: Date?
    tags: [String]?
    xs: [F32]?
    v: Vector(2)?
    b: Blob?
}
edge E: P -> P { w: F32? }
""")

DEEP = 3_000
VALUES = (
    b"null", b"true", b"false", b"1", b"-0.0", b"1e400", b"NaN", b"-Infinity", b'"text"', b'""', b"[]",
    b"[null]", b"[[]]", b"{}", b"[{}]", b"9" * 5_000, b"-" + b"9" * 400, b"0." + b"1" * 5_000,
    b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP, b"[" * DEEP, b'"\\ud83d\\ude00"',
    b'"\\ud83d"', b'"\\ude00\\ud83d"', b'"\\u0000"', b'"\xff"', b'"\xf0\x9f\x98\x80"', b'"} null {"',
    b'"\xed\xa0\x80"', b"nul", b'"open', b"\x00", b"\xef\xbb\xbf", b"\xc3", b"//", b"[1,2]", b"[NaN,1]",
)  # fmt: skip
"""JSON of every kind, and what is none."""

GLUE = (
    b"\n",
    b"\n",
    b"\n",
    b"\r\n",
    b"\n\n",
    b" ",
    b"",
    b"\t",
    b",",
    b"\n ",
    b"\r",
    b" null ",
    b"\x00",
)
KEYS = (
    b"k",
    b"n",
    b"f",
    b"day",
    b"tags",
    b"xs",
    b"v",
    b"b",
    b"id",
    b"unknown",
    b"\\u006b",
    b"\xff",
)


def record(rng: random.Random) -> bytes:
    """A node or an edge, most of them good."""
    name = b"p%d" % rng.randrange(10**6)
    pairs = [b'"k":"%s"' % name]
    while rng.random() < 0.4:
        pairs.append(b'"%s":%s' % (rng.choice(KEYS), rng.choice(VALUES)))
    rng.shuffle(pairs)
    data = b"{" + b",".join(pairs) + b"}"
    match rng.randrange(8):
        case 0:
            return b'{"data":%s,"type":"P"}' % data
        case 1:
            return b'{"type":"P","data":%s,"note":%s}' % (data, rng.choice(VALUES))
        case 2:
            return b'{"edge":"E","from":"a","to":%s}' % rng.choice(VALUES)
        case 3:
            return data
        case _:
            return b'{"type":"P","data":%s}' % data


def stream(rng: random.Random) -> bytes:
    """Some records with damage between, before and inside them."""
    parts = [record(rng) for _ in range(rng.randrange(6))]
    for _ in range(rng.randrange(3)):
        parts.insert(rng.randint(0, len(parts)), rng.choice(VALUES))
    text = b"".join(part + rng.choice(GLUE) for part in parts)
    if rng.random() < 0.2:
        text = rng.choice((b"\xef\xbb\xbf", b"\x00", b"\n", b"null\n")) + text
    if text and rng.random() < 0.2:
        text = text[: rng.randrange(len(text))]
    if text and rng.random() < 0.2:
        at = rng.randrange(len(text))
        text = text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :]
    return text


def csv_text(rng: random.Random) -> bytes:
    """A CSV text whose cells are JSON, which lists and vectors may be."""
    cells = (
        b"1.5",
        b"x",
        b"",
        b"nan",
        b"inf",
        b"1e999",
        b'[1]} null {"v":[2]',
        b"[null]} null {",
        *VALUES,
    )

    def cell() -> bytes:
        return b'"' + rng.choice(cells).replace(b'"', b'""') + b'"'

    rows = [
        b",".join((b"p%d" % n, *(cell() for _ in range(5)))) for n in range(rng.randrange(1, 5))
    ]
    return b"\n".join([b"k,n,f,tags,xs,v", *rows])


def outcome(call: Callable[[], object]) -> object:
    """Nothing for a load, or what the typed error says about records. Everything else is raised."""
    try:
        call()
    except OmnigraphError as error:
        return findings(error)
    return None


def findings(error: OmnigraphError) -> object:
    if isinstance(error, LoadError):
        assert error.load_errors_total >= len(error.load_errors) > 0
        assert len(str(error)) < 50_000, len(str(error))
        for problem in error.load_errors:
            assert problem.record is None or 1 <= problem.record <= error.records, problem
        return [(p.record, p.line, p.code, p.message) for p in error.load_errors]
    assert len(str(error)) < 5_000
    return type(error).__name__


def in_splits(data: bytes, step: int) -> list[Problem]:
    """The record phase as tasks do it: split by split, each with what was counted before it."""
    splits = split_sources([JsonSource(data)], step)
    splits = located(splits, [count_split(split) for split in splits])
    return [
        problem
        for split in splits
        for read in read_split(split, CATALOG, "job", threads=1, blobs=Anywhere())
        for problem in read.problems
    ]


def check_stream(data: bytes, folder: Path) -> None:
    whole = outcome(lambda: load(data, CATALOG, load_id="job"))
    assert whole == outcome(lambda: load(gzip.compress(data), CATALOG, load_id="job"))
    for block in (16, 200):
        with patch("omnigraph.load.json_text.LOAD_BLOCK_BYTES", block):
            outcome(lambda: load(data, CATALOG, load_id="job"))
    outcome(lambda: load(data, CATALOG, "patch"))
    if not data.startswith(b"\x1f\x8b"):
        in_splits(data, 100)
    path = folder / "objects.json"
    path.write_bytes(data)
    mapping = {"version": 1, "sources": [{"path": str(path), "node": "P"}]}
    for mode in ("append", "patch"):
        outcome(lambda mode=mode: load(None, CATALOG, mode, mapping=mapping))  # type: ignore[misc]


def check_csv(data: bytes, folder: Path) -> None:
    path = folder / "P.csv"
    path.write_bytes(data)
    outcome(lambda: load(path, CATALOG))


def positions() -> Iterator[tuple[bytes, int, int]]:
    """Every value in every position of a batch: the text, the record it is, and how many there are."""
    good = [b'{"type":"P","data":{"k":"p%d"}}' % n for n in range(3)]
    for value in VALUES:
        try:
            _, end = read_value(value.decode("utf-8", "surrogateescape"))
        except MalformedText:
            continue
        assert end == len(value.decode()), value
        yield value, 1, 1
        for at in range(4):
            for glue in (b"\n", b" ", b""):
                yield glue.join([*good[:at], value, *good[at:]]), at + 1, 4


def check_positions() -> None:
    """A value that is not a record is refused with its number, and the others are read."""
    for text, record, count in positions():
        found = outcome(lambda text=text: load(text, CATALOG))  # type: ignore[misc]
        assert isinstance(found, list), (text[:100], found)
        assert [number for number, *_ in found] == [record], (text[:100], found)
        split = Split(0, JsonSource(text))
        parts = read_split(split, CATALOG, "job", threads=1, blobs=Anywhere())
        assert sum(part.count for part in parts) == count, text[:100]


def main(seed: int, rounds: int) -> None:
    check_positions()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            rng = random.Random(f"{seed} {number}")
            data, table = stream(rng), csv_text(rng)
            # What a crash leaves behind is the last line.
            print(number, data[:2_000], table[:500], flush=True)
            check_stream(data, Path(folder))
            check_csv(table, Path(folder))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
