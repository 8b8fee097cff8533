"""The operator config: every key, unknown keys, values that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.config.operator import (
    Binding,
    Display,
    OperatorConfig,
    StoredQueryAlias,
    operator_dir,
    parse_operator_config,
    read_operator_config,
)
from omnigraph.errors import OperatorConfigError
from omnigraph.settings import Settings

FILE = Path("/home/ada/.omnigraph/config.yaml")

EVERYTHING = """\
operator:
  actor: ada
defaults:
  output: csv
  table_max_column_width: 20
  table_cell_layout: wrap
  engine: inline
  server: dev
  default_graph: team
servers:
  dev:
    url: http://localhost:8080/
  prod-eu:
    url: https://graphs.example.org/base
clusters:
  home:
    root: s3://bucket/cluster
profiles:
  work: {server: dev, default_graph: team}
  big: {cluster: home, default_graph: g1}
  local: {store: ../graphs/team.omni}
aliases:
  who:
    server: dev
    graph: team
    query: by_slug
    args: [slug, limit]
    params: {limit: 10}
    format: kv
spark:
  master: local[2]
  conf:
    spark.speculation: true
"""


def parsed(text: str) -> OperatorConfig:
    return parse_operator_config(text, FILE)


def refusal(text: str) -> str:
    with pytest.raises(OperatorConfigError) as caught:
        parsed(text)
    return str(caught.value)


def test_every_key_is_read():
    config = parsed(EVERYTHING)
    assert config == OperatorConfig(
        FILE,
        actor="ada",
        display=Display("csv", 20, "wrap"),
        engine="inline",
        defaults=Binding(server="dev", default_graph="team"),
        servers={"dev": "http://localhost:8080", "prod-eu": "https://graphs.example.org/base"},
        clusters={"home": "s3://bucket/cluster"},
        profiles={
            "work": Binding(server="dev", default_graph="team"),
            "big": Binding(cluster="home", default_graph="g1"),
            "local": Binding(store="/home/ada/.omnigraph/../graphs/team.omni"),
        },
        aliases={
            "who": StoredQueryAlias(
                "who", "dev", "by_slug", "team", ("slug", "limit"), {"limit": 10}, "kv"
            )
        },
        spark_master="local[2]",
        spark_conf={"spark.speculation": "true"},
    )


def test_what_was_read_cannot_be_changed():
    config = parsed(EVERYTHING)
    for mapping in (config.servers, config.profiles, config.aliases["who"].params):
        with pytest.raises(TypeError):
            mapping["new"] = None  # type: ignore[index]


def test_no_file_is_an_empty_config(tmp_path):
    config = read_operator_config(Settings(home=str(tmp_path)))
    assert config == OperatorConfig(tmp_path / "config.yaml")


def test_the_directory_may_begin_with_a_tilde(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    assert operator_dir(Settings()) == Path("/home/ada/.omnigraph")
    assert operator_dir(Settings(home="~/conf")) == Path("/home/ada/conf")
    assert operator_dir(Settings(home="/etc/omnigraph")) == Path("/etc/omnigraph")


def test_the_home_of_an_unknown_user_is_a_directory_that_does_not_exist():
    home = Settings(home="~no-such-user/omnigraph")
    assert read_operator_config(home).path == Path("~no-such-user/omnigraph/config.yaml")


def test_every_unknown_key_is_one_warning_with_its_line_and_the_rest_is_read():
    config = parsed(
        "operator: {actor: ada, name: Ada}\n"
        "colour: blue\n"
        "default: {}\n"
        "defaults: {ouput: csv}\n"
        "servers: {dev: {url: http://h, token: abc}}\n"
        "profiles: {p: {store: s, graph: g}}\n"
        "clusters: {c: {root: r, size: 3}}\n"
        "aliases: {a: {server: dev, query: q, branch: b}}\n"
        "spark: {memory: 4g}\n"
    )
    assert config.actor == "ada"
    assert config.servers == {"dev": "http://h"}
    assert sorted(config.warnings) == [
        f"{FILE}:1: unknown key operator.name; ignored",
        f"{FILE}:2: unknown key colour; ignored",
        f"{FILE}:3: unknown key default; ignored; did you mean `defaults`?",
        f"{FILE}:4: unknown key defaults.ouput; ignored; did you mean `output`?",
        f"{FILE}:5: unknown key servers.dev.token; ignored",
        f"{FILE}:6: unknown key profiles.p.graph; ignored",
        f"{FILE}:7: unknown key clusters.c.size; ignored",
        f"{FILE}:8: unknown key aliases.a.branch; ignored",
        f"{FILE}:9: unknown key spark.memory; ignored",
    ]
    assert not any("abc" in warning for warning in config.warnings)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("operator: {actor: 7}", ":1:12: operator.actor must be text; put it in quotes"),
        ("operator: {actor: ' '}", "operator.actor must not be blank"),
        ("operator: {actor: [a]}", "operator.actor must be text"),
        ("operator: ada", ":1:1: operator must have keys and values"),
        (
            "defaults:\n  output: xml",
            ":2:3: defaults.output must be one of table, kv, csv, jsonl, json",
        ),
        (
            "defaults: {table_max_column_width: 0}",
            "table_max_column_width must be a whole number above 0",
        ),
        ("defaults: {table_max_column_width: true}", "must be a whole number above 0"),
        ("defaults: {table_max_column_width: 1.5}", "must be a whole number above 0"),
        (
            "defaults: {table_cell_layout: cut}",
            "defaults.table_cell_layout must be one of truncate, wrap",
        ),
        (
            "defaults: {server: a, store: b}",
            ":1:23: defaults.store and defaults.server are exclusive",
        ),
        ("servers: {dev: {}}", "servers.dev has no url"),
        ("servers: {dev: }", "servers.dev has no url"),
        ("servers: {dev: http://h}", "servers.dev must have keys and values"),
        ("servers: [dev]", "servers must have keys and values"),
        ("servers: {'a b': {url: http://h}}", "servers.a b is not a valid name"),
        ("servers: {'../x': {url: http://h}}", "servers.../x is not a valid name"),
        ('servers: {"a]\\n[b": {url: http://h}}', "is not a valid name"),
        ("clusters: {c: {}}", "clusters.c has no root"),
        ("profiles: {p: {}}", "profiles.p must have a server, a cluster or a store"),
        (
            "profiles: {p: {default_graph: g}}",
            "profiles.p must have a server, a cluster or a store",
        ),
        (
            "profiles:\n  p:\n    server: a\n    cluster: b",
            ":4:5: profiles.p.cluster and profiles.p.server are exclusive; keep one of them",
        ),
        (
            "profiles: {p: {server: a, default_graph: ../x}}",
            "profiles.p.default_graph must have 1 to 64 letters",
        ),
        ("aliases: {a: {query: q}}", "aliases.a has no server"),
        ("aliases: {a: {server: s}}", "aliases.a has no query"),
        ("aliases: {a: {server: s, query: q, graph: a/b}}", "aliases.a.graph must have 1 to 64"),
        ("aliases: {a: {server: s, query: q, args: x}}", "aliases.a.args must be a list of texts"),
        ("aliases: {a: {server: s, query: q, args: [1]}}", "args must be a list of texts"),
        ("aliases: {a: {server: s, query: q, args: [x, x]}}", "must name each parameter once"),
        ("aliases: {a: {server: s, query: q, params: [x]}}", "params must have keys and values"),
        ("aliases: {a: {server: s, query: q, format: xml}}", "aliases.a.format must be one of"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused(text, problem):
    assert problem in refusal(text)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("localhost:8080", "must begin with http:// or https://"),
        ("ftp://h", "must begin with http:// or https://"),
        ("http://", "is not a valid URL"),
        ("http:///path", "is not a valid URL"),
        ("http://h:99999", "is not a valid URL"),
        ("http://h:eighty", "is not a valid URL"),
        ("http://[::1", "is not a valid URL"),
        ("http://h/a b", "is not a valid URL"),
        ("http://h\\@evil", "is not a valid URL"),
        ("http://ada:hunter2@h", "must not contain a user or password"),
        ("http://hunter2@h", "must not contain a user or password"),
        ("http://h?token=hunter2", "must not contain a query or fragment"),
        ("http://h#hunter2", "must not contain a query or fragment"),
        ("http://h?", "must not contain a query or fragment"),
        ("http://h/a/../b", "must not contain the path segments"),
        ("http://h/a/%2e%2E/b", "must not contain the path segments"),
    ],
)
def test_a_url_that_no_server_has_is_refused_without_showing_it(url, problem):
    message = refusal(f"servers: {{dev: {{url: '{url}'}}}}")
    assert f"servers.dev.url {problem}" in message
    assert "hunter2" not in message


def test_a_default_graph_without_a_server_is_ignored_with_a_warning():
    config = parsed("defaults: {store: /g, default_graph: team}")
    assert config.defaults == Binding(store="/g")
    (warning,) = config.warnings
    assert "defaults.default_graph names a graph of a server or cluster" in warning


def test_stores_and_roots_begin_at_the_file_or_the_home_directory(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    config = parsed(
        "defaults: {store: g.omni}\n"
        "clusters: {a: {root: ~/cluster}, b: {root: s3://b/c}}\n"
        "profiles: {p: {store: ~/g.omni}, q: {store: 's3://b/g'}, r: {store: /data/g}}\n"
    )
    assert config.defaults.store == "/home/ada/.omnigraph/g.omni"
    assert config.clusters == {"a": "/home/ada/cluster", "b": "s3://b/c"}
    assert [profile.store for profile in config.profiles.values()] == [
        "/home/ada/g.omni", "s3://b/g", "/data/g"
    ]  # fmt: skip


def test_words_that_yaml_would_turn_into_values_stay_text():
    config = parsed(
        "servers: {on: {url: http://h}, 7: {url: http://h7}}\n"
        "profiles: {no: {store: /n}}\n"
        "operator: {actor: yes}\n"
    )
    assert set(config.servers) == {"on", "7"}
    assert (set(config.profiles), config.actor) == ({"no"}, "yes")
