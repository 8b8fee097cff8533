"""Property and parameter types as values: what both languages and everything above share."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct
from msgspec.structs import replace


class Scalar(Enum):
    """The scalar kinds; a value's text is its name in source, messages and the schema IR."""

    STRING = "String"
    BLOB = "Blob"
    BOOL = "Bool"
    I32 = "I32"
    I64 = "I64"
    U32 = "U32"
    U64 = "U64"
    F32 = "F32"
    F64 = "F64"
    DATETIME = "DateTime"
    DATE = "Date"
    VECTOR = "Vector"
    OBJECT = "Object"
    """The named values of an entity. Only results have it."""

    @property
    def is_integer(self) -> bool:
        return self in _INTEGERS

    @property
    def is_float(self) -> bool:
        return self in _FLOATS

    @property
    def is_numeric(self) -> bool:
        return self in _INTEGERS or self in _FLOATS


_INTEGERS = frozenset({Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64})
_FLOATS = frozenset({Scalar.F32, Scalar.F64})

SCALAR_NAMES = {s.value: s for s in Scalar if s not in (Scalar.VECTOR, Scalar.OBJECT)}

F32_MAX = 3.4028234663852886e38
"""The largest finite single-precision number."""

INTEGER_RANGES = {
    Scalar.I32: (-(2**31), 2**31 - 1),
    Scalar.I64: (-(2**63), 2**63 - 1),
    Scalar.U32: (0, 2**32 - 1),
    Scalar.U64: (0, 2**64 - 1),
}


class PropType(Struct, frozen=True):
    """The type of a property, parameter or expression. Enum values are sorted and distinct."""

    scalar: Scalar
    nullable: bool = False
    list: bool = False
    dimension: int | None = None
    enum_values: tuple[str, ...] | None = None
    fields: tuple[tuple[str, PropType], ...] | None = None
    """The names and types of an object's values."""

    def __post_init__(self) -> None:
        if (self.scalar is Scalar.VECTOR) != (self.dimension is not None):
            raise ValueError("exactly the vector types have a dimension")
        if self.list and (self.enum_values is not None or self.scalar is Scalar.VECTOR):
            raise ValueError("lists hold plain scalars only")
        if self.enum_values is not None and (
            self.scalar is not Scalar.STRING
            or tuple(sorted(set(self.enum_values))) != self.enum_values
        ):
            raise ValueError("an enum is a String with sorted, distinct values")

    @property
    def display(self) -> str:
        """The name used inside messages: `[String]?`, `enum(a, b)`, `Vector(3)`."""
        if self.enum_values is not None:
            core = f"enum({', '.join(self.enum_values)})"
        elif self.scalar is Scalar.VECTOR:
            core = f"Vector({self.dimension})"
        else:
            core = self.scalar.value
        if self.list:
            core = f"[{core}]"
        return f"{core}?" if self.nullable else core

    @property
    def is_vector(self) -> bool:
        return self.scalar is Scalar.VECTOR

    @property
    def is_blob(self) -> bool:
        return self.scalar is Scalar.BLOB

    @property
    def is_enum(self) -> bool:
        return self.enum_values is not None

    @property
    def is_text(self) -> bool:
        """A single String or enum."""
        return self.scalar is Scalar.STRING and not self.list

    @property
    def is_object(self) -> bool:
        """An object, not a list of objects."""
        return self.scalar is Scalar.OBJECT and not self.list

    def required(self) -> PropType:
        return replace(self, nullable=False)

    def optional(self) -> PropType:
        return replace(self, nullable=True)

    def element(self) -> PropType:
        """The type of one list element."""
        return PropType(self.scalar, fields=self.fields)


def compatible(left: PropType, right: PropType) -> bool:
    """Whether values of the two types may be compared or assigned; nullability plays no role."""
    if left.list != right.list:
        return False
    return left.scalar is right.scalar or (left.scalar.is_numeric and right.scalar.is_numeric)
