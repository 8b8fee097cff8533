"""Ids in parts: each in one of them, and none much larger than the others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.diff import changes
from omnigraph.diff.changes import IdPartition, partitions_for
from omnigraph.limits import COMPARED_PARTS

COUNT = 8


@pytest.mark.parametrize(
    "made",
    [
        "p{}".format,
        "{:08d}-of-many-records-with-one-ending".format,
        '["person-{:06d}","city-0001"]'.format,
        '["Bonn","person-{:06d}@example.org"]'.format,
        "https://example.org/items/of/some/catalogue/{:06d}/reviews/by/date/latest".format,
    ],
)
def test_ids_are_spread_over_all_parts(made):
    ids = pa.array([made(number) for number in range(4000)])
    masks = np.array([IdPartition(number, COUNT)(ids) for number in range(COUNT)])
    assert (masks.sum(axis=0) == 1).all()
    sizes = masks.sum(axis=1)
    assert sizes.min() > 0.7 * len(ids) / COUNT
    assert sizes.max() < 1.3 * len(ids) / COUNT


def test_an_id_is_in_the_same_part_wherever_it_stands():
    ids = pa.array(["", "a", "b" * 16, "c" * 40, "ü" * 20])
    for number in range(COUNT):
        part = IdPartition(number, COUNT)
        alone = [part(ids.slice(place, 1))[0] for place in range(len(ids))]
        assert part(ids).tolist() == alone
    assert IdPartition(0, COUNT)(pa.array([], pa.utf8())).tolist() == []


def test_there_are_partitions_for_all_rows_and_never_many(monkeypatch):
    monkeypatch.setattr(changes, "COMPARED_ROWS_PER_TASK", 10)
    assert [len(partitions_for(rows)) for rows in (0, 1, 10, 11, 95)] == [1, 1, 1, 2, 10]
    assert len(partitions_for(10**9)) == COMPARED_PARTS
