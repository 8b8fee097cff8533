"""What changed in a graph: between two states, commit by commit, and to a single entity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from omnigraph.engine.graph.handle import GraphHandle
from omnigraph.engine.read.view import ReadView
from omnigraph.progress import SILENT, Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph.engine.compare.diff import Diff
    from omnigraph.engine.compare.entity_history import EntityChange
    from omnigraph.engine.compare.feed import CommitChanges


class Comparisons(GraphHandle):
    """What is different between states of a graph."""

    def diff(
        self,
        before: str | int,
        after: str | int,
        *,
        types: Iterable[str] = (),
        kinds: Iterable[str] = (),
        ops: Iterable[str] = (),
        view: ReadView = ReadView.ALL,
        progress: Progress = SILENT,
        engine: str | None = None,
        spark: SparkSession | None = None,
        master: str | None = None,
    ) -> Diff:
        """The net change between two states, each a branch, a commit or a version.

        Rows that hold the same on both sides are no change, whatever was written in between.
        `engine` says where rows are compared: `spark`, `inline`, or `auto`, which takes Spark when
        very many may differ; `spark` and `master` are as for `load`.
        """
        from omnigraph.engine.compare.comparison import Comparison
        from omnigraph.engine.compare.diff import ChangeFilter, Diff
        from omnigraph.engine.compare.snapshots import compare_snapshots
        from omnigraph.engine.engines import chosen_engine

        choice = chosen_engine(engine, spark, master)
        wanted = ChangeFilter.of(types, kinds, ops)
        old, new = self.snapshot_at(before), self.snapshot_at(after)
        wanted.check(view.restrict(old.catalog), view.restrict(new.catalog))
        comparison = Comparison(old, new, self._tables, view)
        changes = compare_snapshots(comparison, wanted, choice, progress)
        return Diff(str(before), str(after), old, new, changes)

    def changes(
        self,
        since: str | None = None,
        *,
        branch: str | None = None,
        types: Iterable[str] = (),
        kinds: Iterable[str] = (),
        ops: Iterable[str] = (),
    ) -> Iterator[CommitChanges]:
        """The commits of a branch after `since`, each once, oldest first, with what they changed.

        `since` is a commit or the cursor of an earlier answer; without it the feed starts at the
        beginning. It ends at the head the branch has now. Raises `ChangeFeedGap` when cleanup has
        removed what it needs.
        """
        from omnigraph.engine.compare.diff import ChangeFilter
        from omnigraph.engine.compare.feed import ChangeFeed

        feed = ChangeFeed(self._parts)
        wanted = ChangeFilter.of(types, kinds, ops)
        wanted.check(self.catalog)
        return feed.follow(self._ref(branch), since, wanted)

    def history(
        self, type_name: str, id: str, *, branch: str | None = None
    ) -> Iterator[EntityChange]:
        """The commits that changed one node or edge, oldest first, with what it was before and after."""
        from omnigraph.engine.compare.entity_history import entity_history

        return entity_history(self._parts, self._ref(branch), type_name, id)
