"""The codes of schema migration."""

from __future__ import annotations

import pytest

from omnigraph.catalog.migrate.steps import MigrationCode


@pytest.mark.parametrize(
    ("code", "tier"),
    [
        ("OG-DS-101", "destructive"),
        ("OG-DS-102", "destructive"),
        ("OG-DS-103", "destructive"),
        ("OG-DS-104", "destructive"),
        ("OG-DS-105", "destructive"),
        ("OG-MF-103", "validated"),
        ("OG-MF-104", "validated"),
        ("OG-MF-106", "destructive"),
    ],
)
def test_a_code_keeps_its_tier(code, tier):
    assert MigrationCode(code).tier == tier


def test_there_are_no_other_codes():
    assert len(MigrationCode) == 8
