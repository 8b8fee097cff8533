"""What a graph is: its manifest, commits, snapshots, branches and schema contract.

Sits on storage and catalog. Only `publish` makes a change visible.
"""
