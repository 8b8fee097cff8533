"""A command line in a process of its own, and what it has imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path


def run(arguments: Sequence[str], names: str, folder: str) -> None:
    """Run the command line in a folder, and write the names of all modules that are loaded then."""
    from omnigraph.cli.main import main

    os.chdir(folder)
    assert main(list(arguments)) == 0
    Path(names).write_text("\n".join(sys.modules))
