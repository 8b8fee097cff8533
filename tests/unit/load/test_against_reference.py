"""The kernels and the reference graph agree: same rows, same errors, whatever the input."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.errors import LoadError
from omnigraph.load.record_validation import GENERATED, RECORD
from omnigraph.load.sources import JsonSource
from omnigraph.load.splits import Split, read_split
from tests.support.model.image import Image
from tests.support.model.load import load as reference_load
from tests.support.outcome import Refusal
from tests.unit.load.inputs import DENSE, catalogs, dense_inputs, inputs
from tests.unit.load.loading import Anywhere, CommittedTables, catalog_of, load, rows_of, table_of

RELAXED = settings(
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)
MODES = st.sampled_from(["append", "merge", "overwrite", "patch"])
SIZES = st.sampled_from([40, 200, 10_000])
DENSE_CATALOG = catalog_of(DENSE)
LOAD_ID = "job"
EVERYTHING = 10**9


@contextmanager
def small_steps(size: int) -> Iterator[None]:
    """Blocks of a few bytes and slices of a few rows, so that every seam is crossed."""
    with (
        patch("omnigraph.load.json_text.LOAD_BLOCK_BYTES", size),
        patch("omnigraph.load.json_rows._SLICE_ROWS", max(1, size // 40)),
    ):
        yield


def generated_ids(text, catalog, load_id, mode):
    """The ids the kernels make, in order of record."""
    made: list[tuple[int, str]] = []
    source = JsonSource(text.encode())
    options = {"threads": 1, "blobs": Anywhere(), "patches": mode == "patch"}
    for valid in read_split(Split(0, source), catalog, load_id, **options):
        for rows in valid.rows.values():
            made += (
                (record, id)
                for record, id, is_made in zip(
                    rows.column(RECORD).to_pylist(),
                    rows.column("id").to_pylist(),
                    rows.column(GENERATED).to_pylist(),
                    strict=True,
                )
                if is_made
            )
    return iter([id for _, id in sorted(made)])


def committed_tables(image):
    return CommittedTables(
        image.catalog,
        {d.table_key: table_of(d, list(image.tables[d.table_key].values())) for d in image.catalog},
    )


def reference(image, text, mode, quarantine, load_id=LOAD_ID):
    ids = generated_ids(text, image.catalog, load_id, mode)
    # What becomes of edges whose nodes are removed is the engine's part.
    options = {"quarantine": quarantine, "cascade": mode == "overwrite"}
    return reference_load(image, text, mode, ids, EVERYTHING, **options)


def property_of(error):
    """The property an error names; the kernels also name the one that makes a group unusable."""
    return None if error.code == "unique" else error.property


def errors_of(found):
    """Comparable errors; those of one record in any order."""
    return sorted(
        ((e.record or 0, e.code, e.message, e.line, e.type, e.id, property_of(e)) for e in found),
        key=repr,
    )


def random_schema(data):
    catalog = data.draw(catalogs())
    before = committed_image(catalog, data.draw(inputs(catalog, damaged=False)))
    text = data.draw(inputs(catalog, damaged=data.draw(st.booleans())))
    assert_alike(before, text, data.draw(MODES), data.draw(st.booleans()), data.draw(SIZES))


def dense_schema(data):
    before = committed_image(DENSE_CATALOG, data.draw(dense_inputs()))
    text = data.draw(dense_inputs())
    assert_alike(before, text, data.draw(MODES), data.draw(st.booleans()), data.draw(SIZES))


@settings(RELAXED, max_examples=25)
@given(st.data())
def test_both_take_the_same_rows_and_refuse_with_the_same_errors(data):
    random_schema(data)


@settings(RELAXED, max_examples=40)
@given(st.data())
def test_both_validate_a_set_of_rows_alike(data):
    dense_schema(data)


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("[String]", ["p"]),
        ("[I32]?", [None]),
        ("Vector(2)", [1, 2]),
        ("Blob", "s3://bucket/key"),
        ("Blob?", "base64:SGk="),
        ("String?", None),
        ("F32", 1.5),
    ],
)
@pytest.mark.parametrize("quarantine", [False, True])
@pytest.mark.parametrize("mode", ["append", "merge", "overwrite", "patch"])
def test_both_name_an_edge_id_given_twice_alike(declared, value, mode, quarantine):
    """A list, vector, blob or null in the identity of an edge gives it no id; its own id tells it."""
    schema = (
        f"node N {{ k: String @key }}\nedge E: N -> N {{ x: {declared}  @unique(src, dst, x) }}"
    )
    node = {"type": "N", "data": {"k": "a"}}
    edge = {"edge": "E", "from": "a", "to": "a", "data": {"id": "e", "x": value}}
    text = "\n".join(map(json.dumps, [node, edge, edge]))
    assert_alike(Image.empty(catalog_of(schema)), text, mode, quarantine, 10_000)


@pytest.mark.slow
@settings(RELAXED, max_examples=1500)
@given(st.data())
def test_both_agree_on_many_more_inputs(data):
    random_schema(data)


@pytest.mark.slow
@settings(RELAXED, max_examples=1500)
@given(st.data())
def test_both_validate_many_more_sets_alike(data):
    dense_schema(data)


def committed_image(catalog, text):
    """What a graph holds after the good records of a first load."""
    try:
        return reference(Image.empty(catalog), text, "merge", True, "seed").image
    except Refusal:
        return Image.empty(catalog)


def assert_alike(before, text, mode, quarantine, size):
    committed = committed_tables(before)
    with small_steps(size):
        expected = outcome(lambda: reference(before, text, mode, quarantine), Refusal)
        options = {"quarantine": quarantine, "max_errors": EVERYTHING, "load_id": LOAD_ID}
        data = text.encode()
        found = outcome(lambda: load(data, before.catalog, mode, committed, **options), LoadError)
    if isinstance(expected, Refusal) or isinstance(found, LoadError):
        assert_same_refusal(found, expected)
    else:
        assert_same_rows(found, expected, before)
        assert_same_quarantine(found.quarantined, expected.quarantined)


def outcome(call, error):
    """What a call returns, or the error it raises."""
    try:
        return call()
    except error as raised:
        return raised


def assert_same_refusal(found, expected):
    assert isinstance(found, LoadError), str(expected)
    assert isinstance(expected, Refusal), str(found)
    assert errors_of(found.load_errors) == errors_of(expected.load_errors)
    assert found.load_errors_total == expected.load_errors_total
    headline = str(expected).splitlines()[0].replace(" 1 bad records", " 1 bad record")
    assert str(found).splitlines()[0] == headline


def assert_same_rows(found, expected, before):
    assert {k: t.rows_loaded for k, t in found.types.items()} == expected.rows_loaded
    for key, rows in expected.image.tables.items():
        staged = {row["id"]: visible(row) for row in rows_of(found, key)}
        replaced = found.mode == "overwrite" and key in found.types
        if found.mode == "overwrite" and not replaced:
            continue
        assert {**({} if replaced else before.tables[key]), **staged} == rows
    assert [(w.code, w.message, w.count) for w in found.warnings] == [
        (w.code, w.message, w.count)
        for w in expected.warnings
        # Vectors are asked for after the kernels have done their part.
        if w.code != "embedding_pending"
    ]


def visible(row):
    """A row without what a patch notes beside its vectors, which the reference does not know."""
    return {name: value for name, value in row.items() if not name.startswith("__embed_")}


def assert_same_quarantine(found, expected):
    assert [(b.record, b.line, b.raw) for b in found] == [
        (b.record, b.line, b.raw) for b in expected
    ]
    for mine, theirs in zip(found, expected, strict=True):
        listed = [(f.code, f.message, property_of(f)) for f in mine.problems]
        wanted = [(e.code, e.message, property_of(e)) for e in theirs.errors]
        assert sorted(listed, key=repr) == sorted(wanted, key=repr)
