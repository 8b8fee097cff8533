"""The guides are true: what they run prints what they show, apart from ids and times."""

from __future__ import annotations

import doctest
import io
import re
import shlex
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from omnigraph.cli.main import main
from tests.docs.test_user_docs import FOLDER, blocks_of, commands_of
from tests.docs.test_user_docs import run as run_in_shell

PAGES = {
    "analytics.md": 5,
    "blobs.md": 4,
    "clusters.md": 9,
    "configuration.md": 8,
    "data.md": 8,
    "embeddings.md": 5,
    "graphs.md": 10,
    "history.md": 2,
    "merging.md": 15,
    "maintenance.md": 8,
    "policy.md": 7,
    "queries.md": 4,
    "pictures.md": 0,
    "quickstart.md": 10,
    "quickstart-python.md": 0,
    "search.md": 5,
    "shell.md": 2,
    "stored-queries.md": 3,
}
"""The pages that run, each with the number of commands there are at least."""

_ID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")
_TIME = re.compile(r"\b\d{16}\b")


class Ids:
    """Which id of this run stands where the page has another one."""

    def __init__(self) -> None:
        self._real: dict[str, str] = {}

    def learn(self, shown: str, printed: str) -> None:
        for page_id, real_id in zip(_ID.findall(shown), _ID.findall(printed), strict=False):
            self._real.setdefault(page_id, real_id)

    def translate(self, text: str) -> str:
        return _ID.sub(lambda match: self._real.get(match[0], match[0]), text)


def without_times(text: str) -> str:
    return _TIME.sub("<time>", text)


def run(command: str, folder: Path) -> str:
    """All that a command prints. Our own need no process for that, which saves most of the time."""
    program, *args = shlex.split(command)
    if program != "omnigraph":
        return run_in_shell(command, folder)
    # As the streams of a process: text over bytes, which exports write.
    with (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) as out,
        redirect_stdout(out),
        redirect_stderr(out),
        chdir(folder),
    ):
        main(args)
        out.seek(0)
        return out.read()


def run_page(page: Path, folder: Path) -> list[tuple[str, str, str]]:
    """Every command of a page with what is shown, in the ids of this run, and what is printed."""
    ids, found = Ids(), []
    for block in blocks_of(page):
        if block.file is not None:
            (folder / block.file).parent.mkdir(exist_ok=True)
            (folder / block.file).write_text(block.text, encoding="utf-8")
        if block.language == "console":
            for command, shown in commands_of(block):
                printed = run(ids.translate(command), folder)
                ids.learn(shown, printed)
                found.append((command, ids.translate(shown), printed))
    return found


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_guide_print_what_it_shows(page, tmp_path, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / ".omnigraph"))
    if page != "configuration.md":  # The page about project files shows their notice.
        monkeypatch.setenv("OMNIGRAPH_SUPPRESS_YAML_DEPRECATION", "1")
    found = run_page(FOLDER / page, tmp_path)
    assert len(found) >= PAGES[page]
    for command, shown, printed in found:
        assert (command, without_times(printed)) == (command, without_times(shown))
    assert run_python(FOLDER / page, tmp_path) == ""


def run_python(page: Path, folder: Path) -> str:
    """What the Python sessions of a page print differently, after its commands were run."""
    report = io.StringIO()
    runner = doctest.DocTestRunner(verbose=False)
    names: dict[str, object] = {}
    for block in blocks_of(page):
        if block.language == "pycon":
            test = doctest.DocTestParser().get_doctest(block.text, {}, str(block), page.name, 0)
            test.globs = names  # The blocks of a page are one session.
            with chdir(folder):
                runner.run(test, out=report.write, clear_globs=False)
    return report.getvalue()


def test_an_output_that_differs_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```console\n$ echo 01ARZ3NDEKTSV4RRFFQ69G5FA0\n01ARZ3NDEKTSV4RRFFQ69G5FA9\n"
        "$ echo 01ARZ3NDEKTSV4RRFFQ69G5FA9 b\n01ARZ3NDEKTSV4RRFFQ69G5FA9 a\n```\n"
    )
    (_, shown, printed), (_, shown_after, printed_after) = run_page(page, tmp_path)
    assert shown == printed == "01ARZ3NDEKTSV4RRFFQ69G5FA0\n"
    assert printed_after == "01ARZ3NDEKTSV4RRFFQ69G5FA0 b\n"
    assert shown_after == "01ARZ3NDEKTSV4RRFFQ69G5FA0 a\n"


def test_a_python_session_that_differs_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```pycon\n>>> 1 + 1\n3\n```\n")
    assert "Got:\n    2" in run_python(page, tmp_path)
