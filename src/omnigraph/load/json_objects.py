"""Plain JSON objects to typed rows of one type, as a plan says: parsed as columns, converted.

Objects that do not fit are read one by one. Keys that the plan does not name are ignored, but an object
must not have one twice. Arrow's reader sees that only for keys it is asked for, so it is asked for those
that the first objects have; where objects differ in them, they are read by themselves for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.load.framing import Records, Stretch
from omnigraph.load.given_keys import Mask, given_in_texts
from omnigraph.load.json_records import are_sound, read_objects
from omnigraph.load.json_samples import are_json, learn_keys
from omnigraph.load.json_table import (
    TIMES,
    JsonMismatch,
    SeveralRecords,
    is_utf8,
    json_shape,
    only_chunk,
    parse_objects,
)
from omnigraph.load.row_plan import KeyColumns, RowPlan
from omnigraph.load.table_rows import TypedCells, read_cells
from omnigraph.load.typed_rows import Numbers, Reading

_SLICE: Final = 1000
"""Objects that are read one by one when one of them cannot be parsed in columns."""


@dataclass(frozen=True, slots=True)
class ObjectReader:
    """Reads the objects of a stream; a value that tasks can share."""

    plan: RowPlan
    patches: bool = False

    def read(self, stretch: Stretch) -> Reading:
        """The rows and problems of a stretch of a stream."""
        try:
            return self._read(stretch.records)
        except SeveralRecords:
            return self._read(stretch.read_by_value())

    def _read(self, records: Records) -> Reading:
        reading = Reading(records.count, records.lines)
        reading.problems += records.problems("invalid_json")
        texts, positions = records.texts, records.positions
        if is_utf8(texts):
            self._read_part(texts, positions, reading)
        else:
            reading.add(self._read_singly(texts, positions))
        return reading

    def _read_singly(self, texts: pa.Array, positions: Numbers) -> Reading:
        return read_objects(self.plan, texts, positions.tolist(), patches=self.patches)

    def _read_part(self, texts: pa.Array, positions: Numbers, reading: Reading) -> None:
        table = self._parse(texts)
        if table is not None:
            for batch in table.combine_chunks().to_batches():
                self._read_batch(batch, texts, positions, reading)
            return
        if len(texts) <= _SLICE:
            reading.add(self._read_singly(texts, positions))
            return
        for start in range(0, len(texts), _SLICE):
            part = slice(start, start + _SLICE)
            self._read_part(texts[part], positions[part], reading)

    def _read_batch(
        self, batch: pa.RecordBatch, texts: pa.Array, positions: Numbers, reading: Reading
    ) -> None:
        """The rows of all texts; of a patch, those whose keys are not clear are read one by one."""
        given: dict[str, Mask] | None = None
        if self.patches:
            columns = {name: (key, batch.column(key)) for name, key in self.plan.columns.items()}
            given, doubtful = given_in_texts(columns, texts, ())
            # In an object within the object a key is another one.
            nested = pc.greater(pc.count_substring(texts, "{"), 1).to_numpy(zero_copy_only=False)
            some_absent = np.zeros(len(texts), np.bool_)
            for column in batch.columns:
                some_absent |= column.is_null().to_numpy(zero_copy_only=False)
            doubtful |= nested & some_absent
            if doubtful.any():
                clear = pa.array(~doubtful)
                unclear = texts.filter(pa.array(doubtful))
                reading.add(self._read_singly(unclear, positions[doubtful]))
                given = {name: mask[~doubtful] for name, mask in given.items()}
                batch, positions = batch.filter(clear), positions[~doubtful]
        reading.rows.append(read_cells(self.plan, batch, positions, TypedCells(typed=False), given))

    def _parse(self, texts: pa.Array) -> pa.Table | None:
        """The columns of the plan; None when the objects have to be read one by one."""
        others = learn_keys(texts, self.plan.sources())
        for shape in () if others is None else self._shapes():
            asked = pa.schema([*shape, *(others or {}).items()])
            with suppress(JsonMismatch):
                table = parse_objects(texts, asked)
                if all(are_json(only_chunk(table.column(name))) for name in others or ()):
                    return table.select(shape.names)
        for shape in self._shapes():
            with suppress(JsonMismatch):
                table = parse_objects(texts, shape, ignore_others=True)
                return table if are_sound(texts) else None
        return None

    def _shapes(self) -> Iterator[pa.Schema]:
        """The objects that are expected: times as texts or, all of them, as numbers."""
        plan = self.plan
        types = {name: prop.type for name, prop in plan.declared.properties.items()}
        wanted = [(key, types[name]) for name, key in plan.columns.items()]
        texts = [] if plan.id is None else [plan.id]
        for end in plan.ends.values():
            if isinstance(end, KeyColumns):
                keys = end.columns.items()
                wanted += [(key, end.node.properties[name].type) for name, key in keys]
            else:
                texts.append(end)
        has_times = any(kind.scalar in TIMES for _, kind in wanted)
        for numeric in (False, True)[: 1 + has_times]:
            fields = [(key, json_shape(kind, numeric_times=numeric)) for key, kind in wanted]
            shape = dict.fromkeys([*fields, *((key, pa.utf8()) for key in texts)])
            # A key that two parts of a row want as different types is left to single reading.
            if len({key for key, _ in shape}) == len(shape):
                yield pa.schema(list(shape))
