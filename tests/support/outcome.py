"""What an operation on a graph leads to, as values: a receipt, or a refusal with its reasons.

The reference graph and the text cases speak in these; an engine is checked by translating its own
receipts and errors into them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

MergeOutcome = Literal["already_up_to_date", "fast_forward", "merged", "conflicts"]
ChangeOp = Literal["insert", "update", "delete"]


@dataclass(frozen=True, slots=True)
class Counts:
    """Net change of one table: what the branch sees, whatever the statements did in between."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class ReceiptWarning:
    """Something a write put up with: `count` says how many records or rows it concerns."""

    code: str
    message: str
    count: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a write did. Without a commit the head is the parent and nothing is counted."""

    commit: str | None
    parent: str | None
    branch: str
    version: int
    operation: str
    actor: str | None = None
    counts: Mapping[str, Counts] = field(default_factory=dict)
    warnings: tuple[ReceiptWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class MutationResult:
    """`affected_*` are sums over statements, unlike the net counts of the receipt."""

    receipt: Receipt
    affected_nodes: int
    affected_edges: int


@dataclass(frozen=True, slots=True)
class LoadResult:
    """`rows_loaded` counts input rows by table key."""

    receipt: Receipt
    rows_loaded: Mapping[str, int]
    base_branch: str | None = None
    branch_created: bool = False
    load_id: str | None = None
    replayed: bool = False
    quarantined: tuple[BadRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class MergeResult:
    receipt: Receipt
    outcome: MergeOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadError:
    """One thing wrong with the input of a load.

    `record` is the number it is reported under, `records` every record it makes unusable: two rows
    with one key are reported once and spoil both.
    """

    code: str
    message: str
    record: int | None
    line: int | None = None
    records: tuple[int, ...] = ()
    type: str | None = None
    id: str | None = None
    property: str | None = None


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record a load set aside, with its text and all that is wrong with it."""

    record: int
    line: int
    raw: str
    errors: tuple[LoadError, ...]


@dataclass(frozen=True, slots=True)
class Conflict:
    """One reason why two branches cannot be merged."""

    table_key: str
    row_id: str | None
    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Change:
    """A row that differs between two states of a graph. Values are as stored."""

    table_key: str
    id: str
    op: ChangeOp
    before: Mapping[str, object] | None
    after: Mapping[str, object] | None

    @property
    def endpoints(self) -> tuple[str, str] | None:
        """Both ends of an edge, as they are afterwards, or were before a delete."""
        if not self.table_key.startswith("edge:"):
            return None
        row = self.after or self.before or {}
        return str(row["src"]), str(row["dst"])


class Refusal(Exception):
    """The operation was refused and nothing has changed.

    `kind` is the family a caller acts on: `bad_request`, `not_found`, `conflict`, `compiler`.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        load_errors: tuple[LoadError, ...] = (),
        load_errors_total: int = 0,
        conflicts: tuple[Conflict, ...] = (),
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.load_errors = load_errors
        self.load_errors_total = load_errors_total
        self.conflicts = conflicts
