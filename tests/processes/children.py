"""Processes that are meant to die or to wait."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from omnigraph.testing.faults import ENVIRONMENT_VARIABLE, Arm, describe
from tests.processes.conftest import Place

ROOT = Path(__file__).parents[2]


def child(
    place: Place, arms: Sequence[Arm], work: str, *arguments: object
) -> subprocess.Popen[bytes]:
    """A process that does some work of `working` with traps set."""
    call = f"in_process({work!r}, {{}}, 0, {', '.join(map(repr, arguments))})"
    return subprocess.Popen(
        [sys.executable, "-c", f"from tests.processes.working import in_process; {call}"],
        cwd=ROOT,
        env={**os.environ, **place.environment, ENVIRONMENT_VARIABLE: describe(arms)},
    )
