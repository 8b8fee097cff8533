"""Exit codes, and how a failure is told to a person.

0 success, 1 failure, 2 wrong use of the command line; 130 after an interrupt, as shells do
(`cli/signals.py` has the other signals). An error of the product never shows a stack trace; a defect
shows one only when `OMNIGRAPH_DEBUG` is set, because its reader is a developer.
"""

from __future__ import annotations

import sys
from typing import Final

from omnigraph.cli.style import Style
from omnigraph.errors import LanguageError, OmnigraphError

SUCCESS: Final = 0
FAILURE: Final = 1
INTERRUPTED: Final = 130


def _wants_traces() -> bool:
    from omnigraph.settings import read_text

    return read_text("OMNIGRAPH_DEBUG") is not None


def report(error: Exception) -> int:
    """Print a failure to standard error and give the exit code for it."""
    if isinstance(error, LanguageError):
        # Places in a file come first, as editors expect; the rule that was broken is named there.
        message = str(error)
    elif isinstance(error, OmnigraphError):
        # Only an error has to wait for this; `omnigraph version` loads as little as it can.
        from omnigraph.cli.hints import hint_for

        hint = hint_for(error)
        message = f"error[{error.code}]: {error}" + (f"\n   hint: {hint}" if hint else "")
    elif isinstance(error, OSError):
        message = f"io: {error.strerror or error}"
    elif _wants_traces():
        sys.excepthook(type(error), error, error.__traceback__)
        return FAILURE
    else:
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        message = f"internal error: {what}\nset OMNIGRAPH_DEBUG=1 to see the stack trace"
    headline, newline, rest = message.partition("\n")
    print(f"{Style.of(sys.stderr).error(headline)}{newline}{rest}", file=sys.stderr)
    return FAILURE
