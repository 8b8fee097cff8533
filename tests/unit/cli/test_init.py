"""`omnigraph init`: what it makes, what it prints, and what it refuses."""

from __future__ import annotations

import os
import re

import pytest

from tests.unit.cli.conftest import without_privileges

INIT = ("init", "--schema", "library.pg")


@pytest.mark.acceptance("U-003")
def test_a_graph_is_made_where_nothing_was(cli, library):
    code, out, err = cli(*INIT, "new/X")
    assert (code, err) == (0, "")
    assert re.fullmatch(r"initialized new/X\ncommit [0-9A-Z]{26}\n", out)
    assert (library / "new/X/_schema.pg").read_text() == (library / "library.pg").read_text()
    assert not (library / "omnigraph.yaml").exists()


def test_the_commit_it_prints_is_the_first_of_the_graph(cli, library):
    printed = cli(*INIT, "X").out.split()[-1]
    assert cli("commit", "list", "X").out == f"{printed} branch=main version=1\n"


def test_the_address_is_printed_as_it_was_written(cli, library):
    address = f"file://{library}/X/"
    assert cli(*INIT, address).out.startswith(f"initialized {address}\n")


@pytest.mark.acceptance("U-004")
def test_a_second_init_is_refused_and_advises_nothing_that_is_refused_too(cli, empty):
    for flags in ((), ("--force",)):
        code, out, err = cli(*INIT, *flags, empty)
        assert (code, out) == (1, "")
        assert "already initialized; open it or choose another location" in err
        assert "hint: --force replaces what an unfinished init left, never a graph" in err


def test_force_overwrites_schema_files_without_a_graph(cli, library):
    (library / "X").mkdir()
    (library / "X" / "_schema.pg").write_text("node Half { }\n")
    code, _, err = cli(*INIT, "X")
    assert (code, "hint: `omnigraph init --force` replaces what an unfinished" in err) == (1, True)
    assert cli(*INIT, "--force", "X").code == 0
    assert cli("branch", "list", "--uri", "X").out == "main\n"


@pytest.mark.acceptance("U-005")
def test_without_its_schema_file_nothing_is_made(cli, library):
    code, out, err = cli("init", "--schema", "missing.pg", "Y")
    assert (code, out, err) == (
        1,
        "",
        "error[OG-I-001]: missing.pg: no such file; check the path\n",
    )
    assert not (library / "Y").exists()


def test_a_schema_that_does_not_compile_is_shown_and_nothing_is_made(cli, library):
    (library / "library.pg").write_text("node Author { slug: Strin @key }\n")
    code, out, err = cli(*INIT, "Y")
    assert (code, out) == (1, "")
    assert err.startswith("library.pg:1:")
    assert not (library / "Y").exists()


@pytest.mark.parametrize("uri", ["library.pg", "library.pg/X"])
def test_a_path_that_is_a_file_is_refused_and_the_file_is_kept(cli, library, uri):
    before = (library / "library.pg").read_bytes()
    code, out, err = cli(*INIT, uri)
    assert (code, out) == (1, "")
    assert "library.pg" in err
    assert "is a file, not a directory" in err
    assert (library / "library.pg").read_bytes() == before


def test_a_folder_that_cannot_be_written_is_named(cli, public):
    with without_privileges():
        code, out, err = cli("init", "--schema", public / "library.pg", public / "X")
    assert (code, out) == (1, "")
    assert str(public / "X") in err
    assert "Permission denied" in err
    assert sorted(os.listdir(public)) == ["G", "library.pg"]


def test_a_remote_address_is_refused(cli, library):
    code, out, err = cli(*INIT, "https://h.invalid")
    assert (code, out) == (1, "")
    assert "`init` is a storage-plane command and needs direct storage access" in err


def test_a_server_is_refused_with_the_advice_for_init(cli, library):
    code, out, err = cli(*INIT, "--server", "prod", "X")
    assert (code, out) == (1, "")
    assert err == (
        "error[OG-I-005]: `init` is a storage-plane command; --server/--graph address the data plane and do not "
        "apply. Pass a storage URI.\n"
    )
    assert not (library / "X").exists()


@pytest.mark.parametrize("args", [["--schema", "library.pg"], ["X"]])
def test_address_and_schema_are_required(cli, library, args):
    assert cli("init", *args).code == 2
    assert not (library / "X").exists()
