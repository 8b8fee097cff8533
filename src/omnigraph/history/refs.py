"""Refs: how every call names a state of the graph.

A ref is a branch or tag name, a commit id or a unique part of one, `ref~n`, `branch@{time}`, a
`datetime`, a commit's number on the bound branch, or an object that carries a commit. Exact names win,
branches first. `parse_ref` is pure. `resolve_ref` reads as little as possible: only abbreviated ids
search the ids of all commits.
Tests: tests/unit/engine/test_refs.py, tests/behaviour/test_refs.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Protocol, TypeAlias

from omnigraph.diagnostics import counted, shortened, suggest
from omnigraph.errors import (
    AmbiguousRef,
    BranchNotFound,
    CommitBranchGone,
    CommitNotFound,
    GraphMoved,
    HistoryRemoved,
    InputError,
    RefNotFound,
    RefUnderOtherSchema,
    UnknownVersion,
)
from omnigraph.graph.parts import GraphParts
from omnigraph.history.commits import short_id, to_micros
from omnigraph.language.values import format_datetime, parse_datetime
from omnigraph.versioning.branch_names import MAIN, RESERVED, public_name
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commits import CommitId, CommitRecord
from omnigraph.versioning.manifest import Manifest, ManifestState
from omnigraph.versioning.retention import removed_tables
from omnigraph.versioning.snapshot import table_keys
from omnigraph.versioning.tags import Tags

_MIN_ABBREVIATION: Final = 6
"""Characters of an abbreviated id. Ids begin with the time, so fewer would match many commits."""

_MAX_SUGGESTION_COMMITS: Final = 1000
"""The newest commits of a branch that a suggestion for an unknown id is taken from."""

_FIRST_PAGE_COMMITS: Final = 64
"""Commits read first to find the one at a time; every further page is four times as large."""

_MAX_CANDIDATES: Final = 5
"""Commits listed in the message about an ambiguous ref."""

_ID: Final = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
_PART: Final = re.compile(r"[0-9A-HJKMNP-TV-Z]+")
_STEPS: Final = re.compile(r"~([0-9]{0,18})")
_TIME: Final = re.compile(r"(?P<branch>[^~{}]+)@\{(?P<time>[^{}]*)\}")


class HasCommit(Protocol):
    """A commit, a tag, a receipt, or the result of a write.

    The id is None when there was nothing to commit.
    """

    @property
    def commit_id(self) -> CommitId | None: ...


Ref: TypeAlias = str | int | datetime | HasCommit
"""A state of a graph.

A branch or tag name; a commit id or its unique beginning or end of at least 6 characters; `ref~n`
for the n-th commit before it; `branch@{time}` or a `datetime`; an `int`, the n-th commit of the
bound branch; a commit, a tag, a receipt, or the result of a write.
"""


# -- parsing --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ParsedRef:
    """A ref's text: a name or id, a time on that branch, and the steps back from there."""

    base: str
    moment: int | None = None
    """Microseconds since the epoch; only a branch can have one."""
    back: int = 0


def parse_ref(written: str, argument: str = "ref") -> ParsedRef:
    """Parse the text of a ref. Raises `InputError` for a syntax error."""
    head, tilde, rest = written.partition("~")
    back = 0
    if tilde:
        back = _steps(written, tilde + rest, argument)
        if not head:
            raise _malformed(written, argument, "a branch, tag or commit stands before `~`")
    if "@{" not in head:
        return ParsedRef(head, None, back)
    timed = _TIME.fullmatch(head)
    if timed is None:
        advice = "a time is written `branch@{2026-01-31T12:00:00Z}`"
        raise _malformed(written, argument, advice)
    return ParsedRef(timed["branch"], _moment(written, timed["time"], argument), back)


def _steps(written: str, text: str, argument: str) -> int:
    """The number of first parents that a suffix such as `~1~2` goes back."""
    total, at = 0, 0
    while at < len(text):
        step = _STEPS.match(text, at)
        if step is None or (step.end() < len(text) and text[step.end()] != "~"):
            raise _malformed(written, argument, "`~` is followed by a number or by nothing")
        total += int(step[1]) if step[1] else 1
        at = step.end()
    return total


def _moment(written: str, text: str, argument: str) -> int:
    try:
        millis = parse_datetime(text.strip())
    except ValueError:
        advice = "the time is a date, or a date and time like `2026-01-31T12:00:00Z`"
        raise _malformed(written, argument, advice) from None
    # Times are printed in milliseconds, so the whole millisecond is included.
    return millis * 1000 + 999


def _malformed(written: str, argument: str, advice: str) -> InputError:
    return InputError(f"`{argument}` {shortened(repr(written))} is not a ref: {advice}")


# -- resolving ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ResolvedRef:
    """The commit that a ref names, and an existing branch that contains it.

    `is_branch_head` is set if the ref named the branch itself, not the commit at its head.
    """

    branch: BranchRef
    commit_id: CommitId
    sequence: int
    is_branch_head: bool
    _manifest: Manifest = field(repr=False, compare=False)
    _state: ManifestState | None = field(default=None, repr=False, compare=False)
    _commit: CommitRecord | None = field(default=None, repr=False, compare=False)

    @classmethod
    def head_of(cls, branch: BranchRef, state: ManifestState, manifest: Manifest) -> ResolvedRef:
        """A branch by its name, in a state of it."""
        return cls(branch, state.head, state.sequence, True, manifest, state)

    @property
    def state(self) -> ManifestState:
        """The state after the commit. Kept for a branch head; read on every call otherwise."""
        return self._state or self._manifest.at(self.branch.physical, self.sequence)

    @property
    def commit(self) -> CommitRecord:
        """The commit record."""
        found = self._commit or self._manifest.find_commit(self.branch.physical, self.commit_id)
        if found is None:
            raise CommitNotFound(self.commit_id)
        return found


def commit_of_object(ref: object, argument: str) -> CommitId:
    """The commit that an object carries. Raises `InputError` for one that carries none."""
    if not hasattr(ref, "commit_id"):
        kinds = "a branch, tag or commit id as text, a commit, a receipt, a datetime or a number"
        raise InputError(f"`{argument}` is {kinds}, not {_type_of(ref)}")
    if ref.commit_id is None:
        raise InputError(
            f"`{argument}` is a receipt without a commit: there was nothing to write; "
            "name the branch instead"
        )
    return CommitId(ref.commit_id)


def resolve_ref(
    parts: GraphParts, bound: BranchRef, ref: Ref, *, argument: str = "ref"
) -> ResolvedRef:
    """Resolve a ref for a handle that is bound to a branch.

    Raises `CommitNotFound`, `CommitBranchGone`, `RefNotFound`, `UnknownVersion`, `AmbiguousRef`, and
    `InputError` for a value that is not a ref, which the message calls `argument`.
    """
    return _Resolver(parts, bound, argument).resolve(ref)


def find_commit(
    parts: GraphParts, bound: BranchRef, ref: Ref, *, argument: str = "ref"
) -> CommitRecord:
    """The commit record of a ref, even if its branch was deleted after a merge."""
    try:
        return resolve_ref(parts, bound, ref, argument=argument).commit
    except CommitBranchGone as gone:
        found = _merged_commit(parts, parts.branches.list(), CommitId(gone.commit_id))
        if found is None:
            raise
        return found


@dataclass(frozen=True, slots=True)
class _Resolver:
    parts: GraphParts
    bound: BranchRef
    argument: str

    def resolve(self, ref: Ref) -> ResolvedRef:
        match ref:
            case str():
                return self._text(ref)
            case int() if not isinstance(ref, bool):
                return self._numbered(ref)
            case datetime():
                shown = f"{self.bound.public}@{{{ref.isoformat()}}}"
                return self._timed(self._living(self.bound.public), to_micros(ref), shown)
            case _:
                return self._object(ref)

    def _numbered(self, number: int) -> ResolvedRef:
        branch = self._living(self.bound.public)
        head = self.parts.manifest.current(branch.physical)
        if not 1 <= number <= head.sequence:
            raise UnknownVersion(number, head.sequence)
        return self._at(branch, number)

    def _object(self, ref: object) -> ResolvedRef:
        return self._located(commit_of_object(ref, self.argument))

    def _text(self, written: str) -> ResolvedRef:
        parsed = parse_ref(written, self.argument)
        if parsed.moment is not None:
            found = self._timed(self._living(parsed.base), parsed.moment, written)
        else:
            found = self._named(parsed.base)
        if not parsed.back:
            return found
        if parsed.back >= found.sequence:
            before = counted(found.sequence - 1, "commit")
            raise RefNotFound(written, f"'{parsed.base}' has {before} before it")
        return self._at(found.branch, found.sequence - parsed.back)

    def _named(self, name: str) -> ResolvedRef:
        """Resolve a bare name or id. An exact name wins, then an exact id."""
        if name == MAIN:
            return self._head(BranchRef(MAIN, None))
        if name == RESERVED:
            return self._head(self._living(name))
        listed = self.parts.branches.list()
        for branch in listed:
            if branch.public == name:
                return self._head(branch)
        tag = Tags(self.parts.objects).find(name)
        if tag is not None:
            return self._located(tag.graph_commit_id)
        found = self._find(CommitId(name), listed)
        upper = name.upper()
        if found is None and upper != name and _ID.fullmatch(upper):
            found = self._find(CommitId(upper), listed)
        if not isinstance(found, ResolvedRef):
            found = self._abbreviated(name, upper, listed) or found
        known = () if isinstance(found, ResolvedRef) else Tags(self.parts.objects).names()
        return self._required(found, name, listed, known)

    def _abbreviated(
        self, name: str, written: str, listed: Sequence[BranchRef]
    ) -> ResolvedRef | None:
        """The only commit whose id starts or ends with a text. Raises `AmbiguousRef`."""
        if len(written) < _MIN_ABBREVIATION or not _PART.fullmatch(written):
            return None
        found: dict[CommitId, tuple[BranchRef, int]] = {}
        for branch, ids in self._all_ids(listed):
            for sequence, commit_id in ids:
                if commit_id.startswith(written) or commit_id.endswith(written):
                    found.setdefault(commit_id, (branch, sequence))
        if not found:
            return None
        if len(found) == 1:
            [(commit_id, (branch, sequence))] = found.items()
            return ResolvedRef(branch, commit_id, sequence, False, self.parts.manifest)
        newest = sorted(found, reverse=True)
        shown = [
            self._candidate(commit_id, found[commit_id]) for commit_id in newest[:_MAX_CANDIDATES]
        ]
        raise AmbiguousRef(name, shown, len(found))

    def _candidate(self, commit_id: CommitId, home: tuple[BranchRef, int]) -> str:
        branch, _ = home
        commit = self.parts.manifest.find_commit(branch.physical, commit_id)
        assert commit is not None, "its id was read from this branch"
        made = format_datetime(commit.draft.created_at // 1000)
        message = "" if commit.draft.message is None else f" {commit.draft.message!r}"
        return f"{short_id(commit_id)} on {public_name(commit.branch)} at {made}{message}"

    def _all_ids(
        self, listed: Sequence[BranchRef]
    ) -> Iterator[tuple[BranchRef, Iterable[tuple[int, CommitId]]]]:
        for branch in self._preferred(listed):
            # Skip branches that were deleted meanwhile, or created at another address.
            with suppress(BranchNotFound, GraphMoved):
                head = self.parts.manifest.current(branch.physical).sequence
                ids = self.parts.manifest.commit_ids(branch.physical, 1, head)
                yield branch, ids.items()

    def _living(self, name: str) -> BranchRef:
        return self.parts.branches.find(name)

    def _head(self, branch: BranchRef) -> ResolvedRef:
        state = self.parts.manifest.current(branch.physical)
        manifest = self.parts.manifest
        return ResolvedRef(branch, state.head, state.sequence, True, manifest, state)

    def _at(self, branch: BranchRef, sequence: int) -> ResolvedRef:
        manifest = self.parts.manifest
        commit_id = manifest.commit_ids(branch.physical, sequence, sequence)[sequence]
        return ResolvedRef(branch, commit_id, sequence, False, manifest)

    def _timed(self, branch: BranchRef, moment: int, written: str) -> ResolvedRef:
        """The newest commit of a branch at a time."""
        manifest = self.parts.manifest
        last, step = manifest.current(branch.physical).sequence, _FIRST_PAGE_COMMITS
        commits: Sequence[CommitRecord] = ()
        while last >= 1:
            first = max(1, last - step + 1)
            commits, _ = manifest.recorded_commits(branch.physical, last, after=first - 1)
            for commit in reversed(commits):
                if commit.draft.created_at <= moment:
                    return self._of(branch, commit)
            last, step = first - 1, step * 4
        oldest = format_datetime(commits[0].draft.created_at // 1000)
        raise RefNotFound(written, f"the first commit of '{branch.public}' was made at {oldest}")

    def _located(self, commit_id: CommitId) -> ResolvedRef:
        """Resolve a complete commit id."""
        listed = self.parts.branches.list()
        return self._required(self._find(commit_id, listed), commit_id, listed)

    def _find(
        self, commit_id: CommitId, listed: Sequence[BranchRef]
    ) -> ResolvedRef | GraphMoved | None:
        """Find a complete commit id on any branch. Raises `CommitBranchGone`.

        Returns `GraphMoved` if a branch that could contain it cannot be read.
        """
        elsewhere: GraphMoved | None = None
        for branch in self._preferred(listed):
            with suppress(BranchNotFound):  # Deleted meanwhile.
                try:
                    commit = self.parts.manifest.find_commit(branch.physical, commit_id)
                except GraphMoved as moved:
                    elsewhere = moved
                    continue
                if commit is not None:
                    return self._of(branch, commit)
        merged = _merged_commit(self.parts, listed, commit_id)
        if merged is not None:
            raise CommitBranchGone(commit_id, public_name(merged.branch))
        return elsewhere

    def _required(
        self,
        found: ResolvedRef | GraphMoved | None,
        written: str,
        listed: Sequence[BranchRef],
        tags: Iterable[str] = (),
    ) -> ResolvedRef:
        """Return what was found. Raises `CommitNotFound` with a suggestion."""
        if isinstance(found, ResolvedRef):
            return found
        if found is not None:
            raise found
        branches = [branch.physical for branch in listed]
        suggestion = suggest(written, [*(branch.public for branch in listed), *tags])
        suggestion = suggestion or suggest_commit(self.parts.manifest, branches, written)
        raise CommitNotFound(written, suggestion)

    def _of(self, branch: BranchRef, commit: CommitRecord) -> ResolvedRef:
        manifest = self.parts.manifest
        return ResolvedRef(
            branch, commit.graph_commit_id, commit.sequence, False, manifest, _commit=commit
        )

    def _preferred(self, listed: Sequence[BranchRef]) -> Sequence[BranchRef]:
        """The bound branch first, then main, then the others."""
        return sorted(listed, key=lambda branch: branch.physical != self.bound.physical)


def _type_of(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _merged_commit(
    parts: GraphParts, listed: Sequence[BranchRef], commit_id: CommitId
) -> CommitRecord | None:
    """A merged commit whose own branch was deleted."""
    for branch in listed:
        with suppress(BranchNotFound, GraphMoved):
            found = parts.manifest.find_ancestor(branch.physical, commit_id)
            if found is not None:
                return found
    return None


def suggest_commit(manifest: Manifest, branches: Iterable[str | None], written: str) -> str | None:
    """The only commit whose id starts or ends with a text, or else the most similar id."""
    text = written.upper()
    known: set[str] = set()
    for branch in branches:
        # Skip branches that were deleted meanwhile.
        with suppress(BranchNotFound, GraphMoved):
            head = manifest.current(branch).sequence
            known.update(manifest.commit_ids(branch, head - _MAX_SUGGESTION_COMMITS, head).values())
    if len(text) >= _MIN_ABBREVIATION:
        found = [id for id in known if id.startswith(text) or id.endswith(text)]
        if len(found) == 1:
            return found[0]
    return suggest(text, known)


def written_form(ref: Ref) -> str:
    """The text under which a request records a ref. It does not depend on later commits."""
    match ref:
        case str():
            return ref
        case datetime():
            return ref.isoformat()
        case int():
            return str(ref)
        case _:
            return str(getattr(ref, "commit_id", ref))


# -- checking -------------------------------------------------------------------------------


def home_of(parts: GraphParts, resolved: ResolvedRef) -> BranchRef:
    """The branch that a commit was made on, if it still exists; else one that contains it."""
    made_on = resolved.commit.branch
    for branch in parts.branches.list():
        if branch.physical == made_on:
            return branch
    return resolved.branch


def refuse_removed(parts: GraphParts, state: ManifestState) -> None:
    """Raise `HistoryRemoved` if cleanup deleted a table version of a state.

    The caller holds main's lock, so that none is deleted afterwards.
    """
    for table_id in removed_tables(parts.tables, state):
        registered = state.registered[table_id]
        names = table_keys(parts.schemas.contract().catalog)
        key = names.get(table_id, f"{registered.kind}:{registered.name}")
        raise HistoryRemoved(key, state.sequence)


def refuse_other_schema(parts: GraphParts, resolved: ResolvedRef, what: str) -> None:
    """Raise `RefUnderOtherSchema` unless a commit was made under main's current schema."""
    present = parts.manifest.current(None)
    newest = parts.manifest.find_commit(None, present.head)
    if newest is None or resolved.commit.draft.schema_ref != newest.draft.schema_ref:
        raise RefUnderOtherSchema(resolved.commit_id, what)
