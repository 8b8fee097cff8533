"""Ids made from the load and the record number."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.load.record_validation import generated_ids, id_prefix

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
load_ids = st.text(st.sampled_from("AZaz09._:-"), min_size=1, max_size=128)
records = st.lists(st.integers(1, 2**40 - 1), min_size=1, max_size=20, unique=True)


@given(load_ids, st.integers(0, 1000), records)
def test_an_id_has_the_form_of_a_ulid_and_ends_in_the_record_number(load_id, source, numbers):
    ids = generated_ids(id_prefix(load_id, source), np.array(numbers)).to_pylist()
    assert len(set(ids)) == len(numbers)
    for id, number in zip(ids, numbers, strict=True):
        assert re.fullmatch(rf"[0-7][{CROCKFORD}]{{25}}", id)
        assert sum(CROCKFORD.index(c) << (5 * n) for n, c in enumerate(id[:17:-1])) == number


def test_the_same_record_of_the_same_load_gets_the_same_id():
    first, again = (generated_ids(id_prefix("job-1", 0), np.array([7, 8])) for _ in range(2))
    assert first.equals(again)


def test_other_loads_and_other_sources_get_other_ids():
    prefixes = {id_prefix(load, source) for load in ("job-1", "job-2") for source in range(3)}
    assert len(prefixes) == 6


def test_a_load_id_that_is_a_ulid_lends_its_time():
    load_id = "01J0ABCDEFGHJKMNPQRSTVWXYZ"
    assert id_prefix(load_id, 0)[:10] == load_id[:10]
    assert id_prefix(load_id, 0) != id_prefix(load_id[:10] + "X" * 16, 0)
