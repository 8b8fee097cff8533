"""Recovery: what becomes of a write that did not finish.

A writer leaves a sidecar, a small file that says what it is about to do, before it moves a table.
Whoever holds the branch's lock later can judge it and finish or undo the write as a whole.
"""
