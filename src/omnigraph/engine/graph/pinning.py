"""Commits of a graph that are to stay readable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.engine.gate import Action, Request
from omnigraph.engine.graph.handle import GraphHandle
from omnigraph.errors import CommitNotFound, HistoryRemoved
from omnigraph.versioning.branch_names import MAIN
from omnigraph.versioning.commits import CommitId

if TYPE_CHECKING:
    from omnigraph.versioning.pins import NamedPin


class Pinning(GraphHandle):
    """Pins, which keep commits of main from being cleaned up."""

    def pins(self) -> list[NamedPin]:
        """All pins by name."""
        from omnigraph.versioning.pins import Pins

        return Pins(self._objects).list()

    def pin(self, name: str, commit_id: str | None = None, *, actor: str | None = None) -> NamedPin:
        """Keep a commit of main readable under a name; without an id its newest one.

        Raises `CommitNotFound`, or `HistoryRemoved` when it is too late.
        """
        from omnigraph.engine.meant_commits import meant_commit
        from omnigraph.versioning.ids import now_micros
        from omnigraph.versioning.pins import NamedPin, Pins, check_pin_name
        from omnigraph.versioning.retention import removed_tables

        self._writable("pin a commit")
        self._gate.check(Request(actor, Action.CHANGE, branch=MAIN))
        check_pin_name(name)
        with self._locks.hold(None, "pin") as lock:
            wanted = CommitId(commit_id) if commit_id is not None else self.head(MAIN)
            commit = self._manifest.find_commit(None, wanted)
            if commit is None:
                raise CommitNotFound(wanted, meant_commit(self._manifest, [None], wanted))
            state = self._manifest.at(None, commit.sequence)
            removed = set(removed_tables(self._tables, state))
            for entry in self._past_snapshot(state).entries.values():
                if entry.table_id in removed:
                    raise HistoryRemoved(entry.table_key, state.sequence)
            pin = NamedPin(name, wanted, commit.sequence, now_micros(), actor)
            lock.check()
            Pins(self._objects).add(pin)
        return pin

    def unpin(self, name: str, *, actor: str | None = None) -> None:
        """Let a pinned commit go with the next cleanup. Raises `NotFoundError`."""
        from omnigraph.versioning.pins import Pins

        self._writable("unpin a commit")
        self._gate.check(Request(actor, Action.CHANGE, branch=MAIN))
        with self._locks.hold(None, "pin"):
            Pins(self._objects).remove(name)
