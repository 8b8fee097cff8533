"""Records find their type by their first bytes, or by their keys when those stand elsewhere."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from omnigraph.load import json_table
from omnigraph.load.json_table import Router
from tests.unit.load.loading import W, catalog_of

MANY = catalog_of("\n".join(f"node T{n} {{ k: I32? }}" for n in range(60)))


def routed(router, *texts):
    """The names the router gives to texts, in their order."""
    column = pa.array([t.encode() + b"\n" for t in texts], pa.binary())
    names = [None] * len(texts)
    groups = router.route(column)
    assert sum(len(group.rows) for group in groups) == len(texts)
    for group in groups:
        assert len(group.rows)
        for row in group.rows:
            names[row] = group.declared.name if group.declared else None
    return names


def test_records_are_routed_by_their_beginning():
    texts = [
        '{"type":"Maker"}',
        '{"edge":"borrows"}',
        '{ "type" : "Shed"}',
        '{"type":"Maker","data":{}}',
    ]
    router = Router(W)
    for _ in range(2):
        assert routed(router, *texts) == ["Maker", "Borrows", "Shed", "Maker"]


def test_a_longer_name_is_another_name():
    catalog = catalog_of("node A { }\nnode Ab { }")
    texts = ['{"type":"A"}', '{"type":"Ab"}', '{"type":"a"}', '{"type":"A"}']
    assert routed(Router(catalog), *texts) == ["A", "Ab", None, "A"]


def test_keys_in_another_order_are_parsed_for():
    texts = [
        '{"data":{"type":"Tool"},"type":"Maker"}',
        '{"type":"Shed"}',
        '{"from":"a","edge":"MENTORS","to":"b"}',
        '{"data":{},"edge":"Mentors","type":"Tool"}',
        '{"data":{}}',
        '{"data":{},"type":"Ghost"}',
    ]
    assert routed(Router(W), *texts) == ["Maker", "Shed", "Mentors", "Tool", None, None]


def test_records_that_cannot_be_parsed_have_no_type_yet():
    assert routed(Router(W), '{"data":{},"type":3}', '{"type":"Shed"}', "{oops}") == [None] * 3


@pytest.mark.parametrize("limit", [3, 512])
def test_any_number_of_types_can_alternate(monkeypatch, limit):
    monkeypatch.setattr(json_table, "_MAX_PREFIXES", limit)
    names = [f"T{n * 7 % 60}" for n in range(240)]
    texts = [json.dumps({"type": name, "data": {"k": 1}}) for name in names]
    assert routed(Router(MANY), *texts) == names


def test_a_name_longer_than_any_prefix_is_parsed_for():
    name = "L" + "o" * 80 + "ng"
    catalog = catalog_of(f"node {name} {{ }}")
    assert routed(Router(catalog), f'{{"type":"{name}"}}') == [name]
