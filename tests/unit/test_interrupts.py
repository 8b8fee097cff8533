"""Work that a Ctrl-C must not cut short."""

from __future__ import annotations

import gc
import importlib
import itertools
import os
import re
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

import omnigraph
from omnigraph.interrupts import uninterrupted
from omnigraph.temporary import TemporaryFolder, remove_folder


def interrupt(times: int = 1) -> None:
    for _ in range(times):
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_interrupt_waits_for_the_end_of_the_work(times, moment):
    done = []

    def work():
        if moment == "before":
            interrupt(times)
        time.sleep(0.01)
        done.append("work")
        if moment == "after":
            interrupt(times)

    for _ in range(20):
        with pytest.raises(KeyboardInterrupt):
            uninterrupted(work)
        assert done.pop() == "work"


def test_an_interrupt_from_another_thread_waits_too():
    done = []

    def work():
        thread = threading.Thread(target=interrupt)
        thread.start()
        thread.join()
        done.append("work")

    with pytest.raises(KeyboardInterrupt):
        uninterrupted(work)
    assert done == ["work"]


def test_undisturbed_work_returns_and_the_handlers_are_as_before():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    assert uninterrupted(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        uninterrupted(lambda: 1 // 0)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_handler_of_the_program_is_called_afterwards(monkeypatch):
    seen = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: seen.append(number))
    try:

        def work():
            os.kill(os.getpid(), signal.SIGTERM)
            return list(seen)

        assert uninterrupted(work) == []
        assert seen == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_other_threads_just_do_the_work():
    results = []
    thread = threading.Thread(target=lambda: results.append(uninterrupted(lambda: 7)))
    thread.start()
    thread.join()
    assert results == [7]


@pytest.mark.parametrize("moment", ["made", "removed"])
def test_an_interrupt_leaves_no_temporary_folder(tmp_path, monkeypatch, moment):
    """Neither between making it and knowing it, nor half removed."""
    called = {"made": "tempfile.mkdtemp", "removed": "shutil.rmtree"}[moment]
    module, _, name = called.partition(".")
    real = getattr(importlib.import_module(module), name)

    def interrupted(*args, **given):
        result = real(*args, **given)
        interrupt()
        time.sleep(0)
        return result

    with monkeypatch.context() as patched:
        patched.setattr(called, interrupted)
        with pytest.raises(KeyboardInterrupt), TemporaryFolder("a-", tmp_path) as folder:
            (Path(folder) / "file").touch()
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_others_still_write_to_is_removed(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    ended = time.monotonic() + 0.3

    def write() -> None:
        number = itertools.count()
        while time.monotonic() < ended:
            with suppress(OSError):
                (folder / str(next(number))).touch()

    other = threading.Thread(target=write)
    other.start()
    remove_folder(folder)
    other.join()
    assert not folder.exists()


def test_temporary_folders_are_made_in_one_module():
    """Folders of `tempfile` itself are left behind by an interrupt at the wrong moment."""
    package = Path(omnigraph.__file__).parent
    makers = re.compile(r"tempfile\.(TemporaryDirectory|mkdtemp|mkstemp|NamedTemporaryFile)")
    found = {
        f.relative_to(package).as_posix()
        for f in package.rglob("*.py")
        if makers.search(f.read_text())
    }
    # Java has its own folder, made together with the process.
    assert found == {"temporary.py", "spark/gateway.py"}
