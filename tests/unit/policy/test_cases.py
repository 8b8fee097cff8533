"""Test cases beside a policy."""

from __future__ import annotations

import pytest

from omnigraph.errors import PolicyInvalid, SourceUnreadable
from omnigraph.policy.cases import read_cases, run_cases
from omnigraph.policy.gate import open_gate
from tests.support.policies import TEAM_POLICY


def cases(*lines: str) -> str:
    return "version: 1\ncases:\n" + "".join(f"  - {{{line}}}\n" for line in lines)


@pytest.mark.acceptance("U-055", partly="the cases that differ")
def test_the_cases_that_differ_are_found(tmp_path):
    path = tmp_path / "policy.tests.yaml"
    path.write_text(
        cases(
            "id: right, actor: amy, action: change, branch: draft, expect: allow",
            "id: wrong, actor: amy, action: change, branch: main, expect: allow",
            "id: merge, actor: amy, action: branch_merge, target_branch: main, expect: deny",
            "id: also-wrong, actor: root, action: read, expect: deny",
        )
    )
    found = run_cases(open_gate(TEAM_POLICY), read_cases(path))
    assert [(one.case.id, one.message) for one in found] == [
        ("wrong", "policy denied action 'change' on branch 'main' for actor 'amy'"),
        ("also-wrong", "policy allowed action 'read' for actor 'root'"),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("version: 2\ncases: []", "version 2"),
        (cases("actor: a, action: read, expect: deny"), "cases[0].id is missing"),
        (cases("id: ' ', actor: a, action: read, expect: deny"), "cases[0].id must not be blank"),
        (
            cases(*["id: x, actor: a, action: read, expect: deny"] * 2),
            "duplicate test case id 'x'",
        ),
        (cases("id: x, actor: a, action: look, expect: deny"), "unknown action 'look'"),
        (cases("id: x, actor: a, action: read, expect: maybe"), "unknown outcome 'maybe'"),
        (
            cases("id: x, actor: a, action: read, expect: deny, brunch: m"),
            "unknown key cases[0].brunch",
        ),
    ],
)
def test_a_mistake_in_the_cases_is_named(tmp_path, text, problem):
    path = tmp_path / "policy.tests.yaml"
    path.write_text(text)
    with pytest.raises(PolicyInvalid) as caught:
        read_cases(path)
    assert any(problem in found for found in caught.value.problems)


def test_missing_cases_are_reported(tmp_path):
    with pytest.raises(SourceUnreadable, match=r"policy\.tests\.yaml"):
        read_cases(tmp_path / "policy.tests.yaml")
