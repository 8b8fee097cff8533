"""Test cases of a policy: requests and the outcomes that its author expects.

Tests: tests/unit/policy/test_cases.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from omnigraph.diagnostics import shortened
from omnigraph.errors import InputError, UnknownColumn
from omnigraph.graph.gate import Action
from omnigraph.policy.document_reader import DocumentReader
from omnigraph.policy.gate import PolicyGate
from omnigraph.read.source_files import read_source

if TYPE_CHECKING:
    from omnigraph.catalog.model import Catalog

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
    type: str | None = None
    """Of a read: the type that is looked at, which needs a schema to decide."""
    property: str | None = None
    row: Mapping[str, Any] | None = None
    """Of a read: a row by its properties; those that are missing are null."""


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


def run_cases(
    gate: PolicyGate, cases: Sequence[PolicyCase], catalog: Catalog | None = None
) -> tuple[Mismatch, ...]:
    """The cases whose outcome is not the expected one.

    Cases about types need the schema. Raises `PolicyUndecided`, `UnknownType` or `InputError`.
    """

    def mismatches() -> Iterator[Mismatch]:
        for case in cases:
            found = gate.decide(case.actor, case.action, case.branch, case.target_branch)
            is_allowed, message = found.is_allowed, found.message
            if is_allowed and case.type is not None:
                is_allowed, message = _sees(gate, case, catalog)
            if is_allowed != (case.expect is Expectation.ALLOW):
                yield Mismatch(case, message)

    return tuple(mismatches())


def _sees(gate: PolicyGate, case: PolicyCase, catalog: Catalog | None) -> tuple[bool, str]:
    """Whether the actor of a case sees its type, property and row."""
    from omnigraph.read.entities import find_type

    if catalog is None:
        raise InputError(
            f"case '{case.id}' is about a type and needs the schema; name a graph or a schema file"
        )
    declared = find_type(catalog, case.type or "")
    visible = gate.visibility(catalog).visible(case.actor, declared)
    who = f"actor '{shortened(case.actor)}'"
    if visible.is_hidden:
        return False, f"read rules hide {declared.name} from {who}"
    if case.property is not None:
        if case.property not in declared.properties:
            raise UnknownColumn(case.property, f"type {declared.name}", declared.properties)
        if case.property not in visible.properties:
            return False, f"read rules hide {declared.name}.{case.property} from {who}"
    if case.row is not None and not gate.view(case.actor, catalog).shows(declared, case.row):
        return False, f"read rules hide the row of {declared.name} from {who}"
    return True, f"read rules show it to {who}"


def _cases(reader: DocumentReader, entries: Sequence[object]) -> Iterator[PolicyCase]:
    seen: set[str] = set()
    for at, entry in enumerate(entries):
        place = f"cases[{at}]"
        fields = reader.mapping(
            place,
            entry,
            (
                "id",
                "actor",
                "action",
                "branch",
                "target_branch",
                "type",
                "property",
                "row",
                "expect",
            ),
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
            for key in ("branch", "target_branch", "type", "property")
            if fields.get(key) is not None
        }
        row = reader.mapping(f"{place}.row", fields["row"]) if "row" in fields else None
        if "type" in branches and action not in (None, Action.READ):
            reader.problem(f"{place}: a case about a type has the action read")
        if "type" not in branches and (row is not None or "property" in branches):
            reader.problem(f"{place}: a property or a row needs its type")
        if action is not None and expect is not None:
            yield PolicyCase(case_id, actor, action, expect, **branches, row=row)
