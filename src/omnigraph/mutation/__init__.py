"""Mutation queries up to the commit: statements in order on a working image of one snapshot.

Reads the snapshot and stages nothing; the result is the change a commit would bring.
"""

from omnigraph.mutation.statements import PreparedMutation, prepare_mutation
from omnigraph.mutation.values import MutationIds

__all__ = ["MutationIds", "PreparedMutation", "prepare_mutation"]
