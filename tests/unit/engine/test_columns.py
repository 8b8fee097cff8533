"""A column of a later version says the same whether its values lie in one place or in two."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.read import columns as module
from omnigraph.read.columns import DenseColumn

KINDS = {
    "texts": (pa.utf8(), st.none() | st.text(max_size=3)),
    "numbers": (pa.int64(), st.none() | st.integers(0, 9)),
    "lists": (pa.list_(pa.int32()), st.none() | st.lists(st.integers(0, 9), max_size=2)),
    "vectors": (pa.list_(pa.float32(), 2), st.none() | st.just([0.5, 1.0])),
}


@pytest.mark.parametrize("few_runs", [0, 1000])
@pytest.mark.parametrize("kind", KINDS)
@given(
    data=st.data(), most_beside=st.sampled_from([0.0, 0.5, 2.0]), few=st.sampled_from([0.0, 2.0])
)
def test_values_are_those_of_a_list_that_is_changed_in_place(
    kind, few_runs, data, most_beside, few
):
    arrow_type, items = KINDS[kind]
    values = data.draw(st.lists(items, max_size=6))
    column = DenseColumn(pa.array(values, arrow_type))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_OVERLAY_SHARE", most_beside)
        patch.setattr(module, "MAX_PICK_SHARE", few)
        patch.setattr(module, "MAX_COPIED_RUNS", few_runs)
        for _ in range(data.draw(st.integers(0, 3))):
            values = [*values, *[None] * data.draw(st.integers(0, 3))]
            places = st.sets(st.integers(0, len(values) - 1)) if values else st.just(set())
            changed = list(data.draw(places))
            fresh = [data.draw(items) for _ in changed]
            for place, value in zip(changed, fresh, strict=True):
                values[place] = value
            column = column.patched(
                len(values), np.array(changed, np.int64), pa.array(fresh, arrow_type)
            )
            assert len(column) == len(values)
            wanted = data.draw(st.lists(st.integers(0, len(values) - 1))) if values else []
            taken = column.take(np.array(wanted, np.int64))
            assert (taken.type, taken.to_pylist()) == (arrow_type, [values[at] for at in wanted])
            if data.draw(st.booleans()):
                assert column.values.to_pylist() == values
        assert column.values.to_pylist() == values
        assert column.values.type == arrow_type


def test_an_earlier_version_keeps_its_values():
    column = DenseColumn(pa.array(["a", "b"]))
    later = column.patched(3, np.array([2, 0]), pa.array(["c", "x"]))
    assert later.values.to_pylist() == ["x", "b", "c"]
    assert column.values.to_pylist() == ["a", "b"]
