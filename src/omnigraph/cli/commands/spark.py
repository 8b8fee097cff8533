"""`omnigraph spark warm`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from omnigraph.cli.framework import declare
from omnigraph.cli.options import json_option
from omnigraph.cli.output.answers import write_answer
from omnigraph.cli.progress import progress

if TYPE_CHECKING:
    from omnigraph.spark.start_cache import StartCache


@declare("spark warm")
@json_option
def warm(as_json: bool) -> None:
    """Prepare a cache that makes Spark start faster on this machine.

    Runs Spark once, which takes about a minute, and writes a file of about 180 MB to the cache directory of
    the user, or to the directory that OMNIGRAPH_SPARK_CACHE names. Does nothing if the file exists.
    """
    from omnigraph.spark.start_cache import warm

    with progress("making a start cache", as_json=as_json) as shown:
        made = warm(shown)
    write_answer(made.to_json(), _lines(made), as_json=as_json)


def _lines(made: StartCache) -> Iterator[str]:
    size = f"{made.bytes / 1e6:.0f} MB"
    if not made.created:
        yield f"{made.file} is there already ({size}); delete it to make a new one"
        return
    yield f"wrote {made.file} ({size})"
    yield f"a session starts in {made.seconds_with:.1f} s, without the file in {made.seconds_without:.1f} s"
