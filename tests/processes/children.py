"""Processes that are meant to die or to wait."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tests.nursery import Forked, the_nursery
from tests.processes.conftest import Place
from tests.support.faults import ENVIRONMENT_VARIABLE, Arm, describe


def child(place: Place, arms: Sequence[Arm], work: str, *arguments: object) -> Forked:
    """A process that does some work of `working` with traps set."""
    environment = {**os.environ, **place.environment, ENVIRONMENT_VARIABLE: describe(arms)}
    return the_nursery().start(
        "tests.processes.working:in_process", (work, 0, *arguments), environment
    )
