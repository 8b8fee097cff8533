"""Plays the stories the engine can already tell on the engine itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.engine_backend import EngineBackend, can_play
from tests.support.cases import Case, read_cases, run_case

FOLDER = Path(__file__).parent
CASES = [c for path in sorted(FOLDER.glob("*.gqt")) for c in read_cases(path) if can_play(c)]


def as_parameter(case: Case):
    marks = [pytest.mark.acceptance(*case.proves)] if case.proves else []
    return pytest.param(case, id=f"{case.path.stem}: {case.title}", marks=marks)


@pytest.mark.parametrize("case", [as_parameter(case) for case in CASES])
def test_case(case: Case):
    run_case(case, EngineBackend)
