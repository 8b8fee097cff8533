"""Tokens of both languages and the cursor their recursive-descent parsers share.

One regular expression splits a source. The lexer never fails: text it cannot read becomes one final
`BAD` token, which the parser reports if it gets there. Only enum values need other
words; the parser reads them with `ENUM_VALUE` at the token's offset.

Grammar errors are raised at once. Semantic errors found while parsing (a vector of zero dimensions,
a repeated enum value) are deferred: grammar errors win, wherever the other mistake stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import ParseError
from omnigraph.language.syntax import Name, Source, Span
from omnigraph.limits import MAX_NESTING

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
# backtracking through everything it matched.
_TOKEN = re.compile(
    r"""
      (?P<trivia>[ \t\r\n]++)
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*+)
    | (?P<variable>\$[a-z_][A-Za-z0-9_]*+)
    | (?P<symbol>->|\.\.|>=|<=|!=|[{}()\[\]:,@?.=<>|*+%;-]|/(?![/*]))
    | (?P<float>[0-9]++\.[0-9]++)
    | (?P<integer>[0-9]++)
    | (?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*+")
    | (?P<comment>//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)
    | (?P<bad>.)
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)

ENUM_VALUE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)

# Half of a character: JSON can put one into a Python text, but no file can hold it.
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


# -- the cursor --------------------------------------------------------------------------------


_TYPE_NAME = re.compile(r"[A-Z]")
_IDENT = re.compile(r"[a-z_]")

_BAD_TEXT = {
    '"': 'this string is never closed; add the missing `"`',
    "/": "this is not a comment; write `// …` to the end of the line or close `/* … */`",
    "#": "`#` does not start a comment; write `//`",
    "$": "a variable is `$` followed by a lower-case letter or `_`",
    ";": "there are no statement terminators; leave out the `;`",
    "'": 'strings are written in double quotes: `"…"`',
    "*": "`*` has no meaning here",
    "!": "`!` has no meaning alone; write `not` or `!=`",
    "&": "write `and` between two conditions",
}


class TokenReader:
    """A cursor over the tokens of one source."""

    end_name = "the end of the file"
    """What a message calls the position after the last token."""

    def __init__(self, tokens: Tokens, *, syntax_code: str, escape_code: str) -> None:
        self.source = tokens.source
        self.kinds = tokens.kinds
        self.texts = tokens.texts
        self.starts = tokens.starts
        self.at = 0
        self._depth = 0
        self._deferred: ParseError | None = None
        self._syntax_code = syntax_code
        self._escape_code = escape_code

    # -- position ---------------------------------------------------------------------------

    @property
    def text(self) -> str:
        return self.texts[self.at]

    @property
    def kind(self) -> str:
        return self.kinds[self.at]

    @property
    def at_end(self) -> bool:
        return self.kinds[self.at] == END

    def is_symbol(self, text: str, ahead: int = 0) -> bool:
        i = min(self.at + ahead, len(self.kinds) - 1)
        return self.texts[i] == text and self.kinds[i] == SYMBOL

    def is_word(self, text: str, ahead: int = 0) -> bool:
        i = min(self.at + ahead, len(self.kinds) - 1)
        return self.texts[i] == text and self.kinds[i] == WORD

    def token_span(self, index: int) -> Span:
        return Span(self.starts[index], self.starts[index] + len(self.texts[index]))

    def span_since(self, first: int) -> Span:
        """From the token at `first` to the last one read."""
        last = max(self.at - 1, first)
        return Span(self.starts[first], self.starts[last] + len(self.texts[last]))

    # -- reading ----------------------------------------------------------------------------

    def accept_symbol(self, text: str) -> bool:
        if self.texts[self.at] == text and self.kinds[self.at] == SYMBOL:
            self.at += 1
            return True
        return False

    def accept_word(self, text: str) -> bool:
        if self.texts[self.at] == text and self.kinds[self.at] == WORD:
            self.at += 1
            return True
        return False

    def expect_symbol(self, text: str, where: str) -> None:
        if not self.accept_symbol(text):
            self.fail(f"expected `{text}` {where}")

    def expect_word(self, text: str, where: str) -> None:
        if not self.accept_word(text):
            self.fail(f"expected `{text}` {where}", known=(text,))

    def expect_type_name(self, what: str) -> Name:
        return self._expect_name(_TYPE_NAME, f"{what} (it starts with an upper-case letter)")

    def expect_ident(self, what: str) -> Name:
        return self._expect_name(_IDENT, f"{what} (it starts with a lower-case letter or `_`)")

    def _expect_name(self, first_letter: re.Pattern[str], what: str) -> Name:
        text = self.texts[self.at]
        if self.kinds[self.at] != WORD or not first_letter.match(text):
            self.fail(f"expected {what}")
        name = Name(text, self.token_span(self.at))
        self.at += 1
        return name

    def is_ident(self, ahead: int = 0) -> bool:
        i = min(self.at + ahead, len(self.kinds) - 1)
        return self.kinds[i] == WORD and _IDENT.match(self.texts[i]) is not None

    def expect_integer(self, what: str) -> int:
        """A run of digits. Very long ones are cut to a value beyond every range that is checked."""
        if self.kinds[self.at] != INTEGER:
            self.fail(f"expected {what}")
        digits = self.texts[self.at].lstrip("0") or "0"
        self.at += 1
        return int(digits) if len(digits) <= 40 else 10**40

    def expect_string(self, what: str) -> str:
        if self.kinds[self.at] != STRING:
            self.fail(f"expected {what}")
        return self.read_string()

    def read_string(self) -> str:
        """Decode the string token at the cursor and step over it."""
        try:
            return decode_string(self.texts[self.at])
        except UnsupportedEscape as error:
            start = self.starts[self.at] + error.offset
            self.defer(self._escape_code, str(error), Span(start, start + 2))
            return ""
        finally:
            self.at += 1

    def enter(self) -> None:
        """Begin one level of nesting; `leave` ends it. An error ends the parse, so it need not."""
        self._depth += 1
        if self._depth > MAX_NESTING:
            self.fail(f"nested more than {MAX_NESTING} levels deep")

    def leave(self) -> None:
        self._depth -= 1

    # -- errors -----------------------------------------------------------------------------

    def fail(self, message: str, known: Iterable[str] = (), hint: str | None = None) -> NoReturn:
        """Raise a grammar error at the cursor. `known` are words that would have been right here."""
        kind, text = self.kinds[self.at], self.texts[self.at]
        span = self.token_span(self.at)
        if hint is None and kind == WORD:
            hint = did_you_mean(text, known)
        if kind == BAD or (kind == SYMBOL and text in _BAD_TEXT):
            found = _BAD_TEXT.get(text, f"unexpected character {text!r}")
            raise self.error(self._syntax_code, f"{message}; {found}", span, hint)
        found = self.end_name if kind == END else f"`{_shorten(text)}`"
        raise self.error(self._syntax_code, f"{message}, found {found}", span, hint)

    def error(self, code: str, message: str, span: Span, hint: str | None = None) -> ParseError:
        return ParseError([self.source.diagnose(span, ParseError.category, code, message, hint)])

    def defer(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        """Remember an error of meaning; only the first one of a file is reported."""
        if self._deferred is None:
            self._deferred = self.error(code, message, span, hint)

    def raise_deferred(self) -> None:
        if self._deferred is not None:
            raise self._deferred


def _shorten(text: str) -> str:
    text = text.replace("\n", "\\n")
    return text if len(text) <= 40 else text[:39] + "…"
