"""Processes that are meant to die or to wait."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tests.processes.conftest import Place
from tests.support.faults import ENVIRONMENT_VARIABLE, Arm, describe
from tests.support.fork_server import ForkedProcess, fork_server


def child(place: Place, arms: Sequence[Arm], work: str, *arguments: object) -> ForkedProcess:
    """A process that does some work of `working` with traps set."""
    environment = {**os.environ, **place.environment, ENVIRONMENT_VARIABLE: describe(arms)}
    return fork_server().start(
        "tests.processes.working:in_process", (work, 0, *arguments), environment
    )
