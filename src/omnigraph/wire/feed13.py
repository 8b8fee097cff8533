"""The change feed of contract 0.13: polls, the changes of one commit, and the baseline they start from.

A poll covers the commits after a cursor up to the head at its beginning, 128 at most. Its pages may end inside
a commit; only its last page has a cursor. Cursors and page tokens name the graph, the branch and the filters
they belong to, and nothing is remembered. The server and the command line call this.
Tests: tests/server/test_polls.py, tests/surfaces/remote.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import msgspec

from omnigraph.api.handle import newest_state
from omnigraph.api.history import branch_feed
from omnigraph.diff.changes import TableChanges, row_documents
from omnigraph.diff.diff import ChangeFilter, kind_of
from omnigraph.errors import (
    BranchNotFound,
    ChangeFeedGap,
    ChangesNotShown,
    CommitNotFound,
    InputError,
)
from omnigraph.history.commits import Commit, to_micros
from omnigraph.versioning.snapshot import table_id
from omnigraph.wire import documents13 as v13
from omnigraph.wire.rows import export_lines_13, image_13

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.api.graph_at import GraphAt
    from omnigraph.catalog.model import EntityType
    from omnigraph.diff.feed import ChangeFeed, CommitChanges
    from omnigraph.spark.choice import EngineArgument
    from omnigraph.versioning.branches import BranchRef

DEFAULT_LIMIT: Final = 1000
MAX_LIMIT: Final = 8192
PAGE_BYTES: Final = 4 * 1024**2
"""A page ends after this many bytes of changes; a larger change is a page of its own."""

POLL_COMMITS: Final = 128
_ROWS_PER_READ: Final = 256
_encoder: Final = msgspec.json.Encoder()


# -- cursors and page tokens ----------------------------------------------------------------


class _Cursor(msgspec.Struct, frozen=True, array_like=True, tag="c"):
    """The last commit of a finished poll."""

    bound: str
    number: int
    commit: str


class _PageToken(msgspec.Struct, frozen=True, array_like=True, tag="p"):
    """The place in a poll up to commit `cut`: after `offset` changes of the commit after `number`."""

    bound: str
    number: int
    offset: int
    cut: int
    cut_commit: str


class _DiffToken(msgspec.Struct, frozen=True, array_like=True, tag="d"):
    """The place in the changes of one commit."""

    bound: str
    offset: int


_Token = _Cursor | _PageToken | _DiffToken
T = TypeVar("T", _Cursor, _PageToken, _DiffToken)
_decoder: Final = msgspec.json.Decoder(_Token)


def _written(token: _Token) -> str:
    return base64.urlsafe_b64encode(_encoder.encode(token)).decode().rstrip("=")


def _parsed(text: str, kind: type[T], bound: str) -> T:
    """A token of a kind. Raises `InputError` for any other text."""
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        token = _decoder.decode(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, msgspec.DecodeError):
        raise _rejected("it is not one of this change feed") from None
    if not isinstance(token, kind):
        raise _rejected("cursors and page tokens cannot stand for each other")
    if token.bound != bound:
        raise _rejected("it belongs to another graph, branch or filter")
    return token


def _rejected(reason: str) -> InputError:
    return InputError(f"change cursor rejected: {reason}")


def _bound(identity: str, wanted: ChangeFilter, commit: str = "") -> str:
    """What a token belongs to, as a short text."""
    filters = [sorted(wanted.kinds), sorted(wanted.types), sorted(op.value for op in wanted.ops)]
    return hashlib.sha256(_encoder.encode([identity, commit, filters])).hexdigest()[:24]


# -- calls ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Start:
    """Where a poll begins: at most one of the three is given; `now` without any."""

    cursor: str | None = None
    start: str | None = None
    page_token: str | None = None

    def __post_init__(self) -> None:
        """Raises `InputError` for two of them."""
        names = ("cursor", "start", "page_token")
        given = [name for name in names if getattr(self, name) is not None]
        if len(given) > 1:
            raise InputError(f"{' and '.join(given)} are exclusive")


def poll(
    graph: Graph, branch: str, start: Start, wanted: ChangeFilter, limit: int = DEFAULT_LIMIT
) -> v13.ChangeFeedOutput:
    """One page of changes, commit by commit. Raises `ChangeFeedGap` or `ChangesNotShown`."""
    feed, ref = branch_feed(graph, branch)
    wanted.check(graph.schema.catalog)
    bound = _bound(feed.identity(ref), wanted)
    return _polled(feed, ref, wanted, limit, _place(start, feed, ref, bound))


def commit_changes(
    graph: Graph,
    commit: Commit,
    page_token: str | None,
    wanted: ChangeFilter,
    limit: int = DEFAULT_LIMIT,
) -> v13.CommitDiffOutput:
    """One page of the changes of a commit. Raises `ChangeFeedGap` or `ChangesNotShown`."""
    if not commit.parents:
        raise _refused(commit, "parentless_commit", "the first commit has no state before it")
    wanted.check(graph.schema.catalog)
    try:
        feed, ref = branch_feed(graph, commit.branch)
        number = feed.number_of(ref, commit.id)
    except BranchNotFound:
        number = None
    if number is None:
        gone = f"its branch '{commit.branch}' was deleted"
        raise ChangeFeedGap(commit.branch, gone, commit.id)
    bound = _bound(feed.identity(ref), wanted, commit.id)
    offset = 0 if page_token is None else _parsed(page_token, _DiffToken, bound).offset
    [found] = feed.between(ref, number - 1, number, wanted)
    changes, end = _taken(found, offset, limit, PAGE_BYTES)
    token = _written(_DiffToken(bound, end)) if end < len(found.changes) else msgspec.UNSET
    return v13.CommitDiffOutput(
        cause=_cause(commit), changes=[change for change, _ in changes], next_page_token=token
    )


@dataclass(frozen=True, slots=True)
class Baseline:
    """All entities of a state, and the cursor from which to poll."""

    state: GraphAt
    types: list[str]
    cursor: str

    @classmethod
    def of(cls, graph: Graph, branch: str, wanted: ChangeFilter) -> Baseline:
        """The newest state of a branch. An operation in the filter only binds the cursor."""
        feed, ref = branch_feed(graph, branch)
        state = newest_state(graph, branch)
        wanted.check(state.catalog)
        number = feed.number_of(ref, state.commit_id)
        assert number is not None, "the newest commit of a branch is on it"
        cursor = _Cursor(_bound(feed.identity(ref), wanted), number, state.commit_id)
        types = [declared.table_key for declared in state.catalog if wanted.wants(declared)]
        return cls(state, types, _written(cursor))

    def write(self, send: Callable[[bytes], Any], engine: EngineArgument = "inline") -> None:
        """Send the entities as lines, and the commit and the cursor as the last one."""
        if self.types:
            self.state.export(_Lines(send), types=self.types, engine=engine)  # type: ignore[arg-type]
        handshake = v13.BaselineHandshake(
            snapshot_commit_id=self.state.commit_id, resume_cursor=self.cursor
        )
        send(_encoder.encode(v13.BaselineOutput(baseline=handshake)) + b"\n")


class _Lines:
    """A binary stream that takes whole export lines and sends them in the form of contract 0.13."""

    def __init__(self, send: Callable[[bytes], Any]) -> None:
        self._send = send

    def write(self, lines: Any) -> int:
        text = bytes(lines)
        self._send(b"".join(export_lines_13(text)))
        return len(text)


def _place(given: Start, feed: ChangeFeed, ref: BranchRef, bound: str) -> _PageToken:
    """Where a page begins and where its poll ends."""
    if given.page_token is not None:
        return _known(feed, ref, _parsed(given.page_token, _PageToken, bound))
    head = feed.head(ref)
    after = _after(given, feed, ref, bound, head.sequence)
    cut = min(head.sequence, after + POLL_COMMITS)
    commit = head.commit if cut == head.sequence else feed.commit_at(ref, cut)
    assert commit is not None, "every number up to the head has a commit"
    return _PageToken(bound, after, 0, cut, commit)


def _after(given: Start, feed: ChangeFeed, ref: BranchRef, bound: str, head: int) -> int:
    """The number of the last commit before a poll."""
    if given.cursor is not None:
        cursor = _parsed(given.cursor, _Cursor, bound)
        if feed.commit_at(ref, cursor.number) != cursor.commit:
            raise _rejected("the branch was replaced since")
        return cursor.number
    start = given.start or "now"
    if start in ("now", "beginning"):
        return head if start == "now" else 0
    if not start.startswith("after:"):
        raise InputError("start must be now, beginning or after:<commit>")
    commit = start.removeprefix("after:")
    number = feed.number_of(ref, commit)
    if number is None:
        raise CommitNotFound(commit)
    return number


def _known(feed: ChangeFeed, ref: BranchRef, token: _PageToken) -> _PageToken:
    if not 0 <= token.number < token.cut or token.offset < 0:
        raise _rejected("it is not one of this change feed")
    if feed.commit_at(ref, token.cut) != token.cut_commit:
        raise _rejected("the branch was replaced since")
    return token


def _refused(
    commit: Commit,
    reason: Literal["parentless_commit", "schema_boundary"],
    why: str,
    type_name: str | None = None,
) -> ChangesNotShown:
    return ChangesNotShown(commit.id, reason, why, type_name)


# -- pages ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Room:
    """What still fits into a page."""

    changes: int
    bytes: int = PAGE_BYTES

    @property
    def is_full(self) -> bool:
        return self.changes <= 0 or self.bytes <= 0


def _polled(
    feed: ChangeFeed, ref: BranchRef, wanted: ChangeFilter, limit: int, place: _PageToken
) -> v13.ChangeFeedOutput:
    """One page of a poll."""
    blocks: list[v13.ChangeBlockOutput] = []
    room, offset, number = _Room(limit), place.offset, place.number
    commits = feed.between(ref, number, place.cut, wanted) if number < place.cut else iter(())
    for found in commits:
        total = len(found.changes)
        if total > offset and room.is_full:
            return _unfinished(blocks, place, number, offset)
        changes, end = _taken(found, offset, room.changes, room.bytes)
        blocks.append(
            v13.ChangeBlockOutput(
                cause=_cause(found.commit), changes=[change for change, _ in changes]
            )
        )
        if end < total:
            return _unfinished(blocks, place, number, end)
        room.changes -= len(changes)
        room.bytes -= sum(size for _, size in changes)
        offset, number = 0, number + 1
    cursor = _Cursor(place.bound, place.cut, place.cut_commit)
    return v13.ChangeFeedOutput(
        blocks=blocks,
        cursor=_written(cursor),
        caught_up=feed.head(ref).sequence == place.cut,
    )


def _unfinished(
    blocks: list[v13.ChangeBlockOutput], place: _PageToken, number: int, offset: int
) -> v13.ChangeFeedOutput:
    token = _PageToken(place.bound, number, offset, place.cut, place.cut_commit)
    return v13.ChangeFeedOutput(blocks=blocks, next_page_token=_written(token))


def _taken(
    found: CommitChanges, offset: int, limit: int, room: int
) -> tuple[list[tuple[v13.EntityChangeOutput, int]], int]:
    """Changes of a commit from an offset, each with its size, and the offset after them."""
    if found.dropped:
        why = f"it drops type '{found.dropped[0]}', which has rows"
        raise _refused(found.commit, "schema_boundary", why, found.dropped[0])
    taken: list[tuple[v13.EntityChangeOutput, int]] = []
    for change in _from(found, offset):
        if len(taken) == limit:
            break
        size = len(_encoder.encode(change))
        if taken and size > room:
            break
        taken.append((change, size))
        room -= size
    return taken, offset + len(taken)


def _from(found: CommitChanges, offset: int) -> Iterator[v13.EntityChangeOutput]:
    """The changes of a commit from an offset: nodes first, then by the id of the type, then by id."""
    tables = sorted(
        found.changes.tables, key=lambda table: (kind_of(table.declared) == "edge", _id_of(table))
    )
    parts = []
    for table in tables:
        skipped = min(offset, len(table))
        offset -= skipped
        parts.append(_changes_of(table, skipped))
    return chain.from_iterable(parts)


def _id_of(table: TableChanges) -> str:
    return table_id(table.declared)


def _changes_of(table: TableChanges, start: int) -> Iterator[v13.EntityChangeOutput]:
    import numpy as np

    declared = table.declared
    of_type = v13.ChangeTypeOutput(id=_id_of(table), name=declared.name)
    for first in range(start, len(table), _ROWS_PER_READ):
        chosen = np.zeros(len(table), np.bool_)
        chosen[first : first + _ROWS_PER_READ] = True
        part = table.where(chosen)
        before = row_documents(declared, part.before, part.before_numbers)
        after = row_documents(declared, part.after, part.after_numbers)
        rows: Iterable[Sequence[Any]] = zip(
            part.ids.to_pylist(), part.ops().to_pylist(), before, after, strict=True
        )
        for entity_id, op, old, new in rows:
            yield v13.EntityChangeOutput(
                kind="node" if kind_of(declared) == "node" else "edge",
                type=of_type,
                id=entity_id,
                op=op,
                before=_image(declared, old),
                after=_image(declared, new),
            )


def _image(
    declared: EntityType, document: dict[str, Any] | None
) -> v13.ImageOutput | msgspec.UnsetType:
    if document is None:
        return msgspec.UNSET
    del document["id"]
    endpoints: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    if kind_of(declared) == "edge":
        endpoints = {"from": document.pop("src"), "to": document.pop("dst")}
    types = {name: declared.properties[name].type for name in document}
    return v13.ImageOutput(properties=image_13(document, types), endpoints=endpoints)


def _cause(commit: Commit) -> v13.CauseOutput:
    parent, merged = (*commit.parents, None, None)[:2]
    return v13.CauseOutput(
        graph_commit_id=commit.id,
        parent_commit_id=parent,
        merged_parent_commit_id=merged,
        actor_id=commit.actor,
        authored_branch=commit.branch,
        authored_at=to_micros(commit.created_at),
    )
