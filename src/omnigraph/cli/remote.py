"""A graph behind a server, as commands use it: one method per route, in and out plain JSON documents.

Whatever contract the server speaks, a command sees the documents that it prints itself for a local graph;
those of contract 0.13 are translated by `omnigraph.wire.adapted13`. Nothing here imports the storage engine.
Tests: tests/surfaces/remote.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from urllib.parse import quote

import msgspec

from omnigraph.cli.exits import CONDITION_LOST, CommandFailed
from omnigraph.cli.output.answers import without_details
from omnigraph.cli.server_calls import (
    ALL_FIELDS,
    CONTRACT_13,
    REFUSED,
    Document,
    ServerCalls,
    parameters,
)
from omnigraph.client.transport import Incoming, Reply, Write
from omnigraph.client.uploads import MSGPACK, PART_BYTES, PATH, upload_parts
from omnigraph.errors import UnexpectedAnswer
from omnigraph.wire import adapted13

CONDITION_HEADER: Final = "Omnigraph-If-Graph-Commit"

_READ: Final = ("query_name", "target", "row_count", "rows")
_CHANGE: Final = ("branch", "query_name", "affected_nodes", "affected_edges", "actor_id")
_INGEST: Final = ("uri", "branch", "branch_created", "mode", "tables")


_STATUS: Final = (
    "uri", "branch", "graph_commit_id", "manifest_version", "format_version", "schema_hash",
    "branches", "moved_branches", "tables", "recovery", "leases", "scratch", "cached_bytes", "advice",
)  # fmt: skip
_TABLE_STATUS: Final = (
    "table_key", "rows", "fragments", "bytes", "indexes", "missing_indexes", "embeddings",
)  # fmt: skip


class ServedGraph(ServerCalls):
    """The graph that a command addresses on a server."""

    # -- queries ----------------------------------------------------------------------------

    def query(self, **body: object) -> Document:
        return self.call("POST", "/query", adapted13.read, body=body, needs=_READ)

    def explain(self, **body: object) -> Document:
        needs = ("query_name", "target", "plan")
        found = self.call("POST", "/explain", body=body, needs=needs)
        # The tree says the same; these are for clients that rebuild the steps.
        return {name: found[name] for name in found if name not in ("looks_up", "steps")}

    def aliased(self, name: str, params: Mapping[str, object]) -> Document:
        """Run a stored read that an alias names; without parameters no body is sent."""
        body = {"params": params} if params else None
        path = f"/queries/{_segment(name)}"
        return self.call("POST", path, adapted13.read, body=body, needs=_READ)

    def stored(
        self,
        name: str,
        *,
        mutation: bool,
        idempotency_key: str | None = None,
        if_commit: str | None = None,
        **body: object,
    ) -> Document:
        """Run a stored query. Raises if it is not of the kind that the caller expects."""
        path = f"/queries/{_segment(name)}"
        sent = {**body, "expect_mutation": mutation}
        write = Write(idempotency_key or _new_key()) if mutation else None
        adapt = adapted13.change if mutation else adapted13.read
        if if_commit is not None:
            document = self._conditional(path, sent, if_commit, write)
        else:
            document = self.call("POST", path, adapt, body=sent, write=write)
        if not mutation and "rows" in document and any(name not in document for name in _READ):
            raise UnexpectedAnswer(self.base, "the answer is not the expected document")
        if ("rows" in document) is mutation:
            kind = "a read" if mutation else "a mutation"
            raise UnexpectedAnswer(self.base, f"stored query '{name}' is {kind}")
        return self._with_commit(document) if mutation else document

    def mutate(
        self, *, idempotency_key: str | None, if_commit: str | None, **body: object
    ) -> Document:
        write = Write(idempotency_key or _new_key())
        if if_commit is not None:
            return self._with_commit(self._conditional("/mutate", body, if_commit, write))
        changed = self.call(
            "POST", "/mutate", adapted13.change, body=body, write=write, needs=_CHANGE
        )
        return self._with_commit(changed)

    def _conditional(
        self, path: str, body: Mapping[str, object], commit: str, write: Write | None
    ) -> Document:
        """A write on condition. Contract 0.7 has no route for it, but an expected head."""
        if self.contract == "0.7":
            sent = {**body, "expected_head": commit}
            try:
                return self.call("POST", path, body=sent, write=write)
            except CommandFailed as failed:
                document = failed.document
                head = (document or {}).get("head_conflict")
                if head is None and type(failed.error).__name__ != "HeadMoved":
                    raise
                if document is not None and head is not None:
                    found = {"expected": head["expected"], "actual": head["actual"]}
                    document = {**document, "precondition_failure": found}
                raise CommandFailed(failed.error, CONDITION_LOST, document) from None
        headers = {CONDITION_HEADER: commit}
        return self.call(
            "POST",
            f"{path}/if-graph-commit",
            adapted13.change,
            body=body,
            headers=headers,
            write=write,
            needs=_CHANGE,
        )

    def _with_commit(self, document: Document) -> Document:
        """A receipt with the commit as contract 0.13 writes it. Older servers leave it out."""
        document = without_details(document)
        if "commit" in document:
            return document
        commit_id = document.get("graph_commit_id")
        made = None if commit_id is None else adapted13.to_commit_13(self.commit(commit_id))
        return document | {"commit": made}

    # -- data -------------------------------------------------------------------------------

    def load(self, *, load_id: str | None, **body: object) -> Document:
        key = load_id or _new_key()
        # A server of contract 0.7 reads the id in the body, one of 0.13 the header.
        sent = {**body, "load_id": key}
        write = Write(key, is_load=True)
        if len(body["data"]) > PART_BYTES:  # type: ignore[arg-type]
            return self._with_commit(self._load_parts(body, write))
        return self._with_commit(
            self.call("POST", "/load", adapted13.ingest, body=sent, write=write, needs=_INGEST)
        )

    def _load_parts(self, body: Mapping[str, object], write: Write) -> Document:
        """Load a text that is larger than one request may be."""
        given = {name: value for name, value in body.items() if value is not None}
        data = str(given.pop("data")).encode("utf-8", "surrogatepass")
        branch = str(given.get("branch") or "main")
        whole = msgspec.msgpack.encode({"parts": [{"json": data}], **given})
        for query, part, is_last in upload_parts(whole, branch):
            found = self.call(
                "POST",
                PATH,
                adapted13.ingest,
                query=query,
                content=part,
                content_type=MSGPACK,
                write=write if is_last else None,
                needs=_INGEST if is_last else (),
            )
        return found

    @contextmanager
    def export(self, **body: object) -> Iterator[Iterator[bytes]]:
        """The lines of an export while they arrive."""
        with self.stream("POST", "/export", body=body, accept=ALL_FIELDS) as incoming:
            yield iter(incoming)

    @contextmanager
    def blob(self, selector: Mapping[str, object], byte_range: str | None) -> Iterator[Incoming]:
        headers = {} if byte_range is None else {"Range": byte_range}
        with self.stream("GET", "/blob", query=selector, headers=headers) as incoming:
            yield incoming

    def blob_head(self, selector: Mapping[str, object]) -> Reply:
        with self.failing(None):
            sender = self.transport(self.contract)
            try:
                reply = sender.call(
                    "HEAD", "/blob", query=parameters(selector), passes=REFUSED | {302}
                )
            finally:
                sender.close()
            if reply.status not in (200, 302):
                # An answer to HEAD has no body; the same request by GET says what is wrong.
                self.call("GET", "/blob", query=selector)
            return reply

    # -- state ------------------------------------------------------------------------------

    def snapshot(self, branch: str) -> Document:
        query = {"branch": branch}
        needs = ("branch", "manifest_version", "tables")
        return self.call("GET", "/snapshot", adapted13.snapshot, query=query, needs=needs)

    def schema(self) -> Document:
        return self.call("GET", "/schema", adapted13.schema, needs=("schema_source",))

    def apply_schema(self, *, idempotency_key: str | None, **body: object) -> Document:
        """Change the schema, for which contract 0.13 has no route."""
        write = Write(idempotency_key or _new_key())
        needs = ("uri", "applied", "manifest_version", "steps")
        applied = self.call(
            "POST", "/schema/apply", body=body, write=write, contract="0.7", needs=needs
        )
        return without_details(applied)

    def status(self, branch: str) -> Document:
        query = {"branch": branch}
        found = self.call("GET", "/status", query=query, needs=("uri", "branch", "tables"))
        tables = [_kept(table, _TABLE_STATUS) for table in found["tables"]]
        return _kept(found, _STATUS) | {"tables": tables}

    def graphs(self) -> Document:
        return self.call("GET", "/graphs", adapted13.graphs, on_server=True, needs=("graphs",))

    # -- branches ---------------------------------------------------------------------------

    def branches(self) -> Document:
        return self.call("GET", "/branches", needs=("branches",))

    def create_branch(self, name: str, source: str) -> Document:
        body = {"name": name, "from": source}
        return self.call("POST", "/branches", body=body, write=Write(), needs=("name", "from"))

    def delete_branch(self, name: str) -> Document:
        path = f"/branches/{_segment(name)}"
        return self.call("DELETE", path, write=Write(), needs=("name",))

    def merge(self, *, idempotency_key: str | None, **body: object) -> Document:
        # A dry run changes nothing: it is neither announced nor has it a key.
        write = None if body.get("dry_run") else Write(idempotency_key or _new_key())
        path = "/branches/merge"
        needs = ("source", "target", "outcome")
        merged = self.call("POST", path, adapted13.merge, body=body, write=write, needs=needs)
        return merged if write is None else self._with_commit(merged)

    # -- history ----------------------------------------------------------------------------

    def commits(self, **query: object) -> list[Document]:
        """Commits, oldest first."""
        listed = self.call("GET", "/commits", adapted13.commits, query=query, needs=("commits",))
        found: list[Document] = listed["commits"]
        return found

    def commit(self, commit_id: str) -> Document:
        path = f"/commits/{_segment(commit_id)}"
        return self.call("GET", path, adapted13.commit, needs=("graph_commit_id", "created_at"))

    def diff(self, **body: object) -> Document:
        return self.call("POST", "/diff", body=body, needs=("changes", "stats"))

    def changes(self, query: Mapping[str, object]) -> Document:
        """Changes by commit, which only contract 0.7 has in this form."""
        needs = ("commits", "next_cursor", "at_head")
        return self.call("GET", "/changes", query=query, contract="0.7", needs=needs)

    def poll(self, query: Mapping[str, object]) -> Document:
        return self.call("GET", "/changes", query=query, contract=CONTRACT_13, needs=("blocks",))

    def commit_changes(self, commit_id: str, query: Mapping[str, object]) -> Document:
        path = f"/commits/{_segment(commit_id)}/changes"
        needs = ("cause", "changes")
        return self.call("GET", path, query=query, contract=CONTRACT_13, needs=needs)

    @contextmanager
    def baseline(self, **body: object) -> Iterator[Iterator[bytes]]:
        path = "/changes/baseline"
        with self.stream("POST", path, body=body, contract=CONTRACT_13) as incoming:
            yield iter(incoming)


def _new_key() -> str:
    """A key under which the server remembers a write, so that a lost answer can be asked for again."""
    return os.urandom(16).hex()


def _kept(document: Document, names: tuple[str, ...]) -> Document:
    """The document without what only programs need that rebuild objects from it."""
    return {name: document[name] for name in names if name in document}


def _segment(text: str) -> str:
    return quote(text, safe="")
