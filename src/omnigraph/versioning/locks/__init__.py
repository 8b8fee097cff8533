"""Writer locks: one writer at a time moves the tables of a branch and publishes on it.

Inside a process writers queue; behind the queue stands a lock that other processes see. Readers
never look at either.
"""

from omnigraph.versioning.locks.lease_object import LeaseNote, LeaseTiming, held_leases
from omnigraph.versioning.locks.process_lock import Place
from omnigraph.versioning.locks.writer_locks import HeldLock, SharedTurn, WriterLocks

__all__ = [
    "HeldLock",
    "LeaseNote",
    "LeaseTiming",
    "Place",
    "SharedTurn",
    "WriterLocks",
    "held_leases",
]
