"""Laws the reference graph keeps whatever is done to it."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.support.model import ReferenceGraph, explain_difference
from tests.support.outcome import Change, Counts, Refusal
from tests.unit.testing.graphs import graph_of, run

# Every kind of value

ALL_KINDS = """
node Thing {
    name: String @key
    flag: Bool?  small: I32?  wide: I64?  count: U32?  huge: U64?
    single: F32?  double: F64?  day: Date?  moment: DateTime?
    blob: Blob?  vec: Vector(2)?
    tags: [String]?  days: [Date]?  numbers: [F64]?
    mood: enum(good, bad)?
}
node Loose { text: String? }
edge Likes: Thing -> Loose { since: DateTime? }
edge Owns: Thing -> Thing { share: F32?  @unique(src, dst) }
"""

F64 = st.floats(allow_nan=False, allow_infinity=False)
F32 = st.floats(allow_nan=False, allow_infinity=False, width=32)
DAYS = st.integers(-700_000, 2_900_000)
# Beyond the year 9999 a moment is written in a form that the loader does not read.
MOMENTS = st.integers(-62_135_596_800_000, 253_402_300_799_999)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
BLOBS = st.sampled_from(["base64:", "base64:SGk=", "s3://bucket/key"])


def maybe(values):
    return st.none() | values


THINGS = st.fixed_dictionaries(
    {
        "name": TEXT,
        "flag": maybe(st.booleans()),
        "small": maybe(st.integers(-(2**31), 2**31 - 1)),
        "wide": maybe(st.integers(-(2**63), 2**63 - 1)),
        "count": maybe(st.integers(0, 2**32 - 1)),
        "huge": maybe(st.integers(0, 2**64 - 1)),
        "single": maybe(F32),
        "double": maybe(F64),
        "day": maybe(DAYS),
        "moment": maybe(MOMENTS),
        "blob": maybe(BLOBS),
        "vec": maybe(st.lists(F32, min_size=2, max_size=2)),
        "tags": maybe(st.lists(maybe(TEXT), max_size=3)),
        "days": maybe(st.lists(maybe(DAYS), max_size=3)),
        "numbers": maybe(st.lists(maybe(F64), max_size=3)),
        "mood": maybe(st.sampled_from(["good", "bad"])),
    }
)


@st.composite
def record_streams(draw):
    """A load of every kind of value that the schema above accepts."""
    things = draw(st.lists(THINGS, max_size=4, unique_by=lambda t: t["name"]))
    loose = draw(st.lists(maybe(TEXT), max_size=3))
    records = [{"type": "Thing", "data": data} for data in things]
    records += [{"type": "Loose", "data": {"id": f"l{n}", "text": t}} for n, t in enumerate(loose)]
    if things and loose:
        for _ in range(draw(st.integers(0, 3))):
            data = {"since": draw(maybe(MOMENTS))}
            source = draw(st.sampled_from(things))["name"]
            ends = {"from": source, "to": f"l{draw(st.integers(0, len(loose) - 1))}"}
            records.append({"edge": "Likes", **ends, "data": data})
    if things:
        names = st.sampled_from([t["name"] for t in things])
        for source, target in draw(st.sets(st.tuples(names, names), max_size=3)):
            data = {"share": draw(maybe(F32))}
            records.append({"edge": "Owns", "from": source, "to": target, "data": data})
    return "\n".join(json.dumps(record) for record in records)


@given(record_streams(), st.sampled_from(["overwrite", "append", "merge", "patch"]))
def test_an_export_loads_back_to_the_same_content(stream, mode):
    graph = graph_of(ALL_KINDS)
    graph.load(stream, mode)
    other = graph_of(ALL_KINDS)
    other.load("\n".join(graph.export()), mode)
    assert explain_difference(graph.at("main"), other.at("main")) == ""
    assert graph.export() == other.export()


@given(record_streams(), st.sampled_from(["merge", "patch"]))
def test_loading_an_export_again_changes_no_content(stream, mode):
    graph = graph_of(ALL_KINDS)
    graph.load(stream)
    before = graph.head().id
    rows = len(graph.export())
    result = graph.load("\n".join(graph.export()), mode)
    assert sum(c.updated for c in result.receipt.counts.values()) == rows
    assert graph.diff(before, "main") == ()


# Every kind of operation

SCHEMA = """
node Maker { handle: String @key  age: I32?  badge: I32? @unique  @range(age, 0..9) }
node Tool { code: String @key }
node Note { text: String? }
edge Mentors: Maker -> Maker @card(0..2)
edge Borrows: Maker -> Tool { days: I32? }
edge Follows: Maker -> Maker { since: I32?  @unique(src, dst) }
"""
HANDLES = st.sampled_from(["a", "b", "c"])
CODES = st.sampled_from(["s", "t"])
NUMBERS = st.integers(-1, 10)
"""One below and one above the range of an age."""

INSERTS = st.one_of(
    st.builds('insert Maker {{ handle: "{}" age: {} }}'.format, HANDLES, NUMBERS.map(abs)),
    st.builds('insert Maker {{ handle: "{}" badge: {} }}'.format, HANDLES, st.integers(0, 1)),
    st.builds('insert Tool {{ code: "{}" }}'.format, CODES),
    st.builds('insert Note {{ text: "{}" }}'.format, HANDLES),
    st.builds('insert Mentors {{ from: "{}" to: "{}" }}'.format, HANDLES, HANDLES),
    st.builds('insert Borrows {{ from: "{}" to: "{}" }}'.format, HANDLES, CODES),
    st.builds(
        'insert Follows {{ from: "{}" to: "{}" since: {} }}'.format,
        HANDLES,
        HANDLES,
        st.integers(0, 1),
    ),
)
CHANGES = st.one_of(
    st.builds(
        'update Maker set {{ age: {} }} where handle = "{}"'.format, NUMBERS.map(abs), HANDLES
    ),
    st.builds("update Maker set {{ badge: {} }} where age > {}".format, *[st.integers(0, 3)] * 2),
    st.builds('delete Maker where handle = "{}"'.format, HANDLES),
    st.builds('delete Tool where code = "{}"'.format, CODES),
    st.builds('delete Mentors where from = "{}"'.format, HANDLES),
    st.builds('delete Follows where to = "{}"'.format, HANDLES),
)
STATEMENTS = st.lists(INSERTS | CHANGES, min_size=1, max_size=4)
RECORDS = st.one_of(
    st.builds(lambda h, a: {"type": "Maker", "data": {"handle": h, "age": a}}, HANDLES, NUMBERS),
    st.builds(lambda h, b: {"type": "Maker", "data": {"handle": h, "badge": b}}, HANDLES, NUMBERS),
    st.builds(lambda c: {"type": "Tool", "data": {"code": c}}, CODES),
    st.builds(lambda a, b: {"edge": "mentors", "from": a, "to": b}, HANDLES, HANDLES),
    st.builds(lambda a, b: {"edge": "Follows", "from": a, "to": b}, HANDLES, HANDLES),
    st.just({"type": "Ghost"}),
)
BRANCHES = st.sampled_from(["main", "x", "y"])


def picture(graph: ReferenceGraph):
    """Everything that can be seen of a graph."""
    return {
        name: ([c.id for c in graph.commits(name)], graph.export(name)) for name in graph.branches()
    }


def applied(graph: ReferenceGraph, before: str, changes: tuple[Change, ...]):
    """The tables of a target with changes made to them."""
    tables: dict[str, dict[str, object]]
    tables = {key: dict(rows) for key, rows in graph.at(before).tables.items()}
    for change in changes:
        if change.after is None:
            del tables[change.table_key][change.id]
        else:
            tables[change.table_key][change.id] = change.after
    return tables


class GraphLaws(RuleBasedStateMachine):
    """Random operations on one graph. Nodes are never overwritten, so no edge may ever dangle."""

    @initialize()
    def create(self):
        self.graph = graph_of(SCHEMA)
        run(
            self.graph,
            """
            insert Maker { handle: "a" age: 3 badge: 1 }  insert Maker { handle: "b" age: 5 }
            insert Tool { code: "s" }  insert Borrows { from: "a" to: "s" }
            insert Mentors { from: "a" to: "b" }  insert Follows { from: "b" to: "a" since: 0 }
            """,
        )
        self.graph.create_branch("x")

    def attempt(self, operation, *arguments, **options):
        """Do something that may be refused, and see that a refusal leaves no trace."""
        before = picture(self.graph)
        try:
            return operation(*arguments, **options)
        except Refusal:
            assert picture(self.graph) == before
            return None

    @rule(statements=STATEMENTS, branch=BRANCHES)
    def mutate(self, statements, branch):
        old = picture(self.graph).get(branch)
        result = self.attempt(run, self.graph, "\n".join(statements), branch)
        if result is None or old is None:
            return
        if result.receipt.commit is None:
            assert picture(self.graph)[branch] == old
        else:
            self.check_counts(result.receipt.parent, result.receipt.commit, result.receipt.counts)

    @rule(
        records=st.lists(RECORDS, max_size=4),
        branch=BRANCHES,
        mode=st.sampled_from(["append", "merge", "overwrite", "patch"]),
        quarantine=st.booleans(),
        cascade=st.booleans(),
    )
    def load(self, records, branch, mode, quarantine, cascade):
        text = "\n".join(map(json.dumps, records))
        cascade = cascade and mode == "overwrite"
        options = {"quarantine": quarantine, "cascade": cascade}
        result = self.attempt(self.graph.load, text, mode, branch=branch, base="main", **options)
        if result is not None:
            loaded = sum(result.rows_loaded.values())
            assert loaded + len(result.quarantined) == len(records)
            receipt = result.receipt
            assert receipt.commit is not None
            self.check_counts(receipt.parent, receipt.commit, receipt.counts)

    def check_counts(self, parent: str, commit: str, counts: dict[str, Counts]):
        """Net counts agree with the content; an update may leave a row as it was."""
        changes = Counter((c.table_key, c.op) for c in self.graph.diff(parent, commit))
        for key, counted in counts.items():
            assert counted.inserted == changes[key, "insert"]
            assert counted.deleted == changes[key, "delete"]
            assert counted.updated >= changes[key, "update"]
        assert {key for key, _ in changes} <= counts.keys()

    @rule(name=BRANCHES, source=BRANCHES)
    def branch(self, name, source):
        known = self.graph.branches()
        self.attempt(self.graph.create_branch, name, source)
        if name not in known and source in known:
            assert self.graph.diff(source, name) == ()

    @rule(name=BRANCHES)
    def delete_branch(self, name):
        self.attempt(self.graph.delete_branch, name)

    @rule(source=BRANCHES, into=BRANCHES)
    def merge(self, source, into):
        result = self.attempt(self.graph.merge, source, into)
        if result is None:
            return
        if result.outcome == "already_up_to_date":
            assert result.receipt.commit is None
        elif result.outcome == "fast_forward":
            assert self.graph.diff(source, into) == ()
        assert self.graph.merge(source, into).outcome == "already_up_to_date"

    @precondition(lambda self: len(self.graph.branches()) > 1)
    @rule()
    def changes_lead_from_one_branch_to_the_other(self):
        for name in self.graph.branches():
            changes = self.graph.diff("main", name)
            assert applied(self.graph, "main", changes) == self.graph.at(name).tables
            back = self.graph.diff(name, "main")
            opposite = {"insert": "delete", "delete": "insert", "update": "update"}
            assert [(c.id, opposite[c.op]) for c in changes] == [(c.id, c.op) for c in back]

    @invariant()
    def every_rule_of_the_schema_holds(self):
        for name in self.graph.branches():
            tables = self.graph.at(name).tables
            for key, source, target in (
                ("edge:Mentors", "node:Maker", "node:Maker"),
                ("edge:Borrows", "node:Maker", "node:Tool"),
                ("edge:Follows", "node:Maker", "node:Maker"),
            ):
                for id, row in tables[key].items():
                    assert row["src"] in tables[source]
                    assert row["dst"] in tables[target]
                    if key == "edge:Follows":
                        assert json.loads(id) == [row["src"], row["dst"]]
            ages = {row["age"] for row in tables["node:Maker"].values()}
            assert ages <= {None, *range(10)}
            badges = Counter(row["badge"] for row in tables["node:Maker"].values())
            assert all(number == 1 for badge, number in badges.items() if badge is not None)
            mentors = Counter(row["src"] for row in tables["edge:Mentors"].values())
            assert all(number <= 2 for number in mentors.values())
            assert all(id == row["id"] for rows in tables.values() for id, row in rows.items())

    @invariant()
    def history_has_no_gaps(self):
        for name in self.graph.branches():
            commits = self.graph.commits(name)
            assert [c.sequence for c in commits] == list(range(1, len(commits) + 1))
            for earlier, later in pairwise(commits):
                assert later.parents[0] == earlier.id


def test_random_operations_keep_the_laws():
    run_state_machine_as_test(GraphLaws, settings=settings(max_examples=80, stateful_step_count=15))


@pytest.mark.slow
def test_many_random_operations_keep_the_laws():
    run_state_machine_as_test(
        GraphLaws, settings=settings(max_examples=2000, stateful_step_count=30)
    )
