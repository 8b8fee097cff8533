"""The changes of one type, commit by commit, as a stream or as a table.

Offsets are cursors of the change feed, so a stream that is stopped and started again goes on behind the last
commit it has delivered. The values of a row are those after the change; of a deleted row those before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from omnigraph.api.history import branch_feed
from omnigraph.diff.changes import Op
from omnigraph.diff.feed import FeedCursor, is_cursor
from omnigraph.errors import ChangeFeedGap, InputError
from omnigraph.read.result import public_column
from pyspark_omnigraph.options import SourceOptions, opened
from pyspark_omnigraph.rows import CHANGE_FIELDS, arrow_schema, fitted

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
    from pyspark.sql.types import StructType

    import omnigraph as og
    from omnigraph.catalog.model import EntityType

else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
    except ImportError:  # PySpark before 4.2, which asks once for the end of such a stream.
        SupportsTriggerAvailableNow = object

_MAX_PARTITIONS: Final = 32
"""Tasks that share the commits of one batch."""

_START: Final = "earliest"
_END: Final = "latest"


@dataclass(frozen=True)
class CommitPartition(InputPartition):
    """The commits after one cursor up to another; an empty text stands for the start of history."""

    after: str
    until: str


class _Changes:
    """What both readers share."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        if not options.changes:
            raise InputError(
                "a stream of a graph is a stream of changes; set the option changes to true"
            )
        self._options = options
        self._schema = schema

    def _first(self) -> str:
        """The cursor to start behind."""
        since = self._options.since or _START
        graph = opened(self._options.graph, self._options.branch)
        if since == _START:
            return ""
        if since == _END:
            return graph.cursor()
        if is_cursor(since):
            return since
        feed, branch = branch_feed(graph, None)
        commit = graph.commit(since).id
        number = feed.number_of(branch, commit)
        if number is None:
            raise InputError(f"since: commit {commit} is not on branch '{graph.branch}'")
        return str(FeedCursor(number, commit))

    def _last(self) -> str:
        return opened(self._options.graph, self._options.branch).cursor()

    def _partitions(self, after: str, until: str) -> list[InputPartition]:
        """The commits between two cursors, in about equal parts."""
        if after == until:
            return []
        feed, branch = branch_feed(opened(self._options.graph, self._options.branch), None)
        first = FeedCursor.parse(after).sequence if after else 0
        last = FeedCursor.parse(until).sequence
        ends = np.linspace(first, last, min(last - first, _MAX_PARTITIONS) + 1).astype(int)
        cursors = [after]
        for number in ends[1:-1].tolist():
            commit = feed.commit_at(branch, number)
            if commit is None:
                raise ChangeFeedGap(branch.public, f"it has no commit {number} any more")
            cursors.append(str(FeedCursor(number, commit)))
        cursors.append(until)
        return [CommitPartition(*ends) for ends in pairwise(cursors)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, CommitPartition):  # What Spark makes of no partitions.
            return
        options, wanted = self._options, arrow_schema(self._schema)
        graph = opened(options.graph, options.branch)
        for commit in graph.changes(partition.after or None, types=[options.type]):
            for table in commit.changes.tables:
                if table.declared.name == options.type and len(table):
                    rows = commit.changes.values(options.type)
                    yield _batch(commit, table.declared, rows, wanted)
            if commit.cursor == partition.until:
                return
        raise ChangeFeedGap(graph.branch, f"it has no commit of cursor {partition.until} any more")


def _batch(
    commit: og.CommitChanges, declared: EntityType, rows: pa.Table, wanted: pa.Schema
) -> pa.RecordBatch:
    """The changes of one commit in the columns that Spark expects."""
    rows = rows.combine_chunks()
    count, ops = rows.num_rows, rows.column("op").combine_chunks()
    deleted = pc.equal(ops, Op.DELETE.value).to_numpy(zero_copy_only=False)
    order = np.argsort(np.r_[np.flatnonzero(~deleted), np.flatnonzero(deleted)])
    sides = [
        rows.column(side).combine_chunks().filter(pa.array(mask))
        for side, mask in (("after", ~deleted), ("before", deleted))
    ]
    heads = [ops, commit.commit.id, commit.commit.number, commit.commit.created_at]
    found = []
    for field in wanted:
        place = (
            [head.name for head in CHANGE_FIELDS].index(field.name) if field.name[0] == "_" else -1
        )
        if place >= 0:
            head = heads[place]
            found.append(head if place == 0 else pa.repeat(pa.scalar(head, field.type), count))
        elif sides[0].type.get_field_index(field.name) < 0:
            found.append(pa.nulls(count, field.type))
        else:
            values = pa.concat_arrays([pc.struct_field(side, field.name) for side in sides])
            prop = declared.properties.get(field.name)
            if prop is not None:
                values = public_column(values, prop.type)
            found.append(values.take(pa.array(order)))
    return fitted(pa.RecordBatch.from_arrays(found, names=wanted.names), wanted)


class ChangeTableReader(_Changes, DataSourceReader):
    """The changes up to the head at the moment of planning."""

    def partitions(self) -> Sequence[InputPartition]:
        return self._partitions(self._first(), self._last())


class ChangeStreamReader(_Changes, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The changes as they are committed."""

    _target: str | None = None

    def initialOffset(self) -> dict[str, Any]:
        return {"cursor": self._first()}

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._last()

    def latestOffset(
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        return {"cursor": self._target or self._last()}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return self._partitions(start["cursor"], end["cursor"])
