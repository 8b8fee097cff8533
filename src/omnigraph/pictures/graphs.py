"""What a picture asks of a graph, embedded or remote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.catalog.model import Catalog
    from omnigraph.history.commits import Commit


class HasCatalog(Protocol):
    @property
    def catalog(self) -> Catalog: ...


class HasTypes(Protocol):
    """A graph with a schema."""

    @property
    def schema(self) -> HasCatalog: ...


class HasEntities(HasTypes, Protocol):
    """A graph whose nodes and edges can be read."""

    def get(self, type: str, id: str) -> dict[str, Any] | None: ...

    def scan(
        self,
        type: str,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        params: Mapping[str, object] | None = None,
    ) -> pa.RecordBatchReader: ...


class HasCommits(Protocol):
    """A graph with a history."""

    @property
    def branch(self) -> str: ...

    def log(
        self, branch: str | None = None, *, merged: bool = False, limit: int | None = None
    ) -> list[Commit]: ...
