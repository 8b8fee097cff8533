"""Syntax trees to text in standard layout, with the comments and blank lines of the original."""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.language.layout import Layout
from omnigraph.language.query.parse import parse_query_tokens
from omnigraph.language.query.print_file import print_queries
from omnigraph.language.schema import ast as pg
from omnigraph.language.schema.parse import parse_schema_tokens
from omnigraph.language.syntax import Source, TypeRef
from omnigraph.language.tokens import Tokens, encode_string, tokenize

# -- schemas -----------------------------------------------------------------------------------


def print_schema(schema: pg.Schema, tokens: Tokens | None = None) -> str:
    """The text of a schema. With the tokens it was read from, comments and blank lines stay."""
    layout = Layout(tokens)
    after_block = False
    for declaration in schema.declarations:
        is_block = bool(declaration.members) or not isinstance(declaration, pg.Edge)
        # Blocks stand apart; edges without a body may stay together as one list.
        _print_declaration(layout, declaration, apart=is_block or after_block)
        after_block = is_block
    return layout.finish()


def _print_declaration(layout: Layout, declaration: pg.Declaration, *, apart: bool) -> None:
    head, last = _head(declaration)
    span = declaration.span
    if not declaration.members:
        empty = "" if isinstance(declaration, pg.Edge) else " {}"
        layout.element(head + empty, span, apart=apart)
        return
    layout.open(f"{head} {{", span, last, apart=apart)
    for member in declaration.members:
        layout.element(_member(member), member.span)
    layout.close("}", span.end)


def _head(declaration: pg.Declaration) -> tuple[str, int]:
    """The text before the body, and where it ends in the source."""
    name = declaration.name
    match declaration:
        case pg.Interface():
            return f"interface {name}", name.span.end
        case pg.Node(annotations=annotations, implements=implements):
            text = f"node {name}{_annotations(annotations)}"
            last = annotations[-1].span.end if annotations else name.span.end
            if implements:
                text += f" implements {', '.join(i.text for i in implements)}"
                last = implements[-1].span.end
            return text, last
        case pg.Edge(source=source, target=target, annotations=annotations):
            text = f"edge {name}: {source} -> {target}"
            last = target.span.end
            if declaration.cardinality is not None:
                text += f" {_cardinality(declaration.cardinality)}"
                last = declaration.cardinality.span.end
            if annotations:
                last = annotations[-1].span.end
            return text + _annotations(annotations), last


def _member(member: pg.Member) -> str:
    if isinstance(member, pg.Property):
        return f"{member.name}: {print_type(member.type)}{_annotations(member.annotations)}"
    return _constraint(member)


def print_type(ref: TypeRef) -> str:
    """A type as written; enum values keep the order of the source."""
    if ref.enum_order is None:
        return ref.type.display
    core = f"enum({', '.join(ref.enum_order)})"
    return f"{core}?" if ref.type.nullable else core


def _annotations(annotations: Iterable[pg.Annotation]) -> str:
    return "".join(f" {_annotation(a)}" for a in annotations)


def _annotation(annotation: pg.Annotation) -> str:
    if annotation.value is None:
        return f"@{annotation.name}"
    arguments = "".join(f", {a.name}={_value(a.value)}" for a in annotation.arguments)
    return f"@{annotation.name}({_value(annotation.value)}{arguments})"


def _value(value: pg.AnnotationValue) -> str:
    return encode_string(value.text) if value.spelling is None else value.spelling


def _cardinality(cardinality: pg.Cardinality) -> str:
    high = "" if cardinality.high is None else cardinality.high
    return f"@card({cardinality.low}..{high})"


def _constraint(constraint: pg.Constraint) -> str:
    arguments = [c.text for c in constraint.columns]
    if constraint.bounds is not None:
        arguments.append(_bounds(constraint.bounds))
    if constraint.pattern is not None:
        pattern = constraint.pattern
        arguments.append(pattern.spelling or encode_string(pattern.text))
    return f"@{constraint.kind.value}({', '.join(arguments)})"


def _bounds(bounds: pg.Bounds) -> str:
    return f"{bounds.low or ''}..{bounds.high or ''}"


# -- files -------------------------------------------------------------------------------------


def format_schema(source: Source) -> str:
    """A schema file in house style. Raises `ParseError` for text that is not a schema."""
    tokens = tokenize(source)
    return print_schema(parse_schema_tokens(tokens), tokens)


def format_queries(source: Source) -> str:
    """A query file in house style. Raises `ParseError` for text that is not a query file."""
    tokens = tokenize(source)
    return print_queries(parse_query_tokens(tokens, alone=True), tokens)
