"""Schema text to syntax tree, with the checks that need nothing but the declaration itself.

Grammar errors win over errors of meaning (see `TokenReader`); among the latter the first in the
text is reported.
"""

from __future__ import annotations

import math

from omnigraph.language.schema.ast import (
    Annotation,
    AnnotationArgument,
    AnnotationValue,
    Bounds,
    Cardinality,
    Constraint,
    ConstraintKind,
    Declaration,
    Edge,
    Interface,
    Member,
    Node,
    Pattern,
    Property,
    Schema,
)
from omnigraph.language.syntax import Name, Source, Span, TypeRef
from omnigraph.language.tokens import (
    ENUM_VALUE,
    FLOAT,
    INTEGER,
    STRING,
    WORD,
    TokenReader,
    Tokens,
    tokenize,
)
from omnigraph.language.types import SCALAR_NAMES, PropType, Scalar
from omnigraph.limits import MAX_VECTOR_DIMENSION

_DECLARATIONS = ("interface", "node", "edge")
_CONSTRAINTS = {kind.value: kind for kind in ConstraintKind}
_TYPE_WORDS = (*SCALAR_NAMES, "Vector", "enum")
_U32_MAX = 2**32 - 1


def parse_schema(source: Source) -> Schema:
    """Read a schema file. Raises `ParseError` with a position."""
    return parse_schema_tokens(tokenize(source))


def parse_schema_tokens(tokens: Tokens) -> Schema:
    """As `parse_schema`, for a caller that also needs the comments."""
    parser = _SchemaParser(tokens, syntax_code="S1", escape_code="S2")
    declarations = []
    while not parser.at_end:
        declarations.append(parser.declaration())
    parser.raise_deferred()
    return Schema(tuple(declarations))


# What stands between the parentheses of a constraint: a property name, bounds, or a literal.
_Argument = Name | Bounds | Pattern | str


class _SchemaParser(TokenReader):
    def declaration(self) -> Declaration:
        if self.is_word("interface"):
            return self.interface()
        if self.is_word("node"):
            return self.node()
        if self.is_word("edge"):
            return self.edge()
        self.fail("expected `interface`, `node` or `edge`", known=_DECLARATIONS)

    def interface(self) -> Interface:
        first = self.at
        self.at += 1
        name = self.expect_type_name("an interface name")
        self.expect_symbol("{", "to open the interface body (interfaces take no annotations)")
        members = []
        while not self.accept_symbol("}"):
            if self.is_symbol("@"):
                self.fail("an interface body holds properties only, no constraints")
            members.append(self.property_decl(in_edge=False))
        return Interface(name, tuple(members), self.span_since(first))

    def node(self) -> Node:
        first = self.at
        self.at += 1
        name = self.expect_type_name("a node type name")
        annotations = self.annotations(in_edge=False)
        implements = []
        if self.accept_word("implements"):
            implements.append(self.expect_type_name("an interface name"))
            while self.accept_symbol(","):
                implements.append(self.expect_type_name("an interface name"))
            if self.is_symbol("@"):
                self.fail("annotations of a node come before `implements`")
        self.expect_symbol("{", "to open the node body")
        members = self.body(in_edge=False)
        return Node(name, annotations, tuple(implements), members, self.span_since(first))

    def edge(self) -> Edge:
        first = self.at
        self.at += 1
        name = self.expect_type_name("an edge type name")
        self.expect_symbol(":", "after the edge type name")
        origin = self.expect_type_name("the source node type")
        self.expect_symbol("->", "between the source and the target node type")
        target = self.expect_type_name("the target node type")
        cardinality = None
        if self.is_symbol("@") and self.is_word("card", ahead=1):
            cardinality = self.cardinality()
        annotations = self.annotations(in_edge=True)
        members = self.body(in_edge=True) if self.accept_symbol("{") else ()
        span = self.span_since(first)
        return Edge(name, origin, target, cardinality, annotations, members, span)

    def body(self, *, in_edge: bool) -> tuple[Member, ...]:
        members: list[Member] = []
        while not self.accept_symbol("}"):
            if self.is_symbol("@"):
                constraint = self.constraint()
                if constraint is not None:
                    members.append(constraint)
            else:
                members.append(self.property_decl(in_edge=in_edge))
        return tuple(members)

    # -- properties and their types ---------------------------------------------------------

    def property_decl(self, *, in_edge: bool) -> Property:
        first = self.at
        name = self.expect_ident("a property name")
        self.expect_symbol(":", "after the property name")
        type_ref = self.type_ref()
        annotations = self.annotations(in_edge=in_edge)
        return Property(name, type_ref, annotations, self.span_since(first))

    def type_ref(self) -> TypeRef:
        first = self.at
        dimension = None
        order: tuple[str, ...] | None = None
        is_list = self.accept_symbol("[")
        if is_list:
            scalar = self.scalar("a scalar type for the list's elements")
            if scalar is Scalar.BLOB:
                span = self.token_span(self.at - 1)
                self.defer("S6", "list of Blob is not supported", span)
            self.expect_symbol("]", "after the element type (elements take no `?` of their own)")
        elif self.accept_word("enum"):
            scalar = Scalar.STRING
            order = self.enum_values()
        elif self.accept_word("Vector"):
            scalar = Scalar.VECTOR
            dimension = self.vector_dimension()
        else:
            scalar = self.scalar("a property type")
        nullable = self.accept_symbol("?")
        values = tuple(sorted(set(order))) if order is not None else None
        # A deferred error may leave a combination no type can have; nothing reads it.
        is_list = is_list and scalar is not Scalar.BLOB
        prop_type = PropType(scalar, nullable, is_list, dimension, values)
        return TypeRef(prop_type, order, self.span_since(first))

    def scalar(self, what: str) -> Scalar:
        scalar = SCALAR_NAMES.get(self.text) if self.kind == WORD else None
        if scalar is None:
            self.fail(f"expected {what}", known=_TYPE_WORDS)
        self.at += 1
        return scalar

    def vector_dimension(self) -> int:
        self.expect_symbol("(", "after `Vector`")
        span = self.token_span(self.at)
        written = self.text
        dimension = self.expect_integer("the number of dimensions")
        self.expect_symbol(")", "after the number of dimensions")
        if dimension == 0:
            self.defer("S3", "Vector dimension must be greater than zero", span)
        elif dimension > _U32_MAX:
            self.defer("S5", f"invalid Vector dimension: {_shown(written)}", span)
        elif dimension > MAX_VECTOR_DIMENSION:
            message = f"Vector dimension {dimension} exceeds maximum supported"
            self.defer("S4", f"{message} {MAX_VECTOR_DIMENSION}", span)
        return dimension

    def enum_values(self) -> tuple[str, ...]:
        self.expect_symbol("(", "after `enum`")
        values = [self.enum_value()]
        while self.accept_symbol(","):
            start = self.starts[self.at]
            value = self.enum_value()
            if value in values:
                message = f"enum type cannot include duplicate values: '{value}'"
                self.defer("S7", message, Span(start, start + len(value)))
            values.append(value)
        self.expect_symbol(")", "after the enum values")
        return tuple(values)

    def enum_value(self) -> str:
        """An enum value may look like several tokens of the grammar (`3-way`): read it as text."""
        start = self.starts[self.at]
        match = ENUM_VALUE.match(self.source.text, start)
        if match is None:
            self.fail("expected an enum value (letters, digits, `_` and `-`)")
        while self.starts[self.at] < match.end() and not self.at_end:
            self.at += 1
        if self.starts[self.at - 1] + len(self.texts[self.at - 1]) > match.end():
            self.at -= 1
            self.fail("expected `,` or `)` after the enum value")
        return match.group()

    # -- annotations and constraints --------------------------------------------------------

    def annotations(self, *, in_edge: bool) -> tuple[Annotation, ...]:
        found = []
        while self.is_symbol("@") and not self.at_constraint():
            annotation = self.annotation(in_edge=in_edge)
            if annotation is not None:
                found.append(annotation)
        return tuple(found)

    def at_constraint(self) -> bool:
        word = self.texts[min(self.at + 1, len(self.texts) - 1)]
        return word in _CONSTRAINTS and self.is_symbol("(", ahead=2)

    def annotation(self, *, in_edge: bool) -> Annotation | None:
        first = self.at
        self.at += 1
        name = self.expect_ident("an annotation name")
        if in_edge and name.text == "card":
            self.at = first
            self.misplaced_cardinality()
            return None
        value = None
        arguments: list[AnnotationArgument] = []
        if self.accept_symbol("("):
            value = self.annotation_value()
            while self.accept_symbol(","):
                arguments.append(self.annotation_argument())
            self.expect_symbol(")", "after the annotation's value")
        return Annotation(name, value, tuple(arguments), self.span_since(first))

    def annotation_argument(self) -> AnnotationArgument:
        name = self.expect_ident("the name of an argument")
        self.expect_symbol("=", "after the name of an argument")
        if self.kind == WORD and self.text not in ("true", "false"):
            self.fail("expected a string, number or boolean as argument")
        return AnnotationArgument(name, self.annotation_value())

    def annotation_value(self) -> AnnotationValue:
        spelling = self.text
        if self.kind == STRING:
            text = self.read_string()
        elif self.kind in (FLOAT, INTEGER) or spelling in ("true", "false") or self.is_ident():
            text = spelling
            self.at += 1
        else:
            self.fail("expected a string, number, boolean or name as annotation value")
        return AnnotationValue(text, spelling)

    def cardinality(self) -> Cardinality | None:
        """`@card(lo..hi)` right after the target type; anything else named `card` is an error."""
        first = self.at
        written_as_bounds = (
            self.is_symbol("(", 2)
            and self.kinds[min(self.at + 3, len(self.kinds) - 1)] == INTEGER
            and self.is_symbol("..", 4)
        )
        if not written_as_bounds:
            self.misplaced_cardinality()
            return None
        self.at += 3
        low = self.card_bound("min")
        self.at += 1
        high = self.card_bound("max") if self.kind == INTEGER else None
        self.expect_symbol(")", "after the cardinality (unbounded is written `@card(0..)`)")
        if high is not None and low > high:
            message = f"cardinality min ({low}) exceeds max ({high})"
            self.defer("S9", message, self.span_since(first))
        return Cardinality(low, high, self.span_since(first))

    def card_bound(self, side: str) -> int:
        span, written = self.token_span(self.at), self.text
        value = self.expect_integer("a number of edges")
        if value > _U32_MAX:
            self.defer("S8", f"invalid cardinality {side}: {_shown(written)}", span)
        return value

    def misplaced_cardinality(self) -> None:
        """Step over anything that calls itself `@card`, and say why it cannot stand there."""
        first = self.at
        self.at += 2
        if self.accept_symbol("("):
            while not self.at_end and not self.is_symbol(")"):
                if self.kind not in (INTEGER, FLOAT, STRING, WORD) and not self.is_symbol(".."):
                    self.fail("expected a cardinality such as `0..1` or `1..`")
                self.at += 1
            self.expect_symbol(")", "after the cardinality")
        message = "invalid cardinality: write `@card(lo..hi)` or `@card(lo..)` directly after the"
        self.defer("S44", f"{message} target type", self.span_since(first))

    def constraint(self) -> Constraint | None:
        first = self.at
        self.at += 1
        kind = _CONSTRAINTS.get(self.text) if self.kind == WORD else None
        if kind is None or not self.is_symbol("(", ahead=1):
            words = ", ".join(f"`@{word}(…)`" for word in _CONSTRAINTS)
            self.fail(f"expected a property or one of {words}", known=_CONSTRAINTS)
        self.at += 2
        takes_ends = kind is ConstraintKind.KEY
        arguments = [self.argument(takes_ends=takes_ends)]
        while self.accept_symbol(","):
            arguments.append(self.argument(takes_ends=takes_ends))
        self.expect_symbol(")", "after the constraint's arguments")
        return self.build_constraint(kind, arguments, self.span_since(first))

    def argument(self, *, takes_ends: bool) -> tuple[_Argument, Span]:
        first = self.at
        value: _Argument
        if self.at_number() or self.is_symbol(".."):
            value = self.bounds_or_number()
        elif self.kind == STRING:
            spelling = self.text
            value = Pattern(self.read_string(), spelling)
        elif self.text in ("true", "false") and self.kind == WORD:
            value = self.text
            self.at += 1
        elif takes_ends and self.accept_symbol("@"):
            end = self.expect_ident("`src` or `dst`")
            if end.text not in ("src", "dst"):
                self.at -= 1
                self.fail("expected `src` or `dst` after `@`", known=("src", "dst"))
            value = Name(f"@{end}", self.span_since(first))
        else:
            value = self.expect_ident("a property name, bounds or a literal")
        return value, self.span_since(first)

    def at_number(self) -> bool:
        if self.is_symbol("-"):
            after = min(self.at + 1, len(self.kinds) - 1)
            touches = self.starts[after] == self.starts[self.at] + 1
            return touches and self.kinds[after] in (INTEGER, FLOAT)
        return self.kind in (INTEGER, FLOAT)

    def signed_number(self) -> str:
        sign = "-" if self.accept_symbol("-") else ""
        self.at += 1
        return sign + self.texts[self.at - 1]

    def bounds_or_number(self) -> Bounds | str:
        low = None
        if self.at_number():
            signed = self.is_symbol("-")
            low = self.signed_number()
            if not self.is_symbol(".."):
                if signed:
                    self.fail("expected `..` (a negative number is legal in bounds only)")
                return low
        self.expect_symbol("..", "between the bounds")
        high = self.signed_number() if self.at_number() else None
        if low is None and high is None:
            self.fail("expected a number on one side of `..`")
        return Bounds(low, high)

    def build_constraint(
        self, kind: ConstraintKind, arguments: list[tuple[_Argument, Span]], span: Span
    ) -> Constraint | None:
        if kind in (ConstraintKind.RANGE, ConstraintKind.CHECK):
            return self.build_value_constraint(kind, arguments, span)
        columns = []
        for value, argument_span in arguments:
            if not isinstance(value, Name):
                self.defer("S10", "expected property name in constraint", argument_span)
                return None
            columns.append(value)
        return Constraint(kind, tuple(columns), span=span)

    def build_value_constraint(
        self, kind: ConstraintKind, arguments: list[tuple[_Argument, Span]], span: Span
    ) -> Constraint | None:
        column, argument_span = arguments[0]
        is_range = kind is ConstraintKind.RANGE
        if len(arguments) != 2:
            if is_range:
                self.defer("S11", "@range requires property name and bounds", span)
            else:
                self.defer("S13", "@check requires property name and pattern", span)
            return None
        if not isinstance(column, Name):
            self.defer("S10", "expected property name in constraint", argument_span)
            return None
        value, argument_span = arguments[1]
        if is_range:
            if isinstance(value, Bounds):
                if any(math.isinf(float(side)) for side in (value.low, value.high) if side):
                    message = "expected range bounds within the range of a 64-bit float"
                    self.defer("S12", message, argument_span)
                return Constraint(kind, (column,), bounds=value, span=span)
            self.defer(
                "S12", "expected range bounds such as `0..10`, `0..` or `..10`", argument_span
            )
        else:
            if isinstance(value, Pattern):
                return Constraint(kind, (column,), pattern=value, span=span)
            self.defer("S14", "expected string argument in constraint", argument_span)
        return None


def _shown(number: str) -> str:
    return number if len(number) <= 24 else number[:23] + "…"
