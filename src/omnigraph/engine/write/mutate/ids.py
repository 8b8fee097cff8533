"""What a mutation takes from outside: fresh ids and the time, the same on every run of one query."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from omnigraph.versioning.ids import new_ulid, now_micros


class MutationIds:
    """The ids and the one `now()` of a mutation, kept while it is prepared again and again."""

    def __init__(self, make: Callable[[], str] = new_ulid, now_ms: int | None = None) -> None:
        self.now_ms = now_micros() // 1000 if now_ms is None else now_ms
        self._make = make
        self._made: list[str] = []

    def from_first(self) -> Iterator[str]:
        """The ids from the first one on; each run gets the same ones in the same order."""
        number = 0
        while True:
            if number == len(self._made):
                self._made.append(self._make())
            yield self._made[number]
            number += 1
