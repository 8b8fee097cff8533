"""What an open graph knows of a branch without asking storage."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.versioning.contract import SchemaContract
from omnigraph.versioning.manifest import ManifestState


@dataclass(frozen=True, slots=True)
class KnownSchema:
    """The state of a branch that was read or written last, and the schema it was made under."""

    state: ManifestState
    contract: SchemaContract
