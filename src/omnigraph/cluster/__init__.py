"""Clusters as code: a directory declares graphs, stored queries and policies; commands converge storage to it.

`config` and `resources` read the declaration, `ledger` and `store` what a storage root records, `plan` compares
the two, and `apply`, `sweep` and `observe` act. `serving` is what a server reads.
"""
