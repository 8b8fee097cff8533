"""Global options on both sides of the command, and the addressing rules of the planes."""

from __future__ import annotations

import json

import click
import pytest
from click.testing import CliRunner

from omnigraph.cli.command_table import (
    LEGEND,
    CommandEntry,
    Plane,
    label,
    refuse_remote,
    refuse_scopes,
)
from omnigraph.cli.context import Context, GlobalOptions, global_options
from omnigraph.cli.framework import PlaneCommand
from omnigraph.errors import UsageError


def root_with_probe(seen: list[Context]) -> click.Group:
    """A root with one data-plane command that records its context."""

    @click.command("probe", cls=PlaneCommand, plane=Plane.DATA, label="probe")
    @click.pass_obj
    def probe(context: Context) -> None:
        seen.append(context)

    return click.Group("omnigraph", [probe], params=global_options(hidden=False))


@pytest.mark.parametrize(
    "args",
    [
        ["--as", "ada", "--server", "prod", "--graph", "g", "probe"],
        ["probe", "--as", "ada", "--server", "prod", "--graph", "g"],
        ["--server", "prod", "probe", "--graph", "g", "--as", "ada"],
        ["--as", "bob", "--server", "dev", "probe", "--server=prod", "--as=ada", "--graph=g"],
    ],
)
def test_global_options_mean_the_same_before_and_after_the_command(args):
    seen: list[Context] = []
    result = CliRunner().invoke(root_with_probe(seen), args)
    assert result.exit_code == 0, result.output
    assert [context.options for context in seen] == [
        GlobalOptions(actor="ada", server="prod", graph="g")
    ]


@pytest.mark.parametrize("args", [["--graph", "g", "snapshot"], ["snapshot", "--graph", "g"]])
def test_a_graph_without_a_server_is_a_usage_error(cli, library, args):
    code, out, err = cli(*args)
    assert (code, out) == (2, "")
    assert "requires --server" in err


@pytest.mark.parametrize("before", [True, False])
def test_a_server_is_refused_by_a_storage_command(cli, library, before):
    lint = ["lint", "--query", "lib.gq", "--schema", "library.pg"]
    server = ["--server", "prod", "--graph", "g"]
    code, out, err = cli(*(server + lint if before else lint + server))
    assert (code, out) == (1, "")
    assert err == (
        "error[OG-I-005]: `lint` is a storage-plane command; --server/--graph address the data plane and do not "
        "apply. Use --target <name>, a storage URI, or --cluster <dir> --cluster-graph <id>.\n"
    )


def test_a_server_is_refused_by_a_session_command(cli):
    code, out, err = cli("version", "--server", "prod")
    assert (code, out) == (1, "")
    assert err.startswith("error[OG-I-005]: `version` is a session-plane command; --server")
    assert "addresses no graph" in err


def test_a_server_is_refused_by_a_control_command_with_its_own_hint():
    with pytest.raises(UsageError, match=r"control-plane command; .* --config <dir>"):
        refuse_scopes("cluster", Plane.CONTROL, {"server": "prod"})


@pytest.mark.parametrize("uri", ["http://h", "https://h:8080/graphs/g"])
def test_a_remote_address_is_refused_where_storage_is_needed(uri):
    with pytest.raises(UsageError) as caught:
        refuse_remote("optimize", uri)
    assert "`optimize` is a storage-plane command and needs direct storage access" in str(
        caught.value
    )
    assert "remote server" in str(caught.value)


@pytest.mark.parametrize("uri", ["graph.omni", "file:///g", "s3://bucket/g", "httpd/graph"])
def test_a_storage_address_is_accepted(uri):
    refuse_remote("optimize", uri)


def test_a_family_on_one_plane_is_named_by_its_first_word():
    assert label("branch create") == "branch"
    assert label("lint") == "lint"


def test_members_of_a_family_on_several_planes_are_named_in_full():
    entries = [
        CommandEntry("schema plan", "schema", Plane.STORAGE, "Plan."),
        CommandEntry("schema show", "schema", Plane.DATA, "Show."),
    ]
    table = {entry.name: entry for entry in entries}
    assert [label(name, table) for name in table] == ["schema plan", "schema show"]


@pytest.mark.parametrize(
    "args",
    [
        ["--as", "ada", "branch", "create", "draft"],
        ["branch", "--as", "ada", "create", "draft"],
        ["branch", "create", "draft", "--as", "ada"],
    ],
)
def test_global_options_stand_anywhere_around_the_words_of_a_command(cli, empty, args):
    code, out, err = cli(*args, "--uri", empty, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["actor_id"] == "ada"


def test_every_plane_is_explained():
    assert set(LEGEND) == set(Plane)
