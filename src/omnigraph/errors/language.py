"""Errors about source text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from omnigraph.diagnostics import Diagnostic, cut_values
from omnigraph.errors.base import OmnigraphError


class LanguageError(OmnigraphError):
    """Source text that cannot be used; `diagnostics` says where and why."""

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
        """One line for machine-read bodies: the headline and, behind `; `, the hint."""
        first = self.diagnostic
        return cut_values(f"{first.headline}; {first.hint}" if first.hint else first.headline)


class ParseError(LanguageError):
    """The text does not follow the grammar, or breaks a rule checked while reading it."""

    code = "OG-L-001"
    category = "parse"


class CatalogError(LanguageError):
    """Declarations that are fine one by one but do not fit together."""

    code = "OG-L-002"
    category = "catalog"


class TypeCheckError(LanguageError):
    """A query that does not fit the schema it is checked against."""

    code = "OG-L-003"
    category = "type"


class PlanError(LanguageError):
    """A checked query that could not be lowered. Seeing one means the checker has a hole."""

    code = "OG-L-004"
    category = "plan"
