"""The root of the tree, and what a caller may do after an error."""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar

from omnigraph.diagnostics import cut_values


class Retry(Enum):
    """What a caller may do after the error."""

    NEVER = "never"
    AS_IS = "as is"
    PREPARE_AGAIN = "prepare again"
    WITH_KEY = "with the same key"


class OmnigraphError(Exception):
    """Root of all errors raised by this product."""

    code: ClassVar[str] = "OG-X-000"
    kind: ClassVar[str] = "internal"
    retry: ClassVar[Retry] = Retry.NEVER

    def __init__(self, message: str) -> None:
        message = cut_values(message)
        super().__init__(message)
        self.message = message

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.args, self.__dict__)


def _restore(
    cls: type[OmnigraphError], args: tuple[object, ...], state: dict[str, object]
) -> OmnigraphError:
    """Rebuild a pickled error without calling its constructor, whose arguments differ per class."""
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error
