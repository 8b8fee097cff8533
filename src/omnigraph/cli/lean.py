"""A process that runs one command does without pandas, which takes longer to import than most commands run.

The Arrow library looks for it whenever it makes an array. No command hands a data frame over, so to
this process it is not installed, until Spark is wanted, which cannot do without.
Tests: tests/surfaces/test_cli_process.py.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def leave_out_pandas() -> None:
    """Make `import pandas` fail as if it were not installed, until something imports Spark."""
    sys.meta_path.insert(0, _WithoutPandas())


class _WithoutPandas:
    _is_over = False

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        # The list of finders is not changed: somebody is going through it right now.
        self._is_over |= name.startswith("pyspark.")
        if name == "pandas" and not self._is_over:
            raise ModuleNotFoundError("No module named 'pandas'", name=name)
        return None
