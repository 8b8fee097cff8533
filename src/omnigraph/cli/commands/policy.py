"""`omnigraph policy validate`, `policy test` and `policy explain`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from omnigraph.cli.context import Context
from omnigraph.cli.exits import warn
from omnigraph.cli.framework import declare
from omnigraph.cli.options import project_file_option
from omnigraph.cli.output.answers import write_lines
from omnigraph.errors import PolicyError, UsageError
from omnigraph.graph.gate import Action
from omnigraph.policy.cases import CASES_FILE, Mismatch, read_cases, run_cases
from omnigraph.policy.gate import Decision, PolicyGate, open_gate


@declare("policy validate")
@project_file_option
@click.pass_obj
def policy_validate(context: Context) -> None:
    """Read and compile the policy of the project file; exit 1 if it is not valid.

    The policy is that of the graph in cli.graph, else in server.graph, else policy.file at the top.
    """
    file, gate = _configured(context)
    gate.prepare()
    write_lines([f"policy valid: {file} [{len(gate.policy.actors)} actors]"])


@declare("policy test")
@project_file_option
@click.pass_obj
def policy_test(context: Context) -> None:
    """Run the cases in policy.tests.yaml beside the policy; exit 1 if an outcome differs."""
    file, gate = _configured(context)
    cases = read_cases(file.parent / CASES_FILE)
    differing = run_cases(gate, cases)
    if differing:
        lines = "\n".join(f"  - {line}" for line in map(_mismatch, differing))
        raise PolicyError(f"policy tests failed: {len(differing)} of {len(cases)} cases\n{lines}")
    write_lines([f"policy tests passed: {len(cases)} cases"])


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
@project_file_option
@click.pass_obj
def policy_explain(
    context: Context, actor: str, action: Action, branch: str | None, target_branch: str | None
) -> None:
    """Show what the policy decides for a request, and why."""
    _file, gate = _configured(context)
    write_lines(_decision_lines(gate.decide(actor, action, branch, target_branch)))


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


def _configured(context: Context) -> tuple[Path, PolicyGate]:
    """The policy of the project file. Raises `UsageError` if it has none."""
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
