"""Errors about what was handed to a call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from omnigraph.diagnostics import with_hint
from omnigraph.errors.base import OmnigraphError


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
    """A parameter is missing, or its value does not fit the declared type."""

    code = "OG-I-003"

    def __init__(self, parameter: str | None, message: str) -> None:
        self.parameter = parameter
        super().__init__(message)


class UnknownParameter(ParameterError):
    """A value is given for a parameter that is not declared."""

    code = "OG-I-017"

    def __init__(self, parameter: str, declared: Sequence[str]) -> None:
        self.declared = tuple(declared)
        known = f"declared: {', '.join(declared)}" if declared else "none is declared"
        message = f"unknown parameter '{parameter}' ({known})"
        if parameter.removeprefix("$") in declared:
            message += "; leave out the `$`"
        else:
            message = with_hint(message, parameter, declared)
        super().__init__(parameter, message)


class HostValueError(InputError):
    """A Python value given as a parameter that the engine cannot represent."""

    code = "OG-I-004"

    def __init__(self, parameter: str, reason: str) -> None:
        self.parameter = parameter
        super().__init__(f"execution error: param '{parameter}': {reason}")


class UsageError(InputError):
    """Flags or arguments that do not go together."""

    code = "OG-I-005"


class InvalidBranchName(InputError):
    """A branch name breaks one of the rules for names."""

    code = "OG-I-006"

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        super().__init__(f"invalid branch name '{name}': {reason}")


class HandleClosed(InputError):
    """A call on a graph handle that was closed."""

    code = "OG-I-019"

    def __init__(self, uri: str) -> None:
        self.uri = uri
        super().__init__(f"the handle on '{uri}' is closed; open the graph again")


class InvalidTagName(InputError):
    """A tag name that breaks a rule."""

    code = "OG-I-020"

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        super().__init__(f"invalid tag name '{name}': {reason}")


class InvalidSetting(InputError):
    """An environment variable has a value that cannot be used."""

    code = "OG-I-022"

    def __init__(self, variable: str, value: str, accepts: str) -> None:
        self.variable = variable
        self.value = value
        super().__init__(f"{variable} is '{value}'; set it to {accepts}")


class AmbiguousRef(InputError):
    """An abbreviated commit id that several commits share.

    `candidates` describes up to five of them, newest first.
    """

    code = "OG-I-021"

    def __init__(self, ref: str, candidates: Sequence[str], total: int) -> None:
        self.ref = ref
        self.candidates = tuple(candidates)
        self.total = total
        more = "" if total <= len(candidates) else f", and {total - len(candidates)} more"
        listed = "; ".join(candidates)
        super().__init__(
            f"ref '{ref}' is ambiguous: {total} commits begin or end like that ({listed}{more}); "
            "write more of the id"
        )


class ReadOnlyHandle(InputError):
    """A write through a graph that was opened for reading only."""

    code = "OG-I-007"

    def __init__(self, operation: str) -> None:
        self.operation = operation
        super().__init__(
            f"{operation}: the graph is open read-only; open it read-write to change it"
        )


class NewerFormat(InputError):
    """The graph was written in a format this version does not know."""

    code = "OG-I-008"

    def __init__(self, found: int, known: int) -> None:
        self.found = found
        self.known = known
        super().__init__(
            f"the graph has format {found}, this version knows formats up to {known}; "
            "upgrade omnigraph"
        )


class LoadSourceError(InputError):
    """A source of a load cannot be read, or it is not clear what its rows are."""

    code = "OG-I-009"

    def __init__(self, source: str, problem: str) -> None:
        self.source = source
        super().__init__(f"{source}: {problem}")


class ExportError(InputError):
    """A type that is not there was to be exported, or a value that JSON has no text for."""

    code = "OG-I-010"


class AssignmentError(InputError):
    """A literal or parameter of a mutation that does not fit the property it is assigned to."""

    code = "OG-I-011"

    def __init__(self, property: str, message: str) -> None:
        self.property = property
        super().__init__(message)


class ExternalBlobRefused(InputError):
    """A blob given as the address of a file that lies under no base the graph allows."""

    code = "OG-I-012"

    def __init__(self, property: str, uri: str) -> None:
        self.property = property
        self.uri = uri
        super().__init__(
            f"property '{property}': '{uri}' is not under a base that OMNIGRAPH_EXTERNAL_BLOBS "
            "allows; add its base there, or give the bytes as `base64:…`"
        )


class NotABlob(InputError):
    """A property whose bytes were asked for, and which holds no blobs."""

    code = "OG-I-014"

    def __init__(self, type_name: str, property: str, known: Iterable[str] = ()) -> None:
        self.type_name = type_name
        self.property = property
        super().__init__(with_hint(f"{type_name}.{property} is not a Blob", property, known))


class BlobRangeError(InputError):
    """A part of a blob was asked for that it does not have."""

    code = "OG-I-015"

    def __init__(self, offset: int, size: int) -> None:
        self.offset = offset
        self.size = size
        super().__init__(f"the blob has {size} bytes, and the part asked for begins at {offset}")


class MissingExtra(InputError):
    """Something was asked for that needs libraries a plain installation does not have."""

    code = "OG-I-018"

    def __init__(self, feature: str, missing: str, command: str) -> None:
        self.feature = feature
        self.missing = missing
        self.command = command
        super().__init__(f"{feature} needs {missing}; install it with: {command}")


class OperatorConfigError(InputError):
    """The configuration file of the person at this machine cannot be used."""

    code = "OG-I-016"

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        super().__init__(
            f"could not parse operator config {path}: {problem}; "
            "correct the file, or name another folder with OMNIGRAPH_HOME"
        )
