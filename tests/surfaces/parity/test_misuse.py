"""Wrong use, call by call: a typed error that names the argument, and nothing has changed."""

from __future__ import annotations

import io
import pickle
import threading
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import (
    AmbiguousRef,
    BranchExists,
    BranchNotFound,
    CommitNotFound,
    EmbeddedOnly,
    ExportError,
    GraphNotFound,
    HandleClosed,
    InputError,
    InvalidBranchName,
    LanguageError,
    LoadError,
    LoadSourceError,
    NotFoundError,
    OmnigraphError,
    ParameterError,
    QuerySelectionError,
    ReadOnlyHandle,
    RefNotFound,
    SourceUnreadable,
    UnknownColumn,
    UnknownParameter,
    UnknownPropertiesRefused,
    UnknownType,
    UnknownVersion,
    UsageError,
)

UNTYPED: Any = og
"""The package as code without types sees it."""

ADD = {"email": "cy@x.org", "name": "Cy"}
PEOPLE = "query q() { match { $p: Person } return { $p.name } }"

WRONG = {
    # undeclared and wrong parameters
    "query: undeclared": (
        lambda g: g.query("team.gq", {"name": "Ada", "namee": 1}, name="friends_of"),
        UnknownParameter,
        "namee.*did you mean",
    ),
    "mutate: undeclared": (
        lambda g: g.mutate("team.gq", ADD | {"agee": 3}, name="add_person"),
        UnknownParameter,
        "agee",
    ),
    "explain: undeclared": (
        lambda g: g.explain("team.gq", {"nmae": "Ada"}, name="friends_of"),
        UnknownParameter,
        "nmae",
    ),
    "scan: undeclared": (
        lambda g: g.scan("Person", where="name = $n", params={"n": "Bo", "m": 1}),
        UnknownParameter,
        "'m'",
    ),
    "query: missing": (lambda g: g.query("team.gq", name="friends_of"), ParameterError, "name"),
    "query: null": (
        lambda g: g.query("team.gq", {"name": None}, name="friends_of"),
        ParameterError,
        "name",
    ),
    "query: wrong type": (
        lambda g: g.query("team.gq", {"name": 7}, name="friends_of"),
        ParameterError,
        "name",
    ),
    # queries and schemas
    "query: None": (lambda g: g.query(None), InputError, "query must be"),
    "query: no file": (lambda g: g.query("nope.gq"), SourceUnreadable, "nope.gq"),
    "query: no such query": (
        lambda g: g.query("team.gq", name="nope"),
        QuerySelectionError,
        "nope",
    ),
    "query: name is a mapping": (
        lambda g: g.query("team.gq", name={"name": "Ada"}),
        InputError,
        "name must be a string",
    ),
    "query: wrong text": (lambda g: g.query("query q( {"), LanguageError, "expected"),
    "query: of a change": (
        lambda g: g.query("team.gq", ADD, name="add_person"),
        OmnigraphError,
        "add_person",
    ),
    "schema plan: None": (lambda g: g.schema.plan(None), InputError, "schema must be"),
    "schema apply: no file": (lambda g: g.schema.apply("nope.pg"), SourceUnreadable, "nope.pg"),
    # types, ids and columns
    "get: type": (lambda g: g.get("Persn", "x"), UnknownType, "Persn.*did you mean .Person"),
    "get: type None": (lambda g: g.get(None, "x"), InputError, "type must be"),
    "get: id None": (lambda g: g.get("Person", None), InputError, "id must be"),
    "scan: type": (lambda g: g.scan("Persn"), UnknownType, "Persn"),
    "scan: columns": (lambda g: g.scan("Person", columns=["nam"]), UnknownColumn, "nam"),
    "scan: columns as text": (
        lambda g: g.scan("Person", columns="name"),
        InputError,
        "columns must",
    ),
    "scan: where": (lambda g: g.scan("Person", where="nam = 1"), LanguageError, "nam"),
    "scan: where None type": (lambda g: g.scan("Person", where=3), InputError, "where must"),
    "history: type": (lambda g: list(g.history("Persn", "x")), InputError, "Persn"),
    "history: id None": (lambda g: list(g.history("Person", None)), InputError, "id must"),
    "blobs: id None": (lambda g: g.blobs.open("Person", None, "photo"), InputError, "id must"),
    "blobs: property": (lambda g: g.blobs.open("Person", "ada@x.org", "name"), InputError, "name"),
    "diff: type": (lambda g: g.diff("main", "main", types=["Persn"]), InputError, "Persn"),
    "diff: types as text": (
        lambda g: g.diff("main", "main", types="Note"),
        InputError,
        "types must",
    ),
    "export: type": (lambda g: g.export(io.BytesIO(), types=["Persn"]), ExportError, "Persn"),
    "insert: type": (lambda g: g.insert("Persn", [{}]), UnknownType, "Persn"),
    "insert: type None": (lambda g: g.insert(None, [{}]), InputError, "type must"),
    # refs
    "at: None": (lambda g: g.at(None), InputError, "ref"),
    "at: unknown": (lambda g: g.at("maim"), NotFoundError, "maim.*main"),
    "at: number": (lambda g: g.at(99), UnknownVersion, "99"),
    "at: too far back": (lambda g: g.at("main~9"), RefNotFound, "main~9"),
    "at: not a ref": (lambda g: g.at("main~x"), InputError, "main~x"),
    "at: True": (lambda g: g.at(True), InputError, "ref"),
    "query: at and branch": (
        lambda g: g.query(PEOPLE, branch="main", at="main"),
        InputError,
        "either branch or at",
    ),
    "diff: None": (lambda g: g.diff(None, "main"), InputError, "`a`"),
    "revert: None": (lambda g: g.revert(None), InputError, "ref"),
    "cherry_pick: unknown": (lambda g: g.cherry_pick("mian"), NotFoundError, "mian"),
    "commit: unknown": (lambda g: g.commit("01ZZZZZZ"), CommitNotFound, "01ZZZZZZ"),
    "merge: None": (lambda g: g.merge(None), InputError, "source"),
    "merge: into itself": (lambda g: g.merge("main"), InputError, "distinct"),
    "merge: unknown branch": (lambda g: g.merge("dev"), NotFoundError, "dev"),
    "merge: strategy": (
        lambda g: g.merge("dev", strategy="theirs!"),
        InputError,
        "theirs!",
    ),
    "changes: cursor": (lambda g: list(g.changes("c1.nope")), InputError, "cursor"),
    "expected_head: wrong type": (
        lambda g: g.mutate("team.gq", ADD, name="add_person", expected_head=3),
        InputError,
        "expected_head",
    ),
    # branches and tags
    "checkout: unknown": (lambda g: g.checkout("dev"), BranchNotFound, "dev"),
    "checkout: None": (lambda g: g.checkout(None), InputError, "branch must"),
    "branches.create: None": (lambda g: g.branches.create(None), InputError, "name must"),
    "branches.create: taken": (lambda g: g.branches.create("main"), OmnigraphError, "main"),
    "branches.create: bad name": (lambda g: g.branches.create("a b"), InvalidBranchName, "a b"),
    "branches.create: source": (
        lambda g: g.branches.create("dev", source="nope"),
        NotFoundError,
        "nope",
    ),
    "branches.delete: unknown": (lambda g: g.branches.delete("dev"), BranchNotFound, "dev"),
    "branches.reset: None": (lambda g: g.branches.reset("main", None), InputError, "ref"),
    "tags.create: None": (lambda g: g.tags.create(None), InputError, "name must"),
    "tags.create: a branch": (lambda g: g.tags.create("main"), BranchExists, "main"),
    "tags: unknown": (lambda g: g.tags["nope"], NotFoundError, "nope"),
    "tags.delete: unknown": (lambda g: g.tags.delete("nope"), NotFoundError, "nope"),
    # data
    "load: mode": (lambda g: g.load([], "upsert"), InputError, "upsert"),
    "load: mode None": (lambda g: g.load([], None), InputError, "mode must"),
    "load: no source": (lambda g: g.load(None, "merge"), LoadSourceError, "nothing to load"),
    "load: no file": (lambda g: g.load("nope.jsonl", "merge"), SourceUnreadable, "nope.jsonl"),
    "load: text as a path": (
        lambda g: g.load('{"type": "Note", "data": {}}', "merge"),
        LoadSourceError,
        "pass JSON text as bytes",
    ),
    "load: a number": (lambda g: g.load(7, "merge"), LoadSourceError, "<data>"),
    "load: cascade": (lambda g: g.load([], "merge", cascade=True), InputError, "cascade"),
    "load: engine": (lambda g: g.load([], "merge", engine="sparc"), UsageError, "sparc"),
    "load: engine None": (lambda g: g.load([], "merge", engine=None), UsageError, "engine"),
    "insert: rows": (lambda g: g.insert("Note", "n2"), InputError, "rows must be"),
    "insert: rows None": (lambda g: g.insert("Note", None), InputError, "rows must be"),
    "insert: a row that is no dict": (lambda g: g.insert("Note", [3]), LoadSourceError, "row 1"),
    "insert: a key that exists": (
        lambda g: g.insert("Note", [{"slug": "n1", "text": "again"}]),
        LoadError,
        "n1",
    ),
    "insert: unknown property": (
        lambda g: g.insert("Note", [{"slug": "n2", "text": "t", "txet": "u"}]),
        UnknownPropertiesRefused,
        "txet",
    ),
    "insert: missing endpoint": (
        lambda g: g.insert("Wrote", [{"from": "ada@x.org", "to": "n9"}]),
        LoadError,
        "n9",
    ),
    "upsert: no identity": (
        lambda g: g.upsert("Wrote", [{"from": "ada@x.org", "to": "n1"}]),
        InputError,
        "Wrote.*use insert",
    ),
    "insert: idempotency key": (
        lambda g: g.insert("Note", [], idempotency_key="a b"),
        InputError,
        "a b",
    ),
    "embed: all and pending": (lambda g: g.embed(all=True, pending=True), InputError, "all=True"),
    "export: target None": (lambda g: g.export(None), InputError, "target must"),
    "export: text stream": (lambda g: g.export(io.StringIO()), InputError, "binary"),
    "export: format": (lambda g: g.export("x", format="xml"), InputError, "xml"),
    "export: parquet to a stream": (
        lambda g: g.export(io.BytesIO(), format="parquet"),
        InputError,
        "directory",
    ),
    "as_actor: reserved": (lambda g: g.as_actor("omnigraph:me"), InputError, "reserved"),
    "as_actor: number": (lambda g: g.as_actor(7), InputError, "actor must"),
    "cleanup: no policy": (lambda g: g.maintenance.cleanup(), InputError, "keep"),
    "verify: branch": (lambda g: g.maintenance.verify(["dev"]), BranchNotFound, "dev"),
    "verify: text": (lambda g: g.maintenance.verify("main"), InputError, "branches must"),
    "log: limit": (lambda g: g.log(limit=-1), InputError, "limit"),
    "log: since": (lambda g: g.log(since="yesterday"), InputError, "yesterday"),
}


EMBEDDED_CASES = {
    case for case in WRONG if case.startswith(("as_actor", "cleanup", "embed", "verify"))
} | {"export: parquet to a stream"}
"""Wrong use of calls and arguments that a remote graph does not have."""


@pytest.mark.parametrize("case", WRONG)
def test_wrong_use_is_a_typed_error_and_changes_nothing(unchanged, case, implementation):
    call, error, message = WRONG[case]
    if case in EMBEDDED_CASES and not implementation.is_embedded:
        error, message = EmbeddedOnly, "not available on a remote graph"
    before = unchanged.head().id
    with pytest.raises(error, match=message) as caught:
        call(unchanged)
    assert isinstance(caught.value, OmnigraphError)
    assert "--" not in str(caught.value), "the library advises no flag"
    assert unchanged.head().id == before


def fields(error: OmnigraphError) -> dict[str, Any]:
    """The fields of an error, without the generated id of an edge that was not inserted."""
    found = dict(vars(error))
    if isinstance(error, LoadError):
        found["load_errors"] = [replace(one, id=None) for one in error.load_errors]
    return found


@pytest.mark.parametrize("case", sorted(WRONG.keys() - EMBEDDED_CASES))
def test_wrong_use_is_the_same_error_embedded_and_remote(shared_folder, shared_server, case):
    call = WRONG[case][0]
    found = []
    with chdir(shared_folder.parent):
        for graph in (og.open(shared_folder), og.connect(shared_server)):
            with graph, pytest.raises(OmnigraphError) as caught:
                call(graph)
            found.append(caught.value)
    embedded, remote = found
    assert type(remote) is type(embedded)
    assert fields(remote) == fields(embedded)


CLOSED = {
    "query": lambda g: g.query(PEOPLE),
    "explain": lambda g: g.explain(PEOPLE),
    "get": lambda g: g.get("Person", "ada@x.org"),
    "scan": lambda g: g.scan("Person"),
    "at": lambda g: g.at("main"),
    "mutate": lambda g: g.mutate("team.gq", ADD, name="add_person"),
    "load": lambda g: g.load([], "merge"),
    "insert": lambda g: g.insert("Note", []),
    "upsert": lambda g: g.upsert("Note", []),
    "embed": lambda g: g.embed(),
    "analyze": lambda g: g.analyze("degrees"),
    "branches": lambda g: list(g.branches),
    "branches.create": lambda g: g.branches.create("dev"),
    "branches.delete": lambda g: g.branches.delete("dev"),
    "branches.reset": lambda g: g.branches.reset("main", "main~1"),
    "checkout": lambda g: g.checkout("main"),
    "as_actor": lambda g: g.as_actor("bob"),
    "merge": lambda g: g.merge("dev"),
    "revert": lambda g: g.revert("main"),
    "cherry_pick": lambda g: g.cherry_pick("main"),
    "head": lambda g: g.head(),
    "log": lambda g: g.log(),
    "commit": lambda g: g.commit("main"),
    "diff": lambda g: g.diff("main", "main"),
    "changes": lambda g: list(g.changes()),
    "cursor": lambda g: g.cursor(),
    "history": lambda g: list(g.history("Person", "ada@x.org")),
    "tags": lambda g: list(g.tags),
    "tags.create": lambda g: g.tags.create("v1"),
    "schema.source": lambda g: g.schema.source,
    "schema.catalog": lambda g: g.schema.catalog,
    "schema.plan": lambda g: g.schema.plan("team.pg"),
    "schema.apply": lambda g: g.schema.apply("team.pg"),
    "blobs": lambda g: g.blobs.open("Person", "ada@x.org", "photo"),
    "export": lambda g: g.export("rows.jsonl"),
    "export_batches": lambda g: list(g.export_batches()),
    "status": lambda g: g.maintenance.status(),
    "verify": lambda g: g.maintenance.verify(),
    "optimize": lambda g: g.maintenance.optimize(),
    "cleanup": lambda g: g.maintenance.cleanup(keep_versions=1),
    "recover": lambda g: g.maintenance.recover(),
    "with": lambda g: g.__enter__(),
}


@pytest.mark.parametrize("call", CLOSED)
def test_a_closed_handle_refuses_every_call(unchanged, call):
    unchanged.close()
    unchanged.close()
    with pytest.raises(HandleClosed, match="is closed"):
        CLOSED[call](unchanged)


def test_a_closed_handle_says_so_and_others_stay_open(unchanged):
    other = unchanged.checkout("main")
    with unchanged:
        pass
    assert "closed" in repr(unchanged)
    assert other.head().number == 2


def test_no_thread_is_left_after_close(graph, implementation):
    # So many writes begin a compaction in the background.
    for number in range(80 if implementation.is_embedded else 3):
        graph.upsert("Note", [{"slug": f"s{number}", "text": "t"}])
    graph.close()
    assert [t.name for t in threading.enumerate() if t.name.startswith("omnigraph")] == []


def test_an_abbreviated_id_that_several_commits_share_is_refused(graph):
    for number in range(3):
        graph.upsert("Note", [{"slug": f"s{number}", "text": "t"}])
    beginning = graph.head().id[:6]
    with pytest.raises(AmbiguousRef, match="ambiguous") as caught:
        graph.at(beginning)
    assert len(caught.value.candidates) == 5


def test_a_receipt_without_a_commit_is_no_ref(graph):
    nothing = graph.mutate(
        "query q($e: String) { delete Person where email = $e }", {"e": "nobody"}
    )
    assert nothing.commit_id is None
    with pytest.raises(InputError, match="nothing to write"):
        graph.at(nothing)


def test_a_handle_that_travels_is_opened_again(team_folder):
    graph = og.open(team_folder)
    writer = graph.as_actor("ada")
    again = pickle.loads(pickle.dumps(writer))
    assert (again.uri, again.branch, again.actor) == (writer.uri, "main", "ada")
    again.upsert("Note", [{"slug": "n2", "text": "from afar"}])
    assert graph.head().actor == "ada"


@pytest.mark.parametrize("uri", ["nope.omni", Path("nope.omni"), "./no/such/folder"])
def test_a_path_without_a_graph_is_not_found(team_folder, uri):
    with pytest.raises(GraphNotFound, match="no graph at"):
        og.open(uri)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: UNTYPED.open(None), "uri"),
        (lambda: UNTYPED.open("team.omni", branch=None), "branch"),
        (lambda: UNTYPED.open("team.omni", actor=3), "actor"),
        (lambda: UNTYPED.open("team.omni", view="all"), "view"),
        (lambda: UNTYPED.init(None, "team.pg"), "uri"),
        (lambda: UNTYPED.init("new.omni", None), "schema"),
    ],
)
def test_wrong_arguments_of_opening_are_named(team_folder, call, argument):
    with pytest.raises(InputError, match=f"^{argument} must"):
        call()


def test_a_read_only_handle_refuses_writes(team_folder):
    reader = og.open("team.omni", read_only=True)
    for call in (
        lambda: reader.mutate("team.gq", ADD, name="add_person"),
        lambda: reader.upsert("Note", []),
        lambda: reader.branches.create("dev"),
        lambda: reader.tags.create("v1"),
        lambda: reader.schema.apply("team.pg"),
        lambda: reader.maintenance.optimize(),
        lambda: reader.maintenance.recover(),
    ):
        with pytest.raises(ReadOnlyHandle):
            call()
    assert len(reader.query(PEOPLE)) == 2
