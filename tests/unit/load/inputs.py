"""Random load input: records that fit a random schema, with damage of every kind."""

from __future__ import annotations

import base64
import json
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st
from msgspec.structs import replace

from omnigraph.catalog.compile import check_reserved_names, compile_schema
from omnigraph.catalog.constraints import unkeyable_column
from omnigraph.catalog.model import Catalog, EdgeType, EntityType
from omnigraph.errors import CatalogError
from omnigraph.language.format import print_schema
from omnigraph.language.schema.ast import Constraint, ConstraintKind, Member, Node, Schema
from omnigraph.language.syntax import Source
from omnigraph.language.types import INTEGER_RANGES, PropType, Scalar
from omnigraph.language.values import format_date, format_datetime
from tests.support.generate import schemas

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
ids = st.sampled_from(["a", "b", "ä", '"', "7", ""])
days = st.integers(-719_528, 2_932_896)
"""The years 0000 to 9999."""
moments = st.integers(-62_167_219_200_000, 253_402_300_799_999)

ODD_NUMBERS = (0, 1, -1, 3.0, 1.5, 2**31, 2**63, 2**64, -(2**63) - 1, 1e300)
ODD_TEXTS = (
    "",
    "x",
    "41",
    "2020-02-30",
    "15/07/2021",
    "2020-01-01T25:00:00",
    "base64:!",
    "base64:SGk",
)
ODD_LISTS: tuple[list[Any], ...] = (
    [],
    [1],
    ["x", 3],
    [None],
    [1.5, "x"],
    [[1]],
    [True],
    [1e300],
    ["2020-01-01", 5],
)
ODD_VALUES = st.sampled_from([*ODD_NUMBERS, *ODD_TEXTS, *ODD_LISTS, True, False, {}, {"a": 1}])


@st.composite
def schema_sources(draw: st.DrawFn, *, plain: bool = False) -> Source:
    """A schema whose names a graph would accept.

    A plain one has neither ranges nor patterns, which random values hardly ever fit.
    """
    declared = draw(schemas(min_nodes=1, max_nodes=3))
    source = Source("<schema>", print_schema(_without_rules(declared) if plain else declared))
    try:
        check_reserved_names(source)
    except CatalogError:
        assume(False)
    catalog = compile_schema(source)
    # The reference graph reports a required vector without a provider in the first phase.
    properties = [p for d in catalog for p in d.properties.values()]
    assume(not any(p.embed_source and not p.type.nullable for p in properties))
    # A pattern on a list has no effect; the reference graph still reads the pattern.
    for node in catalog.nodes.values():
        assume(not any(node.properties[c.property].type.list for c in node.checks))
    # A unique list, vector or blob makes every row of its type fail; a few such schemas will do.
    assume(draw(st.integers(0, 5)) == 0 or not any(unkeyable_column(d) for d in catalog))
    return source


def _without_rules(schema: Schema) -> Schema:
    return Schema(
        tuple(
            replace(node, members=tuple(m for m in node.members if not _is_rule(m)))
            if isinstance(node, Node)
            else node
            for node in schema.declarations
        )
    )


def _is_rule(member: Member) -> bool:
    rules = (ConstraintKind.RANGE, ConstraintKind.CHECK)
    return isinstance(member, Constraint) and member.kind in rules


def catalogs() -> st.SearchStrategy[Catalog]:
    return schema_sources().map(compile_schema)


def json_values(kind: PropType) -> st.SearchStrategy[Any]:
    """JSON that fits a property, spelled in all the ways that are allowed; never null."""
    if kind.is_vector:
        size = kind.dimension or 1
        return st.lists(_numbers(Scalar.F32), min_size=size, max_size=size)
    if kind.list:
        return st.lists(st.none() | _scalars(kind.scalar), max_size=3)
    if kind.enum_values is not None:
        return st.sampled_from(kind.enum_values)
    return _scalars(kind.scalar)


def _scalars(scalar: Scalar) -> st.SearchStrategy[Any]:
    if scalar is Scalar.BOOL:
        return st.booleans()
    if scalar is Scalar.STRING:
        return st.sampled_from(["", "a", "b"]) | texts
    if scalar is Scalar.BLOB:
        inline = st.binary(max_size=4).map(lambda b: "base64:" + base64.b64encode(b).decode())
        return inline | st.just("s3://bucket/key")
    if scalar is Scalar.DATE:
        iso = days.map(format_date)
        return days | iso | iso.map(lambda t: t.replace("-", "")) | _moment_texts()
    if scalar is Scalar.DATETIME:
        return moments | _moment_texts() | days.map(format_date)
    return _numbers(scalar)


def _moment_texts() -> st.SearchStrategy[str]:
    def spell(millis: int, separator: str, fraction: int, zone: str) -> str:
        text = format_datetime(millis).replace("T", separator)
        return text[:19] + (text[19:23] + "987")[: fraction + 1 if fraction else 0] + zone

    zones = st.sampled_from(["", "Z", "z", "+02:00", "-0330", "+01"])
    return st.builds(spell, moments, st.sampled_from("Tt "), st.integers(0, 6), zones)


def floats(scalar: Scalar) -> st.SearchStrategy[float]:
    """Finite values of a float type."""
    if scalar is Scalar.F32:
        return st.floats(allow_nan=False, allow_infinity=False, width=32)
    return st.floats(allow_nan=False, allow_infinity=False)


def _numbers(scalar: Scalar) -> st.SearchStrategy[Any]:
    if scalar.is_float:
        return floats(scalar) | st.integers(-9, 9)
    low, high = INTEGER_RANGES[scalar]
    return st.integers(max(low, -3), 3) | st.integers(low, high)


@st.composite
def records(draw: st.DrawFn, catalog: Catalog, *, damaged: bool) -> dict[str, Any]:
    """One record, with anything wrong that can be wrong with a well-formed one."""
    declared: EntityType = draw(st.sampled_from(list(catalog)))
    data: dict[str, Any] = {}
    for name, prop in declared.properties.items():
        shape = draw(st.integers(0, 9))
        if damaged and shape == 0:
            data[name] = draw(ODD_VALUES)
        elif (prop.type.nullable or damaged) and shape in (1, 2):
            if shape == 1:
                data[name] = None
        else:
            data[name] = draw(json_values(prop.type))
    if draw(st.integers(0, 3)) == 0:
        data["id"] = draw(ids | (st.sampled_from([7, None]) if damaged else ids))
    if draw(st.integers(0, 5)) == 0:
        unknown = st.sampled_from(["junk", "ä\n", "data", "1"])
        data[draw(unknown.filter(lambda k: k not in declared.properties))] = draw(ODD_VALUES)
    record: dict[str, Any] = {}
    if isinstance(declared, EdgeType):
        name = draw(st.sampled_from([declared.name, declared.name.lower()]))
        record |= {"edge": name, "from": draw(ids), "to": draw(ids)}
    else:
        record["type"] = declared.name
    without_data = not data and draw(st.booleans())
    if not without_data:
        record["data"] = data
    if draw(st.integers(0, 5)) == 0:
        record["note"] = draw(ODD_VALUES)
    if damaged and draw(st.integers(0, 9)) == 0:
        key = draw(st.sampled_from(["type", "edge", "from", "to", "data"]))
        wrong: Any = draw(st.sampled_from(["Ghost", 3, None, [], "drop"]))
        if wrong == "drop":
            record.pop(key, None)
        else:
            record[key] = wrong
    if draw(st.integers(0, 4)) == 0:
        keys = draw(st.permutations(list(record)))
        record = {key: record[key] for key in keys}
    return record


@st.composite
def inputs(draw: st.DrawFn, catalog: Catalog, *, damaged: bool) -> str:
    """A stream of records in some layout, possibly torn."""
    found = draw(st.lists(records(catalog, damaged=damaged), max_size=12))
    layout = draw(st.sampled_from(["lines", "lines", "lines", "pretty", "mixed"]))
    pieces = []
    for record in found:
        pretty = layout == "pretty" or (layout == "mixed" and draw(st.booleans()))
        text = json.dumps(record, ensure_ascii=draw(st.booleans()), indent=2 if pretty else None)
        if damaged and draw(st.integers(0, 14)) == 0:
            text = _torn(draw, text)
        if layout != "mixed":
            text += draw(st.sampled_from(["\n", "\n", "\n", "\n\n", "\r\n", " \n"]))
        else:
            text += draw(st.sampled_from(["\n", "", " ", "\n {}"]))
        pieces.append(text)
    return "".join(pieces)


def _torn(draw: st.DrawFn, text: str) -> str:
    match draw(st.integers(0, 5)):
        case 0:
            return text[: draw(st.integers(1, len(text)))]
        case 1:
            return text[draw(st.integers(1, len(text))) :]
        case 2:
            return draw(st.sampled_from(["// comment", "[1]", "7", '"x"', "nul", "{}", "}", "{"]))
        case 3:
            return text.replace(":", ": NaN,", 1)
        case 4:
            place = draw(st.integers(0, len(text)))
            return (
                text[:place]
                + draw(st.sampled_from(['"', "{", "}", "\n", "\\", ","]))
                + text[place:]
            )
        case _:
            return text + text


DENSE = """
node N {
    k: String @key
    a: I32?
    b: F64?
    u: Date? @unique
    e: enum(x, y)?
    @unique(a, b)
    @range(a, 0..2)
}
node M { x: I32  y: Bool  t: String? @unique  @key(x, y)  @check(t, "^[ab]?$") }
node L { v: String? }
edge E: N -> N { w: I32? @unique  @unique(src, dst) }
edge F: N -> M @card(1..2) { z: DateTime? @unique }
edge G: L -> N @card(2..3) { d: F32?  @unique(src, dst, d) }
edge H: L -> L { }
"""
"""A schema with every rule about several rows, for records from a small world."""

_DENSE_IDS = {"N": ["a", "b", "c"], "M": ['["0","true"]', '["1","false"]'], "L": ["l1", "l2"]}
_DENSE_ENDS = {"E": ("N", "N"), "F": ("N", "M"), "G": ("L", "N"), "H": ("L", "L")}
_DENSE_VALUES: dict[str, dict[str, list[Any]]] = {
    "N": {
        "a": [0, 1, 2, 3],
        "b": [0.0, -0.0, 1, 1.5],
        "u": ["2020-01-01", 18262, 5],
        "e": ["x", "z"],
    },
    "M": {"t": ["a", "b", "c"]},
    "L": {"v": ["", "v"]},
    "E": {"w": [1, 2]},
    "F": {"z": ["2020-01-01", "2020-01-01T00:00:00Z", 1577836800000]},
    "G": {"d": [0, -0.0, 0.5]},
    "H": {},
}


@st.composite
def dense_inputs(draw: st.DrawFn) -> str:
    """Records that meet each other's ids, tuples and ends all the time."""
    lines = []
    for _ in range(draw(st.integers(0, 14))):
        name = draw(st.sampled_from(["N", "N", "M", "L", "E", "F", "F", "G", "G", "H"]))
        values = _DENSE_VALUES[name]
        data = {key: draw(st.none() | st.sampled_from(values[key])) for key in values}
        record: dict[str, Any] = {"type": name, "data": data}
        if name == "N":
            data["k"] = draw(st.sampled_from(_DENSE_IDS["N"]))
        elif name == "M":
            data |= {"x": draw(st.integers(0, 1)), "y": draw(st.booleans())}
        elif name == "L":
            data["id"] = draw(st.sampled_from([*_DENSE_IDS["L"], None]))
        else:
            source, target = _DENSE_ENDS[name]
            ends = {
                "from": draw(st.sampled_from(_DENSE_IDS[source])),
                "to": draw(st.sampled_from(_DENSE_IDS[target])),
            }
            record = {"edge": name, **ends, "data": data}
            # The reference graph has no words for two edges outside their identity with one id.
            if (name != "G" or data["d"] is not None) and draw(st.booleans()):
                data["id"] = draw(st.sampled_from(["e1", "e2"]))
        lines.append(json.dumps(record))
    return "\n".join(lines)
