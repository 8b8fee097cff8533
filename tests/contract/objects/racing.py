"""What one of several racing threads or processes does. Importable by a spawned process."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from omnigraph.errors import ObjectMissing
from omnigraph.storage.durability import Durability
from omnigraph.storage.objects import open_store
from omnigraph.storage.uris import normalise_root

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph.storage.objects import ObjectStore, VersionToken

SIZE = 200_000


def in_process(work: str, uri: str, environment: Mapping[str, str], *arguments: object) -> object:
    """Run one of the functions below on a store opened in this process."""
    os.environ.update(environment)
    store = open_store(normalise_root(uri), Durability.NONE)
    return globals()[work](store, *arguments)


def create_all(store: ObjectStore, rounds: int, writer: int, start: float) -> list[int]:
    """Try to create the same objects as everybody else; returns the ones won."""
    wait_until(start)
    return [n for n in range(rounds) if store.write_text_if_absent(f"race/{n}", text_of(writer))]


def replace_once(store: ObjectStore, token: VersionToken, writer: int, start: float) -> bool:
    """Try to replace what everybody else has read as well."""
    wait_until(start)
    return store.write_text_if_match("race", text_of(writer), token) is not None


def count_up(store: ObjectStore, times: int, start: float) -> None:
    """Add one to a number, as often as asked, beginning again whenever somebody was faster."""
    wait_until(start)
    for _ in range(times):
        while True:
            number, token = store.read_text_versioned("number")
            # A text of its own for each writer: equal ones would be taken for no change.
            if store.write_text_if_match(
                "number", f"{int(number.split()[0]) + 1} {unique()}", token
            ):
                break


def watch(store: ObjectStore, path: str, stop: float) -> list[str]:
    """The texts seen at a path, each once, shortened; what is incomplete shows."""
    seen: dict[str, None] = {}
    while time.time() < stop:
        try:
            text = store.read_text(path)
        except ObjectMissing:
            continue
        seen[f"{text[:2]}…{len(text)}"] = None
        assert len(set(text)) == 1, "a mixture of two texts"
    return list(seen)


def text_of(writer: int) -> str:
    return str(writer) * SIZE


def shown(writer: int) -> str:
    return f"{str(writer) * 2}…{SIZE}"


def unique() -> str:
    return os.urandom(8).hex()


def wait_until(start: float) -> None:
    time.sleep(max(0.0, start - time.time()))
