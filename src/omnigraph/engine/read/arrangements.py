"""Arrangements of reads that were run before: as good as new while types keep about their size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from omnigraph.limits import COMPILE_CACHE_ENTRIES
from omnigraph.plan.arrange import arrange
from omnigraph.plan.cost import Sizes, hops_of, node_types
from omnigraph.plan.ir import ReadPlan
from omnigraph.plan.steps import Arrangement
from omnigraph.versioning.snapshot import Snapshot


def sizes_of(snapshot: Snapshot) -> Sizes:
    """How many rows each type has, as the snapshot says."""
    rows = {key: entry.row_count for key, entry in snapshot.entries.items()}
    return Sizes(rows, snapshot.catalog)


@dataclass(frozen=True, slots=True)
class _Arranged:
    plan: ReadPlan
    arrangement: Arrangement
    tables: tuple[str, ...]
    magnitudes: tuple[int, ...]


class Arrangements:
    """The arrangements of one graph's reads, least recently used out first. Thread-safe.

    The compiler hands out one plan per query and schema, so a plan is known by its identity.
    """

    def __init__(self, capacity: int = COMPILE_CACHE_ENTRIES) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[int, _Arranged] = OrderedDict()
        self._lock = Lock()

    def of(
        self, plan: ReadPlan, snapshot: Snapshot, check: Callable[[], None] = lambda: None
    ) -> Arrangement:
        """The arrangement of a plan for types of about these sizes.

        Making one calls `check` again and again, which raises when the query may take no longer.
        """
        with self._lock:
            found = self._entries.get(id(plan))
            if found is not None and found.magnitudes == _magnitudes(found.tables, snapshot):
                self._entries.move_to_end(id(plan))
                return found.arrangement
        sizes = sizes_of(snapshot)
        arrangement = arrange(plan, sizes, check)
        tables = _tables(arrangement, sizes)
        # Holding on to the plan keeps its identity from being given to another one.
        made = _Arranged(plan, arrangement, tables, _magnitudes(tables, snapshot))
        with self._lock:
            self._entries[id(plan)] = made
            self._entries.move_to_end(id(plan))
            if len(self._entries) > self._capacity:
                self._entries.popitem(last=False)
        return arrangement


def _tables(arrangement: Arrangement, sizes: Sizes) -> tuple[str, ...]:
    nodes = {f"node:{name}" for name in node_types(arrangement.steps, sizes)}
    return tuple(sorted(nodes | {f"edge:{hop.edge}" for hop in hops_of(arrangement.steps)}))


def _magnitudes(tables: tuple[str, ...], snapshot: Snapshot) -> tuple[int, ...]:
    """The number of binary digits of each table's size: two arrangements rarely differ within one.

    An earlier state may lack a table; running the read says so.
    """
    entries = (snapshot.entries.get(key) for key in tables)
    return tuple(entry.row_count.bit_length() if entry else 0 for entry in entries)
