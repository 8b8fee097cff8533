"""Operator configuration: `config.yaml` in `~/.omnigraph` or `OMNIGRAPH_HOME`.

Options win over environment variables, and those over this file. Only the command line reads it.
Tests: tests/unit/cli/test_operator_config.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, get_args

import click

from omnigraph.cli.style import warn
from omnigraph.errors import OperatorConfigError
from omnigraph.settings import read_settings
from omnigraph.spark.choice import Engine, EngineChoice


@dataclass(frozen=True, slots=True)
class OperatorConfig:
    """Settings from the file; all unset without a file."""

    engine: str | None = None
    spark_master: str | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict)


def chosen_engine(engine: str | None, master: str | None) -> EngineChoice:
    """The engine selected by options, environment or configuration file, in this order.

    Sessions started from now on use the file too, and Java starts at once if Spark is required for
    certain. Raises a usage error for a master that would not be used.
    """
    if engine == "inline" and master is not None:
        raise click.UsageError("--master is of no use with --engine inline.")
    config = read_operator_config()
    if config.spark_master is not None or config.spark_conf:
        from omnigraph.spark.session import prefer

        prefer(config.spark_master, config.spark_conf)
    if engine is None:
        wanted = read_settings().engine or config.engine
        engine = wanted if master is None else "spark"
    if engine == "spark":
        # Before Java is started; a call without Spark would only find out later.
        from omnigraph.spark.java import require_spark

        require_spark("engine 'spark'" if master is None else f"the Spark master '{master}'")
        from omnigraph.spark.session import expect_session

        expect_session(master)
    return EngineChoice(cast("Engine", engine or "auto"), master=master)


def read_operator_config() -> OperatorConfig:
    """Read the file and warn about unknown keys. Raises `OperatorConfigError`."""
    path = _path()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return OperatorConfig()
    except OSError as error:
        raise OperatorConfigError(str(path), (error.strerror or "unreadable").lower()) from None
    except UnicodeDecodeError:
        raise OperatorConfigError(str(path), "it is not UTF-8 text") from None
    # Most people have no such file, and every command would wait for YAML.
    from omnigraph.documents import DocumentError, parse_document

    try:
        document = parse_document(text)
    except DocumentError as error:
        raise OperatorConfigError(str(path), str(error)) from None
    return _Reader(str(path)).read(document)


def _path() -> Path:
    home = read_settings().home
    return Path(home).expanduser() / "config.yaml"


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one document; messages name the file."""

    path: str

    def read(self, document: object) -> OperatorConfig:
        top = self._section(document, "", ("defaults", "spark"))
        defaults = self._section(top.get("defaults"), "defaults.", ("engine",))
        spark = self._section(top.get("spark"), "spark.", ("master", "conf"))
        engine = defaults.get("engine")
        if engine is not None and engine not in get_args(Engine):
            raise self._wrong(f"defaults.engine must be one of {', '.join(get_args(Engine))}")
        master = spark.get("master")
        if master is not None and not isinstance(master, str):
            raise self._wrong("spark.master must be the address of a master")
        conf = self._section(spark.get("conf"), "spark.conf.", None)
        return OperatorConfig(engine, master, {key: self._text(key, conf[key]) for key in conf})

    def _section(
        self, value: object, prefix: str, known: tuple[str, ...] | None
    ) -> Mapping[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._wrong(f"{prefix.rstrip('.') or 'the document'} must have keys and values")
        for key in value:
            if known is not None and key not in known:
                warn(f"{self.path}: unknown key {prefix}{key}; ignored")
        return value

    def _text(self, key: str, value: object) -> str:
        """A setting as Spark takes it."""
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str | int | float):
            return str(value)
        raise self._wrong(f"spark.conf.{key} must be a text, a number, true or false")

    def _wrong(self, problem: str) -> OperatorConfigError:
        return OperatorConfigError(self.path, problem)
