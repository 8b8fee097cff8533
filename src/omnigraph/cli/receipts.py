"""What every write adds to its answer: the receipt fields, the last line, and its warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph.cli.style import warn

if TYPE_CHECKING:
    from omnigraph.engine.history.commits import Receipt

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
