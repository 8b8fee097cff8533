"""Runs the command line in this process, and makes the small library every test can use."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from omnigraph.cli.main import main

LIBRARY_PG = """\
node Author {
    slug: String @key
    born: I32?
}

node Book {
    isbn: String @key
    title: String
}

edge Wrote: Author -> Book {
    year: I32?
}

edge Cites: Book -> Book
"""

LIB_GQ = """\
query by_slug($slug: String) {
    match { $a: Author { slug: $slug } }
    return { $a.slug, $a.born }
}

query all_authors() {
    match { $a: Author }
    return { $a.slug }
}

query add_author($slug: String, $born: I32) {
    insert Author { slug: $slug, born: $born }
}

query set_born($slug: String, $born: I32) {
    update Author set { born: $born } where slug = $slug
}
"""

LIBRARY_JSONL = """\
{"type": "Author", "data": {"slug": "ada", "born": 1815}}
{"type": "Author", "data": {"slug": "bob", "born": 1970}}
{"type": "Author", "data": {"slug": "cy"}}
{"type": "Book", "data": {"isbn": "b1", "title": "Notes"}}
{"type": "Book", "data": {"isbn": "b2", "title": "Engines"}}
{"edge": "Wrote", "from": "ada", "to": "b1", "data": {"year": 1843}}
{"edge": "Wrote", "from": "bob", "to": "b2", "data": {"year": 2001}}
{"edge": "Cites", "from": "b2", "to": "b1"}
"""

_NOBODY = 65534


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Cli = Callable[..., Outcome]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run `omnigraph` with these arguments; `stdin` is bytes."""

    def run(*args: object, stdin: bytes = b"") -> Outcome:
        capsys.readouterr()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return Outcome(code, out, err)

    return run


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory, made current, with `library.pg`, `library.jsonl` and `lib.gq`."""
    (tmp_path / "library.pg").write_text(LIBRARY_PG)
    (tmp_path / "library.jsonl").write_text(LIBRARY_JSONL)
    (tmp_path / "lib.gq").write_text(LIB_GQ)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def empty_graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph that has only its schema; tests get copies of it."""
    folder = tmp_path_factory.mktemp("empty")
    (folder / "library.pg").write_text(LIBRARY_PG)
    assert main(["init", "--schema", str(folder / "library.pg"), str(folder / "G")]) == 0
    return folder / "G"


@pytest.fixture(scope="session")
def full_graph(empty_graph: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph loaded with the library; tests get copies of it."""
    folder = tmp_path_factory.mktemp("full")
    shutil.copytree(empty_graph, folder / "G")
    (folder / "library.jsonl").write_text(LIBRARY_JSONL)
    load = ["load", "--mode", "overwrite", "--data", str(folder / "library.jsonl")]
    assert main([*load, str(folder / "G")]) == 0
    return folder / "G"


@pytest.fixture
def empty(library: Path, empty_graph: Path) -> str:
    """The graph `G` in the current directory, of which only the schema exists."""
    shutil.copytree(empty_graph, library / "G")
    return "G"


@pytest.fixture
def full(library: Path, full_graph: Path) -> str:
    """The graph `G` in the current directory, loaded with `library.jsonl`."""
    shutil.copytree(full_graph, library / "G")
    return "G"


@contextmanager
def without_privileges() -> Iterator[None]:
    """Be a user whom permissions concern; they do not concern the one tests may run as."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def public(empty_graph: Path) -> Iterator[Path]:
    """A folder that everybody can read and nobody can write, with `library.pg` and a graph `G`."""
    with TemporaryDirectory() as folder:
        shutil.copytree(empty_graph, f"{folder}/G")
        Path(folder, "library.pg").write_text(LIBRARY_PG)
        for path, _, files in os.walk(folder, topdown=False):
            for file in files:
                Path(path, file).chmod(0o444)
            Path(path).chmod(0o555)
        yield Path(folder)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the operator config, which is empty; no variable selects or identifies anything."""
    for name in list(os.environ):
        if name.startswith(("OMNIGRAPH_TOKEN_", "OMNIGRAPH_BEARER", "OMNIGRAPH_PROFILE")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir(mode=0o700)
    return tmp_path / "home"
