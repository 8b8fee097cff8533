"""The registry of migration codes."""

from __future__ import annotations

import re

import pytest

from omnigraph.catalog.migrate.codes import (
    CODE_MEANINGS,
    RESERVED_FAMILIES,
    MigrationCode,
    Severity,
    Tier,
)


@pytest.mark.parametrize(
    ("code", "tier", "emitted", "text"),
    [
        ("OG-DS-101", "destructive", False, "drop whole graph type"),
        ("OG-DS-102", "destructive", False, "drop node type with rows"),
        ("OG-DS-103", "destructive", False, "drop edge type with rows"),
        ("OG-DS-104", "destructive", False, "drop property with rows"),
        ("OG-DS-105", "destructive", False, "drop populated vector column"),
        ("OG-MF-103", "validated", True, "add required property without backfill"),
        ("OG-MF-104", "validated", False, "nullable → non-nullable"),
        ("OG-MF-106", "destructive", True, "property type change"),
    ],
)
def test_a_code_keeps_its_meaning(code, tier, emitted, text):
    meaning = MigrationCode(code).meaning
    assert (meaning.tier, meaning.emitted, meaning.text) == (Tier(tier), emitted, text)
    assert meaning.severity is Severity.ERROR


def test_every_code_has_a_meaning():
    assert set(CODE_MEANINGS) == set(MigrationCode)
    assert all(re.fullmatch(r"OG-[A-Z]{2}-\d{3}", code.value) for code in MigrationCode)


def test_families_in_use_and_reserved_ones_are_different():
    assert {code.family for code in MigrationCode} == {"DS", "MF"}
    assert RESERVED_FAMILIES == ("CD", "BC", "NM", "OW", "NL", "VE", "ED", "LK")


def test_tiers_and_severities_are_closed_sets():
    assert [tier.value for tier in Tier] == ["safe", "validated", "destructive"]
    assert [severity.value for severity in Severity] == ["error", "warn", "info"]
