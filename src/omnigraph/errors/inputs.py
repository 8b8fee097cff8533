"""Errors about arguments, and about names that do not exist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from omnigraph.diagnostics import with_hint
from omnigraph.errors.base import OmnigraphError


class InputError(OmnigraphError):
    """An argument, file or parameter is not usable."""

    code = "OG-I-000"
    kind = "bad_request"


class SourceUnreadable(InputError):
    """A source file is missing, a directory, not UTF-8, or too large."""

    code = "OG-I-001"

    def __init__(self, path: str, reason: str, advice: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path}: {reason}; {advice}")


class IntegerOverflow(InputError):
    """A value that a result or a change needs left the range of 64-bit integers."""

    code = "OG-I-067"

    def __init__(self) -> None:
        super().__init__("integer overflow: a computed value does not fit 64 bits")


class DifferentValues(InputError):
    """A change by pattern gives one entity several values; nothing was changed."""

    code = "OG-I-026"

    def __init__(self, type_name: str, id: str, column: str) -> None:
        self.type_name = type_name
        self.id = id
        what = f"property '{column}'" if column[:1] not in "#$" else "what `return` shows"
        super().__init__(
            f"different values for one entity: the match has several rows for {type_name} '{id}', "
            f"which differ in {what}; nothing was changed"
        )


class ParameterOutOfRange(InputError):
    """A parameter has the right type, and a value that cannot be used where it stands."""

    code = "OG-I-070"

    def __init__(self, parameter: str, problem: str) -> None:
        self.parameter = parameter
        super().__init__(f"parameter '{parameter}' {problem}")


class QuerySelectionError(InputError):
    """The source does not contain exactly the requested query."""

    code = "OG-I-002"


class WrongQueryKind(QuerySelectionError):
    """A mutation where a read is wanted, or a read where a mutation is."""

    code = "OG-I-041"

    def __init__(self, query_name: str, is_mutation: bool) -> None:
        self.query_name = query_name
        self.is_mutation = is_mutation
        kind, call = ("mutation", "mutate") if is_mutation else ("read", "query")
        super().__init__(f"query '{query_name}' is a {kind}; run it with `{call}`")


class ParameterError(InputError):
    """A parameter is missing, or its value does not match the declared type."""

    code = "OG-I-003"

    def __init__(self, parameter: str | None, message: str) -> None:
        self.parameter = parameter
        super().__init__(message)


class UnknownParameter(ParameterError):
    """A value was passed for a parameter that is not declared."""

    code = "OG-I-017"

    def __init__(self, parameter: str, declared: Sequence[str]) -> None:
        self.declared = tuple(declared)
        known = f"declared: {', '.join(declared)}" if declared else "none is declared"
        message = f"unknown parameter '{parameter}' ({known})"
        if parameter.removeprefix("$") in declared:
            message += "; omit the `$`"
        else:
            message = with_hint(message, parameter, declared)
        super().__init__(parameter, message)


class HostValueError(InputError):
    """A Python value was passed as a parameter that the engine cannot represent."""

    code = "OG-I-004"

    def __init__(self, parameter: str, reason: str) -> None:
        self.parameter = parameter
        super().__init__(f"execution error: param '{parameter}': {reason}")


class UsageError(InputError):
    """Arguments contradict each other, or a required one is missing."""

    code = "OG-I-005"


class InvalidBranchName(InputError):
    """A branch name is not valid."""

    code = "OG-I-006"

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        super().__init__(f"invalid branch name '{name}': {reason}")


class HandleClosed(InputError):
    """A call on a closed graph handle."""

    code = "OG-I-019"

    def __init__(self, uri: str) -> None:
        self.uri = uri
        super().__init__(f"graph handle on '{uri}' is closed; open the graph again")


class InvalidTagName(InputError):
    """A tag name is not valid."""

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
    """Several commits match an abbreviated commit id.

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
            f"ref '{ref}' is ambiguous: it matches {total} commits ({listed}{more}); "
            "use more characters of the id"
        )


class ReadOnlyHandle(InputError):
    """A write on a handle that was opened read-only."""

    code = "OG-I-007"

    def __init__(self, operation: str) -> None:
        self.operation = operation
        super().__init__(f"{operation}: the graph is open read-only; open it with read_only=False")


class NewerFormat(InputError):
    """The graph was written by a newer version of OmniGraph."""

    code = "OG-I-008"

    def __init__(self, found: int, known: int) -> None:
        self.found = found
        self.known = known
        super().__init__(
            f"graph format {found} is newer than this version supports (up to {known}); "
            "upgrade omnigraph"
        )


class LoadSourceError(InputError):
    """A load source cannot be read, or the type of its rows is not known."""

    code = "OG-I-009"

    def __init__(self, source: str, problem: str) -> None:
        self.source = source
        super().__init__(f"{source}: {problem}")


class ExportError(InputError):
    """An exported type does not exist, or JSON cannot represent a value."""

    code = "OG-I-010"


class AssignmentError(InputError):
    """A mutation assigns a value that does not match its property."""

    code = "OG-I-011"

    def __init__(self, property: str, message: str) -> None:
        self.property = property
        super().__init__(message)


class ExternalBlobRefused(InputError):
    """A blob URI is not under a base URI that the graph allows."""

    code = "OG-I-012"

    def __init__(self, property: str, uri: str) -> None:
        self.property = property
        self.uri = uri
        super().__init__(
            f"property '{property}': '{uri}' is not under a base that OMNIGRAPH_EXTERNAL_BLOBS "
            "allows; add its base there or pass the bytes as `base64:…`"
        )


class NotABlob(InputError):
    """A blob call names a property that is not of type Blob."""

    code = "OG-I-014"

    def __init__(self, type_name: str, property: str, known: Iterable[str] = ()) -> None:
        self.type_name = type_name
        self.property = property
        super().__init__(with_hint(f"{type_name}.{property} is not a Blob", property, known))


class BlobRangeError(InputError):
    """A blob read starts past the end of the blob."""

    code = "OG-I-015"

    def __init__(self, offset: int, size: int) -> None:
        self.offset = offset
        self.size = size
        super().__init__(f"offset {offset} is past the end of the blob ({size} bytes)")


class MissingExtra(InputError):
    """A feature needs a library that is not installed."""

    code = "OG-I-018"

    def __init__(self, feature: str, missing: str, command: str) -> None:
        self.feature = feature
        self.missing = missing
        self.command = command
        super().__init__(f"{feature} needs {missing}; install it with: {command}")


class ConfigFileError(InputError):
    """A configuration file cannot be read, or something in it is not valid."""

    code = "OG-I-023"

    def __init__(
        self, path: str, problem: str, line: int | None = None, column: int | None = None
    ) -> None:
        self.path = path
        self.line = line
        self.column = column
        where = ":".join(str(part) for part in (path, line, column) if part is not None)
        super().__init__(self._worded(where, problem))

    def _worded(self, where: str, problem: str) -> str:
        return f"{where}: {problem}"


class OperatorConfigError(ConfigFileError):
    """The operator configuration file is not valid."""

    code = "OG-I-016"

    def _worded(self, where: str, problem: str) -> str:
        return (
            f"could not parse operator config {where}: {problem}; "
            "fix the file, or set OMNIGRAPH_HOME to another directory"
        )


class LegacyConfigError(ConfigFileError):
    """A project file `omnigraph.yaml` is not valid, or must not be used."""

    code = "OG-I-024"


class CredentialsError(ConfigFileError):
    """The file of tokens is not valid, or other users can read it. Messages never show a token."""

    code = "OG-I-025"


class ServerConfigError(InputError):
    """The server cannot start with its options, tokens or graphs."""

    code = "OG-I-040"


class NotFoundError(OmnigraphError):
    """A branch, commit, type, query or entity does not exist."""

    code = "OG-N-000"
    kind = "not_found"


class GraphNotFound(NotFoundError):
    """No graph exists at this location."""

    code = "OG-N-001"

    def __init__(self, uri: str) -> None:
        self.uri = uri
        super().__init__(f"no graph at '{uri}'; create one with og.init()")


class BranchNotFound(NotFoundError):
    """No branch has this name."""

    code = "OG-N-002"

    def __init__(self, branch: str, known: Iterable[str] = ()) -> None:
        self.branch = branch
        super().__init__(with_hint(f"branch '{branch}' not found", branch, known))


class CommitNotFound(NotFoundError):
    """No commit has this id."""

    code = "OG-N-003"

    def __init__(self, commit_id: str, meant: str | None = None) -> None:
        self.commit_id = commit_id
        hint = "" if meant is None else f"; did you mean `{meant}`?"
        super().__init__(f"commit '{commit_id}' not found{hint}")


class CommitBranchGone(NotFoundError):
    """The commit is in the history, but the branch that held its data was deleted."""

    code = "OG-N-004"

    def __init__(self, commit_id: str, branch: str) -> None:
        self.commit_id = commit_id
        self.branch = branch
        super().__init__(
            f"commit '{commit_id}' not found on any branch: its branch '{branch}' was deleted"
        )


class RefNotFound(NotFoundError):
    """A ref goes back further than the first commit of a branch."""

    code = "OG-N-020"

    def __init__(self, ref: str, reason: str) -> None:
        self.ref = ref
        super().__init__(f"ref '{ref}' not found: {reason}")


class TagNotFound(NotFoundError):
    """No tag has this name."""

    code = "OG-N-021"

    def __init__(self, tag: str, known: Iterable[str] = ()) -> None:
        self.tag = tag
        super().__init__(with_hint(f"tag '{tag}' not found", tag, known))


class HistoryRemoved(NotFoundError):
    """Cleanup or a hard drop deleted the rows of an old version."""

    code = "OG-N-006"

    def __init__(self, table_key: str, version: int) -> None:
        self.table_key = table_key
        self.version = version
        self.reason = f"version {version} of '{table_key}' was deleted by cleanup or a hard drop"
        super().__init__(f"{self.reason}; read a newer commit")


class ChangeFeedGap(NotFoundError):
    """The changes after a cursor are not available: their rows or the branch were deleted.

    `commit_id` is the first commit whose changes cannot be read, if it is known.
    """

    code = "OG-N-010"

    def __init__(self, branch: str, reason: str, commit_id: str | None = None) -> None:
        self.branch = branch
        self.commit_id = commit_id
        super().__init__(
            f"cursor expired on branch '{branch}': {reason}; "
            "re-read the branch and continue from graph.cursor()"
        )


class UnknownVersion(NotFoundError):
    """The branch has no version with this number."""

    code = "OG-N-005"

    def __init__(self, version: int, head: int) -> None:
        self.version = version
        self.head = head
        super().__init__(f"version {version} not found; the branch has versions 1 to {head}")


class UnknownType(NotFoundError):
    """The schema has no type with this name."""

    code = "OG-N-007"

    def __init__(self, kind: str, name: str, known: Iterable[str] = ()) -> None:
        self.name = name
        super().__init__(with_hint(f"unknown {kind} type '{name}'", name, known))


class UnknownColumn(NotFoundError, KeyError):
    """A type or a result has no column with this name."""

    code = "OG-N-014"

    def __init__(self, column: str, owner: str, known: Iterable[str] = ()) -> None:
        self.column = column
        super().__init__(with_hint(f"{owner} has no column '{column}'", column, known))

    def __str__(self) -> str:
        """The message; `KeyError` would quote it."""
        return self.message


class EntityNotFound(NotFoundError):
    """A type has no node or edge with this id."""

    code = "OG-N-008"

    def __init__(self, type_name: str, id: str) -> None:
        self.type_name = type_name
        self.id = id
        super().__init__(f"no {type_name} with id '{id}' found")


class BlobMissing(NotFoundError):
    """The entity exists, but its blob property is null."""

    code = "OG-N-009"

    def __init__(self, type_name: str, id: str, property: str) -> None:
        self.type_name = type_name
        self.id = id
        self.property = property
        super().__init__(f"{type_name} '{id}' has no blob in '{property}'")


class UnusableWeight(InputError):
    """An edge that a weighted shortest path may use has a negative weight, or one that is no number."""

    code = "OG-I-068"

    def __init__(self, edge_type: str, property: str) -> None:
        self.edge_type = edge_type
        self.property = property
        super().__init__(
            f"negative weight: `{property}` of an edge of type {edge_type} is negative or NaN; "
            "shortest paths need weights of 0 or more"
        )
