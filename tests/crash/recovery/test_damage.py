"""Damaged files: derived ones are built again and block nothing, acknowledged ones are never passed over.

Whatever happens to a file, a reader gets the newest acknowledged answer or an error, never an older answer.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path

import pytest

from omnigraph.api.graph import init
from omnigraph.api.graph import open as open_graph
from omnigraph.cli.main import main
from omnigraph.errors import FileDamaged, HistoryRemoved, ManifestDamaged
from omnigraph.storage.indexes import CHECKSUMS, damaged_indexes
from omnigraph.versioning.rows import MANIFEST_PATH
from tests.behaviour.graphs import tree

SCHEMA = """
node Note { slug: String @key  text: String @index  n: I32? }
edge Links: Note -> Note
"""
ADD = 'query add($slug: String) { insert Note { slug: $slug, text: "a late word" } }'
FIND = "query find($slug: String) { match { $n: Note { slug: $slug } } return { $n.text } }"
SEARCH = 'query search() { match { $n: Note  search($n.text, "word7") } return { $n.slug } }'
COUNT = "query all() { match { $n: Note } return { count($n) as n } }"

HOW = ["missing", "empty", "half", "zeros", "flip", "garbage"]
INCOMPLETE, COMPLETE = ["missing", "empty", "half", "zeros"], ["flip", "garbage"]
BRANCHES = ["main", "dev"]


def damage(path, how):
    """One accident of a file, always the same for the same file and kind."""
    whole = path.read_bytes()
    match how:
        case "missing":
            path.unlink()
        case "empty":
            path.write_bytes(b"")
        case "half":
            path.write_bytes(whole[: len(whole) // 2])
        case "zeros":
            path.write_bytes(bytes(len(whole)))
        case "flip":
            changed = bytearray(whole)
            for position in _flipped(path, whole):
                changed[position] ^= 0xFF
            path.write_bytes(changed)
        case "garbage":
            path.write_bytes(random.Random(len(whole)).randbytes(len(whole)))


def _flipped(path, whole):
    """Bytes to turn: of a version file the first of its last section, without which it says nothing."""
    if path.suffix == ".manifest":
        start = int.from_bytes(whole[-16:-8], "little")
        return range(start, start + 24)
    return range(len(whole) // 3, len(whole) // 3 + 8)


class Damaged:
    """A graph that is put back in its place before each accident: branches know their place."""

    def __init__(self, folder: Path) -> None:
        self.root, self._kept = folder / "graph", folder / "kept"
        graph = init(str(self.root), SCHEMA)
        graph.load("".join(_note(number) for number in range(1200)).encode(), "append")
        graph.maintenance.ensure_indexes()
        dev = graph.branches.create("dev")
        dev.mutate(ADD, {"slug": "dev1"})
        dev.maintenance.ensure_indexes()
        for number in range(2):
            graph.mutate(ADD, {"slug": f"main{number}"})
            dev.mutate(ADD, {"slug": f"dev{number + 2}"})
        graph.maintenance.wait()
        shutil.copytree(self.root, self._kept)
        self.rows = {"main": 1202, "dev": 1203}
        self.newest = {"main": "main1", "dev": "dev3"}

    def restore(self) -> None:
        shutil.rmtree(self.root)
        shutil.copytree(self._kept, self.root)

    def files(self, pattern: str) -> list[Path]:
        return sorted(path for path in self.root.glob(pattern) if path.is_file())

    def line(self, branch: str, table: str = MANIFEST_PATH) -> Path:
        """The folder of a branch's line of versions of a table."""
        folder = self.root / table
        return folder if branch == "main" else folder / "tree" / "dev"

    def notes(self) -> str:
        entry = open_graph(str(self.root), read_only=True)._snapshot().entry("node:Note")
        return entry.location

    def newest_version(self, branch: str, table: str = MANIFEST_PATH) -> Path:
        return min((self.line(branch, table) / "_versions").glob("*.manifest"))

    def answers(self, branch: str, *, read_only: bool = True) -> tuple[int, int, int]:
        """How many rows there are, are found by key, and are found by a word."""
        graph = open_graph(str(self.root), read_only=read_only)
        count = graph.query(COUNT, branch=branch).to_dicts()[0]["n"]
        found = graph.query(FIND, {"slug": self.newest[branch]}, branch=branch)
        return count, len(found.to_dicts()), len(graph.query(SEARCH, branch=branch).to_dicts())

    def expected(self, branch: str) -> tuple[int, int, int]:
        return self.rows[branch], 1, 120


def _note(number):
    data = {"slug": f"n{number:04}", "text": f"a text with word{number % 10}", "n": number}
    return json.dumps({"type": "Note", "data": data}) + "\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_DURABILITY", "none")
        return Damaged(tmp_path_factory.mktemp("damage"))


@pytest.fixture
def place(made):
    made.restore()
    return made


DERIVED = {
    "indexes of the manifest": "__manifest/**/_indices/*/*.lance",
    "indexes of tables": "nodes/*/**/_indices/*/*.lance",
    "checksums of indexes": f"**/_indices/*/{CHECKSUMS}",
    "stored words": "nodes/*/**/_text/*/*",
    "records of transactions": "**/_transactions/*.txn",
    "notes of the newest version": "**/latest_version_hint.json",
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("which", DERIVED)
def test_damaged_derived_files_block_nothing_and_change_no_answer(place, which, how):
    files = place.files(DERIVED[which])
    assert files
    for file in files:
        damage(file, how)
    _check_usable(place)


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("which", DERIVED)
def test_one_damaged_derived_file_blocks_nothing_and_changes_no_answer(place, which, how):
    for number in range(len(place.files(DERIVED[which]))):
        place.restore()
        damage(place.files(DERIVED[which])[number], how)
        _check_usable(place)


def _check_usable(place):
    before = tree(place.root)
    for branch in BRANCHES:
        assert place.answers(branch) == place.expected(branch)
    assert tree(place.root) == before
    writer = open_graph(str(place.root))
    for branch in BRANCHES:
        writer.mutate(ADD, {"slug": "late"}, branch=branch)
    writer.maintenance.optimize()
    writer.maintenance.wait()
    for branch, physical in (("main", None), ("dev", "dev")):
        count, *found = place.expected(branch)
        assert place.answers(branch) == (count + 1, *found)
        again = open_graph(str(place.root), read_only=True)
        tables = [again._core.manifest.open(physical)]
        snapshot = again._snapshot(branch)
        tables += [snapshot.open(again._core.tables, key) for key in snapshot.entries]
        assert [dict(damaged_indexes(table)) for table in tables] == [{}] * len(tables)


@pytest.mark.parametrize("how", COMPLETE)
@pytest.mark.parametrize("branch", BRANCHES)
def test_a_damaged_newest_version_of_the_manifest_is_told_and_not_passed_over(place, branch, how):
    file = place.newest_version(branch)
    whole = file.read_bytes()
    damage(file, how)
    _check_told(place, branch, file)
    file.write_bytes(whole)
    assert place.answers(branch) == place.expected(branch)


@pytest.mark.parametrize("how", INCOMPLETE)
@pytest.mark.parametrize("branch", BRANCHES)
def test_an_acknowledged_version_that_lost_bytes_is_not_taken_for_a_torn_write(place, branch, how):
    file = place.newest_version(branch)
    damage(file, how)
    _check_told(place, branch, file)


@pytest.mark.parametrize("how", INCOMPLETE)
@pytest.mark.parametrize("branch", BRANCHES)
def test_rows_of_the_newest_version_that_are_lost_are_told(place, branch, how):
    file = max((place.line(branch) / "data").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    damage(file, how)
    _check_told(place, branch, place.newest_version(branch))


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("branch", BRANCHES)
def test_a_damaged_version_of_a_table_is_told_and_others_can_be_used(place, branch, how):
    file = place.newest_version(branch, place.notes())
    damage(file, how)
    before = contents(place.root)
    with pytest.raises(HistoryRemoved if how == "missing" else FileDamaged) as caught:
        place.answers(branch)
    if isinstance(caught.value, FileDamaged):
        assert caught.value.uri == str(file)
    other = "dev" if branch == "main" else "main"
    assert place.answers(other) == place.expected(other)
    with pytest.raises(ManifestDamaged if how == "missing" else FileDamaged):
        open_graph(str(place.root)).mutate(ADD, {"slug": "late"}, branch=branch)
    assert contents(place.root) == before


def contents(root):
    """What is in every file but those of locks."""
    files = {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    return {path: content for path, content in files.items() if "__locks" not in path}


def _check_told(place, branch, file):
    before = contents(place.root)
    for read_only in (True, False):
        with pytest.raises(FileDamaged) as caught:
            place.answers(branch, read_only=read_only)
        assert caught.value.uri == str(file)
        assert "backup" in str(caught.value)
    if branch != "main":
        writer = open_graph(str(place.root))
        with pytest.raises(FileDamaged):
            writer.mutate(ADD, {"slug": "late"}, branch=branch)
        assert place.answers("main") == place.expected("main")
    assert contents(place.root) == before


@pytest.mark.parametrize("command", ["status", "repair"])
def test_commands_name_the_damaged_file(place, capsys, command):
    file = place.newest_version("main")
    damage(file, "flip")
    assert main([command, str(place.root)]) == 1
    assert str(file) in capsys.readouterr().err


@pytest.mark.parametrize("how", COMPLETE)
def test_a_damaged_ref_is_told_and_its_branch_is_kept(place, how):
    open_graph(str(place.root)).branches.create("new")
    file = place.root / MANIFEST_PATH / "_refs" / "branches" / "new.json"
    whole = file.read_bytes()
    damage(file, how)
    open_graph(str(place.root)).mutate(ADD, {"slug": "late"})
    with pytest.raises(FileDamaged) as caught:
        list(open_graph(str(place.root)).branches)
    assert caught.value.uri == str(file)
    file.write_bytes(whole)
    assert list(open_graph(str(place.root)).branches) == ["main", "dev", "new"]


def test_a_publish_that_a_power_loss_tore_is_still_passed_over(place):
    """The same bytes are a torn write while its sidecar waits."""
    file = place.newest_version("main")
    os.truncate(file, 0)
    sidecar = place.root / "__recovery" / "01KV8Z6M3Q9V2X4T7B5N0C1D2E.json"
    sidecar.parent.mkdir(exist_ok=True)
    sidecar.write_text("{")
    count, found, _ = place.answers("main")
    assert (count, found) == (1201, 0)
