"""A process that applies a cluster, and may be meant to die in it."""

from __future__ import annotations

from omnigraph.cli.main import main
from tests.support.faults import arm_from_environment


def apply(folder: str) -> None:
    arm_from_environment()
    assert main(["cluster", "apply", "--config", folder, "--as", "kim"]) == 0
