"""The entry point of the installed command `omnigraph`. Importing it is the first step of running it."""

import gc

from omnigraph.cli.signals import Signals

_OBJECTS_BETWEEN_COLLECTIONS = 100_000

_signals = Signals()
_signals.watch()


def run() -> int:
    """Run the command line of this process; the result is its exit code."""
    # A command makes many objects while it starts, and hardly any of them is garbage.
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    from omnigraph.cli.main import main

    return _signals.run(main)
