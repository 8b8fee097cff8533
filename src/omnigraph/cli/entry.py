"""The entry point of the installed command `omnigraph`. Importing it is the first step of running it."""

from omnigraph.cli.signals import Signals

_signals = Signals()
_signals.watch()


def run() -> int:
    """Run the command line of this process; the result is its exit code."""
    from omnigraph.cli.main import run

    return _signals.run(run)
