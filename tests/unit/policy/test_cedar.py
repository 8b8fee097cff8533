"""What Cedar answers is what the format promises: compared with a plain reading of the rules."""

from __future__ import annotations

import json

import cedarpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.graph.gate import Action
from omnigraph.policy.cedar import CedarPolicy, rules_json
from omnigraph.policy.document import SERVER_ACTIONS, Policy, Rule, Scope, read_policy
from tests.support.policies import TEAM_POLICY

CEDAR_SCHEMA = """
namespace Omnigraph {
    entity Group, Graph, Server;
    entity Actor in [Group];
    type Target = {
        has_branch: Bool, branch: String, branch_protected: Bool,
        has_target_branch: Bool, target_branch: String, target_branch_protected: Bool
    };
    action read, export, change, schema_apply, branch_create, branch_delete, branch_merge,
        invoke_query, admin appliesTo { principal: Actor, resource: Graph, context: Target };
    action graph_list, config_manage
        appliesTo { principal: Actor, resource: Server, context: Target };
}
"""

NAMES = st.text(min_size=1, max_size=6, alphabet=st.characters(codec="utf-8"))
ACTORS = ["amy", "root", 'q"uote', "new\nline", "ünï", "Omnigraph::Group::team"]
BRANCHES = [None, "main", "draft", "", 'x"y']
SCOPES = st.sampled_from([None, *Scope])


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    groups = draw(
        st.dictionaries(
            NAMES, st.lists(st.sampled_from(ACTORS), min_size=1), min_size=1, max_size=3
        )
    )
    rules = []
    for rule_id in draw(st.lists(NAMES, unique=True, max_size=4)):
        server = draw(st.booleans())
        pool = [action for action in Action if (action in SERVER_ACTIONS) == server]
        actions = draw(st.lists(st.sampled_from(pool), min_size=1, unique=True))
        scopes = draw(st.sampled_from([(None, None), ("b", None), (None, "t")]))
        rules.append(
            Rule(
                rule_id,
                draw(st.sampled_from(sorted(groups))),
                tuple(actions),
                draw(SCOPES) if scopes[0] else None,
                draw(SCOPES) if scopes[1] else None,
            )
        )
    protected = draw(st.frozensets(st.sampled_from(["main", 'x"y'])))
    return Policy("p", {name: tuple(of) for name, of in groups.items()}, protected, tuple(rules))


def covers(scope: Scope | None, branch: str | None, policy: Policy) -> bool:
    if scope is None or scope is Scope.ANY:
        return True
    is_protected = branch in policy.protected_branches
    return branch is not None and is_protected == (scope is Scope.PROTECTED)


def permitting(
    policy: Policy, actor: str, action: Action, branch: str | None, target: str | None
) -> list[str]:
    return sorted(
        rule.id
        for rule in policy.rules
        if actor in policy.groups[rule.group]
        and action in rule.actions
        and covers(rule.branch_scope, branch, policy)
        and covers(rule.target_branch_scope, target, policy)
    )


@given(
    policies(),
    st.sampled_from(["nobody", *ACTORS]),
    st.sampled_from(Action),
    st.sampled_from(BRANCHES),
    st.sampled_from(BRANCHES),
)
def test_cedar_agrees_with_the_rules_as_they_are_written(policy, actor, action, branch, target):
    answer = CedarPolicy(policy, "g").ask(actor, action, branch, target)
    expected = permitting(policy, actor, action, branch, target)
    assert (list(answer.rules), answer.is_allowed) == (expected, bool(expected))
    assert answer.errors == ()


@pytest.mark.parametrize(
    "text",
    [
        TEAM_POLICY,
        "{version: 1, groups: {g: [a]}, rules: [{id: r, allow: "
        "{actors: {group: g}, actions: [graph_list, config_manage]}}]}",
    ],
)
def test_the_compiled_rules_are_valid_under_the_cedar_schema_of_the_format(text):
    compiled = cedarpy.policies_from_json_str(json.dumps(rules_json(read_policy(text))))
    result = cedarpy.validate_policies(compiled, CEDAR_SCHEMA)
    assert result.validation_passed, result.errors
