"""What a mutation would commit: which tables, in which way, and what it looked at to know.

That the rows are the right ones is shown against the reference graph.
"""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from omnigraph.api.graph import init
from omnigraph.faults import FAULT_POINTS
from omnigraph.language.syntax import Source
from omnigraph.mutation import MutationIds, prepare_mutation
from omnigraph.plan.compile import compile_query
from omnigraph.plan.params import bind_parameters
from omnigraph.providers.documents import DocumentVectors
from omnigraph.storage.tables import TableStore
from tests.support.workshop import WORKSHOP, WORKSHOP_ROWS

KEYLESS = "node Event { what: String }\n"
EDGES = {"edge:Mentors", "edge:Borrows", "edge:StoredIn"}


@pytest.fixture
def workshop(memory_uri):
    graph = init(memory_uri, WORKSHOP + KEYLESS)
    graph.load(WORKSHOP_ROWS.encode(), "merge")
    return graph


def prepare(graph, statements, ids=None, **params):
    declared = ", ".join(f"${name}: String?" for name in params)
    source = Source("<query>", f"query q({declared}) {{ {statements} }}")
    snapshot = graph._snapshot()
    plan = compile_query(source, snapshot.catalog).mutation_plan()
    bound = bind_parameters(plan.parameters, params)
    return prepare_mutation(
        plan, bound, snapshot, graph._core.tables, ids or MutationIds(), DocumentVectors()
    )


def writes_of(prepared):
    return {w.table_key: (w.mode, w.rows.num_rows, len(w.deletes)) for w in prepared.change.writes}


@contextmanager
def opened_tables(monkeypatch, graph):
    """The keys of the tables that are opened meanwhile, with repetitions."""
    keys = {entry.location: key for key, entry in graph._snapshot().entries.items()}
    opened: list[str] = []
    real = TableStore.open

    def recording(self, path, branch=None, version=None):
        if path in keys:
            opened.append(keys[path])
        return real(self, path, branch, version)

    with monkeypatch.context() as patch:
        patch.setattr(TableStore, "open", recording)
        yield opened


# -- how tables are written ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statements", "writes"),
    [
        ('insert Shed { slug: "east" }', {"node:Shed": ("delta", 1, 0)}),
        ('insert Event { what: "x" }', {"node:Event": ("append", 1, 0)}),
        (
            'insert Event { what: "x" }  update Event set { what: "y" } where what = "x"',
            {"node:Event": ("append", 1, 0)},
        ),
        ('insert Mentors { from: "ada", to: "cy" }', {"edge:Mentors": ("append", 1, 0)}),
        (
            'insert Mentors { from: "ada", to: "cy" }  delete Mentors where from = "bo"',
            {"edge:Mentors": ("delta", 1, 1)},
        ),
        ('insert Event { what: "x" }  delete Event where what = "x"', {}),
        (
            'insert Maker { handle: "bo" }  delete Maker where handle = "bo"',
            {"node:Maker": ("delta", 0, 1), "edge:Mentors": ("delta", 0, 2)}
            | {"edge:Borrows": ("delta", 0, 2)},
        ),
        (
            'delete Shed where slug = "south"  insert Shed { slug: "south" }',
            {"node:Shed": ("delta", 1, 0)},
        ),
        (
            'delete Shed where slug = "south"  insert Shed { slug: "south" }'
            '  delete Shed where slug = "south"',
            {"node:Shed": ("delta", 0, 1)},
        ),
        ('update Maker set { age: 1 } where handle = "nobody"', {}),
    ],
)
def test_a_table_is_written_in_the_simplest_way_that_is_right(workshop, statements, writes):
    assert writes_of(prepare(workshop, statements)) == writes


@pytest.mark.parametrize(
    ("statements", "reads"),
    [
        ('insert Shed { slug: "east" }', set()),
        ('insert Borrows { from: "ada", to: "sa-1" }', {"node:Maker", "node:Tool"}),
        ('insert Maker { handle: "eve" }  insert Mentors { from: "eve", to: "ada" }', set()),
        ('delete Shed where slug = "south"', {"edge:StoredIn"}),
        ('insert Shed { slug: "e" }  delete Maker where handle = "nobody"', {"node:Maker"}),
        ('insert Shed { slug: "e" }  delete Maker where handle = $x', set()),
    ],
)
def test_tables_that_were_only_looked_at_are_named(workshop, statements, reads):
    params = {"x": None} if "$x" in statements else {}
    assert prepare(workshop, statements, **params).change.reads == reads


# -- what is looked at --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statements", "opened"),
    [
        ('insert Shed { slug: "east" }', []),
        ('insert Maker { handle: "bo", age: 3 }', []),
        ('insert Tool { code: "aa-1", label: "a" }', []),
        ('insert Tool { code: "aa-1", label: "a", serial: "s" }', ["node:Tool"]),
        ('insert Event { what: "x" }', []),
        ('insert Mentors { from: "ada", to: "bo" }', ["node:Maker"]),
        ('insert Borrows { from: "ada", to: "sa-1" }', ["node:Maker", "node:Tool"]),
        ('update Maker set { age: 1 } where handle = "ada"', ["node:Maker"]),
        ("update Maker set { age: 1 } where handle = $x", []),
        ('delete Shed where slug = "south"', ["edge:StoredIn", "node:Shed"]),
    ],
)
def test_no_table_is_opened_that_is_not_needed_and_none_twice(
    workshop, statements, opened, monkeypatch
):
    params = {"x": None} if "$x" in statements else {}
    with opened_tables(monkeypatch, workshop) as found:
        prepare(workshop, statements, **params)
    assert sorted(found) == opened


def test_an_edge_without_a_rule_on_its_number_opens_no_edge_table(workshop, monkeypatch):
    with opened_tables(monkeypatch, workshop) as found:
        prepare(workshop, 'insert Borrows { from: "ada", to: "sa-1" }')
    assert not EDGES & set(found)
    with opened_tables(monkeypatch, workshop) as found:
        prepare(workshop, 'insert StoredIn { from: "ch-3", to: "north" }')
    assert EDGES & set(found) == {"edge:StoredIn"}


# -- ids and time -------------------------------------------------------------------------------


def test_ids_and_time_stay_the_same_when_a_mutation_is_prepared_again(workshop):
    statements = (
        'insert Event { what: "a" }  insert Event { what: "b" }'
        '  insert Shed { slug: "n", openedAt: now() }'
    )
    ids = MutationIds()
    first, again = (prepare(workshop, statements, ids).change for _ in range(2))
    for before, after in zip(first.writes, again.writes, strict=True):
        assert before.rows.equals(after.rows)
    other = prepare(workshop, statements).change
    assert not first.writes[0].rows.equals(other.writes[0].rows)


# -- steps --------------------------------------------------------------------------------------


def test_a_delete_of_nodes_passes_its_fault_point(workshop):
    point = FAULT_POINTS["mutation.delete_node_pre_primary_delete"]
    hits = []

    def trap(_point, context):
        hits.append(context["type"])

    point.set_trap(trap)
    try:
        prepare(workshop, 'delete Maker where handle = "bo"  delete Borrows where from = "ada"')
    finally:
        point.remove_trap(trap)
    assert hits == ["Maker"]
