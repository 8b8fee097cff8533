"""The one tree of exceptions, with stable codes and a statement about retrying.

    OmnigraphError
    ├── LanguageError            source text is wrong; carries diagnostics with positions
    │   ├── ParseError           it does not follow the grammar or the rules of a schema file
    │   ├── CatalogError         the declarations contradict each other
    │   ├── TypeCheckError       a query does not fit the schema
    │   └── PlanError            a checked query cannot be lowered (a defect of the compiler)
    ├── InputError               an argument, file or parameter cannot be used
    │   ├── SourceUnreadable     a source file is missing, not text, or too large
    │   ├── QuerySelectionError  the file does not hold the one query that was asked for
    │   ├── ParameterError       a parameter value does not fit its declaration
    │   ├── HostValueError       a host-language value has no counterpart in the engine
    │   └── UsageError           flags or arguments that do not go together
    ├── SchemaError              a schema change cannot be made
    │   └── UnsupportedMigration
    ├── ConstraintError          data breaks a rule of the schema
    ├── ConflictError            somebody else's change is in the way
    ├── RecoveryError            an interrupted write cannot be judged or finished
    ├── LimitError               a budget or limit is used up
    ├── PolicyError              the actor may not do this
    ├── NotFoundError            a named thing does not exist
    └── StorageError             the store failed

Every error crosses process borders, so every error pickles, whatever its constructor takes.
What a code means, with an example, is in `omnigraph.error_codes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, ClassVar

from omnigraph.diagnostics import Diagnostic


class Retry(Enum):
    """What a caller may do after the error."""

    NEVER = "never"
    AS_IS = "as is"
    PREPARE_AGAIN = "prepare again"


class OmnigraphError(Exception):
    """Root of all errors raised by this product."""

    code: ClassVar[str] = "OG-X-000"
    kind: ClassVar[str] = "internal"
    retry: ClassVar[Retry] = Retry.NEVER

    def __init__(self, message: str) -> None:
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
        return f"{first.headline}; {first.hint}" if first.hint else first.headline


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


class InputError(OmnigraphError):
    """Something handed to a call cannot be used as it is."""

    code = "OG-I-000"
    kind = "bad_request"


class SourceUnreadable(InputError):
    """A source file is missing, a directory, not UTF-8, or too large."""

    code = "OG-I-001"

    def __init__(self, path: str, reason: str, advice: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path}: {reason}; {advice}")


class QuerySelectionError(InputError):
    """The query that was asked for cannot be picked out of the source."""

    code = "OG-I-002"


class ParameterError(InputError):
    """A parameter is missing or its value does not fit the declared type."""

    code = "OG-I-003"

    def __init__(self, parameter: str | None, message: str) -> None:
        self.parameter = parameter
        super().__init__(message)


class HostValueError(InputError):
    """A Python value given as a parameter that the engine cannot represent."""

    code = "OG-I-004"

    def __init__(self, parameter: str, reason: str) -> None:
        self.parameter = parameter
        super().__init__(f"execution error: param '{parameter}': {reason}")


class UsageError(InputError):
    """Flags or arguments that do not go together."""

    code = "OG-I-005"


class SchemaError(OmnigraphError):
    """A schema change that cannot be made."""

    code = "OG-S-000"
    kind = "bad_request"


class UnsupportedMigration(SchemaError):
    """The plan from the accepted to the desired schema contains an unsupported change.

    `diagnostic` points into the desired schema's text when the change has a place there.
    """

    code = "OG-S-001"
    category: ClassVar[str] = "migration"

    def __init__(self, message: str, diagnostic: Diagnostic | None = None) -> None:
        self.diagnostic = diagnostic
        super().__init__(diagnostic.render() if diagnostic else message)


class ConstraintError(OmnigraphError):
    """Data that breaks a rule of the schema; nothing of the write is kept."""

    code = "OG-D-000"
    kind = "bad_request"


class ConflictError(OmnigraphError):
    """Another change, branch or setting stands in the way."""

    code = "OG-C-000"
    kind = "conflict"
    retry = Retry.PREPARE_AGAIN


class RecoveryError(OmnigraphError):
    """An interrupted write that cannot be judged or finished automatically."""

    code = "OG-R-000"
    kind = "conflict"


class LimitError(OmnigraphError):
    """A budget for rows, bytes, time or depth is used up."""

    code = "OG-B-000"
    kind = "bad_request"


class PolicyError(OmnigraphError):
    """The actor may not do this, or no actor was given where one is needed."""

    code = "OG-P-000"
    kind = "policy"


class NotFoundError(OmnigraphError):
    """A branch, commit, type, query or entity that does not exist."""

    code = "OG-N-000"
    kind = "not_found"


class StorageError(OmnigraphError):
    """The store failed; the outcome of a write in flight may be unknown."""

    code = "OG-F-000"
    kind = "storage"
    retry = Retry.AS_IS
