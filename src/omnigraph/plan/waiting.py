"""Items of a pattern that wait for their variables to be bound."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Waiting(Generic[_T]):
    """Items in order, each ready once all variables it mentions are bound."""

    def __init__(self, items: Iterable[tuple[_T, Iterable[str]]], bound: Container[str]) -> None:
        self._items: dict[int, _T] = {}
        self._missing: dict[int, int] = {}
        self._mentioning: dict[str, list[int]] = {}
        self._ready: list[int] = []
        for number, (item, variables) in enumerate(items):
            mentioned = set(variables)
            self._items[number] = item
            for variable in mentioned:
                self._mentioning.setdefault(variable, []).append(number)
            self._missing[number] = sum(variable not in bound for variable in mentioned)
            if not self._missing[number]:
                self._ready.append(number)

    def bind(self, variable: str) -> None:
        for number in self._mentioning.get(variable, ()):
            self._missing[number] -= 1
            if not self._missing[number]:
                self._ready.append(number)

    def take_ready(self) -> list[_T]:
        ready, self._ready = sorted(self._ready), []
        return [self._items.pop(number) for number in ready if number in self._items]

    def mentioning(self, variable: str) -> list[tuple[int, _T]]:
        """The items left that mention a variable, with their numbers."""
        numbers = self._mentioning.get(variable, ())
        return [(number, self._items[number]) for number in numbers if number in self._items]

    def get(self, number: int) -> _T | None:
        return self._items.get(number)

    def remove(self, number: int) -> None:
        del self._items[number]
