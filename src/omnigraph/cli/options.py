"""The options and arguments that mean the same in every command that has them."""

from __future__ import annotations

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")

uri_argument = click.argument("uri", required=False)
"""The graph, for commands that are about the graph as a whole."""

uri_option = click.option("--uri", metavar="URI", help="Address of the graph.")
"""The graph, for commands whose argument names something in it."""

branch_option = click.option(
    "--branch", default="main", show_default=True, metavar="BRANCH", help="Branch to work on."
)
