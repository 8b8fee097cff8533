"""Which graph or alias a command line selects, and what wins over what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from omnigraph.config.legacy import LegacyConfig, parse_legacy_config
from omnigraph.config.operator import OperatorConfig, parse_operator_config
from omnigraph.config.selection import (
    AddressOptions,
    ClusterTarget,
    EmbeddedTarget,
    RemoteTarget,
    Target,
    bind_arguments,
    select_alias,
    select_target,
    stored_query_call,
)
from omnigraph.errors import UsageError

OPERATOR = parse_operator_config(
    """\
defaults: {server: dev, default_graph: team}
servers:
  dev: {url: http://dev:8080/}
  prod: {url: https://prod}
clusters:
  home: {root: s3://b/cluster}
profiles:
  work: {server: prod, default_graph: main-graph}
  single: {server: prod}
  local: {store: /data/g}
  big: {cluster: home, default_graph: g1}
  folder: {cluster: ./cluster}
  lost: {server: nowhere}
  wrong: {store: 'http://h'}
aliases:
  who: {server: dev, graph: team, query: by_slug, args: [slug, limit], params: {limit: 5, x: 1}}
  lost: {server: nowhere, query: q}
  both: {server: dev, query: q}
""",
    Path("/home/.omnigraph/config.yaml"),
)
LEGACY = parse_legacy_config(
    """\
graphs:
  g: {uri: g.omni}
  served: {uri: 'http://legacy/graphs/x', bearer_token_env: T}
cli: {graph: g}
aliases:
  both: {command: read, query: lib.gq}
  add: {command: mutate, query: lib.gq, args: [slug]}
""",
    Path("/team/omnigraph.yaml"),
)
NO_LEGACY = LegacyConfig()
NO_OPERATOR = OperatorConfig(Path("/home/.omnigraph/config.yaml"))


def selected(
    operator: OperatorConfig = OPERATOR,
    legacy: LegacyConfig = NO_LEGACY,
    alias_graph: str | None = None,
    env_profile: str | None = None,
    **options: Any,
) -> Target | None:
    given = AddressOptions(**options)
    return select_target(given, operator, legacy, alias_graph=alias_graph, env_profile=env_profile)


def address(target: Target | None) -> tuple[str | None, str] | None:
    match target:
        case None:
            return None
        case EmbeddedTarget():
            return target.uri, target.origin
        case RemoteTarget():
            return target.url, target.origin
        case ClusterTarget():
            return target.root, target.origin


def test_the_nearest_wins():
    everything: dict[str, Any] = {
        "uri": "a", "store": "b", "target": "g", "server": "dev", "profile": "local",
    }  # fmt: skip
    expected = [
        ("a", "URI"),
        ("b", "--store"),
        ("/team/g.omni", "--target g"),
        ("http://dev:8080", "--server dev"),
        ("/data/g", "--profile local"),
    ]
    for place, answer in zip(list(everything), expected, strict=True):
        assert address(selected(legacy=LEGACY, env_profile="work", **everything)) == answer
        del everything[place]
    url = "https://prod/graphs/main-graph"
    assert address(selected(legacy=LEGACY, env_profile="work")) == (url, "OMNIGRAPH_PROFILE")
    assert address(selected(legacy=LEGACY, alias_graph="g", env_profile="work")) == (
        "/team/g.omni", "the alias"
    )  # fmt: skip
    of_project = "/team/g.omni", "cli.graph in /team/omnigraph.yaml"
    assert address(selected(legacy=LEGACY)) == of_project
    of_defaults = "http://dev:8080/graphs/team", f"defaults in {OPERATOR.path}"
    assert address(selected()) == of_defaults
    assert selected(NO_OPERATOR) is None


def test_a_server_is_addressed_by_name_or_url_with_or_without_a_graph():
    assert selected(server="dev", graph="g-1") == RemoteTarget(
        "http://dev:8080", "--server dev", "g-1", "dev"
    )
    assert selected(server="http://h/base/") == RemoteTarget(
        "http://h/base", "--server http://h/base/"
    )
    target = selected(server="http://h", graph="g")
    assert isinstance(target, RemoteTarget)
    assert target.url == "http://h/graphs/g"


def test_a_graph_option_wins_over_that_of_a_profile_and_of_the_defaults():
    assert address(selected(profile="work", graph="other")) == (
        "https://prod/graphs/other", "--profile work"
    )  # fmt: skip
    assert address(selected(graph="other")) == (
        "http://dev:8080/graphs/other", f"defaults in {OPERATOR.path}"
    )  # fmt: skip
    assert address(selected(profile="single")) == ("https://prod", "--profile single")


def test_a_graph_of_a_server_skips_the_local_graph_of_a_project_file():
    assert address(selected(legacy=LEGACY, graph="other")) == (
        "http://dev:8080/graphs/other", f"defaults in {OPERATOR.path}"
    )  # fmt: skip


def test_a_cluster_is_a_root_and_a_graph():
    assert selected(profile="big") == ClusterTarget("s3://b/cluster", "--profile big", "g1", "home")
    assert selected(profile="folder") == ClusterTarget("./cluster", "--profile folder")


def test_a_graph_by_name_brings_its_token_and_policy():
    assert selected(legacy=LEGACY, target="served") == RemoteTarget(
        "http://legacy/graphs/x", "--target served", token_variable="T"
    )
    policy, queries = Path("/team/p.yaml"), LEGACY.queries
    graph = replace(LEGACY.graphs["g"], policy_file=policy)
    legacy = replace(LEGACY, graphs={"g": graph})
    assert selected(legacy=legacy) == EmbeddedTarget(
        "/team/g.omni", "cli.graph in /team/omnigraph.yaml", "g", policy, queries
    )
    target = selected(legacy=legacy, uri="/team/g.omni")
    assert isinstance(target, EmbeddedTarget)
    assert target.write_policy() is None


@pytest.mark.parametrize("block", ["policy.file", "queries"])
def test_a_top_level_block_that_a_named_graph_would_ignore_stops_writes(block):
    text = "policy: {file: p}" if block == "policy.file" else "queries: {q: {file: f}}"
    legacy = parse_legacy_config(f"graphs: {{g: {{uri: x}}}}\n{text}\n", Path("/t/omnigraph.yaml"))
    target = selected(legacy=legacy, target="g")
    assert isinstance(target, EmbeddedTarget)
    with pytest.raises(UsageError, match=f"graph 'g' .*`{block}`"):
        target.write_policy()
    anonymous = selected(legacy=legacy, uri="x")
    assert isinstance(anonymous, EmbeddedTarget)
    assert anonymous.write_policy() == legacy.policy_file


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"server": "nope"}, r"unknown server 'nope' in .*config\.yaml \(defined: dev, prod\)"),
        ({"server": "prd"}, "did you mean `prod`"),
        ({"target": "nope"}, r"graph 'nope' not found in omnigraph\.yaml \(none is defined\)"),
        ({"profile": "nope"}, r"unknown profile 'nope' in .* \(defined: big, folder"),
        ({"profile": "lost"}, "unknown server 'nowhere'"),
        ({"profile": "wrong"}, "--profile wrong names storage"),
        (
            {"profile": "local", "graph": "g"},
            "--graph names a graph on a server, and --profile local",
        ),
        ({"server": "dev", "graph": "../x"}, r"invalid graph id '\.\./x'"),
        ({"server": "dev", "graph": "a/b"}, "invalid graph id"),
        ({"server": "dev", "graph": ""}, "invalid graph id"),
        ({"server": "http://h/../x"}, "must not contain the path segments"),
        ({"uri": "http://"}, "is not a valid URL"),
        ({"store": "http://h"}, "--store names storage, a path or s3:// address"),
    ],
)
def test_what_selects_no_graph_is_refused(options, problem):
    with pytest.raises(UsageError, match=problem):
        selected(**options)


@pytest.mark.parametrize("option", ["uri", "server", "store"])
def test_a_password_in_a_url_is_never_shown(option):
    for url in ("http://ada:hunter2@h/x", "http://h/?token=hunter2"):
        with pytest.raises(UsageError) as caught:
            selected(**dict[str, Any]({option: url}))
        assert "hunter2" not in str(caught.value)


# -- aliases ------------------------------------------------------------------------------------


def test_a_project_file_wins_over_the_operator_config_with_a_warning():
    alias, warning = select_alias("both", OPERATOR, LEGACY)
    assert alias == LEGACY.aliases["both"]
    assert warning is not None
    assert "hides" in warning
    assert select_alias("both", OPERATOR, NO_LEGACY) == (OPERATOR.aliases["both"], None)


def test_a_mutation_knows_only_aliases_of_the_project_file():
    assert select_alias("add", OPERATOR, LEGACY, mutating=True) == (LEGACY.aliases["add"], None)
    with pytest.raises(UsageError, match=r"unknown alias 'who' \(defined: add, both\)"):
        select_alias("who", OPERATOR, LEGACY, mutating=True)


def test_an_alias_of_the_other_verb_is_refused():
    with pytest.raises(UsageError, match="alias 'add' is for `omnigraph mutate`"):
        select_alias("add", OPERATOR, LEGACY)
    with pytest.raises(UsageError, match="alias 'both' is for `omnigraph query`"):
        select_alias("both", OPERATOR, LEGACY, mutating=True)


def test_an_unknown_alias_is_told_with_those_that_exist():
    with pytest.raises(UsageError) as caught:
        select_alias("bothh", OPERATOR, NO_LEGACY)
    assert str(caught.value).endswith("(defined: both, lost, who); did you mean `both`?")


@pytest.mark.acceptance("U-059", partly="no server answers yet")
def test_parameters_win_over_positional_arguments_and_those_over_the_alias():
    who = OPERATOR.aliases["who"]
    assert bind_arguments(who, [], {}) == {"limit": 5, "x": 1}
    assert bind_arguments(who, ["ada"], {}) == {"slug": "ada", "limit": 5, "x": 1}
    bound = bind_arguments(who, ["ada", "7"], {"slug": "bob"})
    assert bound == {"slug": "bob", "limit": 7, "x": 1}
    assert dict(who.params) == {"limit": 5, "x": 1}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7), ("-1.5", -1.5), ("true", True), ("null", None), ("[1, 2]", [1, 2]),
        ('"7"', "7"), ('{"a": 1}', {"a": 1}), ("ada", "ada"), ("007", "007"), ("", ""),
        ("NaN", "NaN"), ("-Infinity", "-Infinity"), ("{", "{"), ("True", "True"), ("1" * 5000, "1" * 5000),
    ],
)  # fmt: skip
def test_an_argument_is_json_where_it_can_be(text, value):
    bound = bind_arguments(OPERATOR.aliases["who"], [text], {})
    assert bound["slug"] == value
    assert type(bound["slug"]) is type(value)


def test_too_many_arguments_are_refused():
    with pytest.raises(
        UsageError, match=r"alias 'who' got 3 positional arguments and takes slug, limit"
    ):
        bind_arguments(OPERATOR.aliases["who"], ["a", "1", "2"], {})
    with pytest.raises(UsageError, match="and takes none"):
        bind_arguments(OPERATOR.aliases["both"], ["a"], {})


@pytest.mark.acceptance("U-059", partly="no server answers yet")
def test_a_stored_query_is_called_on_the_server_of_its_alias():
    call = stored_query_call(OPERATOR.aliases["who"], ["ada"], {}, OPERATOR)
    assert (call.target.url, call.query) == ("http://dev:8080/graphs/team", "by_slug")
    assert call.params == {"slug": "ada", "limit": 5, "x": 1}
    with pytest.raises(UsageError, match="unknown server 'nowhere'"):
        stored_query_call(OPERATOR.aliases["lost"], [], {}, OPERATOR)
