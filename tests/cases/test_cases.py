"""Plays every story in this folder. A story on the reference graph alone proves nothing about an
engine, so its acceptance rows count as partly done."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cases import Case, ModelBackend, read_cases, run_case

CASES = [case for path in sorted(Path(__file__).parent.glob("*.gqt")) for case in read_cases(path)]


def as_parameter(case: Case):
    marks = [pytest.mark.acceptance(*case.proves, partly="reference model only")]
    return pytest.param(
        case, id=f"{case.path.stem}: {case.title}", marks=marks if case.proves else []
    )


@pytest.mark.parametrize("case", [as_parameter(case) for case in CASES])
def test_case(case: Case):
    run_case(case, ModelBackend)
