"""How the library meets files that a power loss left incomplete."""

from __future__ import annotations

import lance
import pytest

from omnigraph.storage.failures import is_library_failure
from tests.substrate.people import appended, commit, ids, make

NEWEST = "_versions/18446744073709551613.manifest"


@pytest.fixture
def place(tmp_path):
    dataset = make("a", uri=str(tmp_path / "t"))
    commit(dataset, appended(dataset, "b"))
    return tmp_path / "t"


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_a_short_version_file_keeps_the_newest_version_from_opening(place, kept):
    whole = (place / NEWEST).read_bytes()
    (place / NEWEST).write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises((ValueError, OSError)):
        lance.dataset(str(place))
    assert ids(lance.dataset(str(place), version=1)) == ["a"]
    assert lance.dataset(str(place), version=1).latest_version == 2


def test_a_version_file_of_zeros_opens_as_an_empty_version_zero(place):
    (place / NEWEST).write_bytes(bytes(len((place / NEWEST).read_bytes())))
    assert lance.dataset(str(place)).version == 0
    with pytest.raises(ValueError, match="Version not found"):
        lance.dataset(str(place), version=2)


def test_a_version_file_with_a_good_end_and_a_bad_beginning_panics(place, capfd):
    whole = (place / NEWEST).read_bytes()
    (place / NEWEST).write_bytes(b"\xff" * (len(whole) - 16) + whole[-16:])
    with pytest.raises(BaseException) as caught:
        lance.dataset(str(place))
    capfd.readouterr()
    assert is_library_failure(caught.value)


def test_a_removed_newest_version_is_as_if_it_had_never_been(place):
    (place / NEWEST).unlink()
    dataset = lance.dataset(str(place))
    assert (dataset.version, ids(dataset)) == (1, ["a"])
    assert commit(dataset, appended(dataset, "c")).version == 2


def test_a_missing_data_file_is_not_noticed_before_it_is_read(place):
    newest = max((place / "data").iterdir(), key=lambda file: file.stat().st_mtime_ns)
    newest.unlink()
    dataset = lance.dataset(str(place))
    assert dataset.count_rows() == 2
    with pytest.raises((ValueError, OSError)):
        dataset.to_table()
