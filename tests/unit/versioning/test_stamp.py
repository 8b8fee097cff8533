"""The format stamp: graphs of a newer or an unknown format are refused."""

from __future__ import annotations

import pytest

from omnigraph.errors import InputError, ManifestDamaged, NewerFormat
from omnigraph.versioning.rows import (
    FORMAT_STAMP,
    SCHEMA,
    SEQUENCE_COLUMN,
    STAMP_KEY,
    check_stamp,
    is_older_format,
    read_stamp,
)

OLD_SCHEMA = SCHEMA.remove(SCHEMA.get_field_index(SEQUENCE_COLUMN))


def test_the_present_format_passes():
    check_stamp(SCHEMA)
    assert read_stamp(SCHEMA) == FORMAT_STAMP == 4


@pytest.mark.parametrize("stamp", ["5", "99"])
def test_a_newer_format_asks_for_an_upgrade(stamp):
    with pytest.raises(NewerFormat, match="upgrade omnigraph") as caught:
        check_stamp(SCHEMA.with_metadata({STAMP_KEY: stamp}))
    assert isinstance(caught.value, InputError)
    assert caught.value.found == int(stamp)


@pytest.mark.parametrize("metadata", [None, {}, {"other": "4"}])
def test_a_manifest_without_stamp_counts_as_the_first_format_and_is_refused(metadata):
    schema = SCHEMA.with_metadata(metadata)
    assert read_stamp(schema) == 1
    with pytest.raises(ManifestDamaged):
        check_stamp(schema)


@pytest.mark.parametrize("stamp", ["", "four", "-1", "4.0"])
def test_a_stamp_that_is_no_number_is_damage(stamp):
    with pytest.raises(ManifestDamaged):
        check_stamp(SCHEMA.with_metadata({STAMP_KEY: stamp}))


@pytest.mark.parametrize("stamp", [None, "1", "2", "3"])
def test_older_formats_are_told_by_stamp_and_columns(stamp):
    schema = OLD_SCHEMA.with_metadata(None if stamp is None else {STAMP_KEY: stamp})
    assert is_older_format(schema)
    assert not is_older_format(SCHEMA)
    with pytest.raises(ManifestDamaged):
        check_stamp(schema)


def test_a_stamp_and_columns_that_contradict_each_other_are_damage():
    with pytest.raises(ManifestDamaged):
        is_older_format(OLD_SCHEMA)
    with pytest.raises(ManifestDamaged):
        is_older_format(SCHEMA.with_metadata({STAMP_KEY: "3"}))
