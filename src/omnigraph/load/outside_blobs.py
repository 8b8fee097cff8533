"""Records with blobs that are kept where the graph may not keep any."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ExternalBlobRefused
from omnigraph.load.judging import JudgedRows
from omnigraph.load.typed_rows import Problem
from omnigraph.rows.blob_bases import BlobBases


def refuse_outside(judged: JudgedRows, allowed: BlobBases) -> tuple[JudgedRows, list[Problem]]:
    """The rows all of whose blobs may be kept where they are, and the problems of the others."""
    bad = np.zeros(judged.rows.num_rows, np.bool_)
    problems = []
    for name in sorted(judged.declared.blobs):
        uris = pc.struct_field(judged.rows.column(name), "uri")
        if uris.null_count == len(uris):
            continue
        distinct = pc.unique(uris.drop_null()).to_pylist()
        refused = pa.array([uri for uri in distinct if not allowed.allow(uri)], pa.utf8())
        for row in np.flatnonzero(pc.is_in(uris, value_set=refused).to_numpy(zero_copy_only=False)):
            message = str(ExternalBlobRefused(name, uris[row].as_py()))
            position = int(judged.positions[row])
            problems.append(Problem(position, "bad_value", message, judged.declared.name, name))
            bad[row] = True
    if not problems:
        return judged, []
    kept = JudgedRows(
        judged.declared,
        judged.rows.filter(pa.array(~bad)),
        judged.positions[~bad],
        judged.ignored_ids,
    )
    return kept, problems
