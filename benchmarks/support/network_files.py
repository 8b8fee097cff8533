"""The generated social network as files: JSON lines, and Parquet files by type."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.support.network import Network

_BLOCK = 500_000
_ROW_GROUP = 250_000


def rows_in(network: Network) -> int:
    tables = [*network.nodes.values(), *network.edges.values()]
    return sum(int(table.num_rows) for table in tables)


def write_json_lines(network: Network, path: Path) -> None:
    """All rows in one file, type by type."""
    with path.open("wb") as file:
        for name, rows in network.nodes.items():
            for block in rows.to_batches(_BLOCK):
                values = [_json_value(key, block.column(key)) for key in rows.column_names]
                data = pc.binary_join_element_wise(*values, ",")
                head, tail = f'{{"type":"{name}","data":{{', "}}\n"
                _write(file, pc.binary_join_element_wise(head, data, tail, ""))
        for name, rows in network.edges.items():
            for block in rows.to_batches(_BLOCK):
                ends = [block.column(end).cast(pa.utf8()) for end in ("from", "to")]
                head = f'{{"edge":"{name}","from":"'
                parts = [head, ends[0], '","to":"', ends[1], '"']
                values = [_json_value(key, block.column(key)) for key in _properties(rows)]
                if values:
                    parts += [',"data":{', pc.binary_join_element_wise(*values, ","), "}"]
                _write(file, pc.binary_join_element_wise(*parts, "}\n", ""))


def write_parquet(network: Network, folder: Path) -> list[Path]:
    """A file per type, ends of edges as ids."""
    written = []
    tables = network.nodes | {
        name: pa.table(
            {end: rows[end].cast(pa.utf8()) for end in ("from", "to")}
            | {key: rows[key] for key in _properties(rows)}
        )
        for name, rows in network.edges.items()
    }
    for name, rows in tables.items():
        path = folder / f"{name}.parquet"
        pq.write_table(rows, path, row_group_size=_ROW_GROUP)
        written.append(path)
    return written


def _properties(edges: pa.Table) -> list[str]:
    return [name for name in edges.column_names if name not in ("from", "to")]


def _json_value(name: str, column: pa.Array) -> pa.Array:
    text = column.cast(pa.utf8())
    quote = '"' if pa.types.is_string(column.type) else ""
    return pc.binary_join_element_wise(f'"{name}":{quote}', text, quote, "")


def _write(file: object, texts: pa.Array) -> None:
    """The bytes of the texts, one after the other."""
    _, offsets, data = texts.buffers()
    bounds = pa.Array.from_buffers(pa.int32(), len(texts) + 1, [None, offsets], offset=texts.offset)
    start, end = bounds[0].as_py(), bounds[-1].as_py()
    file.write(memoryview(data)[start:end])  # type: ignore[attr-defined]
