"""Loads and exports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from omnigraph.api.handle import newest_state
from omnigraph.errors import BranchNotFound, LoadError, UnknownPropertiesRefused
from omnigraph.graph.gate import Action
from omnigraph.json_structs import described
from omnigraph.limits import MAX_LOAD_ERRORS
from omnigraph.server.call import MAIN, Answer, Call, Stream, Write, branch_of
from omnigraph.server.problems import HttpProblem
from omnigraph.wire.contracts import CONTRACT_13
from omnigraph.wire.documents13 import GraphBatchLoadOutput
from omnigraph.wire.errors import KeyConflictOutput
from omnigraph.wire.frames import FrameError, decode_frame
from omnigraph.wire.requests import ExportRequest, IngestRequest, LoadPart, LoadPartsRequest
from omnigraph.wire.rows import export_lines_13

if TYPE_CHECKING:
    from omnigraph.load.run import LoadResult

NDJSON_UTF8: Final = "application/x-ndjson; charset=utf-8"
_MODES: Final = ("overwrite", "append", "merge", "patch")
_NODE_MEMBERS: Final = frozenset(["type", "id", "data"])
_EDGE_MEMBERS: Final = frozenset(["edge", "id", "from", "to", "data"])


def load(call: Call) -> Answer:
    """Load records as one commit."""
    body: IngestRequest = call.body
    data = body.data.encode("utf-8", "surrogatepass")
    done = _load(call, data, body.branch, body.from_, body.mode or "merge", body)
    return Answer(call.documents.load(done, call.uri, body.from_))


def load_ndjson(call: Call) -> Answer:
    """Load the lines of the body as one commit. Every line is exactly one record."""
    call.only("branch", "from", "mode")
    mode, base = call.one("mode") or "merge", call.one("from")
    if mode not in _MODES:
        raise HttpProblem(400, f"unknown mode '{mode}'; use one of {', '.join(_MODES)}")
    records = list(_strict_lines(call.body))
    if not records and mode != "overwrite":
        return Answer(_nothing_loaded(call, mode, base))
    data = b"".join(line for _, line in records)
    try:
        done = _load(call, data, call.one("branch"), base, mode, None)
    except (LoadError, UnknownPropertiesRefused) as error:
        raise _with_lines(error, [number for number, _ in records]) from error
    return Answer(CONTRACT_13.batch_load(done, base))


def _nothing_loaded(call: Call, mode: str, base: str | None) -> GraphBatchLoadOutput:
    """The document of a batch without records, which makes no commit."""
    into, source = _target(call, call.one("branch"), base)
    with call.admit(0):
        if source is not None:
            call.graph.branches.create(into, source)
    return GraphBatchLoadOutput(
        branch=into,
        base_branch=base,
        branch_created=source is not None,
        mode=mode,
        nodes=[],
        edges=[],
        total_entities=0,
        commit=None,
        actor_id=call.actor,
    )


def _with_lines(error: LoadError | UnknownPropertiesRefused, lines: list[int]) -> HttpProblem:
    """The error with the line of the body where its first record is."""
    if isinstance(error, LoadError):
        record = error.load_errors[0].record if error.load_errors else None
    else:
        record = error.properties[0].first[0][1]
    where = "" if record is None else f"line {lines[record - 1]}: "
    return HttpProblem(400, f"{where}{error.message}", cause=error)


def _load(
    call: Call,
    data: bytes,
    branch: str | None,
    base: str | None,
    mode: str,
    body: IngestRequest | None,
) -> LoadResult:
    into, source = _target(call, branch, base)
    load_id = None if body is None else body.load_id
    if call.idempotency_key is not None:
        if load_id not in (None, call.idempotency_key):
            raise HttpProblem(
                400, "load_id and the header Idempotency-Key differ; send one of them"
            )
        load_id = call.idempotency_key
    with call.admit(len(data)):
        try:
            done = call.graph.load(
                data,
                mode,
                branch=into,
                create_from=source,
                load_id=load_id,
                strict=body is None or body.strict,
                cascade=body is not None and body.cascade,
                max_errors=(None if body is None else body.max_errors) or MAX_LOAD_ERRORS,
                message=None if body is None else body.message,
                expected_head=None if body is None else body.expected_head,
                engine=call.state.engine,
            )
            return call.noted(done)
        except LoadError as error:
            if call.is_13 and (conflict := _key_conflict(call, error)):
                details = {"key_conflict": conflict}
                raise HttpProblem(409, error.message, details=details, cause=error) from error
            raise


def _target(
    call: Call, branch: str | None, base: str | None, *, must_exist: bool = True
) -> tuple[str, str | None]:
    """The branch to load into and, if it has to be made, the branch to make it from."""
    into = branch_of(branch)
    source = None
    if not _exists(call, into):
        if base is None:
            if not must_exist:
                call.allow(Action.CHANGE, into)
                return into, None
            raise HttpProblem(
                404, f"branch '{into}' not found; pass `from` to create it from another branch"
            )
        source = branch_of(base)
        call.allow(Action.BRANCH_CREATE, source, into)
    call.allow(Action.CHANGE, into)
    return into, source


def _exists(call: Call, branch: str) -> bool:
    if branch == MAIN:
        return True
    try:
        call.graph.checkout(branch)
    except BranchNotFound:
        return False
    return True


def _key_conflict(call: Call, error: LoadError) -> KeyConflictOutput | None:
    """The id that exists, if that is all that is wrong with the records."""
    if not error.load_errors or any(one.code != "exists" for one in error.load_errors):
        return None
    first = error.load_errors[0]
    is_node = first.type in call.graph.schema.catalog.nodes
    return KeyConflictOutput(
        entity_kind="node" if is_node else "edge", type_name=first.type or "", entity_id=first.id
    )


def _strict_lines(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Numbered lines as records whose id is in their data. Raises `HttpProblem` 400 with the line."""
    for number, line in enumerate(body.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            yield number, _record(line) + b"\n"
        except ValueError as error:
            raise HttpProblem(400, f"line {number}: {error}") from None
        except RecursionError:
            raise HttpProblem(400, f"line {number}: it is nested too deeply") from None


def _record(line: bytes) -> bytes:
    """One record, its id in its data. Raises `ValueError` with the reason.

    Values stay as they are written: whether a number fits its property is decided by the load.
    """
    try:
        record = json.loads(
            line.decode(), object_pairs_hook=_members, parse_int=_unread, parse_float=_unread
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not valid JSON: {error.msg}") from None
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    _check_members(record)
    if "id" not in record:
        return line
    written = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    data: dict[str, msgspec.Raw] = {}
    if "data" in written:
        data = msgspec.json.decode(written["data"], type=dict[str, msgspec.Raw])
    return msgspec.json.encode(written | {"data": {"id": written.pop("id"), **data}})


def _check_members(record: Any) -> None:
    """Raises `ValueError` unless the record has the members of a node or an edge."""
    if not isinstance(record, dict):
        raise ValueError("expected a JSON object")
    known = _EDGE_MEMBERS if "edge" in record else _NODE_MEMBERS
    for name in record:
        if name not in known:
            raise ValueError(f"unknown member '{name}'")
    required = ("edge", "from", "to") if "edge" in record else ("type",)
    for name in required:
        if not isinstance(record.get(name), str):
            raise ValueError(f"member '{name}' must be text")
    data = record.get("data", {})
    if not isinstance(data, dict):
        raise ValueError("member 'data' must be an object")
    if not isinstance(data.get("id", ""), str):
        raise ValueError("an id must be text")
    if "id" in record:
        if not isinstance(record["id"], str):
            raise ValueError("member 'id' must be text")
        if "id" in data:
            raise ValueError("the id is given twice, as 'id' and in 'data'")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a member twice")
    return found


def _unread(number: str) -> None:
    """Numbers are read by the load."""


# -- loads of the Python client -------------------------------------------------------------


def load_parts(call: Call) -> Answer:
    """Load the sources of a Python call as one commit; a large one arrives in several requests."""
    content = _uploaded(call)
    if content is None:
        return Answer(content=b"", status=204)
    try:
        body = msgspec.msgpack.decode(content, type=described(LoadPartsRequest))
    except (msgspec.DecodeError, RecursionError) as error:
        raise HttpProblem(400, f"the request body is not valid: {error}") from None
    into, source = _target(call, body.branch, body.from_, must_exist=False)
    with call.admit(len(content)):
        done = _load_parts(call, body, into, source)
    return Answer(call.documents.load(call.noted(done), call.uri, body.from_))


def _uploaded(call: Call) -> bytes | None:
    """The complete body, or None while parts of it are to come."""
    call.only("upload", "offset", "branch", "last")
    name, content = call.one("upload"), call.body
    if name is None:
        return bytes(content)
    call.allow(Action.CHANGE, branch_of(call.one("branch")))
    uploads, graph_id = call.state.uploads, call.target.id
    with call.admit(len(content)):
        uploads.append(call.actor, graph_id, name, call.integer("offset", 0), content)
    return uploads.take(call.actor, graph_id, name) if call.switch("last") else None


def _load_parts(call: Call, body: LoadPartsRequest, into: str, source: str | None) -> LoadResult:
    graph = call.graph
    if body.call == "load":
        return graph.load(
            _sources(body.parts),
            body.mode,
            branch=into,
            create_from=source,
            load_id=call.idempotency_key,
            strict=body.strict,
            cascade=body.cascade,
            max_errors=body.max_errors or MAX_LOAD_ERRORS,
            message=body.message,
            expected_head=body.expected_head,
            engine=call.state.engine,
        )
    if len(body.parts) != 1 or body.parts[0].type is None:
        raise HttpProblem(400, f"{body.call} needs one part with a type")
    run = graph.insert if body.call == "insert" else graph.upsert
    return run(
        body.parts[0].type,
        _rows(body.parts[0]),
        branch=into,
        message=body.message,
        expected_head=body.expected_head,
        idempotency_key=call.idempotency_key,
        strict=body.strict,
        engine=call.state.engine,
    )


def _sources(parts: list[LoadPart]) -> object:
    """What `Graph.load` is given: types with rows, or JSON texts."""
    typed = {part.type: _rows(part) for part in parts if part.type is not None}
    if len(typed) == len(parts):
        return typed
    if typed:
        raise HttpProblem(400, "either all parts have a type or none")
    texts = [part.json or b"" for part in parts]
    return texts[0] if len(texts) == 1 else texts


def _rows(part: LoadPart) -> object:
    if part.arrow is not None:
        try:
            return decode_frame(part.arrow)
        except FrameError as error:
            raise HttpProblem(400, f"part '{part.type}' is not an Arrow stream: {error}") from None
    try:
        return [json.loads(line) for line in (part.json or b"").splitlines() if line.strip()]
    except (ValueError, RecursionError) as error:
        raise HttpProblem(400, f"part '{part.type}' is not JSON lines: {error}") from None


# -- exports --------------------------------------------------------------------------------


def export(call: Call) -> Stream:
    """Export rows as JSON lines."""
    body: ExportRequest = call.body
    if body.snapshot is None:
        branch = branch_of(body.branch)
        call.allow(Action.EXPORT, branch)
        state = newest_state(call.graph, branch)
    elif body.branch is not None:
        raise HttpProblem(400, "specify branch or snapshot, not both")
    else:
        state = call.graph.at(body.snapshot)
        call.allow(Action.EXPORT, state.branch)
    is_13 = call.documents is CONTRACT_13
    wanted = body.type_names if is_13 else [*body.type_names, *body.table_keys]
    _check_types(state.catalog, wanted)
    engine = call.state.engine

    def produce(write: Write) -> None:
        out = LineWriter(write, is_13=is_13)
        state.export(out, types=wanted, engine=engine)  # type: ignore[arg-type]

    return Stream(produce, NDJSON_UTF8 if not is_13 else "application/x-ndjson")


def _check_types(catalog: Any, wanted: list[str]) -> None:
    from omnigraph.export.run import select_types

    select_types(catalog, wanted)


class LineWriter:
    """A binary stream that sends export lines to a client, in the form of its contract."""

    def __init__(self, write: Write, *, is_13: bool) -> None:
        self._write = write
        self._is_13 = is_13

    def write(self, lines: Any) -> int:
        """Takes whole lines."""
        text = bytes(lines)
        self._write(b"".join(export_lines_13(text)) if self._is_13 else text)
        return len(text)
