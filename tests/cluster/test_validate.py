"""What a declaration may say, and how each mistake is reported."""

from __future__ import annotations

import hashlib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.cli.main import main
from omnigraph.cluster.config import parse_config
from omnigraph.cluster.documents import Diagnostics
from tests.cluster.clusters import ONE_GRAPH, POLICY, QUERY, SCHEMA, SERVER_POLICY, Cluster


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.acceptance("U-111")
def test_a_good_directory_is_valid_and_has_digests(cluster):
    document = cluster.ok("validate")
    assert [(one["address"], one["kind"], one.get("path")) for one in document["resources"]] == [
        ("graph.team", "graph", None),
        ("policy.staff", "policy", "staff.yaml"),
        ("query.team.people", "query", "queries/people.gq"),
        ("schema.team", "schema", "team.pg"),
    ]
    composite = f"graph\0team\0schema\0{sha(SCHEMA)}\0query\0people\0{sha(QUERY)}\0"
    assert document["resource_digests"] == {
        "graph.team": sha(composite),
        "policy.staff": sha(POLICY),
        "query.team.people": sha(QUERY),
        "schema.team": sha(SCHEMA),
    }
    assert [(one["from"], one["to"]) for one in document["dependencies"]] == [
        ("policy.staff", "graph.team"),
        ("query.team.people", "graph.team"),
        ("query.team.people", "schema.team"),
        ("schema.team", "graph.team"),
    ]
    assert not (cluster.folder / "__cluster").exists()


def test_the_config_digest_leaves_comments_and_layout_out(cluster):
    digest = cluster.ok("plan")["desired_revision"]["config_digest"]
    config = (
        '{"version":1,"metadata":{"name":null},"storage":null,"state":{"backend":null,"lock":true},'
        '"graphs":{"team":{"schema":"team.pg","queries":"queries/"}},'
        '"policies":{"staff":{"file":"staff.yaml","applies_to":["team"]}}}'
    )
    resources = cluster.ok("validate")["resource_digests"]
    listed = "".join(f"{address}\0{resources[address]}\0" for address in sorted(resources))
    assert digest == sha(f"cluster-config\0{config}\0{listed}")
    cluster.declare("# a comment\n" + ONE_GRAPH.replace("[team]", "\n      - team"))
    assert cluster.ok("plan")["desired_revision"]["config_digest"] == digest


@pytest.mark.parametrize(
    ("old", "new", "code", "at"),
    [
        ("version: 1", "version: 1\npipelines: {}", "future_phase_field", (2, 1)),
        ("version: 1", "version: 1\nversion: 1", "duplicate_yaml_key", (2, 1)),
        ("version: 1", "version: 2", "unsupported_cluster_config_version", (1, 1)),
        ("version: 1", "version: 1\nmetadata: {name: ''}", "empty_metadata_name", (2, 12)),
        ("version: 1", "version: 1\nstate: {backend: s3}", "unsupported_state_backend", (2, 9)),
        ("version: 1", "version: 1\nstorage: s3://", "invalid_storage_root", (2, 1)),
        ("version: 1", "version: 1\nstorage: ftp://x", "invalid_storage_root", (2, 1)),
        ("schema: team.pg", "scheme: team.pg", "invalid_cluster_yaml", (4, 5)),
        ("schema: team.pg", "schema: 3", "invalid_cluster_yaml", (4, 5)),
        ("  team:", "  2team:", "invalid_resource_id", (3, 3)),
        ("schema: team.pg", "schema: gone.pg", "schema_file_missing", (4, 5)),
        ("schema: team.pg", "schema: ../team.pg", "config_path_escape", (4, 5)),
        ("queries: queries/", "queries: gone.gq", "query_file_missing", (5, 5)),
        (
            "queries: queries/",
            "queries: {other: {file: queries/people.gq}}",
            "query_key_mismatch",
            (5, 15),
        ),
        ("file: staff.yaml", "file: gone.yaml", "policy_file_missing", (8, 5)),
        ("[team]", "[]", "policy_missing_applies_to", (9, 5)),
        ("[team]", "[graph.other]", "dangling_graph_reference", (9, 18)),
        ("[team]", "[schema.team]", "wrong_kind_reference", (9, 18)),
        (
            "version: 1",
            "version: 1\nproviders: {embedding: {p: {kind: openai, api_key: sk-123}}}",
            "inline_secret",
            (2, 43),
        ),
    ],
)
@pytest.mark.acceptance("U-112")
def test_a_mistake_is_reported_with_its_code_and_position(cluster, old, new, code, at):
    cluster.declare(ONE_GRAPH.replace(old, new, 1))
    ran = cluster.run("validate")
    assert ran.code == 1
    assert code in ran.codes
    found = ran.document["diagnostics"][ran.codes.index(code)]
    assert found["severity"] == "error"
    assert (found["line"], found["column"]) == at
    assert f"(cluster.yaml:{at[0]}:{at[1]})" in found["message"]
    assert "sk-123" not in found["message"]


def test_every_mistake_is_reported_at_once(cluster):
    cluster.declare(ONE_GRAPH.replace("queries:", "quries:").replace("file:", "fil:"))
    assert cluster.run("validate").codes == ["invalid_cluster_yaml"] * 3
    cluster.declare(ONE_GRAPH.replace("team.pg", "gone.pg").replace("staff.yaml", "gone.yaml"))
    codes = ["schema_file_missing", "query_typecheck_skipped", "policy_file_missing"]
    assert cluster.run("validate").codes == codes


@pytest.mark.parametrize(
    ("file", "text", "code"),
    [
        ("team.pg", "node Person {", "schema_parse_error"),
        ("team.pg", "edge E: Nobody -> Nobody\n", "schema_catalog_error"),
        ("queries/people.gq", "query people(", "query_parse_error"),
        ("queries/people.gq", QUERY.replace("$p.name", "$p.nme"), "query_typecheck_error"),
        ("queries/more.gq", QUERY, "duplicate_query_name"),
        ("staff.yaml", POLICY.replace("[read, ", "[graph_list, "), "policy_invalid"),
        ("staff.yaml", POLICY.replace("[read, ", "[config_manage, "), "policy_invalid"),
        ("staff.yaml", POLICY.replace("rules:", "ruels:"), "policy_invalid"),
    ],
)
def test_a_file_that_is_not_valid_is_named_with_its_problem(cluster, file, text, code):
    cluster.write(file, text)
    ran = cluster.run("validate")
    assert ran.code == 1
    assert set(ran.codes) - {"query_typecheck_skipped"} == {code}


def test_a_policy_has_one_kind_and_a_scope_one_policy(cluster):
    cluster.write("server.yaml", f"kind: server\n{SERVER_POLICY}")
    cluster.declare(ONE_GRAPH + "  server:\n    file: server.yaml\n    applies_to: [cluster]\n")
    assert cluster.ok("validate")["diagnostics"] == []
    cluster.declare(ONE_GRAPH.replace("[team]", "[team, cluster]"))
    assert cluster.run("validate").codes == ["policy_invalid"]
    cluster.declare(ONE_GRAPH + "  more:\n    file: staff.yaml\n    applies_to: [graph.team]\n")
    assert cluster.run("validate").codes == ["duplicate_policy_binding"]


@pytest.mark.parametrize(
    "written",
    [
        "queries/people.gq",
        "[queries/people.gq]",
        "{people: {file: queries/people.gq}}",
        "[queries]",
    ],
)
def test_queries_are_a_directory_a_file_a_list_or_a_map(cluster, written):
    cluster.declare(ONE_GRAPH.replace("queries/", written))
    assert "query.team.people" in cluster.ok("validate")["resource_digests"]


def test_files_are_not_read_through_links(cluster, tmp_path):
    (tmp_path / "outside.pg").write_text(SCHEMA)
    (cluster.folder / "team.pg").unlink()
    (cluster.folder / "team.pg").symlink_to(tmp_path / "outside.pg")
    assert "config_path_symlink" in cluster.run("validate").codes


def test_a_directory_without_queries_is_only_a_warning(cluster):
    (cluster.folder / "empty").mkdir()
    cluster.declare(ONE_GRAPH.replace("queries/", "empty"))
    assert [one["code"] for one in cluster.ok("validate")["diagnostics"]] == ["query_dir_empty"]


@pytest.mark.parametrize("command", ["validate", "plan", "apply", "status", "refresh", "import"])
def test_a_directory_that_is_missing_is_an_error_of_every_command(cluster, command, tmp_path):
    missing = Cluster(tmp_path / "cluster")
    missing.folder = tmp_path / "gone"
    assert missing.run(command).codes == ["config_dir_not_found"]
    (cluster.folder / "cluster.yaml").unlink()
    assert cluster.run(command).codes == ["cluster_config_read_error"]


def test_people_read_counts_and_diagnostics(cluster, capsys):
    assert main(["cluster", "validate", "--config", str(cluster.folder)]) == 0
    expected = "cluster config valid: 4 resource(s), 4 dependency edge(s)\n"
    assert capsys.readouterr().out == expected
    cluster.declare(ONE_GRAPH.replace("team.pg", "gone.pg"))
    assert main(["cluster", "validate", "--config", str(cluster.folder)]) == 1
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "cluster config invalid"
    assert second.startswith("ERROR  schema_file_missing graphs.team.schema: ")
    assert third.startswith("WARN  query_typecheck_skipped graphs.team.queries: ")


@pytest.mark.parametrize("name", ["a" * 5000, "team.pg/inside", "'nul\\0'", "queries"])
def test_a_path_that_cannot_be_a_file_is_reported_as_missing(cluster, name):
    cluster.declare(ONE_GRAPH.replace("team.pg", name))
    assert "schema_file_missing" in cluster.run("validate").codes


_TEXTS = st.sampled_from(["team.pg", "cluster", "../x", "s3://", "${KEY}", "\0", "", "graph.team"])
_KEYS = st.sampled_from(
    [
        "version",
        "storage",
        "state",
        "graphs",
        "team",
        "schema",
        "queries",
        "file",
        "policies",
        "applies_to",
        "providers",
        "embedding",
        "kind",
        "api_key",
        "external_blobs",
        "allow",
        "1",
    ]
)
_DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=25,
)


@given(_DOCUMENTS)
def test_any_document_is_valid_or_has_diagnostics(document):
    found = Diagnostics()
    config = parse_config(yaml.safe_dump(document), found)
    assert (config is None) is not found.ok
    assert all(one.line is None or one.line > 0 for one in found)
