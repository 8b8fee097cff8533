"""One question to the reference graph and to an engine; both must give an answer that is right."""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from omnigraph.api.graph import Graph, init
from omnigraph.catalog.arrow import arrow_type
from omnigraph.language.query.parse import parse_queries
from omnigraph.language.syntax import Source
from omnigraph.language.types import PropType, Scalar
from omnigraph.plan.check_read import check_read
from omnigraph.plan.ir import NOW_PARAMETER
from omnigraph.plan.params import bind_parameters
from omnigraph.read.view import ReadView
from tests.support.model.export import export
from tests.support.model.graph import numbered_ids
from tests.support.model.image import Image
from tests.support.model.load_input import LoadInput
from tests.support.model.read import Answer, answer
from tests.unit.load.loading import stored_values

NOW = "2020-02-29T23:59:59.999Z"
MOMENT = pa.timestamp("ms", "UTC")


@dataclass(frozen=True)
class Question:
    """A query with JSON for its parameters, asked by someone with a view."""

    text: str
    params: Mapping[str, Any]
    view: ReadView = ReadView.ALL


Engine = Callable[[Question], pa.Table]
"""Whatever turns a question into a result table. The time is among the parameters."""


def asked(text: str, params: Mapping[str, Any], view: ReadView = ReadView.ALL) -> Question:
    """A question at a fixed time."""
    return Question(text, {**params, NOW_PARAMETER: NOW}, view)


def right_answer(image: Image, question: Question) -> Answer:
    """What the reference graph says."""
    source = Source("<query>", question.text)
    query = parse_queries(source).queries[0]
    plan = check_read(source, question.view.restrict(image.catalog), query)
    bound = bind_parameters(plan.parameters, question.params)
    return answer(image, plan, bound, question.view)


def assert_right(image: Image, question: Question, engine: Engine) -> None:
    """The engine answers as the reference graph does, with the same columns."""
    expected = right_answer(image, question)
    table = engine(question)
    assert tuple(table.column_names) == expected.columns
    assert table.schema.types == [column_type(kind) for kind in expected.types]
    difference = expected.difference(result_rows(table, expected.types))
    assert not difference, f"{question.text}\n{question.params}\n{question.view}\n{difference}"


def column_type(kind: PropType) -> pa.DataType:
    """Blobs are read as null strings, moments are in UTC, everything else is as it is stored."""
    if kind.scalar is Scalar.DATETIME:
        return pa.list_(MOMENT) if kind.list else MOMENT
    return pa.utf8() if kind.is_blob else arrow_type(kind)


def result_rows(table: pa.Table, types: tuple[PropType, ...]) -> list[tuple[Any, ...]]:
    """Rows of stored values: dates as days, datetimes as milliseconds, lists as tuples."""
    columns = [
        column.to_pylist() if kind.is_blob else stored_values(column, kind.scalar)
        for column, kind in zip(table.columns, types, strict=True)
    ]
    return list(zip(*columns, strict=True))


def image_of(graph: Graph) -> Image:
    """What an engine's graph holds now, as it says in an export."""
    text = io.BytesIO()
    graph.export(text)
    tables = Image.empty(graph.schema.catalog).working_copy()
    for row in LoadInput(text.getvalue().decode(), graph.schema.catalog, numbered_ids()).rows:
        tables[row.declared.table_key][row.id] = row.row
    return Image(graph.schema.catalog, tables)


def graph_of(schema: str, image: Image) -> Graph:
    """An engine's graph with the content of an image, its rows in several fragments."""
    graph = init(f"memory://{uuid.uuid4().hex}", schema)
    lines = export(image, ())
    nodes = [line for line in lines if line.startswith('{"type"')]
    edges = [line for line in lines if not line.startswith('{"type"')]
    parts = [nodes[::2], nodes[1::2], edges[::2], edges[1::2]]
    if any(edge.cardinality.low > 1 for edge in image.catalog.edges.values()):
        parts[2:] = [edges]
    for part in parts:
        if part:
            graph.load("\n".join(part).encode(), "merge")
    return graph
