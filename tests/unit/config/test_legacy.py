"""The project file: how it is found, every key, its env file, and the notice."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.config.legacy import (
    NEW_HOMES,
    LegacyConfig,
    LegacyGraph,
    QueryFileAlias,
    StoredQueryFile,
    parse_env,
    parse_legacy_config,
    read_env_file,
    read_legacy_config,
)
from omnigraph.config.operator import Display
from omnigraph.errors import InputError, LegacyConfigError
from omnigraph.settings import Settings

FILE = Path("/srv/team/omnigraph.yaml")

EVERYTHING = """\
project: {name: team}
graphs:
  local:
    uri: graphs/team.omni
    policy: {file: policy.yaml}
    queries:
      by_slug: {file: q/by_slug.gq}
      hidden: {file: q/hidden.gq, mcp: {expose: false, tool_name: secret_tool}}
  stored: {uri: s3://bucket/g}
  remote: {uri: https://h:8080/graphs/g/, bearer_token_env: TEAM_TOKEN}
server: {graph: local, bind: 0.0.0.0:9000, policy: {file: server.yaml}}
cli:
  graph: local
  branch: draft
  output_format: kv
  table_max_column_width: 12
  table_cell_layout: wrap
  actor: ada
query: {roots: [queries, /shared]}
auth: {env_file: .env}
aliases:
  who: {command: read, query: lib.gq, name: by_slug, args: [slug], graph: stored, branch: b, format: csv}
  add: {command: change, query: lib.gq}
policy: {file: top.yaml}
queries:
  top: {file: top.gq}
"""


def parsed(text: str) -> LegacyConfig:
    return parse_legacy_config(text, FILE)


def test_every_key_is_read_and_paths_begin_at_the_file():
    folder = FILE.parent
    assert parsed(EVERYTHING) == LegacyConfig(
        FILE,
        project_name="team",
        graphs={
            "local": LegacyGraph(
                "/srv/team/graphs/team.omni",
                policy_file=folder / "policy.yaml",
                queries={
                    "by_slug": StoredQueryFile(folder / "q/by_slug.gq"),
                    "hidden": StoredQueryFile(folder / "q/hidden.gq", False, "secret_tool"),
                },
            ),
            "stored": LegacyGraph("s3://bucket/g"),
            "remote": LegacyGraph("https://h:8080/graphs/g", "TEAM_TOKEN"),
        },
        server_graph="local",
        server_bind="0.0.0.0:9000",
        server_policy_file=folder / "server.yaml",
        graph="local",
        branch="draft",
        display=Display("kv", 12, "wrap"),
        actor="ada",
        query_roots=(folder / "queries", Path("/shared")),
        env_file=folder / ".env",
        aliases={
            "who": QueryFileAlias(
                "who", "read", "lib.gq", "by_slug", ("slug",), "stored", "b", "csv"
            ),
            "add": QueryFileAlias("add", "change", "lib.gq"),
        },
        policy_file=folder / "top.yaml",
        queries={"top": StoredQueryFile(folder / "top.gq")},
        present=tuple(NEW_HOMES),
    )


def test_unknown_keys_are_ignored():
    config = parsed("colour: blue\ngraphs: {g: {uri: x, size: 3}}\ncli: {editor: vi}\n")
    assert (set(config.graphs), config.present) == ({"g"}, ("graphs",))


def test_an_empty_file_says_nothing():
    for text in ("", "colour: blue\n", "cli:\nserver: {}\n"):
        config = parsed(text)
        assert (config.path, config.present, config.notice()) == (FILE, (), None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("graphs: [", ":1:10: "),
        ("graphs: {g: {}}", ":1:10: graphs.g has no uri"),
        ("graphs: {g: x}", ":1:10: graphs.g must have keys and values"),
        ("graphs: {g: {uri: x}, g: {uri: y}}", ":1:23: key 'g' stands twice"),
        ("graphs: {g: {uri: 'http://ada:hunter2@h'}}", "graphs.g.uri must not contain a user"),
        ("graphs: {g: {uri: 'http://h/../x'}}", "must not contain the path segments"),
        ("cli: {output_format: xml}", ":1:7: cli.output_format must be one of table"),
        ("cli: {table_max_column_width: -1}", "must be a whole number above 0"),
        ("cli: {graph: 7}", "cli.graph must be text; put it in quotes"),
        ("query: {roots: here}", "query.roots must be a list of texts"),
        ("aliases: {a: {command: write, query: q}}", "aliases.a.command must be one of read"),
        ("aliases: {a: {command: read}}", "aliases.a has no query"),
        ("aliases: {a: {query: q, args: [x, x]}}", "must name each parameter once"),
        ("queries: {q: {}}", "queries.q has no file"),
        ("queries: {q: {file: f, mcp: {expose: 'no'}}}", "must be true or false"),
        ("policy: top.yaml", "policy must have keys and values"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused(text, problem):
    with pytest.raises(LegacyConfigError) as caught:
        parsed(text)
    assert str(caught.value).startswith(f"{FILE}:")
    assert problem in str(caught.value)
    assert "hunter2" not in str(caught.value)


# -- finding the file ---------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sub").mkdir()
    for name in ("omnigraph.yaml", "variable.yaml", "option.yaml"):
        (tmp_path / name).write_text(f"cli: {{actor: {name}}}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_option_wins_over_the_variable_and_that_over_the_current_directory(folder):
    by_variable = Settings(config="variable.yaml")
    assert read_legacy_config("option.yaml", by_variable).actor == "option.yaml"
    assert read_legacy_config(None, by_variable).actor == "variable.yaml"
    assert read_legacy_config(None, Settings()).actor == "omnigraph.yaml"


def test_directories_above_are_not_searched(folder, monkeypatch):
    monkeypatch.chdir(folder / "sub")
    assert read_legacy_config(None, Settings()) == LegacyConfig()


def test_a_file_that_is_named_has_to_exist(folder):
    for option, settings in (("no.yaml", Settings()), (None, Settings(config="no.yaml"))):
        with pytest.raises(LegacyConfigError, match=r"no\.yaml: no such file"):
            read_legacy_config(option, settings)


def test_a_variable_forbids_a_file_that_exists_and_nothing_else(folder, monkeypatch):
    forbidden = Settings(no_legacy_config="1")
    with pytest.raises(LegacyConfigError) as caught:
        read_legacy_config(None, forbidden)
    assert "OMNIGRAPH_NO_LEGACY_CONFIG" in str(caught.value)
    assert "config migrate" in str(caught.value)
    monkeypatch.chdir(folder / "sub")
    assert read_legacy_config(None, forbidden) == LegacyConfig()


# -- query files --------------------------------------------------------------------------------


def test_a_query_file_is_searched_beside_the_file_and_then_in_the_roots(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "both.gq").touch()
    (tmp_path / "b" / "only.gq").touch()
    (tmp_path / "top.gq").touch()
    config = LegacyConfig(tmp_path / "omnigraph.yaml", query_roots=(tmp_path / "a", tmp_path / "b"))
    assert config.find_query_file("top.gq") == tmp_path / "top.gq"
    assert config.find_query_file("both.gq") == tmp_path / "a" / "both.gq"
    assert config.find_query_file("only.gq") == tmp_path / "b" / "only.gq"
    assert config.find_query_file(str(tmp_path / "b/only.gq")) == tmp_path / "b" / "only.gq"
    with pytest.raises(InputError, match=r"query file 'no\.gq' not found \(also searched: "):
        config.find_query_file("no.gq")


def test_without_a_file_a_query_file_is_searched_in_the_current_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.gq").touch()
    assert LegacyConfig().find_query_file("q.gq") == Path("q.gq")
    with pytest.raises(InputError, match=r"^query file 'no\.gq' not found$"):
        LegacyConfig().find_query_file("no.gq")


# -- env file -----------------------------------------------------------------------------------


def test_how_variables_may_be_written():
    text = (
        "\n# a comment\n"
        "A=1\n"
        "export B=two words\n"
        "C = 'quoted # text' # comment\n"
        'D="x"\n'
        "E=\n"
        "F=a#b # comment\n"
        "G=it's\n"
        "  H=ü\r\n"
        "A=again\n"
    )
    assert parse_env(text, FILE) == {
        "A": "again", "B": "two words", "C": "quoted # text", "D": "x", "E": "", "F": "a#b",
        "G": "it's", "H": "ü",
    }  # fmt: skip


@pytest.mark.parametrize(
    "line", ["hunter2", "1A=hunter2", "A B=hunter2", "A=hunter2\0", "=hunter2"]
)
def test_a_line_that_is_no_assignment_is_refused_and_never_shown(line):
    with pytest.raises(LegacyConfigError, match=r":2: the line is not NAME=value") as caught:
        parse_env(f"A=1\n{line}\n", FILE)
    assert "hunter2" not in str(caught.value)


def test_an_env_file_that_does_not_exist_has_no_variables(tmp_path):
    config = LegacyConfig(env_file=tmp_path / ".env")
    assert read_env_file(config) == {}
    (tmp_path / ".env").write_text("A=1\n")
    assert read_env_file(config) == {"A": "1"}
    assert read_env_file(LegacyConfig()) == {}


# -- the notice ---------------------------------------------------------------------------------


def test_the_notice_lists_each_key_that_is_there_with_its_new_home():
    notice = parsed("cli: {actor: ada, branch: b}\naliases: {a: {query: q}}\n").notice()
    assert notice is not None
    assert "deprecated (RFC-008)" in notice
    assert "config migrate" in notice
    for key in ("cli.branch", "cli.actor", "aliases"):
        assert f"{key} -> {NEW_HOMES[key]}" in notice
    assert "cli.graph" not in notice
