"""Asking the reference graph: small images and short ways to query them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.catalog.compile import compile_schema
from omnigraph.language.query.parse import parse_queries
from omnigraph.language.syntax import Source
from omnigraph.plan.check_read import check_read
from omnigraph.plan.ir import NOW_PARAMETER
from omnigraph.plan.params import bind_parameters
from tests.support.model.graph import numbered_ids
from tests.support.model.image import Image
from tests.support.model.load import load
from tests.support.model.read import Answer, View, answer
from tests.unit.language.schemas import read_query

NOW = 1_600_000_000_000


def image_of(schema: str, *records: str) -> Image:
    """The content after loading these records."""
    empty = Image.empty(compile_schema(Source("<schema>", schema)))
    return load(empty, "\n".join(records), "merge", numbered_ids(), 100, quarantine=False).image


def ask(
    image: Image,
    match: str,
    returned: str = "$m",
    tail: str = "",
    *,
    params: str = "",
    given: Mapping[str, Any] | None = None,
    view: View | None = None,
) -> Answer:
    """The answer to a query called `q` around these parts."""
    source = Source("<query>", read_query(match, returned, tail, params))
    query = parse_queries(source).queries[0]
    plan = check_read(source, image.catalog, query)
    bound = {NOW_PARAMETER: NOW, **bind_parameters(plan.parameters, given)}
    return answer(image, plan, bound, view)
