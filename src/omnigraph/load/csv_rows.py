"""CSV records to typed rows: parsed as columns of text, then converted as a plan says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv

from omnigraph.load.csv_framing import Dialect
from omnigraph.load.framing import Records
from omnigraph.load.given_keys import Mask
from omnigraph.load.json_table import content_of, is_utf8
from omnigraph.load.row_plan import RowPlan
from omnigraph.load.table_rows import read_cells
from omnigraph.load.text_cells import TextCells
from omnigraph.load.typed_rows import Numbers, Problem, Reading


@dataclass(frozen=True, slots=True)
class CsvReader:
    """Reads records with the given columns; a value that tasks can share."""

    plan: RowPlan
    names: tuple[str, ...]
    dialect: Dialect
    patches: bool = False

    def read(self, records: Records) -> Reading:
        """The rows and problems of a piece of a CSV text."""
        reading = Reading(records.count, records.lines)
        reading.problems += records.problems("bad_record")
        texts, positions = records.texts, records.positions
        if not is_utf8(texts):
            texts, positions = _without_other_text(texts, positions, reading)
        batch, positions = self._parse(texts, positions, reading)
        if batch.num_rows:
            cells = TextCells(self.dialect.list_separator)
            given: dict[str, Mask] | None = {} if self.patches else None
            reading.rows.append(read_cells(self.plan, batch, positions, cells, given))
        return reading

    def _parse(
        self, texts: pa.Array, positions: Numbers, reading: Reading
    ) -> tuple[pa.RecordBatch, Numbers]:
        """The columns of the plan as text, and the records that have all of their fields."""
        wanted = self.plan.sources()
        ragged: list[pcsv.InvalidRow] = []

        def skip(row: pcsv.InvalidRow) -> str:
            ragged.append(row)
            return "skip"

        content = content_of(texts)
        if not content.size:
            return pa.RecordBatch.from_pylist([], pa.schema([])), positions[:0]
        # Columns go by their place: a name may be empty, or stand twice where nobody asks for it.
        places = {name: f"{place}" for place, name in enumerate(self.names)}
        table = pcsv.read_csv(
            pa.BufferReader(content),
            read_options=pcsv.ReadOptions(
                use_threads=False,
                block_size=content.size + 1,
                column_names=[f"{place}" for place in range(len(self.names))],
            ),
            parse_options=pcsv.ParseOptions(
                delimiter=self.dialect.delimiter,
                quote_char=self.dialect.quote,
                newlines_in_values=True,
                invalid_row_handler=skip,
            ),
            convert_options=pcsv.ConvertOptions(
                column_types={places[name]: pa.utf8() for name in wanted},
                include_columns=[places[name] for name in wanted],
                null_values=list(self.dialect.null),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                check_utf8=False,
            ),
        )
        kept = np.ones(len(positions), np.bool_)
        for row in ragged:
            kept[row.number - 1] = False
            expected, found = _fields(len(self.names)), row.actual_columns
            problem = f"expected {expected}, got {found}"
            reading.problems.append(Problem(int(positions[row.number - 1]), "bad_record", problem))
        columns = [column.combine_chunks() for column in table.columns]
        batch = pa.RecordBatch.from_arrays(columns, names=wanted)
        assert batch.num_rows == kept.sum(), "records were framed as Arrow reads them"
        return batch, positions[kept]


def _fields(count: int) -> str:
    return "1 field" if count == 1 else f"{count} fields"


def _without_other_text(
    texts: pa.Array, positions: Numbers, reading: Reading
) -> tuple[pa.Array, Numbers]:
    """The records that are UTF-8; the others become problems."""
    good = np.array([is_utf8(texts.slice(place, 1)) for place in range(len(texts))], np.bool_)
    for position in positions[~good].tolist():
        reading.problems.append(Problem(position, "bad_record", "invalid UTF-8"))
    return texts.filter(pa.array(good)), positions[good]
