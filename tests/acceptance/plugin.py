"""The ``acceptance`` marker: checks its ids at collection and reports the rows after the run.

Claims travel from the test to the report as a user property, which pytest-xdist carries from its
worker processes to the one that prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.acceptance.catalogue import read_catalogue
from tests.acceptance.report import Claim, Record

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

_PROPERTY = "acceptance"


class InvalidMarker(Exception):
    """An ``acceptance`` marker that names no row, an unknown row, or a word we do not know."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--acceptance-report",
        action="store_true",
        help="after the run, print every proven acceptance row with its test, then the open rows",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Plugin(), "acceptance-rows")


class _Plugin:
    def __init__(self) -> None:
        catalogue = read_catalogue()
        self._ids = catalogue.ids
        self._record = Record(catalogue)
        self._worst: dict[str, str] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self,
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Turn a wrong marker into a collection error of the file that holds it."""
        report = yield
        problems: dict[str, None] = {}
        for item in report.result or ():
            if isinstance(item, pytest.Item):
                try:
                    claims = list(self._claims(item))
                except InvalidMarker as problem:
                    problems[f"{item.nodeid.partition('[')[0]}: {problem}"] = None
                    continue
                for claim in claims:
                    item.user_properties.append((_PROPERTY, [list(claim.ids), claim.missing]))
        if problems:
            report.outcome = "failed"
            report.longrepr = "\n".join(problems)
            report.result = []
        return report

    def _claims(self, item: pytest.Item) -> Iterator[Claim]:
        for marker in item.iter_markers("acceptance"):
            if not marker.args:
                raise InvalidMarker("the acceptance marker needs at least one row id")
            if unknown := [id for id in marker.args if id not in self._ids]:
                raise InvalidMarker(f"unknown acceptance row {', '.join(map(repr, unknown))}")
            if extra := marker.kwargs.keys() - {"partly"}:
                raise InvalidMarker(f"unknown keyword {', '.join(sorted(extra))}; use partly=…")
            missing = marker.kwargs.get("partly")
            if missing is not None and not (isinstance(missing, str) and missing.strip()):
                raise InvalidMarker("partly= must say in words what is still missing")
            yield Claim(marker.args, missing)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # A test is as good as its worst phase; an expected failure proves nothing.
        order = ["passed", "skipped", "failed"]
        outcome = "failed" if hasattr(report, "wasxfail") else report.outcome
        worst = max(self._worst.get(report.nodeid, "passed"), outcome, key=order.index)
        self._worst[report.nodeid] = worst
        if report.when != "teardown":
            return
        claims = [
            Claim(tuple(value[0]), value[1])
            for name, value in report.user_properties
            if name == _PROPERTY and isinstance(value, list)
        ]
        self._record.add(report.nodeid, claims, self._worst.pop(report.nodeid))

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        if config.getoption("--acceptance-report"):
            terminalreporter.section("acceptance rows")
            for line in self._record.lines():
                terminalreporter.line(line)
