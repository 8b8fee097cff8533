"""Whether rows of several splits may violate a rule together, checked bucket by bucket.

Splits of a load send their keys to buckets, so that equal keys meet. A bucket answers which of its keys
may violate a rule; it may name some without reason, but never misses a violation. Only rows with such keys
are brought together for full validation (`omnigraph.load.suspects`, `omnigraph.load.set_validation`),
which has the words for what is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.constraints import other_unique_groups, unkeyable_column
from omnigraph.catalog.model import Catalog, EdgeType, EntityType, Group
from omnigraph.load.set_validation import CommittedRows, LoadMode, given_ids
from omnigraph.load.suspects import Suspects, has_bounds, tuple_hashes
from omnigraph.rows.equality import buckets_of, hashes_of_tuples
from omnigraph.rows.keys import distinct_tuples, tuples_of

_ASPECT: Final = b"aspect"
_IDS, _ENDPOINTS, _TUPLES, _COUNTS = "ids", "endpoints", "tuples", "counts"


@dataclass(frozen=True, slots=True)
class BucketCheck:
    """What the keys of one bucket show."""

    suspects: Suspects = field(default_factory=Suspects)
    endpoint_types: frozenset[str] = frozenset()
    """Tables whose committed rows are needed as endpoints of edges."""


def needs_full_validation(declared: EntityType) -> bool:
    """Whether the keys of a type cannot be compared in buckets."""
    return unkeyable_column(declared) is not None


def validated_columns(declared: EntityType) -> list[str]:
    """The columns that distinguish rows of a type, in their order."""
    names = {"id", *(name for group in other_unique_groups(declared) for name in group)}
    if isinstance(declared, EdgeType):
        names |= {"src", "dst", *(declared.identity or ())}
    else:
        names |= {*(declared.key or ())}
    return [name for name in declared.columns if name in names]


# -- sending ------------------------------------------------------------------------------------


def keys_of(
    catalog: Catalog, tables: Mapping[str, pa.Table], buckets: int
) -> Iterator[tuple[int, bytes]]:
    """The keys in located rows of one split, each with the bucket it goes to."""
    endpoints: dict[str, list[pa.Array]] = {}
    for key, rows in tables.items():
        declared = catalog.entity(key)
        ids = given_ids(rows)
        yield from _sent((_IDS, key), pa.table({"id": ids}), buckets)
        for group in () if needs_full_validation(declared) else other_unique_groups(declared):
            tuples, numbers = tuples_of(rows, group)
            owners = rows.column("id").take(pa.array(numbers))
            owned = tuples.append_column("id", owners)
            yield from _sent((_TUPLES, key, *group), owned, buckets, columns=len(group))
        if isinstance(declared, EdgeType):
            endpoints.setdefault(declared.from_type, []).append(pc.unique(rows.column("src")))
            endpoints.setdefault(declared.to_type, []).append(pc.unique(rows.column("dst")))
            if has_bounds(declared):
                counted = pc.value_counts(rows.column("src"))
                sources, counts = counted.field("values"), counted.field("counts")
                table = pa.table({"src": sources, "count": counts})
                yield from _sent((_COUNTS, key), table, buckets)
    for name, found in endpoints.items():
        distinct = pc.unique(pa.chunked_array(found))
        yield from _sent((_ENDPOINTS, name), pa.table({"id": distinct}), buckets)


def _sent(
    aspect: tuple[str, ...], keys: pa.Table, buckets: int, *, columns: int = 1
) -> Iterator[tuple[int, bytes]]:
    """The keys, which are the first columns of a table, by bucket."""
    if not keys.num_rows:
        return
    hashed = [column.combine_chunks() for column in keys.columns[:columns]]
    found = buckets_of(hashes_of_tuples(hashed), buckets)
    order = np.argsort(found, kind="stable")
    sorted_keys = keys.take(pa.array(order)).combine_chunks()
    numbers, starts = np.unique(found[order], return_index=True)
    bounds = [*starts.tolist(), keys.num_rows]
    schema = keys.schema.with_metadata({_ASPECT: json.dumps(aspect)})
    for number, start, end in zip(numbers.tolist(), bounds, bounds[1:], strict=False):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as stream:
            part = sorted_keys.slice(start, end - start)
            stream.write_table(part.replace_schema_metadata(schema.metadata))
        yield number, sink.getvalue().to_pybytes()


# -- checking -----------------------------------------------------------------------------------


def check_bucket(
    catalog: Catalog, mode: LoadMode, committed: CommittedRows, contents: Iterable[bytes]
) -> BucketCheck:
    """Compare the keys in one bucket with each other and with committed rows."""
    aspects = _received(contents)
    ids = {aspect[1]: _distinct(keys) for aspect, keys in aspects.items() if aspect[0] == _IDS}
    suspects = Suspects()
    endpoint_types: set[str] = set()
    for aspect, keys in aspects.items():
        kind, name, *group = aspect
        match kind:
            case "ids":
                declared = catalog.entity(name)
                wrong = _repeated(keys.column("id"), ids[name])
                if mode == "append":
                    wrong = pa.concat_arrays([wrong, committed.existing(declared, ids[name])])
                _note(suspects.ids, name, wrong)
            case "tuples":
                declared, columns = catalog.entity(name), tuple(group)
                hashes = _taken(declared, columns, keys, mode, committed)
                _note(suspects.tuples, (name, columns), hashes)
            case "counts":
                edge = catalog.entity(name)
                assert isinstance(edge, EdgeType)
                _note(suspects.sources, name, _out_of_bounds(edge, keys, mode, committed))
            case _:
                node = catalog.nodes[name]
                absent = _without(_distinct(keys), ids.get(node.table_key))
                if len(absent):
                    endpoint_types.add(node.table_key)
                    absent = _without(absent, committed.existing(node, absent))
                _note(suspects.absent, name, absent)
    return BucketCheck(suspects, frozenset(endpoint_types))


Key = TypeVar("Key")


def _note(suspects: dict[Key, pa.Array], key: Key, found: pa.Array) -> None:
    if len(found):
        suspects[key] = found


def _received(contents: Iterable[bytes]) -> dict[tuple[str, ...], pa.Table]:
    parts: dict[tuple[str, ...], list[pa.Table]] = {}
    for content in contents:
        table = pa.ipc.open_stream(content).read_all()
        aspect = tuple(json.loads(table.schema.metadata[_ASPECT]))
        parts.setdefault(aspect, []).append(table)
    return {aspect: pa.concat_tables(tables) for aspect, tables in parts.items()}


def _distinct(keys: pa.Table) -> pa.Array:
    return pc.unique(keys.column("id"))


def _without(values: pa.Array, others: pa.Array | None) -> pa.Array:
    if others is None:
        return values
    return values.filter(pc.invert(pc.is_in(values, value_set=others)))


def _repeated(values: pa.ChunkedArray, distinct: pa.Array) -> pa.Array:
    """The values that occur more than once."""
    if len(distinct) == len(values):
        return distinct.slice(0, 0)
    counted = pc.value_counts(values)
    return counted.field("values").filter(pc.greater(counted.field("counts"), 1))


def _taken(
    declared: EntityType, group: Group, keys: pa.Table, mode: LoadMode, committed: CommittedRows
) -> pa.Array:
    """Hashes of tuples that two rows share, or that a committed row outside this bucket has."""
    tuples = keys.drop_columns(["id"])
    hashes = pa.array(tuple_hashes(tuples))
    shared = _repeated(pa.chunked_array([hashes]), pc.unique(hashes))
    if mode == "overwrite":
        return shared
    distinct = distinct_tuples(tuples.rename_columns(list(group)), group)
    owners = committed.owners(declared, group, distinct, _distinct(keys)).select(list(group))
    if not owners.num_rows:
        return shared
    return pc.unique(pa.concat_arrays([shared, pa.array(tuple_hashes(owners))]))


def _out_of_bounds(
    edge: EdgeType, keys: pa.Table, mode: LoadMode, committed: CommittedRows
) -> pa.Array:
    """The sources with too many or too few edges."""
    counted = keys.group_by("src", use_threads=False).aggregate([("count", "sum")])
    sources = counted.column("src").combine_chunks()
    new = counted.column("count_sum").to_numpy().copy()
    total = new.copy()
    if mode != "overwrite":
        before = committed.outgoing(edge, sources, pa.array([], pa.utf8()))
        rows = pc.index_in(before.column("src"), value_set=sources).to_numpy()
        total[rows] += before.column("count").to_numpy()
    # Of committed edges a merge may replace any, so they do not make up for missing ones.
    least = new if mode in ("merge", "patch") else total
    low, high = edge.cardinality.low, edge.cardinality.high
    wrong = least < low
    if high is not None:
        wrong |= total > high
    return sources.filter(pa.array(wrong))
