"""The answer to a read query, found the naive way: every combination of nodes is tried against the
clauses as they are written. It knows nothing of plans, indexes or adjacency, so it can check them."""

from tests.support.model.read.answer import Answer, answer
from tests.support.model.read.view import View, visible

__all__ = ["Answer", "View", "answer", "visible"]
