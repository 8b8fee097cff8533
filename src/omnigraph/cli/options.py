"""The options and arguments that mean the same in every command that has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")

uri_argument = click.argument("uri", required=False)
"""The graph, for commands that are about the graph as a whole."""

uri_option = click.option("--uri", metavar="URI", help="Address of the graph.")
"""The graph, for commands whose argument names something in it."""

branch_option = click.option(
    "--branch", default="main", show_default=True, metavar="BRANCH", help="Branch to work on."
)

message_option = click.option(
    "-m", "--message", metavar="TEXT", help="Message to keep with the commit."
)


def expect_head_option(branch: str = "the branch") -> Callable[[F], F]:
    """The head a write insists on; `branch` is how the help calls what it writes to."""
    text = f"Fail unless this is the newest commit of {branch}."
    return click.option("--expect-head", metavar="COMMIT", help=text)
