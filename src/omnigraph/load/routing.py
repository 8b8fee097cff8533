"""Which type each record belongs to, found without parsing the record as a whole.

Records of one type usually begin with the very same bytes, `{"type":"Person"`, so the beginning of
one record finds all others of its type. What is left, because the keys stand in another order, is
parsed for the two keys that count. Nothing is decided for good here: a record whose beginning and
content disagree fails to parse as the type it was routed to, and is then read by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.catalog.model import Catalog, EntityType
from omnigraph.load.json_table import JsonMismatch, only_chunk, parse_objects

Numbers = npt.NDArray[np.int64]
_Words = npt.NDArray[np.uint64]

# No brace in the name: the prefix then always ends before the record does.
_PREFIX: Final = re.compile(rb'\{\s*"(type|edge)"\s*:\s*"([^"\\{}]*)"')
_WORD: Final = 8
_LONGEST_PREFIX: Final = 8 * _WORD
_MOST_PREFIXES: Final = 512
_KEYS: Final = pa.schema([("type", pa.utf8()), ("edge", pa.utf8())])


@dataclass(frozen=True, slots=True)
class Routed:
    """Rows of a column of record texts that seem to be of one type; None for no known type."""

    declared: EntityType | None
    rows: Numbers


class Router:
    """Routes the record texts of a load. It learns, so one router serves a whole load."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._prefixes: dict[bytes, EntityType | None] = {}

    def route(self, texts: pa.Array) -> list[Routed]:
        """Every row of the column, in one group per type. Raises `SeveralRecords`."""
        found: dict[str | None, list[Routed]] = {}
        for routed in filter(lambda r: len(r.rows), self._by_prefix(texts)):
            key = routed.declared.table_key if routed.declared else None
            found.setdefault(key, []).append(routed)
        return [
            same[0]
            if len(same) == 1
            else Routed(same[0].declared, np.sort(np.concatenate([r.rows for r in same])))
            for same in found.values()
        ]

    def _by_prefix(self, texts: pa.Array) -> Iterator[Routed]:
        heads = _Heads(texts)
        # No prefix is the beginning of another, so a row is found at most once.
        left = np.ones(len(texts), np.bool_)
        for prefix, declared in tuple(self._prefixes.items()):
            same = heads.begin_with(prefix)
            yield Routed(declared, np.flatnonzero(same))
            left &= ~same
        while left.any():
            match = _PREFIX.match(texts[int(np.argmax(left))].as_py())
            if match is None or len(match[0]) > _LONGEST_PREFIX:
                break
            if len(self._prefixes) >= _MOST_PREFIXES:
                break
            declared = self._named(match[1].decode(), match[2])
            self._prefixes[match[0]] = declared
            same = heads.begin_with(match[0])
            yield Routed(declared, np.flatnonzero(same))
            left &= ~same
        if left.any():
            rows = np.flatnonzero(left)
            yield from self._by_keys(texts.take(pa.array(rows)), rows)

    def _by_keys(self, texts: pa.Array, rows: Numbers) -> Iterator[Routed]:
        try:
            keys = parse_objects(texts, _KEYS, ignore_others=True)
        except JsonMismatch:
            # Rare enough to leave all of them to the reader of single records.
            yield Routed(None, rows)
            return
        left = np.ones(len(rows), np.bool_)
        for key in ("type", "edge"):
            encoded = only_chunk(keys.column(key)).dictionary_encode()
            codes = encoded.indices.fill_null(-1).to_numpy()
            for code, name in enumerate(encoded.dictionary.to_pylist()):
                same = left & (codes == code)
                yield Routed(self._named(key, name.encode()), rows[same])
                left &= ~same
        yield Routed(None, rows[left])

    def _named(self, key: str, name: bytes) -> EntityType | None:
        text = name.decode("utf-8", "replace")
        if key == "type":
            return self._catalog.nodes.get(text)
        return self._catalog.edge_for_traversal(text)


class _Heads:
    """The beginnings of texts, compared eight bytes at a time."""

    def __init__(self, texts: pa.Array) -> None:
        _, offsets, data = texts.buffers()
        bounds = np.frombuffer(offsets, np.int32)
        self._starts = bounds[texts.offset : texts.offset + len(texts)].astype(np.int64)
        content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
        padded = np.concatenate([content, np.zeros(_LONGEST_PREFIX + _WORD, np.uint8)])
        # Word i begins at byte i, so that a text may begin anywhere.
        self._words: _Words = np.ndarray(
            (len(padded) - _WORD + 1,), "<u8", padded.data, strides=(1,)
        )
        self._columns: dict[int, _Words] = {}

    def begin_with(self, prefix: bytes) -> npt.NDArray[np.bool_]:
        """Which texts begin with the prefix."""
        same = np.ones(len(self._starts), np.bool_)
        for place in range(0, len(prefix), _WORD):
            part = prefix[place : place + _WORD]
            words = self._column(place)
            if len(part) < _WORD:
                words = words & np.uint64((1 << (8 * len(part))) - 1)
            same &= words == np.uint64(int.from_bytes(part, "little"))
        return same

    def _column(self, place: int) -> _Words:
        if place not in self._columns:
            self._columns[place] = self._words[self._starts + place]
        return self._columns[place]
