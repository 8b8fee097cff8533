"""The grammar of refs: what a text is taken apart into, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import InputError, InvalidBranchName, InvalidTagName
from omnigraph.history.commits import Commit, Receipt, short_id
from omnigraph.history.refs import ParsedRef, parse_ref, written_form
from omnigraph.history.tags import Tag
from omnigraph.mutation.run import MutationResult
from omnigraph.versioning.branch_names import MAIN, branch_name
from omnigraph.versioning.commits import CommitId, OperationKind
from omnigraph.versioning.tags import check_tag_name

NEW_YEAR = 1_767_225_600_000_000
"""The first microsecond of 2026."""


@pytest.mark.parametrize(
    ("written", "parsed"),
    [
        ("main", ParsedRef("main")),
        ("review/7", ParsedRef("review/7")),
        ("v1.2-rc_3", ParsedRef("v1.2-rc_3")),
        ("01KV8Z6M3Q9V2X4T7B5N0C1D2E", ParsedRef("01KV8Z6M3Q9V2X4T7B5N0C1D2E")),
        ("", ParsedRef("")),
        ("a b", ParsedRef("a b")),
        ("main~", ParsedRef("main", back=1)),
        ("main~0", ParsedRef("main", back=0)),
        ("main~3", ParsedRef("main", back=3)),
        ("a/b~1~2", ParsedRef("a/b", back=3)),
        ("a~~", ParsedRef("a", back=2)),
        ("a~~007", ParsedRef("a", back=8)),
        ("main@{2026-01-01}", ParsedRef("main", NEW_YEAR + 999)),
        ("main@{ 2026-01-01T00:00:00.000Z }", ParsedRef("main", NEW_YEAR + 999)),
        ("a/b@{2026-01-01T01:00:00+01:00}~2", ParsedRef("a/b", NEW_YEAR + 999, 2)),
        ("a@b", ParsedRef("a@b")),
    ],
)
def test_a_ref_is_a_name_perhaps_a_time_and_steps_back(written, parsed):
    assert parse_ref(written) == parsed


@pytest.mark.parametrize(
    ("written", "advice"),
    [
        ("~1", "stands before `~`"),
        ("main~x", "followed by a number"),
        ("main~1x", "followed by a number"),
        ("main~-1", "followed by a number"),
        ("main~1 ", "followed by a number"),
        ("main~٣", "followed by a number"),
        ("main~" + "9" * 5000, "followed by a number"),
        ("main~1@{2026-01-01}", "followed by a number"),
        ("@{2026-01-01}", "branch@{"),
        ("main@{2026-01-01", "branch@{"),
        ("main@{2026-01-01}x", "branch@{"),
        ("main@{2026-01-01}@{2026-01-01}", "branch@{"),
        ("main@{yesterday}", "is a date"),
        ("main@{}", "is a date"),
    ],
)
def test_what_breaks_the_grammar_is_refused_with_the_name_of_the_argument(written, advice):
    with pytest.raises(InputError, match=r"^`at` '") as caught:
        parse_ref(written, "at")
    assert advice in str(caught.value)


@given(st.text(max_size=30))
def test_every_text_is_a_ref_or_an_input_error(written):
    try:
        parsed = parse_ref(written)
    except InputError:
        return
    assert written.startswith(parsed.base)


@given(st.text(max_size=20), st.sampled_from(["~", "@{", "~1"]), st.text(max_size=20))
def test_no_branch_or_tag_can_be_named_like_a_longer_ref(before, mark, after):
    for check, error in ((branch_name, InvalidBranchName), (check_tag_name, InvalidTagName)):
        with pytest.raises(error):
            check(before + mark + after)


def test_a_short_id_is_the_end_of_an_id():
    assert short_id("01KV8Z6M3Q9V2X4T7B5N0C1D2E") == "5N0C1D2E"


def test_a_ref_has_one_written_form():
    assert written_form("main~1") == "main~1"
    assert written_form(3) == "3"
    assert written_form(datetime(2026, 1, 1, tzinfo=UTC)) == "2026-01-01T00:00:00+00:00"
    id = CommitId("01KV8Z6M3Q9V2X4T7B5N0C1D2E")
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    receipt = Receipt(
        graph_commit_id=id,
        parent_commit_id=None,
        branch=MAIN,
        manifest_version=2,
        operation=OperationKind.MUTATE,
        operation_id="op",
        actor_id=None,
        created_at=NEW_YEAR,
    )
    for ref in (
        Commit(id, "main", 2, (), "load", None, None, moment),
        Tag("v1", id, MAIN, 2, moment, None),
        receipt,
        MutationResult(receipt, "add", "main", 1, 0),
    ):
        assert written_form(ref) == id
