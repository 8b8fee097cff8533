"""Load kernels: read records, route, convert and check them, over Arrow batches.

One set of kernels for every way a load can run; none of them commits anything.
"""

from omnigraph.load.committed import CommittedRows
from omnigraph.load.prepare import LoadedType, LoadWarning, PreparedLoad, prepare_load
from omnigraph.load.quarantine import BadRecord
from omnigraph.load.recognition import recognise_sources
from omnigraph.load.row_store import RowStore
from omnigraph.load.set_phase import LoadMode
from omnigraph.load.sources import Source

__all__ = [
    "BadRecord",
    "CommittedRows",
    "LoadMode",
    "LoadWarning",
    "LoadedType",
    "PreparedLoad",
    "RowStore",
    "Source",
    "prepare_load",
    "recognise_sources",
]
