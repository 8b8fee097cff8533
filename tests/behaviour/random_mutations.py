"""Random mutations: of a small world whose rows collide all the time, and of any schema."""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import strategies as st

from omnigraph.language.query.ast import Query
from omnigraph.language.types import PropType, Scalar
from tests.unit.load.inputs import ids, json_values

# -- the schema `DENSE` of the load tests -------------------------------------------------------

_PARAMETERS = "$i: I32?, $f: F64?, $s: String?, $d: Date?, $t: DateTime?"
dense_parameters = st.fixed_dictionaries(
    {
        "i": st.sampled_from([None, 0, 1, 2]),
        "f": st.sampled_from([None, 0.0, -0.0, 1.5, 1.0]),
        "s": st.sampled_from([None, "a", "b", "l1", "x"]),
        "d": st.sampled_from([None, "2020-01-01"]),
        "t": st.sampled_from([None, "2020-01-01T00:00:00Z"]),
    }
)

_VALUES = {
    "k": ['"a"', '"b"', '"c"', '"d"'],
    "a": ["0", "1", "2", "1.0", "$i", "$i", "$f", "3", "3000000000"],
    "b": ["0", "1", "1.5", "0.0", "$f", "$i"],
    "u": ['date("2020-01-01")', 'date("1970-01-06")', 'date("2001-09-09")', "$d"],
    "e": ['"x"', '"y"', "$s"],
    "x": ["0", "1", "1.0", "$i"],
    "y": ["true", "false"],
    "t": ['"a"', '"b"', '""', "$s", '"c"'],
    "v": ['"v"', '""', "$s"],
    "w": ["1", "2", "3", "$i"],
    "z": ['datetime("2020-01-01")', 'datetime("2021-01-01")', "now()", "$t"],
    "d": ["0", "0.5", "0.1", "$f"],
}
_IDS = {
    "N": ['"a"', '"b"', '"c"', '"d"', "$s"],
    "M": [r'"[\"0\",\"true\"]"', r'"[\"1\",\"false\"]"'],
    "L": ['"l1"', '"l2"', '"new1"', '"new2"'],
}
_NODES = {"N": "kabue", "M": "xyt", "L": "v"}
_KEYS = {"N": "k", "M": "xy", "L": ""}
_EDGES = {"E": ("N", "N", "w"), "F": ("N", "M", "z"), "G": ("L", "N", "d"), "H": ("L", "L", "")}
_OPERATORS = ["=", "=", "!=", "<", "<=", ">", ">="]


@st.composite
def dense_mutations(draw: st.DrawFn) -> str:
    """A query of up to six statements; all of them share the parameters of `dense_parameters`."""
    statements = draw(st.lists(_statements(), min_size=1, max_size=6))
    return f"query q({_PARAMETERS}) {{ {' '.join(statements)} }}"


def _statements() -> st.SearchStrategy[str]:
    return _node_statements() | _edge_statements()


@st.composite
def _node_statements(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from([*_NODES]))
    properties, key = list(_NODES[name]), list(_KEYS[name])
    match draw(st.sampled_from(["insert", "insert", "update", "delete"])):
        case "delete":
            return f"delete {name} where {_condition(draw, properties, _VALUES)}"
        case "update":
            # Now and then a key, to hear that it cannot be changed.
            usual = [p for p in properties if p not in key]
            usable = properties if draw(st.integers(0, 9)) == 0 else usual
            chosen = draw(st.lists(st.sampled_from(usable), min_size=1, unique=True))
            condition = _condition(draw, properties, _VALUES)
            return f"update {name} set {{ {_assigned(draw, chosen, _VALUES)} }} where {condition}"
        case _:
            optional = [p for p in properties if p not in key]
            least = 0 if key else 1
            chosen = draw(st.lists(st.sampled_from(optional), min_size=least, unique=True))
            return f"insert {name} {{ {_assigned(draw, key + chosen, _VALUES)} }}"


@st.composite
def _edge_statements(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from([*_EDGES]))
    source, target, properties = _EDGES[name]
    usable = {**_VALUES, "from": _IDS[source], "to": _IDS[target]}
    if draw(st.integers(0, 2)) == 0:
        return f"delete {name} where {_condition(draw, ['from', 'to', *properties], usable)}"
    chosen = [p for p in properties if draw(st.booleans())]
    return f"insert {name} {{ {_assigned(draw, ['from', 'to', *chosen], usable)} }}"


def _condition(draw: st.DrawFn, properties: list[str], usable: dict[str, list[str]]) -> str:
    name = draw(st.sampled_from(properties))
    return f"{name} {draw(st.sampled_from(_OPERATORS))} {draw(st.sampled_from(usable[name]))}"


def _assigned(draw: st.DrawFn, properties: list[str], usable: dict[str, list[str]]) -> str:
    return ", ".join(f"{name}: {draw(st.sampled_from(usable[name]))}" for name in properties)


# -- any schema ---------------------------------------------------------------------------------


@st.composite
def parameter_values(draw: st.DrawFn, query: Query) -> dict[str, Any]:
    """JSON that the parameters of a query accept. Texts are often ids, and always could be blobs."""
    given: dict[str, Any] = {}
    for parameter in query.parameters:
        kind = parameter.type.type
        if kind.nullable and draw(st.integers(0, 3)) == 0:
            given[parameter.name] = None
        elif kind.scalar is Scalar.STRING and not kind.list:
            given[parameter.name] = draw(ids | st.sampled_from(["base64:SGk=", "base64:"]))
        else:
            given[parameter.name] = draw(json_values(kind).filter(partial(_is_bindable, kind)))
    return given


def _is_bindable(kind: PropType, value: Any) -> bool:
    """Parameters take neither null elements nor the numbers of dates, and end at the largest signed
    integer."""
    items = value if isinstance(value, list) else [value]
    if None in items:
        return False
    if kind.scalar in (Scalar.DATE, Scalar.DATETIME):
        return all(isinstance(item, str) for item in items)
    return kind.scalar is not Scalar.U64 or all(int(item) < 2**63 for item in items)
