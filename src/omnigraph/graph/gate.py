"""The policy gate: the one question every writer asks before it does anything else.

This module owns the question and the answer given when no policy is installed. What a policy looks
like, and the words it denies with, belong to the implementation of `Gate`.
Tests: tests/unit/engine/test_gate.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from omnigraph.diagnostics import shortened
from omnigraph.errors import InputError

RESERVED_ACTORS: Final = "omnigraph:"
"""Prefix of the actors of recovery and repair. No caller may use it."""


class Action(Enum):
    """Everything a policy can permit; a value's text is the word rules are written with."""

    READ = "read"
    EXPORT = "export"
    CHANGE = "change"
    SCHEMA_APPLY = "schema_apply"
    BRANCH_CREATE = "branch_create"
    BRANCH_DELETE = "branch_delete"
    BRANCH_MERGE = "branch_merge"
    INVOKE_QUERY = "invoke_query"
    ADMIN = "admin"
    GRAPH_LIST = "graph_list"
    CONFIG_MANAGE = "config_manage"


_READS_A_BRANCH = frozenset({Action.READ, Action.EXPORT, Action.CHANGE})
_CHANGES_A_TARGET = frozenset({Action.SCHEMA_APPLY, Action.BRANCH_DELETE})
_TAKES_FROM_A_BRANCH_TO_A_TARGET = frozenset({Action.BRANCH_CREATE, Action.BRANCH_MERGE})


@dataclass(frozen=True, slots=True)
class Request:
    """An actor, an action and its target.

    `branch` is what is read or changed in place, `target_branch` what a branch operation changes:
    creating `x` from `main` has branch `main` and target `x`. Rules are scoped by one of the two, so
    a request that carries the wrong ones would be checked against the wrong rules and cannot be built.
    Neither can one in the name of the product itself, which raises `InputError`.
    """

    actor: str | None
    action: Action
    branch: str | None = None
    target_branch: str | None = None

    def __post_init__(self) -> None:
        check_actor(self.actor)
        has_target = self.action in _CHANGES_A_TARGET | _TAKES_FROM_A_BRANCH_TO_A_TARGET
        if has_target != (self.target_branch is not None):
            raise ValueError(f"{self.action.value} {'needs' if has_target else 'takes no'} target")
        # Some reads concern no branch in particular: listing branches, showing the schema.
        has_branch = self.action in _READS_A_BRANCH | _TAKES_FROM_A_BRANCH_TO_A_TARGET
        if self.branch is None and has_branch and self.action is not Action.READ:
            raise ValueError(f"{self.action.value} needs a branch")
        if self.branch is not None and not has_branch:
            raise ValueError(f"{self.action.value} takes no branch")


def check_actor(actor: str | None) -> None:
    """Raises `InputError` for a name that stands for the product itself."""
    if actor is not None and actor.strip().lower().startswith(RESERVED_ACTORS):
        raise InputError(
            f"actor {shortened(repr(actor))} is reserved: names that begin with "
            f"'{RESERVED_ACTORS}' stand for the product itself; choose another actor"
        )


class Gate(Protocol):
    """What a policy offers the engine."""

    def check(self, request: Request) -> None:
        """Return when the request is permitted, raise `PolicyError` when it is not."""


class OpenGate:
    """No policy is installed: everything is permitted, with or without an actor."""

    def check(self, request: Request) -> None:
        return None
