"""The list of acceptance rows is complete and well formed."""

from __future__ import annotations

import re
from collections import Counter

from tests.acceptance.catalogue import read_catalogue

CATALOGUE = read_catalogue()
FREE: dict[str, range] = {"L": range(294, 301), "S": range(0), "U": range(167, 301)}
"""Numbers that no row has."""


def test_every_id_is_well_formed():
    bad = [row.id for row in CATALOGUE.rows if not re.fullmatch(r"[LSU]-\d{3}", row.id)]
    assert not bad


def test_no_id_is_listed_twice_or_reused_after_retirement():
    ids = [row.id for row in CATALOGUE.rows] + sorted(CATALOGUE.retired)
    assert [id for id, times in Counter(ids).items() if times > 1] == []


def test_there_are_as_many_rows_as_promised():
    assert Counter(row.id[0] for row in CATALOGUE.rows) == {"L": 392, "S": 187, "U": 248}


def test_reasons_name_rows_and_each_row_once():
    reasons = [*CATALOGUE.decided.values(), *CATALOGUE.later.values()]
    named = Counter(id for ids in reasons for id in ids)
    assert named.keys() <= CATALOGUE.ids
    assert [id for id, times in named.items() if times > 1] == []
    assert all(ids for ids in reasons)


def test_ids_have_no_gaps_but_the_retired_ones():
    known = CATALOGUE.ids | CATALOGUE.retired
    for prefix in "LSU":
        numbers = sorted(int(id[2:]) for id in known if id[0] == prefix)
        assert numbers == [n for n in range(1, numbers[-1] + 1) if n not in FREE[prefix]]


def test_ids_are_in_order_within_their_area():
    for rows in CATALOGUE.areas().values():
        ids = [row.id for row in rows]
        assert ids == sorted(ids)


def test_an_area_keeps_to_one_prefix():
    for area, rows in CATALOGUE.areas().items():
        assert len({row.id[0] for row in rows}) == 1, area


def test_every_title_says_something_short():
    for row in CATALOGUE.rows:
        assert 1 <= len(row.title.split()) <= 8, row
        assert row.title == row.title.strip()
