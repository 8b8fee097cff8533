"""A graph kept in dictionaries, naive enough to be obviously right. It judges engines: the same
operations on both must lead to the same rows, receipts and refusals."""

from tests.support.model.graph import ReferenceGraph, numbered_ids
from tests.support.model.history import Commit
from tests.support.model.image import Image, explain_difference, snapshot_equal

__all__ = [
    "Commit",
    "Image",
    "ReferenceGraph",
    "explain_difference",
    "numbered_ids",
    "snapshot_equal",
]
