"""The acceptance marker and its report, run on small suites of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.catalogue import Catalogue, Row, read_catalogue
from tests.acceptance.report import Claim, Record, Status, compress

ROOT = Path(__file__).parents[2]
CATALOGUE = Catalogue(
    rows=(
        Row("L-001", "Words", "first"),
        Row("L-002", "Words", "second"),
        Row("L-003", "Words", "third"),
        Row("S-001", "Bytes", "fourth"),
        Row("S-002", "Bytes", "fifth"),
    ),
    retired=frozenset(),
)


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A scratch test suite that knows the marker and nothing else of this one."""
    monkeypatch.syspath_prepend(ROOT)
    pytester.makeconftest("pytest_plugins = ['tests.acceptance.plugin']")
    pytester.makeini("[pytest]\nmarkers = acceptance")
    return pytester


def run(suite: pytest.Pytester, *args: str) -> pytest.RunResult:
    return suite.runpytest_inprocess("-p", "no:randomly", "--acceptance-report", *args)


class TestRecord:
    def test_a_row_without_a_test_is_open(self):
        assert Record(CATALOGUE).status("L-001") is Status.OPEN

    def test_a_complete_proof_outweighs_a_partial_one(self):
        record = Record(CATALOGUE)
        record.add("t.py::test_a", [Claim(("L-001",), "the other half")], "passed")
        record.add("t.py::test_b", [Claim(("L-001",))], "passed")
        assert record.status("L-001") is Status.PROVEN

    def test_a_failure_outweighs_every_proof(self):
        record = Record(CATALOGUE)
        record.add("t.py::test_a", [Claim(("L-001",))], "passed")
        record.add("t.py::test_b", [Claim(("L-001",))], "failed")
        assert record.status("L-001") is Status.FAILED

    def test_one_failing_case_spoils_its_test(self):
        record = Record(CATALOGUE)
        record.add("t.py::test_a[1]", [Claim(("L-001",))], "failed")
        record.add("t.py::test_a[2]", [Claim(("L-001",))], "passed")
        assert record.status("L-001") is Status.FAILED

    def test_the_report_names_results_open_rows_and_totals(self):
        record = Record(CATALOGUE)
        record.add("t.py::test_a[1]", [Claim(("L-001", "L-002"))], "passed")
        record.add("t.py::test_a[2]", [Claim(("L-001",))], "passed")
        record.add("t.py::test_b", [Claim(("L-003",), "reading it back")], "passed")
        assert list(record.lines()) == [
            "L-001  t.py::test_a (2 cases)  proven",
            "L-002  t.py::test_a            proven",
            "L-003  t.py::test_b            partly: reading it back",
            "",
            "Open rows",
            "  Bytes: all 2, S-001…S-002",
            "",
            "Totals",
            "  L: 2 proven, 1 partly, 0 open of 3",
            "  S: 0 proven, 2 open of 2",
        ]

    def test_rows_without_a_proof_are_listed_with_the_reason(self):
        catalogue = Catalogue(
            CATALOGUE.rows,
            frozenset(),
            decided={"it is measured": ("L-002",)},
            later={"the server": ("S-001", "S-002", "L-003")},
        )
        record = Record(catalogue)
        record.add("t.py::test_a", [Claim(("L-001", "L-003"))], "passed")
        record.add("t.py::test_b", [Claim(("S-001",), "the other half")], "passed")
        lines = list(record.lines())
        assert lines[lines.index("Rows decided otherwise") + 1] == "  it is measured: L-002"
        start = lines.index("Rows for later")
        assert lines[start + 1 : start + 3] == [
            "  the server: L-003, S-001…S-002",
            "    but proven: L-003",
        ]
        assert lines[-2:] == [
            "  L: 2 proven, 1 decided otherwise, 0 open of 3",
            "  S: 0 proven, 2 for later, 0 open of 2",
        ]

    def test_a_failure_counts_whatever_was_decided(self):
        record = Record(Catalogue(CATALOGUE.rows, frozenset(), decided={"no": ("L-002",)}))
        record.add("t.py::test_a", [Claim(("L-002",))], "failed")
        assert record.status("L-002") is Status.FAILED

    def test_a_partly_open_area_lists_its_open_rows_by_title(self):
        record = Record(CATALOGUE)
        record.add("t.py::test_a", [Claim(("L-002",))], "passed")
        lines = list(record.lines())
        start = lines.index("  Words: 2 of 3")
        assert lines[start + 1 : start + 3] == ["    L-001  first", "    L-003  third"]


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        (["L-001"], "L-001"),
        (["L-001", "L-002", "L-003", "L-007"], "L-001…L-003, L-007"),
        (["L-009", "L-010", "S-011"], "L-009…L-010, S-011"),
    ],
)
def test_neighbouring_ids_are_written_as_a_range(ids, text):
    assert compress(ids) == text


class TestMarker:
    @pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["one process", "two workers"])
    def test_claims_of_functions_cases_and_classes_reach_the_report(self, suite, workers):
        suite.makepyfile(
            test_scratch="""
            import pytest

            @pytest.mark.acceptance("L-001", "L-002")
            def test_pair(): pass

            @pytest.mark.parametrize("n", [
                pytest.param(1, marks=pytest.mark.acceptance("L-003", partly="the rest")),
                pytest.param(2, marks=pytest.mark.acceptance("L-004")),
            ])
            def test_cases(n): assert n == 1

            @pytest.mark.acceptance("L-005")
            class TestGroup:
                def test_skipped(self): pytest.skip("not today")

            @pytest.mark.acceptance("L-006")
            @pytest.mark.xfail
            def test_expected(): assert False

            @pytest.fixture
            def broken():
                yield
                raise RuntimeError

            @pytest.mark.acceptance("L-007")
            def test_teardown(broken): pass
            """
        )
        result = run(suite, *workers)
        rows = sum(row.id.startswith("L-") for row in read_catalogue().rows)
        result.stdout.fnmatch_lines(
            [
                "L-001  test_scratch.py::test_pair *proven",
                "L-002  test_scratch.py::test_pair *proven",
                "L-003  test_scratch.py::test_cases *partly: the rest",
                "L-004  test_scratch.py::test_cases *failed",
                "L-005  test_scratch.py::TestGroup::test_skipped *skipped",
                "L-006  test_scratch.py::test_expected *failed",
                "L-007  test_scratch.py::test_teardown *failed",
                "Open rows",
                f"  L: 2 proven, 1 partly, 3 failed, 1 skipped, {rows - 7} open of {rows}",
            ]
        )

    @pytest.mark.parametrize(
        ("marker", "message"),
        [
            ('("L-999")', "unknown acceptance row 'L-999'"),
            ('("S-030")', "unknown acceptance row 'S-030'"),
            ("()", "needs at least one row id"),
            ('("L-001", partially="x")', "unknown keyword partially"),
            ('("L-001", partly=" ")', "must say in words"),
        ],
    )
    def test_a_wrong_marker_stops_the_collection(self, suite, marker, message):
        suite.makepyfile(
            f"""
            import pytest

            @pytest.mark.acceptance{marker}
            def test_wrong(): pass
            """
        )
        result = run(suite)
        assert result.ret == pytest.ExitCode.INTERRUPTED
        result.stdout.fnmatch_lines([f"*::test_wrong: *{message}*"])

    def test_a_worker_reports_a_wrong_marker_too(self, suite):
        suite.makepyfile(
            """
            import pytest

            @pytest.mark.acceptance("L-999")
            def test_wrong(): pass
            """
        )
        result = run(suite, "-n", "1")
        assert result.ret != pytest.ExitCode.OK
        result.stdout.fnmatch_lines(["*::test_wrong: unknown acceptance row 'L-999'"])
