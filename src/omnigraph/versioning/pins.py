"""Named pins: commits of main whose rows stay readable whatever is cleaned up.

A pin is one small object. It is made and removed under the lock of main, which cleanup holds too.
Tests: tests/behaviour/test_pins.py.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import Any, Final

from omnigraph.diagnostics import with_hint
from omnigraph.errors import ConflictError, InputError, ManifestDamaged, NotFoundError
from omnigraph.storage.objects import ObjectStore
from omnigraph.versioning.commits import CommitId

PINS_DIR: Final = "__pins"
_FORMAT: Final = 1
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class NamedPin:
    """A name for a commit of main. `version` is the commit's place in the history."""

    name: str
    graph_commit_id: CommitId
    version: int
    created_at: int
    actor_id: str | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Pins:
    """The pins of one graph."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def list(self) -> list[NamedPin]:
        """All pins by name."""
        paths = self._objects.list_dir(PINS_DIR)
        names = sorted(path.rpartition("/")[2] for path in paths)
        return [self._read(name.removesuffix(".json")) for name in names if name.endswith(".json")]

    def add(self, pin: NamedPin) -> None:
        """Raises `ConflictError` when there is a pin of that name."""
        if not self._objects.write_text_if_absent(
            _path(pin.name), json.dumps({"pin_version": _FORMAT, **pin.to_json()}, indent=2)
        ):
            raise ConflictError(f"pin '{pin.name}' already exists; remove it first")

    def remove(self, name: str) -> None:
        """Raises `NotFoundError` when there is no such pin."""
        if not self._objects.exists(_path(check_pin_name(name))):
            known = [pin.name for pin in self.list()]
            raise NotFoundError(with_hint(f"pin '{name}' not found", name, known))
        self._objects.delete(_path(name))

    def _read(self, name: str) -> NamedPin:
        try:
            document = json.loads(self._objects.read_text(_path(name)))
            if document.pop("pin_version") != _FORMAT:
                raise ValueError("it was written by a newer version")
            return NamedPin(**document)
        except (ValueError, KeyError, TypeError) as error:
            # What it protects is not known, so nothing may be removed.
            raise ManifestDamaged(f"pin '{name}' cannot be read: {error!r}") from error


def check_pin_name(name: str) -> str:
    """The name, if a pin can have it. Raises `InputError`."""
    if not _NAME.fullmatch(name):
        rule = "up to 64 letters, digits and the characters `._-`, a letter or digit first"
        raise InputError(f"'{name}' is no name for a pin; it has {rule}")
    return name


def _path(name: str) -> str:
    return f"{PINS_DIR}/{name}.json"
