"""How much a load has to read, as far as that says where it should run."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.errors import SourceUnreadable
from omnigraph.load import Source
from omnigraph.load.sources import CsvFile, JsonFile, JsonObjects, ParquetFile, open_file
from omnigraph.storage.files import stamp_of


def input_bytes(sources: Sequence[Source]) -> int:
    """The size of files as they are, compressed or not.

    What is in memory is loaded by the process that has it: sending it to tasks takes longer.
    """
    return sum(map(_file_bytes, sources))


def _file_bytes(source: Source) -> int:
    match source:
        case JsonObjects(stream=stream):
            return _file_bytes(stream)
        case JsonFile() | ParquetFile() | CsvFile(held=None):
            try:
                with open_file(source.path) as file:
                    return stamp_of(file)[0]
            except SourceUnreadable:
                return 0  # Whoever reads it says what is wrong.
        case _:
            return 0
