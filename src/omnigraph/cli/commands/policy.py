"""`omnigraph policy validate`, `policy test` and `policy explain`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.context import Context, open_graph
from omnigraph.cli.exits import warn
from omnigraph.cli.framework import declare
from omnigraph.cli.options import cluster_options, json_option, project_file_option
from omnigraph.cli.output.answers import write_answer
from omnigraph.errors import GraphNotFound, PolicyError, UsageError
from omnigraph.graph.gate import Action
from omnigraph.policy.cases import CASES_FILE, Mismatch, read_cases, run_cases
from omnigraph.policy.gate import Decision, PolicyGate, open_gate

if TYPE_CHECKING:
    from omnigraph.catalog.model import Catalog


def _schema_option(command: Any) -> Any:
    """What read rules are checked against, instead of the graph of the project file."""
    return click.option(
        "--schema",
        "schema_file",
        metavar="FILE",
        help="Schema that read rules are about, instead of that of the graph.",
    )(command)


@declare("policy validate")
@_schema_option
@cluster_options
@project_file_option
@json_option
@click.pass_obj
def policy_validate(context: Context, schema_file: str | None, as_json: bool) -> None:
    """Read and compile the policy of the project file; exit 1 if it is not valid.

    The policy is that of the graph in cli.graph, else in server.graph, else policy.file at the top. With
    --cluster it is the applied policy of a graph of that cluster.
    """
    file, gate = _configured(context)
    gate.prepare()
    if gate.limits_reads:
        catalog = _schema(context, schema_file)
        if catalog is None:
            warn("the read rules were not checked against a schema; name one with --schema")
        else:
            gate.check_reads(catalog)
    actors = len(gate.policy.actors)
    document = {"ok": True, "file": str(file), "actors": actors}
    write_answer(document, [f"policy valid: {file} [{actors} actors]"], as_json=as_json)


@declare("policy test")
@click.option(
    "--tests", metavar="FILE", help="File with the cases, instead of that beside the policy."
)
@_schema_option
@cluster_options
@project_file_option
@json_option
@click.pass_obj
def policy_test(
    context: Context, tests: str | None, schema_file: str | None, as_json: bool
) -> None:
    """Run the cases in policy.tests.yaml beside the policy; exit 1 if an outcome differs."""
    file, gate = _configured(context)
    if tests is None and context.cluster_root() is not None:
        raise click.UsageError("--cluster has no cases of its own; name a file with --tests.")
    cases = read_cases(file.parent / CASES_FILE if tests is None else Path(tests))
    needs_schema = any(case.type is not None for case in cases)
    catalog = _schema(context, schema_file) if needs_schema else None
    differing = run_cases(gate, cases, catalog)
    if differing:
        lines = "\n".join(f"  - {line}" for line in map(_mismatch, differing))
        raise PolicyError(f"policy tests failed: {len(differing)} of {len(cases)} cases\n{lines}")
    document = {"ok": True, "cases": len(cases)}
    write_answer(document, [f"policy tests passed: {len(cases)} cases"], as_json=as_json)


def _mismatch(found: Mismatch) -> str:
    return f"{found.case.id}: expected {found.case.expect.value}; {found.message}"


def _action(_ctx: click.Context, _param: click.Parameter, value: str) -> Action:
    try:
        return Action(value.replace("-", "_"))
    except ValueError:
        known = ", ".join(action.value for action in Action)
        raise click.BadParameter(f"'{value}' is not one of {known}") from None


@declare("policy explain")
@click.option("--actor", required=True, metavar="ACTOR", help="Who asks.")
@click.option("--action", required=True, metavar="ACTION", callback=_action, help="What for.")
@click.option("--branch", metavar="BRANCH", help="Branch that is read, changed or merged from.")
@click.option(
    "--target-branch", metavar="BRANCH", help="Branch that is created, deleted or merged into."
)
@click.option(
    "--type", "type_name", metavar="TYPE", help="Of a read: what the actor sees of a type."
)
@_schema_option
@cluster_options
@project_file_option
@json_option
@click.pass_obj
def policy_explain(
    context: Context,
    actor: str,
    action: Action,
    branch: str | None,
    target_branch: str | None,
    type_name: str | None,
    schema_file: str | None,
    as_json: bool,
) -> None:
    """Show what the policy decides for a request, and why."""
    if type_name is not None and action is not Action.READ:
        raise click.UsageError("--type is about the action read.")
    _file, gate = _configured(context)
    lines = list(_decision_lines(gate.decide(actor, action, branch, target_branch)))
    if type_name is not None:
        lines += _type_lines(context, gate, actor, type_name, schema_file)
    document = dict(line.split(": ", 1) for line in lines)
    write_answer(document, lines, as_json=as_json)


def _decision_lines(decision: Decision) -> Iterator[str]:
    yield f"decision: {'allow' if decision.is_allowed else 'deny'}"
    yield f"actor: {decision.actor}"
    yield f"action: {decision.action.value}"
    if decision.branch is not None:
        yield f"branch: {decision.branch}"
    if decision.target_branch is not None:
        yield f"target_branch: {decision.target_branch}"
    if decision.matched_rule is not None:
        yield f"matched_rule: {decision.matched_rule}"
    yield f"message: {decision.message}"


def _type_lines(
    context: Context, gate: PolicyGate, actor: str, type_name: str, schema_file: str | None
) -> Iterator[str]:
    """What an actor sees of a type, and the rules that show it."""
    from omnigraph.read.entities import find_type

    catalog = _schema(context, schema_file)
    if catalog is None:
        raise UsageError("--type needs the schema of the graph; name one with --schema")
    gate.check_reads(catalog)
    declared = find_type(catalog, type_name)
    visible = gate.visibility(catalog).visible(actor, declared)
    yield f"type: {declared.name}"
    yield f"visible: {'no' if visible.is_hidden else 'yes'}"
    if visible.rules:
        yield f"read_rules: {', '.join(visible.rules)}"
    if not visible.is_hidden:
        yield f"properties: {', '.join(sorted(visible.properties)) or 'none'}"
    if visible.where is not None:
        yield f"rows: {' '.join(visible.where.split())}"


def _schema(context: Context, file: str | None) -> Catalog | None:
    """The schema that read rules are about: of a file, or of the graph of the policy; None without one."""
    from omnigraph.catalog.compile import compile_schema
    from omnigraph.read.source_files import schema_source

    if file is not None:
        return compile_schema(schema_source(Path(file)))
    if (root := context.cluster_root()) is not None:
        from omnigraph.cluster.addressing import find_graph

        uri = find_graph(root, context.options.cluster_graph)
    else:
        legacy = context.legacy
        named = legacy.graphs.get(legacy.graph or legacy.server_graph or "")
        if named is None or named.uri.startswith(("http://", "https://")):
            return None
        uri = named.uri
    try:
        return open_graph(uri, read_only=True).schema.catalog
    except GraphNotFound:
        return None


def _configured(context: Context) -> tuple[Path, PolicyGate]:
    """The policy of the project file, or of a graph of a cluster. Raises `UsageError` if it has none."""
    if (root := context.cluster_root()) is not None:
        return _applied(root, context.options.cluster_graph)
    legacy = context.legacy
    name = legacy.graph or legacy.server_graph
    if name is None:
        file, key = legacy.policy_file, "policy.file"
    elif name in legacy.graphs:
        file, key = legacy.graphs[name].policy_file, f"graphs.{name}.policy.file"
    else:
        raise UsageError(f"graph '{name}' not found in omnigraph.yaml")
    if file is None:
        raise UsageError(f"no policy is configured; set {key} in omnigraph.yaml")
    gate = open_gate(file)
    for ignored in gate.policy.unknown_keys:
        warn(f"{file}: unknown key {ignored} is ignored")
    return file, gate


def _applied(root: str, graph: str | None) -> tuple[Path, PolicyGate]:
    from omnigraph.cluster.addressing import applied_policy, find_graph

    find_graph(root, graph)
    text = applied_policy(root, graph)
    if text is None:
        raise UsageError(
            f"no policy is applied to graph '{graph or 'the only one'}' of cluster {root}"
        )
    return Path(root), open_gate(text)
