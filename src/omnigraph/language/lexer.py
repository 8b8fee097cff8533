"""One compiled regular expression turns a source into parallel arrays of tokens.

Both languages share it. The lexer never fails: text it cannot read becomes one final `BAD` token,
and the parser decides what to say when (and if) it gets there. Enum values are the one place where
the grammar needs other words; the parser reads them with `ENUM_VALUE` at the token's offset.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from omnigraph.language.span import Source, Span

WORD, VARIABLE, FLOAT, INTEGER, STRING, SYMBOL, BAD, END = (
    "word",
    "variable",
    "float",
    "integer",
    "string",
    "symbol",
    "bad",
    "end",
)
_TRIVIA = "trivia"
_COMMENT = "comment"

# Possessive quantifiers: a string or comment that never ends fails in one pass instead of
# backtracking through everything it swallowed.
_TOKEN = re.compile(
    r"""
      (?P<trivia>[ \t\r\n]++)
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*+)
    | (?P<variable>\$[a-z_][A-Za-z0-9_]*+)
    | (?P<symbol>->|\.\.|>=|<=|!=|[{}()\[\]:,@?.=<>-])
    | (?P<float>[0-9]++\.[0-9]++)
    | (?P<integer>[0-9]++)
    | (?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*+")
    | (?P<comment>//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)
    | (?P<bad>.)
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)

ENUM_VALUE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)

# Half of a character: JSON can smuggle one into a Python text, but no file can hold it.
_SURROGATE = re.compile("[\ud800-\udfff]")

_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment as written, with its region."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a source as parallel lists; the last one is always `END`."""

    source: Source
    kinds: list[str]
    texts: list[str]
    starts: list[int]
    comments: list[Comment]


def tokenize(source: Source) -> Tokens:
    """Split a source into tokens, keeping the comments aside."""
    if half := _SURROGATE.search(source.text):
        offsets = [half.start(), len(source.text)]
        return Tokens(source, [BAD, END], [half.group(), ""], offsets, [])
    kinds: list[str] = []
    texts: list[str] = []
    starts: list[int] = []
    comments: list[Comment] = []
    for match in _TOKEN.finditer(source.text):
        kind = match.lastgroup or BAD
        if kind == _TRIVIA:
            continue
        text = match.group()
        if kind == _COMMENT:
            comments.append(Comment(text, Span(match.start(), match.end())))
            continue
        kinds.append(kind)
        texts.append(text)
        starts.append(match.start())
        if kind == BAD:
            break
    kinds.append(END)
    texts.append("")
    starts.append(len(source.text))
    return Tokens(source, kinds, texts, starts, comments)


class UnsupportedEscape(ValueError):
    """A backslash sequence the languages do not know; `offset` counts from the opening quote."""

    def __init__(self, sequence: str, offset: int) -> None:
        super().__init__(f"unsupported escape sequence: {sequence}")
        self.offset = offset


def decode_string(literal: str) -> str:
    """The text of a quoted string token."""
    body = literal[1:-1]
    if "\\" not in body:
        return body

    def replace(match: re.Match[str]) -> str:
        try:
            return _ESCAPES[match.group(1)]
        except KeyError:
            raise UnsupportedEscape(match.group(), match.start() + 1) from None

    return _ESCAPE.sub(replace, body)


def encode_string(text: str) -> str:
    """A quoted string token that decodes to `text`."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    escaped = escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f'"{escaped}"'
