"""The two forms of a command's answer: a document for programs, lines for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

from omnigraph.cli.output.json import write_document


def write_answer(document: Mapping[str, object], lines: Iterable[str], *, as_json: bool) -> None:
    """Print one of the two to standard output."""
    if as_json:
        write_document(document, sys.stdout)
    else:
        sys.stdout.writelines(f"{line}\n" for line in lines)
