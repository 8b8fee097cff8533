"""Several processes change the schema of a graph, write to it meanwhile, and die."""

from __future__ import annotations

import signal

import pytest

from omnigraph.api.graph import init
from omnigraph.api.graph import open as open_graph
from omnigraph.versioning.contract import CONTRACT_FILES, STAGED
from tests.behaviour.graphs import Backstage
from tests.processes.changing import FIELDS, schema
from tests.processes.children import child
from tests.support.faults import Arm, Kill


def rows(uri: str) -> dict[str, list[int]]:
    fields = ", ".join(f"$p.f{number}" for number in range(FIELDS))
    query = f"query q() {{ match {{ $p: Person }} return {{ $p.name, {fields} }} }}"
    found = open_graph(uri).query(query).to_dicts()
    return {row["p.name"]: [row[f"p.f{number}"] for number in range(FIELDS)] for row in found}


def staged(uri: str) -> list[str]:
    objects = Backstage(uri).objects
    return [name for name in CONTRACT_FILES if objects.exists(f"{name}{STAGED}")]


@pytest.mark.parametrize("store", ["local", pytest.param("s3", marks=pytest.mark.slow)])
def test_two_change_the_schema_while_others_write(request, run, store):
    place = request.getfixturevalue(f"{store}_place")
    init(place.uri, schema(0))
    loads = 12 if store == "local" else 4
    first, second, *loaded = run(
        place,
        [
            ("changing.apply_schemas", place.uri),
            ("changing.apply_schemas", place.uri),
            ("changing.load_people", place.uri, "a", loads),
            ("changing.load_people", place.uri, "b", loads),
        ],
    )
    graph = open_graph(place.uri)
    assert graph.schema.source == schema(FIELDS)
    assert sorted(first + second)[-1] == FIELDS
    assert len(first + second) == len(set(first + second))
    found = rows(place.uri)
    assert sorted(found) == sorted(name for names in loaded for name in names)
    # A field was there when a row was loaded, or filled in when it came.
    assert all(value in (number, -1) for row in found.values() for number, value in enumerate(row))
    commits = graph.log(reverse=True)
    assert [c.number for c in commits] == list(range(1, len(commits) + 1))
    assert [c.operation for c in commits].count("schema_apply") == len(first + second)
    assert (staged(place.uri), graph._core.recovery.status().pending) == ([], ())
    assert {e.version for e in graph._snapshot().entries.values()} == {
        graph._core.tables.open(e.location).version for e in graph._snapshot().entries.values()
    }


@pytest.mark.acceptance("S-186")
def test_branches_come_and_go_before_or_after_a_change_of_the_schema(local_place, run):
    init(local_place.uri, schema(0))
    uri = local_place.uri
    added, *made = run(
        local_place,
        [("changing.apply_schemas", uri), *(("changing.branch_and_back", uri, n, 6) for n in "xy")],
    )
    graph = open_graph(uri)
    assert list(graph.branches) == ["main"]
    assert added[-1] == FIELDS
    assert sum(made) > 0
    assert len(graph.schema.catalog.nodes["Person"].properties) == FIELDS + 1


@pytest.mark.acceptance("S-094")
@pytest.mark.parametrize(
    ("point", "done"),
    [("schema_apply.post_table_commit", False), ("schema_apply.after_staging_write", True)],
)
def test_after_a_kill_in_the_middle_the_next_process_goes_on(local_place, point, done):
    init(local_place.uri, schema(0)).load(b'{"type":"Person","data":{"name":"ada"}}', "merge")
    arms = [Arm(point, Kill())]
    killed = child(local_place, arms, "changing.apply_once", local_place.uri, FIELDS)
    assert killed.wait(timeout=120) == -signal.SIGKILL
    graph = open_graph(local_place.uri)
    assert (graph.schema.source == schema(FIELDS)) == done
    assert (staged(local_place.uri), graph._core.recovery.status().pending) == ([], ())
    assert graph.schema.apply(schema(FIELDS)).applied != done
    assert rows(local_place.uri) == {"ada": list(range(FIELDS))}
