"""The rows whose vector is nearest to a given one, found through a table's index of vectors.

Tests: tests/storage/tables/test_vectors.py.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omnigraph.storage.conflicts import naming_failures
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.table import Table


def nearest_row_ids(
    table: Table, column: str, query: npt.NDArray[np.float64], count: int, probes: int
) -> npt.NDArray[np.uint64]:
    """The row ids of about the `count` nearest, nearest first; fewer if there are no more.

    So many partitions are looked into. Rows that the index does not know are compared one by one.
    """
    with naming_failures("search", table.lineage.uri):
        found = table.dataset.scanner(
            columns=[ROW_ID, "_distance"],
            nearest={
                "column": column,
                "q": query.astype(np.float32),
                "k": count,
                "metric": "cosine",
                "nprobes": probes,
            },
            disable_scoring_autoprojection=True,
        ).to_table()
    return np.asarray(found.column(ROW_ID).to_numpy(), np.uint64)
