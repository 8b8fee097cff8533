"""Decisions: their words, their log, and that everything unclear is denied."""

from __future__ import annotations

import logging
import pickle

import pytest

from omnigraph.errors import ActorRequired, PolicyDenied, PolicyError, PolicyUndecided
from omnigraph.graph.gate import Action, Request
from omnigraph.policy import gate as gates
from omnigraph.policy.cedar import Answer, CedarPolicy
from omnigraph.policy.gate import PolicyGate, open_gate
from tests.support.policies import TEAM_POLICY


@pytest.fixture
def gate() -> PolicyGate:
    return open_gate(TEAM_POLICY)


@pytest.mark.parametrize(
    ("actor", "action", "branch", "target", "message", "rule"),
    [
        ("amy", Action.CHANGE, "draft", None,
         "policy allowed action 'change' for actor 'amy'", "team-write"),
        ("root", Action.CHANGE, "draft", None,
         "policy allowed action 'change' for actor 'root'", "admin-write"),
        ("amy", Action.CHANGE, "main", None,
         "policy denied action 'change' on branch 'main' for actor 'amy'", None),
        ("amy", Action.BRANCH_MERGE, "draft", "main",
         "policy denied action 'branch_merge' on branch 'draft' targeting branch 'main' for actor 'amy'",
         None),
        ("amy", Action.SCHEMA_APPLY, None, "main",
         "policy denied action 'schema_apply' targeting branch 'main' for actor 'amy'", None),
        ("eve", Action.READ, "main", None,
         "policy denied action 'read' for unknown actor 'eve'", None),
        ("amy", Action.CHANGE, None, None,
         "policy denied action 'change' for actor 'amy'", None),
        ("amy", Action.READ, None, None,
         "policy allowed action 'read' for actor 'amy'", "team-read"),
        ("root", Action.GRAPH_LIST, None, None,
         "policy denied action 'graph_list' for actor 'root'", None),
    ],
)  # fmt: skip
def test_a_decision_has_its_reason(gate, actor, action, branch, target, message, rule):
    found = gate.decide(actor, action, branch, target)
    assert (found.message, found.matched_rule) == (message, rule)
    assert found.is_allowed == (rule is not None)


@pytest.mark.parametrize("padded", [" main", "main ", "\tmain\n"])
def test_a_padded_name_does_not_pass_as_an_unprotected_branch(gate, padded):
    assert not gate.decide("amy", Action.CHANGE, padded).is_allowed
    assert not gate.decide("amy", Action.BRANCH_CREATE, "draft", padded).is_allowed


@pytest.mark.parametrize("actor", ["Amy", "amy ", "AMY", "", "a\u200bmy", "team", 'amy"'])
def test_an_actor_is_compared_exactly(gate, actor):
    with pytest.raises(PolicyDenied, match="unknown actor"):
        gate.check(Request(actor, Action.CHANGE, "draft"))


def test_a_denial_says_what_was_asked(gate):
    with pytest.raises(PolicyDenied) as caught:
        gate.check(Request("amy", Action.BRANCH_MERGE, "draft", "main"))
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.actor, error.action) == ("amy", "branch_merge")
    assert (error.branch, error.target_branch) == ("draft", "main")
    assert (error.code, error.kind) == ("OG-P-001", "policy")


def test_without_an_actor_everything_is_denied(gate):
    with pytest.raises(ActorRequired, match="denied action 'change': no actor"):
        gate.check(Request(None, Action.CHANGE, "draft"))


def test_a_request_that_cedar_cannot_read_is_denied(gate):
    with pytest.raises(PolicyUndecided, match="UnicodeEncodeError") as caught:
        gate.check(Request("\ud800", Action.CHANGE, "draft"))
    assert caught.value.kind == "internal"


def test_a_rule_that_fails_denies_although_another_one_allows(gate, monkeypatch):
    monkeypatch.setattr(
        CedarPolicy, "ask", lambda *_request: Answer(True, ("team-write",), ("rule x failed",))
    )
    with pytest.raises(PolicyUndecided, match="rule x failed"):
        gate.check(Request("amy", Action.CHANGE, "draft"))


def test_without_cedarpy_every_request_is_denied(gate, monkeypatch):
    monkeypatch.setattr(gates, "is_installed", lambda _library: False)
    for actor, action in [("root", Action.CHANGE), ("root", Action.READ), ("eve", Action.READ)]:
        with pytest.raises(PolicyUndecided, match="needs the extra 'policy'; install it with: pip"):
            gate.check(Request(actor, action, "main"))


def test_every_decision_is_logged_with_its_reason(gate, caplog):
    caplog.set_level(logging.INFO, "omnigraph.policy")
    requests = [
        Request("amy", Action.CHANGE, "draft"),
        Request("amy", Action.CHANGE, "main"),
        Request("eve\nallow", Action.READ, "main"),
        Request(None, Action.CHANGE, "main"),
        Request("\ud800", Action.CHANGE, "main"),
    ]
    for request in requests:
        try:
            gate.check(request)
        except PolicyError:
            continue
    said = [record.getMessage() for record in caplog.records]
    assert (
        said[0] == "allow change for 'amy', branch 'draft', target branch None: rule 'team-write'"
    )
    assert said[1] == "deny change for 'amy', branch 'main', target branch None: no rule"
    assert said[2] == (
        "deny read for 'eve\\nallow', branch 'main', target branch None: unknown actor"
    )
    assert said[3] == "deny change: no actor"
    assert said[4].startswith("deny change for '\\ud800': not evaluated: ")
    assert len(said) == len(requests)
    assert not [line for line in said if "\n" in line]


def test_a_gate_can_be_pickled(gate):
    again = pickle.loads(pickle.dumps(gate))
    assert again.policy == gate.policy
    assert again.decide("amy", Action.CHANGE, "draft").is_allowed
