"""Which tests go to one worker, and what begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scheduling import GROUPS, LONGEST_FIRST, place_in_queue, unit_of

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("whole_files", [False, True])
def test_the_tests_of_a_group_are_one_unit(whole_files):
    tests = ["tests/spark/test_loads.py::test_a", "tests/spark/test_tasks.py::test_b[x::y]"]
    assert {unit_of(test, whole_files) for test in tests} == {"tests/spark/"}


def test_other_tests_go_to_a_worker_by_file_or_one_by_one():
    test = "tests/unit/test_errors.py::test_a[x::y]"
    assert unit_of(test, whole_files=True) == "tests/unit/test_errors.py"
    assert unit_of(test, whole_files=False) == test


def test_groups_and_what_begins_exist():
    assert [path for path in {*GROUPS, *LONGEST_FIRST} if not (ROOT / path).exists()] == []


def test_what_takes_long_begins():
    tests = ["tests/unit/test_errors.py::test_a", "tests/model/test_merges.py::test_b"]
    assert sorted(tests, key=place_in_queue) == tests[::-1]


def test_one_worker_runs_a_group_and_both_run_something(pytester, monkeypatch):
    """Real workers: a scheduler that pytest-xdist does not ask would go unnoticed otherwise."""
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest("pytest_plugins = ['tests.scheduling']")
    pytester.makeini("[pytest]\naddopts = --import-mode=importlib")
    body = "import pytest\n@pytest.mark.parametrize('n', range(6))\ndef test(n): pass\n"
    for file in ("spark/test_a", "spark/test_b", "unit/test_c", "unit/test_d"):
        path = pytester.path / f"tests/{file}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body)
    ran = pytester.runpytest_subprocess("-v", "-n", "2", "--dist", "loadfile", "-p", "no:randomly")
    ran.assert_outcomes(passed=24)
    workers: dict[str, set[str]] = {}
    for line in ran.outlines:
        if " PASSED " in line:
            file = line.split(" PASSED ")[1].partition("::")[0]
            workers.setdefault(file, set()).add(line[1:4])
    assert len(workers["tests/spark/test_a.py"] | workers["tests/spark/test_b.py"]) == 1
    assert set().union(*workers.values()) == {"gw0", "gw1"}
