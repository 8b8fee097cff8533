"""What reads keep in memory, within one budget of bytes; least recently used goes first.

Everything kept is immutable and can be made again, so losing an entry costs time and nothing else.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Protocol, TypeVar, cast


class Sized(Protocol):
    """Something that knows how many bytes it holds."""

    @property
    def nbytes(self) -> int: ...


_Kept = TypeVar("_Kept", bound=Sized)


class ByteCache:
    """A cache bounded by bytes. Thread-safe; values are made outside its lock."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._entries: OrderedDict[Hashable, Any] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()
        self._losses = 0

    @property
    def nbytes(self) -> int:
        """The bytes that are kept."""
        return self._bytes

    @property
    def losses(self) -> int:
        """How often something was lost. Who holds on to entries lets go of them when this grows."""
        return self._losses

    def get(self, key: Hashable) -> Any | None:
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
            return found

    def put(self, key: Hashable, value: Sized) -> None:
        """Keep a value; one that alone exceeds the budget is not kept."""
        size = value.nbytes
        with self._lock:
            self._remove(key)
            if size > self._budget:
                self._losses += 1
                return
            self._entries[key] = value
            self._bytes += size
            while self._bytes > self._budget:
                self._remove(next(iter(self._entries)))

    def put_if_room(self, key: Hashable, value: Sized) -> None:
        """Keep a value unless something else would have to go for it."""
        with self._lock:
            has_room = self._bytes + value.nbytes <= self._budget
        if has_room:
            self.put(key, value)

    def get_or_make(self, key: Hashable, make: Callable[[], _Kept]) -> _Kept:
        found = self.get(key)
        if found is None:
            found = make()
            self.put(key, found)
        return cast(_Kept, found)

    def clear(self) -> bool:
        """Let go of everything; whether there was anything."""
        with self._lock:
            had_some = bool(self._entries)
            self._entries.clear()
            self._bytes = 0
            self._losses += 1
        return had_some

    def _remove(self, key: Hashable) -> None:
        gone = self._entries.pop(key, None)
        if gone is not None and gone.nbytes:
            self._bytes -= gone.nbytes
            self._losses += 1


class GuestCache(ByteCache):
    """What a read of an earlier state uses: all that is kept of the newest state, and its own.

    Its own things never take the place of those of the newest state, nor push anything out.
    """

    def __init__(self, host: ByteCache, state: Hashable) -> None:
        super().__init__(0)
        self._host = host
        self._state = state

    def get(self, key: Hashable) -> Any | None:
        found = self._host.get(("guest", self._state, key))
        return self._host.get(key) if found is None else found

    def put(self, key: Hashable, value: Sized) -> None:
        self._host.put_if_room(("guest", self._state, key), value)
