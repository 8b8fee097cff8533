"""What errors advise: commands and flags that exist, and that do what was said."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import omnigraph
from omnigraph.cli.command_table import COMMANDS
from omnigraph.cli.exits import hint_for
from omnigraph.cli.framework import load_command
from omnigraph.cli.main import root
from omnigraph.errors import (
    AlreadyInitialized,
    BranchNotFound,
    CommitNotFound,
    CommitStateUnknown,
    DanglingEdges,
    EdgesOfType,
    NotABlob,
    RepairRefused,
    UnknownType,
)
from omnigraph.server.command import command as server_command

SOURCES = Path(omnigraph.__file__).parent
COMMAND = re.compile(r"`omnigraph ([a-z][a-z-]*(?: [a-z][a-z-]*)*)")
WHOLE_COMMAND = re.compile(r"^omnigraph ([a-z][a-z-]*(?: [a-z][a-z-]*)*)$")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


def said(path: Path) -> Iterator[str]:
    """The texts of a module or data file that a user may read, docstrings left out."""
    if path.suffix == ".toml":
        yield path.read_text()
        return
    tree = ast.parse(path.read_text())
    silent = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in silent
        ):
            yield node.value


def flags_of(command: click.Command) -> set[str]:
    return {flag for param in command.params for flag in (*param.opts, *param.secondary_opts)}


def modules() -> list[Path]:
    layers = ("testing", "spark")
    found = [*SOURCES.rglob("*.py"), *SOURCES.rglob("*.toml")]
    # The examples of the help are parsed whole, by test_help.py.
    left_out = (SOURCES / "cli" / "examples.py",)
    return [
        path
        for path in found
        if path.relative_to(SOURCES).parts[0] not in layers and path not in left_out
    ]


def test_every_command_that_a_text_names_exists():
    named = {
        words
        for path in modules()
        for text in said(path)
        for words in (*COMMAND.findall(text), *WHOLE_COMMAND.findall(text))
    }
    assert {"init", "repair", "optimize"} <= named
    known = {"help", *COMMANDS, *(entry.family for entry in COMMANDS.values())}
    assert named - known == set()


def test_every_flag_that_a_text_names_exists():
    commands = [load_command(entry) for entry in COMMANDS.values()]
    known = set.union({"--help"}, *map(flags_of, (root, server_command, *commands)))
    for path in modules():
        for text in said(path):
            assert set(FLAG.findall(text)) <= known, (path, text)


def test_a_command_that_a_text_spells_out_takes_its_flags():
    spelt = re.compile(r"`omnigraph ([a-z-]+)((?: --[a-z-]+(?: [A-Z]+)?)+)")
    found = [match for path in modules() for text in said(path) for match in spelt.findall(text)]
    assert len(found) >= 3
    for name, flags in found:
        taken = flags_of(load_command(COMMANDS[name]))
        assert set(FLAG.findall(flags)) <= taken, name


@pytest.mark.parametrize("folder", ["errors", "versioning", "storage", "load", "rows", "export"])
def test_only_the_command_line_speaks_of_flags_and_commands(folder):
    for path in (SOURCES / folder).rglob("*.py"):
        for text in said(path):
            assert not COMMAND.search(text), (path, text)
            assert not FLAG.search(text), (path, text)


def test_the_graph_that_is_missing_is_made_by_the_command_of_the_hint(cli, library):
    code, _, err = cli("branch", "list", "--uri", "new graph")
    assert (code, err.splitlines()[0].startswith("error[OG-N-001]: no graph at ")) == (1, True)
    hint = re.search("`omnigraph (.*)`", err.splitlines()[1])
    assert hint is not None
    words = shlex.split(hint[1].replace("FILE", "library.pg"))
    assert cli(*words).code == 0
    assert cli("branch", "list", "--uri", "new graph").out == "main\n"


# Names that were misspelt


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("export G --type Autor", "unknown export type 'Autor'; did you mean `Author`?"),
        ("export G --table node:Autor", "did you mean `node:Author`?"),
        ("export G --branch featrue", "branch 'featrue' not found; did you mean `feature`?"),
        ("export G --snapshot featrue", "commit 'featrue' not found; did you mean `feature`?"),
        ("snapshot G --branch featrue", "did you mean `feature`?"),
        ("branch create x --from featrue --uri G", "did you mean `feature`?"),
        ("branch delete featrue --uri G", "did you mean `feature`?"),
        ("merge featrue --uri G", "did you mean `feature`?"),
        ("merge feature --into maim --uri G", "branch 'maim' not found; did you mean `main`?"),
        ("merge feature --strategy Autor=ours --uri G", "did you mean `Author`?"),
        (
            "merge feature --granularity property --strategy Author.bron=ours --uri G",
            "unknown property 'Author.bron' in merge strategy; did you mean `Author.born`?",
        ),
        ("diff main featrue --uri G", "did you mean `feature`?"),
        ("diff main feature --type Autor --uri G", "no type 'Autor'; did you mean `Author`?"),
        ("changes G --type Autor", "did you mean `Author`?"),
        ("changes G --branch featrue", "did you mean `feature`?"),
        ("log G --branch featrue", "did you mean `feature`?"),
        ("blob stat Autor ada born --uri G", "node type 'Autor'; did you mean `Author`?"),
        ("embed G --type Autor", "did you mean `Author`?"),
        ("tag delete keepp --uri G", "tag 'keepp' not found; did you mean `keep`?"),
        ("diff keepp main --uri G", "commit 'keepp' not found; did you mean `keep`?"),
        ("pin delete keepp --uri G", "tag 'keepp' not found; did you mean `keep`?"),
        ("query G --query lib.gq --name by_slg", "'by_slg' not found; did you mean `by_slug`?"),
        (
            'query G --query lib.gq --name by_slug --params {"slugg":"ada"}',
            "unknown parameter 'slugg' (declared: slug); did you mean `slug`?",
        ),
        ("errors OG-N-00", "did you mean `OG-N-000`?"),
    ],
)
def test_a_misspelt_name_comes_with_the_right_one(cli, full, words, hint):
    assert cli("branch", "create", "feature", "--uri", full).code == 0
    if "keepp" in words:
        assert cli("tag", "create", "keep", "--uri", full).code == 0
    code, out, err = cli(*words.split())
    assert (code, out) == (1, "")
    assert hint in err


@pytest.mark.parametrize(
    "command",
    [
        "commit show ID --uri G",
        "revert ID --uri G",
        "pin create p --at ID --uri G",
        "tag create t ID --uri G",
        "branch create b --from ID --uri G",
        "branch reset main ID --uri G",
        "changes G --since ID",
        "export G --snapshot ID",
        "diff ID main --uri G",
    ],
)
def test_a_misspelt_commit_comes_with_the_right_one(cli, full, command):
    head = cli("commit", "list", full).out.splitlines()[-1].split()[0]
    slip = f"{head[:10]}{'0' if head[10] != '0' else '1'}{head[11:]}"
    code, _, err = cli(*command.replace("ID", slip).split())
    assert code == 1
    assert f"commit '{slip}' not found; did you mean `{head}`?" in err


def test_errors_with_a_hint_are_worded_by_what_is_known():
    assert str(BranchNotFound("x", ["main"])) == "branch 'x' not found"
    assert str(CommitNotFound("x")) == "commit 'x' not found"
    assert str(UnknownType("node", "Autor", ["Author"])).endswith("; did you mean `Author`?")
    assert str(NotABlob("A", "pics", ["pic"])) == "A.pics is not a Blob; did you mean `pic`?"
    assert "repair refused 1 table (node:A)" in str(RepairRefused(["node:A"]))
    assert "retry with force=True" in str(AlreadyInitialized("g", is_complete=False))


@pytest.mark.parametrize(
    ("error", "argument", "hint"),
    [
        (CommitStateUnknown("O", "C", "k 1"), "idempotency_key='k 1':", "--idempotency-key"),
        (CommitStateUnknown("O", "C", "k 1", is_load=True), "load_id='k 1' (", "--load-id 'k 1'"),
        (CommitStateUnknown("O", "C", "k 1", takes_key=False), "recover()", "repeat the command;"),
        (DanglingEdges([EdgesOfType("Knows", 1, ("e",))]), "cascade=True", "--cascade"),
    ],
)
def test_an_error_names_the_argument_and_its_hint_the_flag(error, argument, hint):
    assert argument in str(error)
    assert hint in (hint_for(error) or "")
