"""What a command prints at its end: a JSON document, or lines; for writes with their receipt."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from omnigraph.cli.output.cells import write_document
from omnigraph.cli.style import warn

if TYPE_CHECKING:
    from omnigraph.history.commits import Receipt


def write_answer(document: Mapping[str, object], lines: Iterable[str], *, as_json: bool) -> None:
    """Print one of the two to standard output."""
    if as_json:
        write_document(document, sys.stdout)
    else:
        sys.stdout.writelines(f"{line}\n" for line in lines)


_FIELDS = ("graph_commit_id", "parent_commit_id", "manifest_version", "operation", "counts")


def receipt_fields(receipt: Receipt) -> dict[str, Any]:
    """The part of a receipt that a command's document contains."""
    document = receipt.to_json()
    fields = {name: document[name] for name in _FIELDS}
    if receipt.replayed:
        fields["replayed"] = True
    return fields | {"warnings": document["warnings"]} if document["warnings"] else fields


def commit_lines(receipt: Receipt) -> list[str]:
    """The end of the lines for people: nothing, when nothing was committed."""
    return [f"commit {receipt.graph_commit_id}"] if receipt.graph_commit_id is not None else []


def warn_of(receipt: Receipt) -> None:
    """Print the warnings of a receipt to standard error."""
    if receipt.replayed:
        warn("an earlier call with this idempotency key made the commit; nothing was changed")
    for warning in receipt.warnings:
        warn(warning.message)
