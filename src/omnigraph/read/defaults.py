"""Defaults of parameters, computed when a query runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from omnigraph.catalog.arrow import arrow_type
from omnigraph.language.types import PropType
from omnigraph.plan.ir import Constant, ParameterSpec
from omnigraph.read.compute import cast
from omnigraph.read.row_values import RowValues


def with_defaults(specs: Iterable[ParameterSpec], bound: Mapping[str, Any]) -> dict[str, Any]:
    """The bound parameters, the time of `now()` among them, and the defaults of those not given."""
    found = dict(bound)
    for spec in specs:
        if spec.default is None or spec.name in found:
            continue
        if isinstance(spec.default, Constant) and isinstance(spec.default.value, tuple):
            found[spec.name] = list(spec.default.value)
        else:
            values = RowValues({}, 1, bound).evaluate(spec.default)
            found[spec.name] = _stored(values, spec.type)
    return found


def _stored(values: pa.Array, wanted: PropType) -> Any:
    """The value as parameters hold it: dates as days, datetimes as milliseconds."""
    kind = arrow_type(wanted)
    values = cast(values, kind)
    if pa.types.is_date32(kind):
        values = values.view(pa.int32())
    elif pa.types.is_date64(kind):
        values = values.view(pa.int64())
    return values[0].as_py()
