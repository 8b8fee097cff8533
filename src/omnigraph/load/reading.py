"""Splits to valid, located rows: blocks are read on several threads and arrive in order.

At most one block more than there are threads is in flight; each is a few megabytes of text, or some
tens of thousands of rows of a table, and its columns. Valid rows wait in a `RowStore`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import pyarrow as pa

from omnigraph.catalog.model import Catalog
from omnigraph.limits import LOAD_MEMORY_BYTES
from omnigraph.load.csv_rows import CsvReader
from omnigraph.load.json_rows import JsonReader, ObjectReader
from omnigraph.load.json_text import read_blocks
from omnigraph.load.record_validation import (
    ValidBlock,
    ValidRecords,
    id_prefix,
    validate_records,
)
from omnigraph.load.records import ParsedRecords
from omnigraph.load.sources import CsvSource, JsonSource, Source, csv_records, table_batches
from omnigraph.load.splits import Split
from omnigraph.load.table_rows import read_table
from omnigraph.rows.blob_bases import NO_BASES, BlobBases
from omnigraph.temporary import TemporaryFolder

Result = TypeVar("Result")


def read_split(
    split: Split,
    catalog: Catalog,
    load_id: str,
    *,
    threads: int,
    blobs: BlobBases = NO_BASES,
    patches: bool = False,
) -> Iterator[ValidRecords]:
    """A split from its first to its last record, located in the load.

    Blobs kept outside of the graph are valid only under one of the bases. Rows of a patch say which
    properties their records have.
    """
    prefix, before = id_prefix(load_id, split.number), split.records_before

    def validated(read: Callable[[], ParsedRecords]) -> ValidBlock:
        return validate_records(read(), blobs)

    blocks = (partial(validated, read) for read in _reads(split.source, catalog, patches))
    for block in _in_order(blocks, threads):
        valid = block.located(split.number, before, split.lines_before, prefix)
        yield valid
        before += valid.count


def _reads(
    source: Source, catalog: Catalog, patches: bool
) -> Iterator[Callable[[], ParsedRecords]]:
    """Calls that parse the blocks of a source; reading its bytes stays with the caller."""
    if isinstance(source, JsonSource):
        reader = (
            JsonReader(catalog, patches=patches)
            if source.plan is None
            else ObjectReader(source.plan, patches)
        )
        with source.open() as stream:
            for block in read_blocks(stream):
                yield partial(reader.read, block)
    elif isinstance(source, CsvSource):
        csv_reader = CsvReader(source.plan, source.columns, source.dialect, patches)
        for records in csv_records(source):
            yield partial(csv_reader.read, records)
    else:
        for batch in table_batches(source):
            yield partial(read_table, source.plan, batch, patches=patches)


def _in_order(calls: Iterator[Callable[[], Result]], threads: int) -> Iterator[Result]:
    """The results of the calls, in their order, with a bounded number of them ahead."""
    first = list(islice(calls, 2))
    if threads <= 1 or len(first) < 2:
        for call in chain(first, calls):
            yield call()
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="omnigraph-load") as pool:
        ahead: deque[Future[Result]] = deque()
        for call in chain(first, calls):
            ahead.append(pool.submit(call))
            if len(ahead) > threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


class RowStore:
    """Located rows by table key, in the order they were added: in memory, beyond a budget in files.

    The files are Arrow files mapped into memory, so that rows read back look like any others and
    cost no memory of their own.
    """

    def __init__(self, scratch: Path | None = None, budget: int = LOAD_MEMORY_BYTES) -> None:
        self._scratch = scratch
        self._budget_bytes = budget
        self._folder: TemporaryFolder | None = None
        self._held: dict[str, list[pa.RecordBatch]] = {}
        self._held_bytes = 0
        self._files: dict[str, list[Path]] = {}

    def __enter__(self) -> RowStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the scratch files. Tables handed out stay readable where files can be unlinked."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def add(self, rows: Mapping[str, pa.RecordBatch]) -> None:
        """Take rows by table key."""
        for key, batch in rows.items():
            if batch.num_rows:
                self._held.setdefault(key, []).append(batch)
                self._held_bytes += batch.nbytes
        if self._held_bytes > self._budget_bytes:
            self._spill()

    def tables(self) -> dict[str, pa.Table]:
        """All rows by table key; types without rows are absent."""
        return {key: self._table(key) for key in sorted({*self._held, *self._files})}

    def _table(self, key: str) -> pa.Table:
        batches: list[pa.RecordBatch] = []
        for path in self._files.get(key, ()):
            batches += pa.ipc.open_file(pa.memory_map(str(path))).read_all().to_batches()
        return pa.Table.from_batches([*batches, *self._held.get(key, ())])

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = TemporaryFolder("omnigraph-load-", self._scratch)
        number = sum(map(len, self._files.values()))
        for key, batches in self._held.items():
            path = Path(self._folder.name) / f"{number}.arrow"
            number += 1
            with pa.ipc.new_file(str(path), batches[0].schema) as file:
                for batch in batches:
                    file.write_batch(batch)
            self._files.setdefault(key, []).append(path)
        self._held.clear()
        self._held_bytes = 0
