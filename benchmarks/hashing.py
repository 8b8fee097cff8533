"""How long it takes to hash a million keys: short ids, UUIDs and addresses of 80 bytes.

Every byte is read. An earlier hash read 8 bytes at either end of a text and took 52 to 60 ms for each of
these columns, with all addresses in one bucket. Goal: below 60 ms on one core that is not busy.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np
import pyarrow as pa

from benchmarks.support.timing import median_seconds, readable
from omnigraph.rows.equality import Buckets, buckets_of, hashes_of

BUCKETS = 16


def columns(rows: int) -> dict[str, pa.Array]:
    random = np.random.default_rng(1)
    numbers = random.integers(0, 2**62, rows).tolist()
    lengths = random.integers(8, 21, rows).tolist()
    digits = random.bytes(16 * rows).hex()
    uuids = (digits[at : at + 32] for at in range(0, len(digits), 32))
    return {
        "ids of 8 to 20 bytes": pa.array(
            [f"{n:020d}"[-size:] for n, size in zip(numbers, lengths, strict=True)]
        ),
        "UUIDs": pa.array([f"{u[:8]}-{u[8:12]}-{u[12:16]}-{u[16:20]}-{u[20:]}" for u in uuids]),
        "addresses of 80 bytes": pa.array(
            [f"https://example.org/catalogue/{n:09d}/reviews/".ljust(80, "x") for n in range(rows)]
        ),
    }


def hashed(column: pa.Array) -> Buckets:
    return buckets_of(hashes_of(column), BUCKETS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows: int = parser.parse_args().rows
    print(f"{rows:,} keys            time   largest of {BUCKETS} buckets")
    for name, column in columns(rows).items():
        seconds = median_seconds(partial(hashed, column))
        largest = np.bincount(hashed(column)).max() / rows
        print(f"{name:22} {readable(seconds):>9}   {largest:.1%}")


if __name__ == "__main__":
    main()
