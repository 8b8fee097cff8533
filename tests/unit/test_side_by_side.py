"""Calls made at the same time, also while the interpreter ends."""

from __future__ import annotations

import subprocess
import sys

import pytest

from omnigraph.side_by_side import begin, both, each


def fail(name: str) -> None:
    raise ValueError(name)


def test_the_error_of_the_first_of_two_calls_is_raised():
    with pytest.raises(ValueError, match="first"):
        both(lambda: fail("first"), lambda: fail("second"))
    with pytest.raises(ValueError, match="second"):
        both(lambda: 1, lambda: fail("second"))
    assert both(lambda: 1, lambda: 2) == (1, 2)


def test_results_come_in_the_order_of_the_calls():
    assert each([lambda: 1, lambda: 2, lambda: 3]) == [1, 2, 3]
    assert begin(lambda: 4)() == 4


AT_THE_END = """
import time
from omnigraph.side_by_side import begin, both, each

def late():
    time.sleep(0.5)  # The main thread has ended by then.
    print(both(lambda: 1, lambda: 2), each([lambda: 3, lambda: 4]), begin(lambda: 5)())

begin(late)
"""


def test_calls_are_made_while_the_interpreter_ends():
    ended = subprocess.run(
        [sys.executable, "-c", AT_THE_END], capture_output=True, text=True, timeout=60
    )
    assert (ended.stdout, ended.stderr) == ("(1, 2) [3, 4] 5\n", "")
