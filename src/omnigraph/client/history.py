"""The calls of a remote graph about history: commits, diffs, the change feed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import UNSET

from omnigraph.api.arguments import names_argument, optional_text, text_argument
from omnigraph.client.documents import commit_of
from omnigraph.client.handle import RemoteHandle, refuse_engine, refuse_view
from omnigraph.client.reading import entity_path
from omnigraph.client.streams import arrow_batches
from omnigraph.diff.diff import ChangeFilter, Changes, Diff
from omnigraph.diff.feed import CommitChanges, EntityChange, FeedCursor, is_cursor
from omnigraph.errors import EntityNotFound, InputError, UnknownType
from omnigraph.history.commits import to_micros
from omnigraph.wire import documents07 as v07
from omnigraph.wire.values import untagged

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.history.commits import Commit
    from omnigraph.history.refs import Ref
    from omnigraph.progress import Progress
    from omnigraph.read.view import ReadView
    from omnigraph.spark.choice import EngineArgument

_PAGE_COMMITS = 100
_PAGE_CHANGES = 1000

_Position = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class ServedChanges(Changes):
    """Changed rows on the server. Values are asked for when they are needed."""

    narrow: Callable[[], pa.Table]
    rows_of: Callable[[str], pa.Table]
    listed: Callable[[bool], Iterator[dict[str, Any]]]
    begin: _Position | None = None
    limit: int | None = None

    def __len__(self) -> int:
        return int(self.to_arrow().num_rows)

    def to_arrow(self) -> pa.Table:
        import pyarrow.compute as pc

        table = self.narrow()
        if self.begin is not None:
            key, id = self.begin
            same = pc.and_(pc.equal(table["table_key"], key), pc.greater(table["id"], id))
            table = table.filter(pc.or_(pc.greater(table["table_key"], key), same))
        return table if self.limit is None else table.slice(0, self.limit)

    def values(self, type_name: str) -> pa.Table:
        return self.rows_of(type_name)

    def stats(self) -> dict[str, Any]:
        table = self.to_arrow()
        ops = table["op"].to_pylist()
        return {
            "inserts": ops.count("insert"),
            "updates": ops.count("update"),
            "deletes": ops.count("delete"),
            "types_affected": sorted(set(table["type_name"].to_pylist())),
        }

    def documents(self, *, rows: bool = False) -> Iterator[dict[str, Any]]:
        wanted = {(one["table_key"], one["id"]) for one in self.to_arrow().to_pylist()}
        for document in self.listed(rows):
            if (document["table_key"], document["id"]) in wanted:
                yield document

    def after(self, position: _Position | None, limit: int | None) -> Changes:
        return replace(self, begin=position, limit=limit)

    def last_position(self) -> _Position | None:
        table = self.to_arrow()
        if not table.num_rows:
            return None
        return table["table_key"][-1].as_py(), table["id"][-1].as_py()


class RemoteHistory(RemoteHandle):
    """Calls about what happened to a graph behind a server."""

    def head(self, branch: str | None = None) -> Commit:
        """The newest commit of a branch."""
        asked = (("branch", self._on(branch)), ("limit", "1"))
        return commit_of(self._get("/commits", v07.CommitListOutput, *asked).commits[0])

    def log(
        self,
        branch: str | None = None,
        *,
        actor: str | None = None,
        operation: str | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        limit: int | None = None,
        merged: bool = False,
        reverse: bool = False,
    ) -> list[Commit]:
        """The commits of a branch, newest first; with `reverse` oldest first."""
        if limit is not None and limit < 0:
            raise InputError(f"limit {limit} is negative; use 0 or more, or leave it out")
        found = self._get(
            "/commits",
            v07.CommitListOutput,
            ("branch", self._on(branch)),
            ("actor", optional_text("actor", actor)),
            ("operation", optional_text("operation", operation)),
            ("since", _bound("since", since)),
            ("until", _bound("until", until)),
            ("limit", None if limit is None else str(limit)),
            ("merged", "true" if merged else None),
            ("reverse", "true" if reverse else None),
        ).commits
        commits = [commit_of(one) for one in found]
        return commits if reverse else commits[::-1]

    def commit(self, ref: Ref) -> Commit:
        """One commit, on whichever branch it is. Raises `CommitNotFound`."""
        from omnigraph.client.addresses import path_segment

        if isinstance(ref, int) and not isinstance(ref, bool):
            return self._numbered(ref, self._branch)
        named = self._ref("ref", ref)
        return commit_of(self._get(f"/commits/{path_segment(named)}", v07.CommitOutput))

    def diff(
        self,
        a: Ref,
        b: Ref,
        *,
        types: Iterable[str] = (),
        kinds: Iterable[str] = (),
        ops: Iterable[str] = (),
        view: ReadView | None = None,
        engine: EngineArgument = "auto",
        progress: Progress | None = None,
    ) -> Diff:
        """The net change from state `a` to state `b`."""
        refuse_engine(engine)
        refuse_view(view)
        names, kinds, ops = names_argument("types", types), list(kinds), list(ops)
        ChangeFilter.parse(names, kinds, ops)
        body: dict[str, Any] = {
            "from": self._ref("a", a),
            "to": self._ref("b", b),
            "type_names": list(names),
            "kinds": kinds,
            "ops": ops,
        }
        first = self._call("POST", "/diff", body=body | {"limit": 1}).json(v07.DiffOutput)
        # Both commits never change, whatever the refs name later.
        body |= {"from": first.from_commit, "to": first.to_commit}
        transport = self._transport

        def arrow(**more: str) -> pa.Table:
            return arrow_batches(transport, "POST", "/diff", body=body | more).read_all()

        def listed(rows: bool) -> Iterator[dict[str, Any]]:
            cursor: str | None = None
            while True:
                page = body | {"rows": rows, "limit": _PAGE_CHANGES, "cursor": cursor}
                found = transport.call("POST", "/diff", body=page).json(v07.DiffOutput)
                yield from map(_entry, found.changes)
                cursor = found.next_cursor
                if cursor is None:
                    return

        changes = ServedChanges(
            narrow=_once(arrow), rows_of=lambda name: arrow(values=name), listed=listed
        )
        return Diff(
            _named(a, first.from_commit),
            _named(b, first.to_commit),
            first.from_commit,
            first.to_commit,
            changes,
        )

    def changes(
        self,
        cursor: Ref | None = None,
        *,
        branch: str | None = None,
        types: Iterable[str] = (),
        kinds: Iterable[str] = (),
        ops: Iterable[str] = (),
    ) -> Iterator[CommitChanges]:
        """The commits of a branch after `cursor`, oldest first, each with the rows it changed."""
        on, names = self._on(branch), names_argument("types", types)
        kinds, ops = list(kinds), list(ops)
        ChangeFilter.parse(names, kinds, ops)
        since: str | None
        if cursor is None or (isinstance(cursor, str) and is_cursor(cursor)):
            since = cursor
        elif isinstance(cursor, int) and not isinstance(cursor, bool):
            since = self._numbered(cursor, on).id
        else:
            since = self._ref("cursor", cursor)
        wanted = [("branch", on)]
        wanted += [("type_name", name) for name in names]
        wanted += [("kind", kind) for kind in kinds] + [("op", op) for op in ops]
        page = self._feed_page(wanted, since)
        # A feed of several pages ends at the head of its beginning, too.
        last = None if page.at_head else self.head(on).number
        return self._feed(wanted, since, page, last)

    def _feed(
        self,
        wanted: list[tuple[str, str]],
        since: str | None,
        page: v07.ChangesOutput,
        last: int | None,
    ) -> Iterator[CommitChanges]:
        while True:
            for document in page.commits:
                assert document.commit is not UNSET
                assert document.cursor is not UNSET
                if last is not None and document.commit.manifest_version > last:
                    return
                yield CommitChanges(
                    commit=commit_of(document.commit),
                    changes=self._commit_changes(wanted, since, document),
                    cursor=document.cursor,
                    at_head=document.at_head is True,
                    dropped=() if document.dropped is UNSET else tuple(document.dropped),
                )
                since = document.cursor
            if page.at_head:
                return
            page = self._feed_page(wanted, since)

    def _feed_page(self, wanted: list[tuple[str, str]], since: str | None) -> v07.ChangesOutput:
        query = [*wanted, ("limit", str(_PAGE_COMMITS)), ("details", "true")]
        query += [] if since is None else [("since", since)]
        return self._call("GET", "/changes", query=query).json(v07.ChangesOutput)

    def _commit_changes(
        self,
        wanted: list[tuple[str, str]],
        since: str | None,
        document: v07.CommitChangesOutput,
    ) -> ServedChanges:
        transport = self._transport
        query = [*wanted, ("limit", "1"), *([] if since is None else [("since", since)])]

        def arrow(*more: tuple[str, str]) -> pa.Table:
            return arrow_batches(transport, "GET", "/changes", query=[*query, *more]).read_all()

        def listed(rows: bool) -> Iterator[dict[str, Any]]:
            if not rows:
                return map(_entry, document.changes)
            asked = [*query, ("rows", "true")]
            found = transport.call("GET", "/changes", query=asked).json(v07.ChangesOutput)
            return map(_entry, found.commits[0].changes)

        assert document.commit is not UNSET
        return ServedChanges(
            version=document.commit.manifest_version,
            narrow=_once(arrow),
            rows_of=lambda name: arrow(("values", name)),
            listed=listed,
        )

    def cursor(self, branch: str | None = None) -> str:
        """The cursor of the present head, from which `changes` reports what comes next."""
        head = self.head(branch)
        return str(FeedCursor(head.number, head.id))

    def history(self, type: str, id: str, *, branch: str | None = None) -> Iterator[EntityChange]:
        """The commits that changed one node or edge, oldest first, with its values before and after."""
        text_argument("type", type)
        path = f"{entity_path(type, text_argument('id', id))}/history"
        query = [("branch", self._on(branch)), ("typed", "true")]
        try:
            found = self._call("GET", path, query=query).json(v07.EntityHistoryOutput)
        except EntityNotFound:
            return iter(())
        except UnknownType as error:
            message = error.message.replace("unknown node or edge type", "there is no type", 1)
            raise InputError(message) from None
        return map(_entity_change, found.changes)


def _entity_change(document: v07.EntityChangeOutput) -> EntityChange:
    from omnigraph.diff.changes import Op

    assert document.commit is not UNSET
    return EntityChange(
        commit_of(document.commit),
        Op(document.op),
        untagged(document.typed_before),
        untagged(document.typed_after),
        (document.before, document.after),
    )


def _entry(entry: v07.ChangeEntry) -> dict[str, Any]:
    return cast("dict[str, Any]", msgspec.to_builtins(entry))


def _once(made: Callable[[], pa.Table]) -> Callable[[], pa.Table]:
    """A table that is asked for at most once."""
    known: list[pa.Table] = []

    def found() -> pa.Table:
        if not known:
            known.append(made())
        return known[0]

    return found


def _bound(name: str, value: object) -> str | None:
    if isinstance(value, datetime):
        return f"@{max(0, to_micros(value))}"
    return optional_text(name, value)


def _named(ref: Ref, commit_id: str) -> str:
    """How a document names a state: as the caller wrote it, if that was text or a number."""
    return str(ref) if isinstance(ref, str | int) else commit_id
