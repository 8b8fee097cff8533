"""The commit that was meant by an id that no commit has."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from omnigraph.diagnostics import suggest
from omnigraph.errors import BranchNotFound
from omnigraph.versioning.manifest import Manifest

_SEARCHED_COMMITS: Final = 1000
"""The newest commits of a branch among which the meant one is looked for."""

_SHORTEST_PART: Final = 6
"""Ids begin with the time: fewer letters would belong to many."""


def meant_commit(manifest: Manifest, branches: Iterable[str | None], written: str) -> str | None:
    """The one commit whose id begins or ends as written, or else the one spelt most like it."""
    text = written.upper()
    known: set[str] = set()
    for branch in branches:
        # A branch that is deleted meanwhile has nothing for us.
        with suppress(BranchNotFound):
            head = manifest.current(branch).sequence
            known.update(manifest.commit_ids(branch, head - _SEARCHED_COMMITS, head).values())
    if len(text) >= _SHORTEST_PART:
        found = [id for id in known if id.startswith(text) or id.endswith(text)]
        if len(found) == 1:
            return found[0]
    return suggest(text, known)
