"""The root of the exception tree, and errors in source text."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, ClassVar

from omnigraph.diagnostics import Diagnostic, cut_values


class Retry(Enum):
    """How a caller may retry after the error."""

    NEVER = "never"
    AS_IS = "as is"
    PREPARE_AGAIN = "prepare again"
    WITH_KEY = "with the same key"


class OmnigraphError(Exception):
    """Root of all errors raised by OmniGraph."""

    code: ClassVar[str] = "OG-X-000"
    kind: ClassVar[str] = "internal"
    retry: Retry = Retry.NEVER

    def __init__(self, message: str) -> None:
        message = cut_values(message)
        super().__init__(message)
        self.message = message

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.args, self.__dict__)


def _restore(
    cls: type[OmnigraphError], args: tuple[object, ...], state: dict[str, object]
) -> OmnigraphError:
    """Rebuild a pickled error without its constructor, whose arguments differ per class."""
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class LanguageError(OmnigraphError):
    """Invalid schema or query text; `diagnostics` has positions and reasons."""

    code = "OG-L-000"
    kind = "compiler"
    category: ClassVar[str] = "language"

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(d.render() for d in self.diagnostics))

    @property
    def diagnostic(self) -> Diagnostic:
        """The first diagnostic; compilation stops at the first error, so usually the only one."""
        return self.diagnostics[0]

    @property
    def wire_message(self) -> str:
        """One line for HTTP bodies: the headline and, after `; `, the hint."""
        first = self.diagnostic
        return cut_values(f"{first.headline}; {first.hint}" if first.hint else first.headline)


class ParseError(LanguageError):
    """The text does not follow the grammar, or breaks a rule checked during parsing."""

    code = "OG-L-001"
    category = "parse"


class CatalogError(LanguageError):
    """Declarations are valid one by one but contradict each other."""

    code = "OG-L-002"
    category = "catalog"


class TypeCheckError(LanguageError):
    """A query does not match the schema."""

    code = "OG-L-003"
    category = "type"


class PlanError(LanguageError):
    """A type-checked query could not be planned: a compiler bug."""

    code = "OG-L-004"
    category = "plan"
