"""The formatter: source text in, the same source in house style out, comments included."""

from __future__ import annotations

from omnigraph.language.lexer import tokenize
from omnigraph.language.query.parse import parse_query_tokens
from omnigraph.language.query.print import print_queries
from omnigraph.language.schema.parse import parse_schema_tokens
from omnigraph.language.schema.print import print_schema
from omnigraph.language.span import Source


def format_schema(source: Source) -> str:
    """A schema file in house style. Raises `ParseError` for text that is not a schema."""
    tokens = tokenize(source)
    return print_schema(parse_schema_tokens(tokens), tokens)


def format_queries(source: Source) -> str:
    """A query file in house style. Raises `ParseError` for text that is not a query file."""
    tokens = tokenize(source)
    return print_queries(parse_query_tokens(tokens), tokens)
