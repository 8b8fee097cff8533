"""Moves the settings of a project file `omnigraph.yaml` to the files that replace it.

The plan is made first and is a value; writing it adds what the operator config does not have yet and
proposes a `cluster.yaml`. Nothing that exists is overwritten. Tests: tests/unit/config/test_migration.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from omnigraph.config.legacy import LegacyConfig, QueryFileAlias, StoredQueryFile
from omnigraph.config.operator import is_graph_id, is_server_name, parse_operator_config
from omnigraph.config.reading import exclusive, read_config_text
from omnigraph.config.selection import is_remote
from omnigraph.errors import OperatorConfigError
from omnigraph.replace_file import replacing

_TODO: Final = "TODO"

_DROPPED: Final = {
    "query.roots": "pass the path of a query file, or store the query in the cluster",
    "server.bind": "pass --bind to omnigraph-server",
    "server.graph": "a server serves every graph of its cluster",
    "cli.graph": "set defaults.store or defaults.server in the operator config, or a profile",
    "cli.branch": "pass --branch",
    "auth.env_file": "store tokens with `omnigraph login`, set other variables in the environment",
}


@dataclass(frozen=True, slots=True)
class DroppedKey:
    """A key without a new home."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class Migration:
    """What becomes of a project file."""

    source: Path
    cluster_yaml: str | None
    operator: Mapping[tuple[str, ...], object]
    """Values of the operator config by their keys, from the outermost."""
    dropped: tuple[DroppedKey, ...]
    manual_steps: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "source": str(self.source),
            "cluster_yaml": self.cluster_yaml,
            "operator_merge": {
                ".".join(keys): yaml_text(value).rstrip("\n")
                for keys, value in self.operator.items()
            },
            "dropped": [{"key": entry.key, "reason": entry.reason} for entry in self.dropped],
            "manual_steps": list(self.manual_steps),
        }


def plan_migration(config: LegacyConfig) -> Migration:
    """What becomes of each key of a file that exists."""
    assert config.path is not None
    operator: dict[tuple[str, ...], object] = {}
    steps: list[str] = []
    dropped = [DroppedKey(key, why) for key, why in _DROPPED.items() if key in config.present]
    for section, key, value in (
        ("operator", "actor", config.actor),
        ("defaults", "output", config.display.output),
        ("defaults", "table_max_column_width", config.display.max_column_width),
        ("defaults", "table_cell_layout", config.display.cell_layout),
    ):
        if value is not None:
            operator[section, key] = value
    for name, graph in config.graphs.items():
        if not is_remote(graph.uri):
            continue
        if not is_server_name(name):
            dropped.append(DroppedKey(f"graphs.{name}", "the name cannot be that of a server"))
            continue
        operator["servers", name, "url"] = graph.uri
        if graph.bearer_token_env is not None:
            steps.append(f"run `omnigraph login {name}` with the token of {graph.bearer_token_env}")
    for alias in config.aliases.values():
        if alias.is_mutation:
            reason = "aliases of the operator config run reads only; use `omnigraph mutate --query`"
            dropped.append(DroppedKey(f"aliases.{alias.name}", reason))
            continue
        operator["aliases", alias.name] = moved = _alias(alias, config)
        missing = [key for key in ("server", "query") if moved[key] == _TODO]
        if missing:
            steps.append(f"replace {_TODO} in aliases.{alias.name}: {' and '.join(missing)}")
        steps.append(f"store the query of {alias.query} on the server for aliases.{alias.name}")
    cluster = _cluster(config)
    if cluster is not None:
        steps.extend(_cluster_steps(config))
    text = None if cluster is None else yaml_text(cluster)
    return Migration(config.path, text, operator, tuple(dropped), tuple(steps))


def write_migration(plan: Migration, operator_path: Path) -> list[Path]:
    """Write what a plan proposes; the files that were written. Raises `OperatorConfigError` or `OSError`."""
    written = []
    if plan.operator and _merge(plan.operator, operator_path):
        written.append(operator_path)
    if plan.cluster_yaml is not None:
        path = plan.source.with_name("cluster.yaml")
        if path.exists():
            path = path.with_name("cluster.yaml.proposed")
        with replacing(str(path)) as file:
            file.write(plan.cluster_yaml)
        written.append(path)
    return written


def yaml_text(value: object) -> str:
    """A value as people write it in YAML."""
    import yaml

    text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, default_flow_style=False)
    return text.removesuffix("...\n")


def _merge(values: Mapping[tuple[str, ...], object], path: Path) -> bool:
    """Add the values whose keys the file does not have; False if there are none."""
    from omnigraph.documents import parse_located

    with exclusive(path.parent, OperatorConfigError):
        text = read_config_text(path, OperatorConfigError)
        if text is not None:
            parse_operator_config(text, path)
        document = parse_located(text or "").value
        merged: dict[str, Any] = document if isinstance(document, dict) else {}
        added = [_add(merged, keys, value) for keys, value in values.items()]
        if not any(added):
            return False
        if text is not None:
            with replacing(str(path.with_name(f"{path.name}.bak"))) as file:
                file.write(text)
        new = yaml_text(merged)
        parse_operator_config(new, path)
        with replacing(str(path)) as file:
            file.write(new)
    return True


def _add(document: dict[str, Any], keys: tuple[str, ...], value: object) -> bool:
    *above, last = keys
    for key in above:
        if document.get(key) is None:
            document[key] = {}
        document = document[key]
    if document.get(last) is not None:
        return False
    document[last] = value
    return True


def _alias(alias: QueryFileAlias, config: LegacyConfig) -> dict[str, object]:
    graph = config.graphs.get(alias.graph or "")
    is_served = graph is not None and is_remote(graph.uri)
    value: dict[str, object] = {"server": alias.graph if is_served else _TODO}
    if alias.graph is not None and not is_served and is_graph_id(alias.graph):
        value["graph"] = alias.graph
    value["query"] = alias.query_name or _TODO
    if alias.args:
        value["args"] = list(alias.args)
    if alias.format is not None:
        value["format"] = alias.format
    return value


def _cluster(config: LegacyConfig) -> dict[str, object] | None:
    """The document of a cluster with the graphs, queries and policies of the file; None without any."""
    local = {name: graph for name, graph in config.graphs.items() if not is_remote(graph.uri)}
    policies: dict[str, object] = {}
    if config.server_policy_file is not None:
        policies["server"] = _policy(config.server_policy_file, config, "cluster")
    if config.policy_file is not None:
        policies["default"] = _policy(config.policy_file, config, _TODO)
    graphs: dict[str, object] = {}
    for name, graph in local.items():
        graphs[name] = {"schema": _TODO} | _queries(graph.queries, config)
        if graph.policy_file is not None:
            policies[f"{name}-policy"] = _policy(graph.policy_file, config, f"graph.{name}")
    if config.queries:
        graphs[_TODO] = {"schema": _TODO} | _queries(config.queries, config)
    if not graphs and not policies and config.project_name is None:
        return None
    document: dict[str, object] = {"version": 1}
    if config.project_name is not None:
        document["metadata"] = {"name": config.project_name}
    if graphs:
        document["graphs"] = graphs
    if policies:
        document["policies"] = policies
    return document


def _queries(queries: Mapping[str, StoredQueryFile], config: LegacyConfig) -> dict[str, object]:
    if not queries:
        return {}
    files = {name: {"file": _relative(query.file, config)} for name, query in queries.items()}
    return {"queries": files}


def _policy(file: Path, config: LegacyConfig, scope: str) -> dict[str, object]:
    return {"file": _relative(file, config), "applies_to": [scope]}


def _relative(path: Path, config: LegacyConfig) -> str:
    return str(path.relative_to(config.folder) if path.is_relative_to(config.folder) else path)


def _cluster_steps(config: LegacyConfig) -> Iterator[str]:
    local = [name for name, graph in config.graphs.items() if not is_remote(graph.uri)]
    if local or config.queries:
        yield f"replace {_TODO} in cluster.yaml by the schema file of each graph"
    for name in local:
        yield (
            f"graph {name} stays at {config.graphs[name].uri}; a cluster keeps its graphs under its "
            "storage root, so export it and load it into the new graph"
        )
    if config.policy_file is not None or config.queries:
        yield (
            f"name the graph in cluster.yaml that the top-level policy and queries belong to, instead of {_TODO}"
        )
    hidden = [
        name
        for queries in (config.queries, *(graph.queries for graph in config.graphs.values()))
        for name, query in queries.items()
        if not query.expose or query.tool_name is not None
    ]
    if hidden:
        yield f"a cluster exposes every stored query under its own name; check {', '.join(hidden)}"
