"""Runs the command line in this process, and writes the small library every test can use."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
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
    """A directory, made current, with `library.pg` and `lib.gq`."""
    (tmp_path / "library.pg").write_text(LIBRARY_PG)
    (tmp_path / "lib.gq").write_text(LIB_GQ)
    monkeypatch.chdir(tmp_path)
    return tmp_path
