"""Policy documents: what is accepted, and every problem that is reported."""

from __future__ import annotations

import pytest

from omnigraph.errors import PolicyInvalid, SourceUnreadable
from omnigraph.graph.gate import Action
from omnigraph.policy.document import (
    SERVER_ACTIONS,
    Policy,
    PolicyKind,
    Rule,
    Scope,
    parse_policy,
    read_policy,
)
from tests.support.policies import TEAM_POLICY


def policy(rules: str = "[]", groups: str = "{team: [amy]}", rest: str = "") -> str:
    return f"version: 1\ngroups: {groups}\nrules: {rules}\n{rest}"


def rule(actions: str, scope: str = "", rule_id: str = "r") -> str:
    return f"{{id: {rule_id}, allow: {{actors: {{group: team}}, actions: {actions}{scope}}}}}"


def problems(text: str, kind: PolicyKind | None = None) -> tuple[str, ...]:
    with pytest.raises(PolicyInvalid) as caught:
        parse_policy(text, "p.yaml", kind)
    assert "p.yaml" in str(caught.value)
    return caught.value.problems


def test_a_policy_is_read_from_text_and_from_files(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(TEAM_POLICY)
    found = read_policy(TEAM_POLICY)
    assert found == Policy(
        "<policy>",
        {"team": ("amy", "root"), "admins": ("root",)},
        frozenset({"main"}),
        (
            Rule("team-read", "team", (Action.READ,), Scope.ANY),
            Rule("team-write", "team", (Action.CHANGE,), Scope.UNPROTECTED),
            Rule("team-branch", "team", (Action.BRANCH_CREATE,), None, Scope.UNPROTECTED),
            Rule("admin-write", "admins", (Action.CHANGE, Action.EXPORT), Scope.ANY),
            Rule(
                "admin-ops",
                "admins",
                (Action.SCHEMA_APPLY, Action.BRANCH_MERGE, Action.BRANCH_DELETE),
                None,
                Scope.ANY,
            ),
        ),
    )
    assert found.actors == {"amy", "root"}
    assert read_policy(path).rules == read_policy(str(path)).rules == found.rules
    with pytest.raises(SourceUnreadable, match=r"gone\.yaml"):
        read_policy("gone.yaml")


def test_unknown_keys_are_ignored_and_kept_for_a_warning():
    text = policy(f"[{rule('[read]', ', branch_scop: protected')}]", rest="kind: server\n")
    found = parse_policy(text, "p.yaml")
    assert found.unknown_keys == ("kind", "rule 'r': allow.branch_scop")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the document must have keys and values"),
        ("- a", "the document must have keys and values"),
        ("a: [", "line 1"),
        ("version: 2", "version 2 is not supported"),
        ("version: true", "version True is not supported"),
        ("version: '1'", "version '1' is not supported"),
        ("groups: {}", "version is missing"),
        (policy(groups="{' ': [amy]}"), "a group name must not be blank"),
        (policy(groups="{team: []}"), "groups.team: a group must not be empty"),
        (policy(groups="{team: }"), "groups.team: a group must not be empty"),
        (policy(groups="{team: [' ']}"), "groups.team[0]: actor must not be blank"),
        (policy(groups="{team: [7]}"), "groups.team[0]: actor must be text; put it in quotes"),
        (policy(groups="{team: amy}"), "groups.team must be a list"),
        (policy(groups="{team: [amy], ' team': [root]}"), "group 'team' stands twice"),
        (policy(rest="protected_branches: ['']"), "protected_branches[0]: branch must not be blank"),
        (policy("{}"), "rules must be a list"),
        (policy("[{allow: {}}]"), "rules[0].id is missing"),
        (policy("[{id: '  '}]"), "rules[0].id must not be blank"),
        (policy("[{id: r}]"), "rule 'r': allow is missing"),
        (policy("[{id: r, allow: {actions: [read]}}]"), "rule 'r': actors.group is missing"),
        (policy(f"[{rule('[]')}]"), "rule 'r': actions must not be empty"),
        (policy(f"[{rule('[reed]')}]"), "unknown action 'reed'; did you mean `read`?"),
        (policy(f"[{rule('[Read]')}]"), "unknown action 'Read'"),
        (policy(f"[{rule('[read]', ', branch_scope: all')}]"), "unknown scope 'all'"),
        (
            policy(f"[{rule('[read]')}]", groups="{teem: [amy]}"),
            "rule 'r' references unknown group 'team'; did you mean `teem`?",
        ),
        (
            policy(f"[{rule('[read]', ', branch_scope: any, target_branch_scope: any')}]"),
            "uses branch_scope and target_branch_scope",
        ),
        (policy(f"[{rule('[read, graph_list]')}]"), "split into separate rules"),
    ],
)  # fmt: skip
def test_a_mistake_is_named(text, problem):
    assert any(problem in found for found in problems(text))


@pytest.mark.acceptance("U-054", partly="the document")
def test_a_repeated_rule_id_is_refused():
    text = policy(f"[{rule('[read]')}, {rule('[change]')}]")
    assert problems(text) == ("duplicate policy rule id 'r'",)


@pytest.mark.parametrize("action", ["invoke_query", "admin", "schema_apply", "branch_create"])
def test_a_branch_scope_needs_an_action_on_a_branch(action):
    text = policy(f"[{rule(f'[{action}]', ', branch_scope: any')}]")
    assert problems(text) == (f"rule 'r' uses branch_scope with unsupported action '{action}'",)


@pytest.mark.parametrize("action", ["read", "export", "change", "invoke_query", "graph_list"])
def test_a_target_scope_needs_an_action_on_a_target(action):
    text = policy(f"[{rule(f'[{action}]', ', target_branch_scope: any')}]")
    assert f"uses target_branch_scope with unsupported action '{action}'" in problems(text)[0]


@pytest.mark.acceptance("U-101", partly="the kind of a policy")
@pytest.mark.parametrize("action", list(Action), ids=lambda action: action.value)
def test_a_policy_fits_what_it_is_attached_to(action):
    text = policy(f"[{rule(f'[{action.value}]')}]")
    kinds = [PolicyKind.SERVER, PolicyKind.GRAPH]
    fits, other = kinds if action in SERVER_ACTIONS else reversed(kinds)
    assert parse_policy(text, "p.yaml", fits).kind is fits
    (problem,) = problems(text, other)
    assert f"action '{action.value}'" in problem
    assert ("per-graph" if other is PolicyKind.SERVER else "server-scoped") in problem


def test_one_document_is_of_one_kind():
    text = policy(f"[{rule('[read]')}, {rule('[graph_list]', rule_id='s')}]")
    assert len(problems(text)) == 1


def test_all_problems_are_reported_at_once():
    text = "version: 3\ngroups: {a: []}\nrules: [{id: r, allow: {actors: {group: b}, actions: []}}]"
    assert len(problems(text)) == 4


def test_a_key_that_stands_twice_is_refused():
    assert "stands twice" in problems("version: 1\nrules: []\nrules: []")[0]
