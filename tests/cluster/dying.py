"""A process that applies a cluster, and may be meant to die in it."""

from __future__ import annotations

import sys
from pathlib import Path

from omnigraph.cli.main import main
from omnigraph.cluster.addressing import open_cluster
from omnigraph.cluster.bundle import DeploymentId
from omnigraph.cluster.deployment import deploy as deploy_prepared
from omnigraph.cluster.deployment import prepare, require_ledger
from omnigraph.cluster.documents import Diagnostics
from omnigraph.cluster.ledger import Authority
from omnigraph.cluster.resources import read_desired
from tests.support.faults import arm_from_environment


def apply(folder: str) -> None:
    arm_from_environment()
    assert main(["cluster", "apply", "--config", folder, "--as", "kim"]) == 0


def deploy(folder: str, nonce: str) -> None:
    """What a server does with a captured declaration."""
    arm_from_environment()
    found = Diagnostics()
    desired = read_desired(Path(folder), found)
    assert desired is not None
    store = open_cluster(folder)
    ledger = require_ledger(store).ledger
    assert ledger.ledger_id is not None
    deployment_id = DeploymentId(ledger.ledger_id, ledger.next_sequence, nonce)
    prepared = prepare(store, desired, found)
    result = deploy_prepared(
        prepared, deployment_id, Authority("authenticated_identity", "kim"), lambda: None
    )
    sys.exit(0 if result.converged else 3)
