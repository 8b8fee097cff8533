"""Test cases of a policy: requests and the outcomes that its author expects.

Tests: tests/unit/policy/test_cases.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Final

from msgspec import Struct

from omnigraph.diagnostics import shortened
from omnigraph.graph.gate import Action
from omnigraph.policy.document import DocumentReader
from omnigraph.policy.gate import PolicyGate
from omnigraph.read.source_files import read_source

CASES_FILE: Final = "policy.tests.yaml"
"""The name of the file with the cases, beside the policy."""


class Expectation(Enum):
    """The outcome that a test case expects."""

    ALLOW = "allow"
    DENY = "deny"


class PolicyCase(Struct, frozen=True):
    """A request and the outcome that the policy is expected to have for it."""

    id: str
    actor: str
    action: Action
    expect: Expectation
    branch: str | None = None
    target_branch: str | None = None


class Mismatch(Struct, frozen=True):
    """A case with another outcome than expected."""

    case: PolicyCase
    message: str


def read_cases(path: Path) -> tuple[PolicyCase, ...]:
    """The cases of a test file. Raises `PolicyInvalid` with every problem, or `SourceUnreadable`."""
    source = read_source(path)
    reader = DocumentReader(source.name)
    document = reader.document(source.text, ("version", "cases"))
    cases = tuple(_cases(reader, reader.sequence("cases", document.get("cases"))))
    for key in reader.unknown:
        reader.problem(f"unknown key {key}")
    reader.finish()
    return cases


def run_cases(gate: PolicyGate, cases: Sequence[PolicyCase]) -> tuple[Mismatch, ...]:
    """The cases whose outcome is not the expected one. Raises `PolicyUndecided`."""

    def mismatches() -> Iterator[Mismatch]:
        for case in cases:
            found = gate.decide(case.actor, case.action, case.branch, case.target_branch)
            if found.is_allowed != (case.expect is Expectation.ALLOW):
                yield Mismatch(case, found.message)

    return tuple(mismatches())


def _cases(reader: DocumentReader, entries: Sequence[object]) -> Iterator[PolicyCase]:
    seen: set[str] = set()
    for at, entry in enumerate(entries):
        place = f"cases[{at}]"
        fields = reader.mapping(
            place, entry, ("id", "actor", "action", "branch", "target_branch", "expect")
        )
        case_id = reader.text(f"{place}.id", fields.get("id"))
        if case_id and case_id in seen:
            reader.problem(f"duplicate test case id '{shortened(case_id)}'")
        seen.add(case_id)
        actor = reader.text(f"{place}.actor", fields.get("actor"))
        action = reader.choice(f"{place}.action", fields.get("action"), Action, "action")
        expect = reader.choice(f"{place}.expect", fields.get("expect"), Expectation, "outcome")
        branches = {
            key: reader.text(f"{place}.{key}", fields[key])
            for key in ("branch", "target_branch")
            if fields.get(key) is not None
        }
        if action is not None and expect is not None:
            yield PolicyCase(case_id, actor, action, expect, **branches)
