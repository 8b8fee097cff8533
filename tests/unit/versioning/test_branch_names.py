"""Branch names: the rules for what people write, and the names storage uses for them."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import InputError, InvalidBranchName
from omnigraph.versioning.branch_names import (
    MAIN,
    MAX_LENGTH,
    PUBLIC_NAME_KEY,
    BranchName,
    DecodedName,
    branch_name,
    decode_physical_name,
    is_incomplete,
    name_of_ref,
    physical_name,
    public_name,
)

LETTERS = string.ascii_letters + string.digits + ".-_"


def is_legal(name: str) -> bool:
    try:
        return branch_name(name) == name and name != MAIN
    except InvalidBranchName:
        return False


def written_names() -> st.SearchStrategy[str]:
    """Names that are legal as written, with many underscores, slashes and digits after an `i`."""
    part = st.text(st.sampled_from(["_", "i", "s", "2", "a", *LETTERS]), min_size=1, max_size=12)
    return st.lists(part, min_size=1, max_size=4).map("/".join).filter(is_legal)


# -- what a name may be ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "feature",
        "review/7",
        "my_branch/x",
        "a/b/c",
        "0",
        "v1.2-rc_3",
        "-",
        "_",
        "MAIN",
        "main/x",
        "x.lock/y",
        "x.locked",
        ".hidden",
        "__schema_apply_lock__x",
        "__schema_apply_lock__/x",
        "a" * MAX_LENGTH,
        "__run__x",
    ],
)
def test_a_legal_name_is_kept_as_it_is(name):
    assert branch_name(name) == name


def test_surrounding_white_space_is_trimmed():
    assert branch_name(" \t review/7\n") == "review/7"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "branch name cannot be empty"),
        (" \n", "branch name cannot be empty"),
        ("/a", "single '/'"),
        ("a/", "single '/'"),
        ("/", "single '/'"),
        ("a//b", "single '/'"),
        ("a b", "use the letters"),
        ("a\\b", "use the letters"),
        ("a\x00b", "use the letters"),
        ("a\nb", "use the letters"),
        ("ä", "use the letters"),
        ("a:b", "use the letters"),
        ("a%2Fb", "use the letters"),
        ("..", "'..'"),
        ("a..b", "'..'"),
        ("a/../b", "'..'"),
        (".", "'.'"),
        ("a/.", "'.'"),
        ("./a", "'.'"),
        ("x.lock", "'.lock'"),
        ("a/x.lock", "'.lock'"),
        (".lock", "'.lock'"),
        ("a" * (MAX_LENGTH + 1), "at most 120"),
        ("__schema_apply_lock__", "internal system ref"),
        ("/__schema_apply_lock__", "internal system ref"),
        ("//__schema_apply_lock__", "internal system ref"),
        (" __schema_apply_lock__ ", "internal system ref"),
    ],
)
def test_an_illegal_name_is_refused_with_the_rule_it_breaks(name, reason):
    with pytest.raises(InvalidBranchName, match="invalid branch name") as caught:
        branch_name(name)
    assert reason in caught.value.message
    assert isinstance(caught.value, InputError)
    assert caught.value.kind == "bad_request"


def test_a_name_that_would_not_fit_into_a_file_name_is_refused():
    assert branch_name("_" * 100)
    with pytest.raises(InvalidBranchName, match="counts twice"):
        branch_name("_" * 101)
    with pytest.raises(InvalidBranchName, match="counts twice"):
        branch_name("/".join("_" * 60))


# -- how it is stored ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("public", "first", "second"),
    [
        ("feature", "feature", "feature_i2"),
        ("review/7", "review_s7", "review_s7_i2"),
        ("my_branch/x", "my__branch_sx", "my__branch_sx_i2"),
        ("team", "team", "team_i2"),
        ("team/x", "team_sx", "team_sx_i2"),
        ("a_b/c", "a__b_sc", "a__b_sc_i2"),
        ("a/b_c", "a_sb__c", "a_sb__c_i2"),
        ("x_i2", "x__i2", "x__i2_i2"),
        ("_", "__", "___i2"),
        ("_/_", "___s__", "___s___i2"),
        ("i2", "i2", "i2_i2"),
        ("a/i2", "a_si2", "a_si2_i2"),
    ],
)  # fmt: skip
def test_a_name_is_flattened_and_read_back(public, first, second):
    name = branch_name(public)
    assert physical_name(name) == first
    assert physical_name(name, 2) == second
    assert decode_physical_name(first) == DecodedName(name, 1)
    assert decode_physical_name(second) == DecodedName(name, 2)
    assert public_name(first) == public_name(second) == public


@given(written_names(), st.integers(1, 99_999))
def test_every_name_and_incarnation_reads_back(written, incarnation):
    name = branch_name(written)
    physical = physical_name(name, incarnation)
    assert "/" not in physical
    assert decode_physical_name(physical) == DecodedName(name, incarnation)


@given(written_names(), written_names(), st.integers(1, 12), st.integers(1, 12))
def test_two_branches_never_share_a_stored_name(one, other, m, n):
    same = physical_name(BranchName(one), m) == physical_name(BranchName(other), n)
    assert same == ((one, m) == (other, n))


@given(written_names())
def test_the_longest_stored_name_leaves_room_in_a_file_name(written):
    longest = (written * MAX_LENGTH)[:MAX_LENGTH].rstrip("/.")
    if is_legal(longest):
        assert len(physical_name(BranchName(longest), 99_999)) + len(".json.tmp.#1") + 32 <= 255


@pytest.mark.parametrize(
    "foreign",
    [
        "a/b",
        "a_b",
        "_",
        "a_",
        "___",
        "a_x",
        "a_i",
        "a_i2x",
        "a_i2_i3",
        "_i2",
        "a_s",
        "_sa",
        "a_s_sb",
        "a_s_i2",
        "a b",
        " a",
        "ä",
        "main",
        "main_i2",
        "x.lock",
        "____schema__apply__lock____",
        "a..b",
        ".",
        "",
        "a_i0",
        "a_i1",
        "a_i02",
    ],
)
def test_a_stored_name_we_would_never_write_is_foreign(foreign):
    assert decode_physical_name(foreign) is None
    assert public_name(foreign) == foreign


@given(st.text(st.sampled_from("_is/2a.-0"), max_size=14))
def test_a_stored_name_is_foreign_or_exactly_what_we_would_write(text):
    decoded = decode_physical_name(text)
    if decoded is not None:
        assert physical_name(decoded.public, decoded.incarnation) == text
        assert is_legal(decoded.public)


def test_main_has_no_stored_name():
    assert public_name(None) == MAIN == "main"
    with pytest.raises(ValueError):
        physical_name(MAIN)


@pytest.mark.parametrize("noted", ["my_branch", "a/b", "x_s1"])
def test_a_ref_that_names_its_branch_is_believed(noted):
    assert name_of_ref(noted, {PUBLIC_NAME_KEY: noted}) == noted


@pytest.mark.parametrize(("physical", "public"), [("x_s1", "x/1"), ("b", "b"), ("my_branch", None)])
def test_without_such_a_note_the_storage_name_decides(physical, public):
    assert name_of_ref(physical, {"other": "y"}) == public


def test_a_note_that_is_no_branch_name_makes_the_branch_a_foreign_one():
    assert name_of_ref("feature", {PUBLIC_NAME_KEY: "no such name!"}) is None


# -- branches that begin at an earlier commit ------------------------------------------------


def test_such_a_branch_exists_only_if_its_ref_names_it():
    name = BranchName("my_x/y")
    assert physical_name(name, 2, is_cut=True) == "my__x_sy_c2"
    assert decode_physical_name("my__x_sy_c2") == DecodedName(name, 2, is_cut=True)
    assert public_name("my__x_sy_c2") == name
    assert name_of_ref("my__x_sy_c2", {}) is None
    assert name_of_ref("my__x_sy_c2", {PUBLIC_NAME_KEY: name}) == name
    assert is_incomplete("my__x_sy_c2", {})
    assert not is_incomplete("my__x_sy_c2", {PUBLIC_NAME_KEY: name})
    assert not is_incomplete("my__x_sy_i2", {})
    assert not is_incomplete("x_q1", {})


@pytest.mark.parametrize("physical", ["x_c0", "x_c01", "x_c", "x__c1_", "_c1", "main_c1"])
def test_other_names_are_not_of_such_a_branch(physical):
    decoded = decode_physical_name(physical)
    assert decoded is None or not decoded.is_cut


@given(written_names(), st.integers(1, 999))
def test_names_of_such_branches_read_back(name, incarnation):
    public = BranchName(name)
    stored = physical_name(public, incarnation, is_cut=True)
    assert decode_physical_name(stored) == DecodedName(public, incarnation, is_cut=True)
    assert stored not in {physical_name(public), physical_name(public, incarnation)}
