"""The calls of a remote graph that change rows. Sources of a load are read here; a load is one commit, however many requests it takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from omnigraph.api.arguments import kind_of, optional_text, text_argument
from omnigraph.api.statements import branch_statement, run_branch_statement
from omnigraph.client import documents
from omnigraph.client.handle import (
    RemoteHandle,
    keyed,
    named_source,
    new_key,
    refuse_engine,
    typed_params,
    write_fields,
)
from omnigraph.client.uploads import MSGPACK, PATH, upload_parts
from omnigraph.errors import EmbeddedOnly, InputError, LoadSourceError
from omnigraph.limits import MAX_LOAD_ERRORS
from omnigraph.wire import documents07 as v07
from omnigraph.wire.requests import LoadPart

if TYPE_CHECKING:
    from omnigraph.analytics.run import Analysis
    from omnigraph.api.protocol import GraphProtocol
    from omnigraph.embedding.embed import EmbedResult
    from omnigraph.history.refs import Ref
    from omnigraph.load.run import LoadResult
    from omnigraph.mutation.run import MutationResult
    from omnigraph.progress import Progress
    from omnigraph.read.budget import CancelToken, QueryBudget
    from omnigraph.spark.choice import EngineArgument


class RemoteChanges(RemoteHandle):
    """Calls that change the rows of a graph behind a server, each as one commit."""

    def mutate(
        self,
        source: str | Path,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        message: str | None = None,
        expected_head: Ref | None = None,
        idempotency_key: str | None = None,
    ) -> MutationResult:
        """Run a mutation query as one commit, or none if nothing changes."""
        from omnigraph.read.source_files import query_source

        statement = branch_statement(source)
        if statement is not None:
            graph = cast("GraphProtocol", self)
            given = (name, params, message, expected_head, idempotency_key)
            return run_branch_statement(graph, statement, branch, *given)
        text = query_source(source)
        body = {
            "query": text.text,
            "name": optional_text("name", name),
            "typed_params": typed_params(params),
            "branch": self._on(branch),
            **write_fields(message, expected_head),
        }
        write = keyed(new_key(idempotency_key))
        with named_source(text, "<query>"):
            reply = self._call("POST", "/mutate", body=body, write=write)
        return documents.mutation_of(reply.json(v07.ChangeOutput))

    def load(
        self,
        source: object,
        mode: str,
        *,
        branch: str | None = None,
        create_from: Ref | None = None,
        format: str | None = None,
        mapping: str | Path | Mapping[str, object] | None = None,
        load_id: str | None = None,
        strict: bool = False,
        cascade: bool = False,
        quarantine: str | Path | None = None,
        max_errors: int = MAX_LOAD_ERRORS,
        message: str | None = None,
        expected_head: Ref | None = None,
        engine: EngineArgument = "auto",
        progress: Progress | None = None,
    ) -> LoadResult:
        """Load records as one commit: all of them or, if one is bad, none.

        The source is read here: JSON files, bytes or streams of JSON text, dicts, or `{"Type": rows}`
        with dicts, Arrow, pandas or Polars frames.
        """
        from omnigraph.load.run import check_load_options

        self._transport  # noqa: B018 - a closed handle is refused at once
        refuse_engine(engine)
        if mapping is not None:
            raise EmbeddedOnly("load with mapping")
        if quarantine is not None:
            raise EmbeddedOnly("load with quarantine")
        known_mode, known_id = check_load_options(
            text_argument("mode", mode), optional_text("load_id", load_id), cascade=cascade
        )
        base = None if create_from is None else self._ref("create_from", create_from)
        body = {
            "parts": list(_parts(source, format)),
            "mode": known_mode,
            "branch": self._on(branch),
            "from": base,
            "strict": strict,
            "cascade": cascade,
            "max_errors": max_errors,
            **write_fields(message, expected_head),
        }
        return self._load(body, known_id, create_from if isinstance(create_from, str) else None)

    def insert(
        self,
        type: str,
        rows: object,
        *,
        branch: str | None = None,
        message: str | None = None,
        expected_head: Ref | None = None,
        idempotency_key: str | None = None,
        strict: bool = True,
        engine: EngineArgument = "auto",
    ) -> LoadResult:
        """Insert rows of one type as one commit. A key that exists is a `LoadError`."""
        return self._load_rows(
            "insert", type, rows, branch, message, expected_head, idempotency_key, strict, engine
        )

    def upsert(
        self,
        type: str,
        rows: object,
        *,
        branch: str | None = None,
        message: str | None = None,
        expected_head: Ref | None = None,
        idempotency_key: str | None = None,
        strict: bool = True,
        engine: EngineArgument = "auto",
    ) -> LoadResult:
        """Insert rows of one type, or update those that exist, as one commit."""
        return self._load_rows(
            "upsert", type, rows, branch, message, expected_head, idempotency_key, strict, engine
        )

    def embed(
        self,
        *,
        branch: str | None = None,
        types: Iterable[str] = (),
        properties: Iterable[str] = (),
        pending: bool = False,
        stale: bool = False,
        all: bool = False,
        include_given: bool = False,
        dry_run: bool = False,
        message: str | None = None,
        expected_head: Ref | None = None,
        idempotency_key: str | None = None,
        engine: EngineArgument = "auto",
        progress: Progress | None = None,
    ) -> EmbedResult:
        """Not available on a remote graph. Raises `EmbeddedOnly`."""
        self._transport  # noqa: B018 - a closed handle is refused at once
        raise EmbeddedOnly("embed")

    def analyze(
        self,
        algorithm: str,
        params: Mapping[str, object] | None = None,
        *,
        nodes: Iterable[str] = (),
        edges: Iterable[str] = (),
        directed: bool | None = None,
        weight: str | None = None,
        top: int | None = None,
        write: Mapping[str, str] | None = None,
        branch: str | None = None,
        at: Ref | None = None,
        budget: QueryBudget | None = None,
        cancel: CancelToken | None = None,
        message: str | None = None,
        expected_head: Ref | None = None,
        idempotency_key: str | None = None,
    ) -> Analysis:
        """Not available on a remote graph. Raises `EmbeddedOnly`."""
        self._transport  # noqa: B018 - a closed handle is refused at once
        raise EmbeddedOnly("analyze")

    def _load_rows(
        self,
        call: str,
        type: str,
        rows: object,
        branch: str | None,
        message: str | None,
        expected_head: Ref | None,
        idempotency_key: str | None,
        strict: bool,
        engine: EngineArgument,
    ) -> LoadResult:
        from omnigraph.load.recognition import is_rows
        from omnigraph.read.entities import find_type

        self._transport  # noqa: B018 - a closed handle is refused at once
        refuse_engine(engine)
        name = text_argument("type", type)
        if not is_rows(rows):
            wanted = "a list of dicts, an Arrow table, or a pandas or Polars frame"
            raise InputError(f"rows must be {wanted}, not {kind_of(rows)}")
        try:
            part = _part(name, rows)
        except LoadSourceError:
            # Rows of one type are named after their table.
            schema = self._get("/schema", v07.SchemaOutput, ("compiled", "true"))
            part = _part(find_type(documents.catalog_of(schema), name).table_key, rows)
        body = {
            "call": call,
            "parts": [part],
            "branch": self._on(branch),
            "strict": strict,
            **write_fields(message, expected_head),
        }
        return self._load(body, new_key(idempotency_key), None)

    def _load(self, body: dict[str, Any], key: str, base: str | None) -> LoadResult:
        for query, content, is_last in upload_parts(msgspec.msgpack.encode(body), body["branch"]):
            reply = self._call(
                "POST",
                PATH,
                query=query.items(),
                content=content,
                content_type=MSGPACK,
                write=keyed(key, is_load=True) if is_last else None,
            )
        return documents.load_of(reply.json(v07.IngestOutput), base)


# -- sources --------------------------------------------------------------------------------


def _parts(given: object, format: str | None) -> Iterable[LoadPart]:
    """What is sent of a source. Raises `LoadSourceError`, `SourceUnreadable` or `EmbeddedOnly`."""
    if isinstance(given, Mapping):
        return [_part(str(name), rows) for name, rows in given.items()]
    if given is None:
        from omnigraph.load.sources import TEXT_NAME

        raise LoadSourceError(TEXT_NAME, "nothing to load: give a source or a mapping")
    return [LoadPart(json=text) for text in _texts(given, format)]


def _part(name: str, rows: Any) -> LoadPart:
    """Rows of one type. Dicts become JSON lines, frames an Arrow stream."""
    from omnigraph.load.recognition import json_lines

    if isinstance(rows, list | tuple):
        return LoadPart(type=name, json=json_lines(rows, name))
    if type(rows).__module__.startswith("pyspark.sql."):
        raise EmbeddedOnly("load of a Spark frame")
    if not hasattr(rows, "__arrow_c_stream__"):
        kind = type(rows).__name__
        raise LoadSourceError(name, f"is not a table: {kind} offers no Arrow stream")
    import pyarrow as pa

    from omnigraph.wire.frames import encode_frame

    table = rows if isinstance(rows, pa.Table) else pa.table(rows)
    return LoadPart(type=name, arrow=encode_frame(table))


def _texts(given: object, format: str | None) -> Iterable[bytes]:
    """JSON texts of files, streams and records."""
    from omnigraph.load.recognition import Readable, json_lines, source_files
    from omnigraph.load.sources import TEXT_NAME, JsonSource, pipe_content

    match given:
        case bytes():
            yield given
        case str() | Path():
            for path, kind in source_files(given, cast("Any", format)):
                if kind != "json":
                    raise EmbeddedOnly(f"load of a {kind} file", "pass its rows as a frame")
                with JsonSource(pipe_content(path), path).open() as stream:
                    yield stream.read()
        case Readable():
            content = given.read()
            text = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
            yield bytes(text)
        case Iterable() if not hasattr(given, "__arrow_c_stream__"):
            for is_record, some in groupby(given, lambda one: isinstance(one, Mapping)):
                if is_record:
                    yield json_lines(some, TEXT_NAME)
                    continue
                for one in some:
                    yield from _texts(one, format)
        case _:
            problem = 'needs a mapping: give a data frame as {"Type": frame}'
            raise LoadSourceError(TEXT_NAME, problem)
