"""The question writers ask a policy, and the answer without one."""

from __future__ import annotations

import pytest

from omnigraph.errors import InputError, PolicyError
from omnigraph.graph.gate import Action, Gate, OpenGate, Request


def test_the_actions_are_the_words_of_a_policy_file():
    assert {action.value for action in Action} == {
        "read", "export", "change", "schema_apply", "branch_create", "branch_delete",
        "branch_merge", "invoke_query", "admin", "graph_list", "config_manage",
    }  # fmt: skip


@pytest.mark.parametrize("actor", ["omnigraph:recovery", "omnigraph:", " OmniGraph:repair"])
def test_nobody_acts_in_the_name_of_the_product(actor):
    with pytest.raises(InputError, match="is reserved"):
        Request(actor, Action.CHANGE, branch="main")
    Request("omnigraph-bot", Action.CHANGE, branch="main")


@pytest.mark.parametrize("actor", ["ada", None])
@pytest.mark.parametrize(
    ("action", "branch", "target"),
    [
        (Action.READ, None, None),
        (Action.READ, "main", None),
        (Action.EXPORT, "main", None),
        (Action.CHANGE, "draft", None),
        (Action.SCHEMA_APPLY, None, "main"),
        (Action.BRANCH_CREATE, "main", "draft"),
        (Action.BRANCH_DELETE, None, "draft"),
        (Action.BRANCH_MERGE, "draft", "main"),
        (Action.INVOKE_QUERY, None, None),
        (Action.ADMIN, None, None),
        (Action.GRAPH_LIST, None, None),
    ],
)
def test_without_a_policy_everything_is_permitted(actor, action, branch, target):
    OpenGate().check(Request(actor, action, branch, target))


@pytest.mark.parametrize(
    ("action", "branch", "target"),
    [
        (Action.CHANGE, None, None),
        (Action.CHANGE, "main", "main"),
        (Action.READ, "main", "main"),
        (Action.SCHEMA_APPLY, "main", None),
        (Action.SCHEMA_APPLY, "main", "main"),
        (Action.BRANCH_CREATE, None, "draft"),
        (Action.BRANCH_CREATE, "main", None),
        (Action.BRANCH_DELETE, "draft", None),
        (Action.BRANCH_MERGE, "draft", None),
        (Action.INVOKE_QUERY, "main", None),
        (Action.GRAPH_LIST, None, "main"),
    ],
)
def test_a_request_that_rules_would_misread_cannot_be_built(action, branch, target):
    with pytest.raises(ValueError, match=action.value):
        Request("ada", action, branch, target)


class OnlyAda:
    """A policy, as one would implement the protocol."""

    def check(self, request: Request) -> None:
        if request.actor != "ada":
            raise PolicyError(f"policy denied action '{request.action.value}'")


def test_a_policy_denies_by_raising():
    gate: Gate = OnlyAda()
    gate.check(Request("ada", Action.CHANGE, "main"))
    with pytest.raises(PolicyError, match="denied action 'change'"):
        gate.check(Request(None, Action.CHANGE, "main"))
