"""Reading the stored form of a schema back. A file that is not one raises `ValueError`."""

from __future__ import annotations

from typing import Any

from omnigraph.catalog.ir import (
    IR_VERSION,
    AnnotationIR,
    Bound,
    CardinalityIR,
    CheckIR,
    ConstraintIR,
    EdgeIR,
    IndexIR,
    InterfaceIR,
    KeyIR,
    NodeIR,
    PropertyIR,
    RangeIR,
    SchemaIR,
    UniqueIR,
)
from omnigraph.language.types import PropType, Scalar


def schema_from_json(document: Any) -> SchemaIR:
    """Rebuild a schema from `SchemaIR.to_json()`."""
    try:
        if document["ir_version"] != IR_VERSION:
            raise ValueError(f"schema IR version {document['ir_version']} is not {IR_VERSION}")
        return SchemaIR(
            next_id=int(document["next_id"]),
            interfaces=tuple(_interface(d) for d in document["interfaces"]),
            nodes=tuple(_node(d) for d in document["nodes"]),
            edges=tuple(_edge(d) for d in document["edges"]),
        )
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"not a schema IR document: {error!r}") from error


def prop_type_from_json(document: Any) -> PropType:
    scalar, dimension = document["scalar"], None
    if isinstance(scalar, dict):
        dimension = int(scalar["Vector"])
        scalar = Scalar.VECTOR.value
    values = document["enum_values"]
    return PropType(
        Scalar(scalar),
        nullable=bool(document["nullable"]),
        list=bool(document["list"]),
        dimension=dimension,
        enum_values=None if values is None else tuple(values),
    )


def constraint_from_json(document: Any) -> ConstraintIR:
    ((kind, body),) = document.items()
    match kind:
        case "Key":
            return KeyIR(tuple(body))
        case "Unique":
            return UniqueIR(tuple(body))
        case "Index":
            return IndexIR(tuple(body))
        case "Range":
            return RangeIR(body["property"], _bound(body["min"]), _bound(body["max"]))
        case "Check":
            return CheckIR(body["property"], body["pattern"])
        case _:
            raise ValueError(f"unknown constraint kind {kind!r}")


def annotations_from_json(documents: Any) -> tuple[AnnotationIR, ...]:
    return tuple(
        AnnotationIR(d["name"], d["value"], tuple(sorted(d.get("arguments", {}).items())))
        for d in documents
    )


def _bound(document: Any) -> Bound | None:
    if document is None:
        return None
    ((kind, value),) = document.items()
    return int(value) if kind == "Integer" else float(value)


def _properties(documents: Any) -> tuple[PropertyIR, ...]:
    return tuple(
        PropertyIR(
            name=d["name"],
            prop_id=int(d["prop_id"]),
            column=d["column"],
            type=prop_type_from_json(d["prop_type"]),
            annotations=annotations_from_json(d["annotations"]),
        )
        for d in documents
    )


def _constraints(documents: Any) -> tuple[ConstraintIR, ...]:
    return tuple(constraint_from_json(d) for d in documents)


def _interface(document: Any) -> InterfaceIR:
    return InterfaceIR(
        document["name"], int(document["type_id"]), _properties(document["properties"])
    )


def _node(document: Any) -> NodeIR:
    return NodeIR(
        name=document["name"],
        type_id=int(document["type_id"]),
        annotations=annotations_from_json(document["annotations"]),
        implements=tuple(document["implements"]),
        properties=_properties(document["properties"]),
        constraints=_constraints(document["constraints"]),
    )


def _edge(document: Any) -> EdgeIR:
    cardinality = document["cardinality"]
    return EdgeIR(
        name=document["name"],
        type_id=int(document["type_id"]),
        from_type=document["from_type"],
        to_type=document["to_type"],
        cardinality=CardinalityIR(cardinality["min"], cardinality["max"]),
        annotations=annotations_from_json(document["annotations"]),
        properties=_properties(document["properties"]),
        constraints=_constraints(document["constraints"]),
    )
