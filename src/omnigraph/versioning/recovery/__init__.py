"""Recovery: what becomes of a write that did not finish.

A writer leaves a sidecar, a small file that says what it is about to do, before it moves a table.
The next holder of the branch lock can finish or undo the write as a whole.
"""
