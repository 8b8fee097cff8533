"""Options and arguments shared by commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeVar, get_args

import click

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")

uri_argument = click.argument("uri", required=False)
"""The graph, for commands that are about the graph as a whole."""

uri_option = click.option("--uri", metavar="URI", help="Graph path or URI.")
"""The graph, for commands whose argument names something in it."""

branch_option = click.option(
    "--branch", default="main", show_default=True, metavar="BRANCH", help="Branch to work on."
)

message_option = click.option("-m", "--message", metavar="TEXT", help="Commit message.")


def _engine_option(when: str) -> Callable[[F], F]:
    from omnigraph.spark.choice import Engine

    return click.option(
        "--engine",
        type=click.Choice(get_args(Engine)),
        help="Engine to run on. Default: OMNIGRAPH_ENGINE, defaults.engine in the operator config, "
        f"or auto, which uses Spark {when}.",
    )


_master_option = click.option(
    "--master",
    metavar="URL",
    help="Spark master to run on. Default: OMNIGRAPH_SPARK_MASTER, spark.master in the operator config, "
    "or all cores of this machine.",
)


def engine_options(function: F) -> F:
    """Declare `--engine` and `--master`, for commands that can run on Spark."""
    return _engine_option("when it is faster")(_master_option(function))


def asking_engine_options(function: F) -> F:
    """The same for commands that call an embedding provider."""
    return _engine_option("for 8 MB of texts and more")(_master_option(function))


def comparing_engine_options(function: F) -> F:
    """The same for commands that compare rows."""
    return _engine_option("for a million rows that may differ and more")(_master_option(function))


def rewriting_engine_options(function: F) -> F:
    """The same for commands that rewrite rows."""
    return _engine_option("for twenty million rows and more")(_master_option(function))


def expect_head_option(branch: str = "the branch") -> Callable[[F], F]:
    """The required head of a write; `branch` names its target in the help."""
    text = f"Fail unless this is the newest commit of {branch}."
    return click.option("--expect-head", metavar="COMMIT", help=text)


full_option = click.option("--full", is_flag=True, help="Show long texts and vectors in full.")

idempotency_key_option = click.option(
    "--idempotency-key",
    metavar="KEY",
    help="Idempotency key; a repeated call returns the first receipt.",
)


def with_options(options: Sequence[Callable[[Any], Any]]) -> Callable[[F], F]:
    """Options that several commands take, in the order in which the help shows them."""
    return lambda function: reduce(lambda made, option: option(made), reversed(options), function)
