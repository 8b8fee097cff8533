"""A handle on a graph behind a server: what all calls share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self, TypeVar

from omnigraph.api.arguments import (
    commit_argument,
    only_one,
    staleness_argument,
    text_argument,
)
from omnigraph.client.documents import commit_of
from omnigraph.client.failures import restored
from omnigraph.client.transport import Reply, Transport, Write
from omnigraph.errors import (
    EmbeddedOnly,
    HandleClosed,
    HostValueError,
    LanguageError,
    UnknownVersion,
)
from omnigraph.wire import documents07 as v07
from omnigraph.wire.values import tagged

if TYPE_CHECKING:
    from omnigraph.history.commits import Commit
    from omnigraph.history.refs import Ref
    from omnigraph.language.syntax import Source
    from omnigraph.read.budget import QueryBudget
    from omnigraph.read.view import ReadView
    from omnigraph.spark.choice import EngineArgument

T = TypeVar("T")


class RemoteHandle:
    """A handle on one branch of a graph behind a server. Handles share connections."""

    def __init__(self, transport: Transport, branch: str, actor: str | None) -> None:
        self._shared = transport
        self._branch = branch
        self._actor = actor
        self._is_closed = False

    # -- what it is -------------------------------------------------------------------------

    @property
    def uri(self) -> str:
        """The address of the graph."""
        return self._shared.uri

    @property
    def branch(self) -> str:
        """The branch this handle reads and writes unless a call names another."""
        return self._branch

    @property
    def actor(self) -> str | None:
        """The actor of the token."""
        return self._actor

    @property
    def read_only(self) -> bool:
        """False: the policy of the server decides what may be written."""
        return False

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    def __repr__(self) -> str:
        said = [repr(self.uri), f"branch={self.branch!r}"]
        said += [f"actor={self._actor!r}"] if self._actor is not None else []
        said += ["closed"] if self._is_closed else []
        return f"{type(self).__name__}({', '.join(said)})"

    # -- its life ---------------------------------------------------------------------------

    def close(self) -> None:
        """End this handle; later calls raise `HandleClosed`. Other handles stay open."""
        if not self._is_closed:
            self._is_closed = True
            self._shared.release()

    def __enter__(self) -> Self:
        self._transport  # noqa: B018 - a closed handle is refused at once
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def checkout(self, branch: str, *, max_staleness: float | None = None) -> Self:
        """A handle on another branch. Raises `BranchNotFound`."""
        staleness_argument(max_staleness)
        name = text_argument("branch", branch)
        self._call("GET", "/commits", query=[("branch", name), ("limit", "1")])
        return self._with(name)

    def as_actor(self, actor: str | None) -> Self:
        """Refused: the actor is that of the token. Raises `EmbeddedOnly`."""
        self._transport  # noqa: B018 - a closed handle is refused at once
        raise EmbeddedOnly("as_actor", "the actor is that of the token; connect with another token")

    def _with(self, branch: str) -> Self:
        return type(self)(self._shared, branch, self._actor)

    # -- for the calls ----------------------------------------------------------------------

    @property
    def _transport(self) -> Transport:
        if self._is_closed:
            raise HandleClosed(self.uri)
        return self._shared

    def _call(self, method: str, path: str, **given: Any) -> Reply:
        return self._transport.call(method, path, **given)

    def _get(self, path: str, kind: type[T], *query: tuple[str, str | None]) -> T:
        asked = [(name, value) for name, value in query if value is not None]
        return self._call("GET", path, query=asked).json(kind)

    def _on(self, branch: str | None) -> str:
        return self._branch if branch is None else text_argument("branch", branch)

    def _target(self, branch: str | None, at: Ref | None, argument: str = "at") -> dict[str, str]:
        """What a read is about, as the fields of a request."""
        only_one(branch=branch, at=at)
        if at is not None:
            return {"snapshot": self._ref(argument, at)}
        return {"branch": self._on(branch)}

    def _ref(self, argument: str, ref: Ref) -> str:
        """A ref as text, which does not depend on the branch of this handle."""
        from omnigraph.history.refs import commit_of_object, parse_ref

        if isinstance(ref, str):
            parse_ref(ref, argument)
            return ref
        if isinstance(ref, datetime):
            moment = ref if ref.tzinfo else ref.replace(tzinfo=UTC)
            text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
            return f"{self._branch}@{{{text.replace('+00:00', 'Z')}}}"
        if isinstance(ref, int) and not isinstance(ref, bool):
            return self._numbered(ref, self._branch).id
        return commit_of_object(ref, argument)

    def _numbered(self, number: int, branch: str) -> Commit:
        """The n-th commit of a branch. Raises `UnknownVersion`."""
        if number < 1:
            newest = self._get("/commits", v07.CommitListOutput, ("branch", branch), ("limit", "1"))
            raise UnknownVersion(number, newest.commits[0].manifest_version)
        query = [("branch", branch), ("number", str(number))]
        document = self._call("GET", "/commits", query=query).json(v07.CommitListOutput)
        return commit_of(document.commits[0])


def new_key(given: str | None) -> str:
    """The key of a write: the caller's, or a new one."""
    if given is not None:
        return text_argument("idempotency_key", given)
    from omnigraph.versioning.ids import new_ulid

    return new_ulid()


def keyed(key: str, *, is_load: bool = False) -> Write:
    return Write(key, is_load=is_load)


def write_fields(message: object, expected_head: Ref | None) -> dict[str, str | None]:
    """The fields that every write has."""
    return {
        "message": None if message is None else text_argument("message", message),
        "expected_head": commit_argument("expected_head", expected_head),
    }


def typed_params(params: Mapping[str, object] | None) -> dict[str, Any]:
    """Parameters in a form that keeps their types. Raises `HostValueError`."""
    found = {}
    for name, value in (params or {}).items():
        try:
            found[str(name)] = tagged(value)
        except TypeError as error:
            raise HostValueError(str(name), str(error)) from None
    return found


def budget_fields(budget: QueryBudget | None) -> dict[str, Any] | None:
    if budget is None:
        return None
    # JSON has no infinity; without a limit that of the server holds.
    seconds = budget.timeout_s if budget.timeout_s < 1e9 else None
    return {
        "max_rows": min(budget.max_rows, 2**63 - 1),
        "max_bytes": min(budget.max_bytes, 2**63 - 1),
        "timeout_s": seconds,
    }


def refuse_view(view: ReadView | None) -> None:
    """The server decides what is visible."""
    if view is not None and not view.sees_all:
        raise EmbeddedOnly("a view")


def refuse_engine(engine: EngineArgument) -> None:
    """The server chooses the engine."""
    if engine not in ("auto", "inline"):
        from omnigraph.spark.choice import chosen_engine

        chosen_engine(engine)
        raise EmbeddedOnly("engine")


@contextmanager
def named_source(source: Source, sent_as: str) -> Iterator[None]:
    """Errors in a text name the file it came from."""
    try:
        yield
    except LanguageError as error:
        if source.name == sent_as:
            raise
        found = tuple(
            replace(one, position=replace(one.position, file=source.name))
            for one in error.diagnostics
        )
        message = type(error)(found).message
        raise restored(type(error), message, {"diagnostics": found}) from None
