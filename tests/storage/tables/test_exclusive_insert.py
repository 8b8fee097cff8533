"""Of several inserts into one version exactly one succeeds, whoever tries: threads, processes, stores."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from threading import Barrier

import pytest

from omnigraph.errors import InputError, InsertConflict
from omnigraph.storage.compact import compact_with_indexes
from omnigraph.storage.delta import insert_exclusively, write_ahead
from omnigraph.storage.durability import Durability
from omnigraph.storage.indexes import stage_btree_index
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uris import normalise_root
from tests.storage.tables.rows import KEYED, commit, content, numbered

ROUNDS = 5
WRITERS = 4


def keyed(store: TableStore):
    return store.create("keyed", KEYED, rows=numbered({"start": 0}, KEYED))


def test_the_table_that_was_given_stays_at_its_version(store):
    table = keyed(store)
    after = insert_exclusively(table, numbered({"a": 1}, KEYED))
    assert (table.version, after.version) == (1, 2)
    assert content(table) == {"start": 0}
    assert content(after) == {"start": 0, "a": 1}


@pytest.mark.parametrize("indexed", [False, True])
def test_an_insert_made_meanwhile_keeps_all_rows_out(store, indexed):
    table = keyed(store)
    if indexed:
        table = commit(table, stage_btree_index(table, "id"))
    insert_exclusively(table, numbered({"a": 1}, KEYED))
    conflicting: tuple[dict[str, int | None], ...] = ({"a": 2}, {"b": 2})
    for names in conflicting:
        with pytest.raises(InsertConflict):
            insert_exclusively(table, numbered(names, KEYED))
    assert content(store.open("keyed")) == {"start": 0, "a": 1}


def test_an_index_made_meanwhile_does_no_harm(store):
    table = keyed(store)
    commit(table, stage_btree_index(table, "id"))
    after = insert_exclusively(table, numbered({"a": 1}, KEYED))
    assert (after.version, content(after)) == (3, {"start": 0, "a": 1})
    with pytest.raises(InsertConflict):
        insert_exclusively(table, numbered({"b": 2}, KEYED))


def test_a_compaction_meanwhile_hides_no_insert(store):
    table = insert_exclusively(keyed(store), numbered({"a": 1}, KEYED))
    compacted = compact_with_indexes(table)
    assert compacted.version > table.version
    after = insert_exclusively(compacted, numbered({"b": 2}, KEYED))
    assert content(after) == {"start": 0, "a": 1, "b": 2}
    for stale in (table, compacted):
        with pytest.raises(InsertConflict):
            insert_exclusively(stale, numbered({"c": 3}, KEYED))


def test_rows_written_ahead_are_used_if_they_are_the_same(store):
    table, rows = keyed(store), numbered({"a": 1}, KEYED)
    ahead = write_ahead(table, rows)
    after = insert_exclusively(table, numbered({"a": 1}, KEYED), ahead)
    assert {file.path for file in ahead.files[0].files} <= after.files()
    other = insert_exclusively(after, numbered({"b": 2}, KEYED), write_ahead(after, rows))
    assert content(other) == {"start": 0, "a": 1, "b": 2}


def test_a_table_without_rows_is_refused(store):
    with pytest.raises(InputError, match="no rows"):
        insert_exclusively(store.create("keyed", KEYED), numbered({"a": 1}, KEYED))


def attempt(table, writer: int, number: int) -> bool:
    try:
        insert_exclusively(
            table, numbered({f"seq{number}": writer, f"w{writer}-{number}": 0}, KEYED)
        )
    except InsertConflict:
        return False
    return True


def test_racing_threads_have_one_winner_on_every_store(anywhere):
    store = TableStore(anywhere, Durability.NONE)
    keyed(store)
    barrier = Barrier(WRITERS)

    def race(writer: int) -> list[bool]:
        won = []
        for number in range(ROUNDS):
            table = store.open("keyed")
            barrier.wait()
            won.append(attempt(table, writer, number))
            barrier.wait()
        return won

    with ThreadPoolExecutor(WRITERS) as pool:
        results = list(pool.map(race, range(WRITERS)))
    assert [sum(won) for won in zip(*results, strict=True)] == [1] * ROUNDS
    found = content(store.open("keyed"))
    for number in range(ROUNDS):
        winner = found[f"seq{number}"]
        assert [w for w in range(WRITERS) if f"w{w}-{number}" in found] == [winner]


def race_in_a_process(arguments: tuple[str, int, int]) -> int:
    uri, writer, rounds = arguments
    store = TableStore(normalise_root(uri), Durability.NONE)
    won = 0
    for number in range(rounds):
        # Every writer tries until the number is taken: there is no barrier between processes.
        while f"seq{number}" not in content(table := store.open("keyed")):
            won += attempt(table, writer, number)
    return won


def test_racing_processes_share_the_numbers_between_them(store, root):
    keyed(store)
    rounds = 30
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        won = list(pool.map(race_in_a_process, [(root.uri, w, rounds) for w in range(2)]))
    assert sum(won) == rounds
    found = content(store.open("keyed"))
    assert sum(name.startswith("seq") for name in found) == rounds
    assert sum(name.startswith("w") for name in found) == rounds
