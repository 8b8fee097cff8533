"""A process that applies a cluster and is meant to die in it."""

from __future__ import annotations

import sys

from omnigraph.cli.main import main
from tests.support.faults import arm_from_environment


def apply(folder: str) -> None:
    arm_from_environment()
    sys.exit(main(["cluster", "apply", "--config", folder, "--as", "kim"]))
