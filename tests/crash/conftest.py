"""A place where one writer after the other finds the same graph and dies in it."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from omnigraph.storage.durability import Durability
from tests.crash.aftermath import Reference, Seen, look, run_undisturbed
from tests.crash.graphs import Builder
from tests.crash.kinds import KINDS, Kind
from tests.support.background import wait_for_compaction

_LONG_AGO = 1_600_000_000
"""Directories that changed a moment ago are synced once more than others. Old ones make the steps
of a writer the same every time."""


class Wharf:
    """Builds what each kind of writer finds, once, and puts it back as often as a writer dies.

    Always in the same place: branches of tables know where the files are that they inherit.
    """

    def __init__(self, folder: Path) -> None:
        self.root = folder / "graph"
        self._kept = folder / "kept"
        self._references: dict[str, Reference] = {}
        self._built: dict[Builder, str] = {}
        self._found: dict[Builder, Seen] = {}

    def reference(self, kind: Kind) -> Reference:
        """The writer as it is when nothing happens to it."""
        if kind.name not in self._references:
            self.restore(kind)
            if kind.found not in self._found:
                self._found[kind.found] = look(self.root)
            reference = run_undisturbed(kind, self.root, self._found[kind.found])
            if kind.halfway is not None:
                self.restore(kind)
                kind.halfway(str(self.root))
                reference = replace(reference, halfway=look(self.root).content)
            self._references[kind.name] = reference
        return self._references[kind.name]

    def restore(self, kind: Kind) -> Path:
        """Put the graph there that a writer finds, and nothing else."""
        return self._restore(kind.found)

    def _restore(self, found: Builder) -> Path:
        if found not in self._built:
            shutil.rmtree(self.root, ignore_errors=True)
            if found.base is not None:
                self._restore(found.base)
            # Only the writer itself is killed while it syncs.
            with patch.dict(os.environ, {"OMNIGRAPH_DURABILITY": Durability.NONE.value}):
                found.build(self.root)
                wait_for_compaction()
            self._built[found] = f"found {len(self._built)}"
            self.keep(self._built[found])
        return self.put_back(self._built[found])

    def keep(self, name: str) -> None:
        """Remember the graph as it is now."""
        kept = self._kept / name
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        if self.root.exists():
            shutil.copytree(self.root, kept / "graph")

    def put_back(self, name: str) -> Path:
        """Bring back what was remembered."""
        shutil.rmtree(self.root, ignore_errors=True)
        if (self._kept / name / "graph").exists():
            shutil.copytree(self._kept / name / "graph", self.root)
            for path in [self.root, *self.root.rglob("*")]:
                os.utime(path, (_LONG_AGO, _LONG_AGO))
        return self.root


@pytest.fixture(scope="session")
def wharf(tmp_path_factory: pytest.TempPathFactory) -> Wharf:
    return Wharf(tmp_path_factory.mktemp("crash"))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    """Every kind of writer in turn."""
    return KINDS[request.param]
