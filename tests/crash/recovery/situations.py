"""Situations that only an accident brings about: interrupted writes, foreign commits, lost locks.

Everything is made by the product itself where it can be, stopped at a fault point; the rest is done
behind its back, as another program or another version of the product would do it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import lance
import pyarrow as pa

from omnigraph.api.core import GraphCore
from omnigraph.api.graph import Graph, init
from omnigraph.storage.stage import commit_staged, stage_append
from omnigraph.storage.table import Table
from omnigraph.versioning.audit import RecordedAudit
from omnigraph.versioning.ids import new_ulid
from omnigraph.versioning.locks import HeldLock, WriterLocks
from omnigraph.versioning.locks.process_lock import Deadline, QueueKey
from tests.behaviour.graphs import KEYS, PERSON, SCHEMA, Backstage
from tests.support.faults import Fail, InjectedFault, armed

KNOWS, WORKS_AT = "edge:Knows", "edge:WorksAt"
EVERYBODY = ["Alice", "Bob", "Cara", "Dan"]
BEFORE_PUBLISH = "mutation.post_finalize_pre_publisher"
AFTER_TABLE = "mutation.post_table_commit"
BEFORE_TABLE = "mutation.pre_table_commit"
WITH_SIDECAR = "recovery.sidecar_written"
PUBLISHED = "graph_publish.after_manifest_commit"

ADD = "query add($who: String) { insert Person { name: $who } }"
AGE = "query age($who: String, $age: I32) { update Person set { age: $age } where name = $who }"
HIRE = """query hire($who: String, $company: String) {
  insert Person { name: $who }
  insert Company { name: $company }
  insert WorksAt { from: $who, to: $company }
}"""


def people(*names: str) -> str:
    return "".join(json.dumps({"type": "Person", "data": {"name": name}}) + "\n" for name in names)


SEED = people(*EVERYBODY) + (
    '{"type": "Company", "data": {"name": "Acme"}}\n'
    '{"edge": "Knows", "from": "Alice", "to": "Bob"}\n'
    '{"edge": "WorksAt", "from": "Cara", "to": "Acme"}\n'
)


def new_graph(uri: str) -> Graph:
    """The standard graph: four people, a company and two edges."""
    graph = init(uri, SCHEMA)
    graph.load(SEED.encode(), "append")
    return graph


# -- looking --------------------------------------------------------------------------------


def ids(graph: Graph, key: str = PERSON, branch: str | None = None) -> list[str]:
    table = graph._snapshot(branch).open(graph._core.tables, key)
    return sorted(table.read(["id"]).column("id").to_pylist())


def ages(graph: Graph, branch: str | None = None) -> dict[str, int | None]:
    rows = graph._snapshot(branch).open(graph._core.tables, PERSON).read().to_pylist()
    return {row["name"]: row["age"] for row in rows}


def content(graph: Graph, branch: str | None = None) -> dict[str, list[str]]:
    """The ids in every table of a branch."""
    return {key: ids(graph, key, branch) for key in KEYS}


def sidecars(graph: Graph) -> list[str]:
    return sorted(path.rpartition("/")[2] for path in graph._core.objects.list_dir("__recovery"))


def head(graph: Graph, key: str = PERSON, branch: str | None = None) -> Table:
    """The newest version of a table's line, published or not."""
    entry = graph._snapshot(branch).entry(key)
    return Backstage(graph.uri).tables.open(entry.location, entry.branch)


def drifted(graph: Graph, branch: str | None = None) -> dict[str, tuple[int, int]]:
    """Tables whose newest version is not the one the graph knows: both numbers."""
    physical = graph._ref(branch).physical
    found = {}
    for key, entry in graph._snapshot(branch).entries.items():
        newest = head(graph, key, branch).version
        if entry.branch == physical and newest != entry.version:
            found[key] = (entry.version, newest)
    return found


def kinds(graph: Graph, branch: str | None = None) -> list[str]:
    """What recovery has done on a branch, in order."""
    return [recorded.audit.kind.value for recorded in graph.maintenance.recoveries(branch)]


def the_recovery(graph: Graph, kind: str, branch: str | None = None) -> RecordedAudit:
    """The only recovery of a branch, which is of this kind and has a commit to itself."""
    (recorded,) = graph.maintenance.recoveries(branch)
    assert recorded.audit.kind.value == kind
    commit = graph.commit(recorded.graph_commit_id)
    assert (commit.actor, commit.operation) == (
        "omnigraph:recovery",
        "recovery",
    )
    assert commit.number == recorded.sequence
    assert [c.id for c in graph.log(branch, actor="omnigraph:recovery", reverse=True)] == [
        commit.id
    ]
    return recorded


def check_recovered(graph: Graph, *branches: str) -> None:
    """Nothing waits, and every table is where the graph knows it to be."""
    assert sidecars(graph) == []
    for branch in ("main", *branches):
        assert drifted(graph, branch) == {}


# -- interrupting ---------------------------------------------------------------------------


def interrupted(point: str, write: Callable[[], object], *, first: int = 1) -> None:
    """Let a write come as far as a fault point and no further, as if its process had died there."""
    with armed(point, Fail(), first=first, times=1) as record:
        try:
            write()
        except InjectedFault:
            pass
        else:
            raise AssertionError(f"{point} did not stop the write")
    assert record.count(point) == first


def of_another_process(graph: Graph) -> None:
    """Make every sidecar look as if another process had written it."""
    for name in sidecars(graph):
        document = read_sidecar(graph, name)
        write_sidecar(graph, name, {**document, "owner": new_ulid()})


def read_sidecar(graph: Graph, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(graph._core.objects.read_text(f"__recovery/{name}"))
    return found


def write_sidecar(graph: Graph, name: str, document: object) -> None:
    text = document if isinstance(document, str) else json.dumps(document)
    graph._core.objects.write_text(f"__recovery/{name}", text)


def sidecar_for(
    graph: Graph, key: str = PERSON, *, operation_id: str, expected: int, **fields: Any
) -> str:
    """A hand-written sidecar of a write to one table of main; its name."""
    entry = graph._snapshot("main").entry(key)
    last = graph._core.manifest.commits(None)[-1].draft
    document = {
        "schema_version": 2,
        "operation_id": operation_id,
        "owner": new_ulid(),
        "started_at": "1781443200000000",
        "branch": None,
        "branch_physical": None,
        "base_seq": graph._snapshot("main").version,
        "actor_id": None,
        "writer_kind": "Mutation",
        "commit": {
            "graph_commit_id": new_ulid(),
            "message": None,
            "counts": {},
            "load_id": None,
            "operation": "mutate",
            "schema_ir_hash": last.schema_ir_hash,
            "schema_ref": last.schema_ref,
            "warnings": [],
        },
        "tables": [
            {
                "table_key": key,
                "table_id": entry.table_id,
                "table_path": entry.location,
                "expected_version": expected,
                "data_commits": 1,
                "post_commit_pin": expected + 1,
            }
        ],
        **fields,
    }
    write_sidecar(graph, f"{operation_id}.json", document)
    return f"{operation_id}.json"


# -- behind the graph's back ----------------------------------------------------------------


def rows_like(table: Table, names: Sequence[str]) -> pa.Table:
    return pa.table(
        {
            field.name: pa.array(
                list(names) if field.name in ("id", "name") else [None] * len(names), field.type
            )
            for field in table.schema
        }
    )


def raw_append(graph: Graph, *names: str, key: str = PERSON, branch: str | None = None) -> None:
    """Rows put into a table by a program that knows the table library and not the graph."""
    newest = head(graph, key, branch)
    lance.write_dataset(rows_like(newest, names), newest.writable_handle(), mode="append")


def raw_delete(graph: Graph, name: str, key: str = PERSON, branch: str | None = None) -> None:
    head(graph, key, branch).writable_handle().delete(f"id = '{name}'")


def raw_compaction(graph: Graph, key: str = PERSON, branch: str | None = None) -> None:
    head(graph, key, branch).writable_handle().optimize.compact_files()


def commit_of(
    graph: Graph, operation_id: str, *names: str, key: str = PERSON, branch: str | None = None
) -> int:
    """A table commit that carries an operation id and is not published; the version it made."""
    table = head(graph, key, branch)
    staged = stage_append(table, rows_like(table, names))
    return commit_staged(table, staged, operation_id=operation_id, writer_kind="Mutation").version


# -- writers that lost their lock -----------------------------------------------------------


class LosableLocks(WriterLocks):
    """Locks that let a second writer in while the first one still works.

    A writer that `notices` finds out at its next check; one that does not is past its last check.
    """

    def __init__(self, graph: Graph, *, notices: bool) -> None:
        super().__init__(graph._core.root, graph._core.objects)
        self._notices = notices
        self.lost = threading.Event()

    def _queue(self, branch: str | None) -> QueueKey:
        """A queue of its own, as if it were in another process."""
        return f"losable {id(self)}", branch

    @contextmanager
    def _hold_process(
        self, branch: str | None, operation: str, deadline: Deadline, began: float
    ) -> Iterator[HeldLock]:
        yield HeldLock(operation, ((branch, lambda: self._notices and self.lost.is_set()),))


def with_locks(graph: Graph, locks: WriterLocks) -> Graph:
    """A second handle of the graph that uses other locks."""
    core = graph._core
    return Graph(GraphCore(core.root, core.objects, core.tables, locks=locks), graph._bound)


class Writer:
    """A write in a thread of its own, and what became of it."""

    def __init__(self, write: Callable[[], object]) -> None:
        self._write = write
        self._results: list[object] = []
        self._errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._results.append(self._write())
        except BaseException as error:
            self._errors.append(error)

    def result(self) -> Any:
        """What the write returned. Raises what it raised."""
        self._thread.join(60)
        assert not self._thread.is_alive()
        if self._errors:
            raise self._errors[0]
        return self._results[0]
