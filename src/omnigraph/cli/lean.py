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
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.startswith("pyspark."):
            sys.meta_path.remove(self)
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)
        return None
