"""The prompt on a terminal: history, input over several lines, completion, colours, a line of problems.

The only importer of prompt_toolkit. Tests: tests/surfaces/test_shell.py, through a real pseudo-terminal.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style

from omnigraph.cli.shell.completion import Completions
from omnigraph.cli.shell.session import COMMANDS, EndOfSession, ShellSession, is_complete
from omnigraph.cli.shell.words import query_words

_STYLE: Final = Style.from_dict(
    {
        "prompt": "bold",
        "keyword": "ansiblue",
        "variable": "ansicyan",
        "string": "ansigreen",
        "number": "ansimagenta",
        "comment": "ansibrightblack",
        "command": "ansiyellow",
        "problem": "ansired noreverse",
    }
)
_TOKEN: Final = re.compile(
    r'(?P<comment>//.*)|(?P<string>"(?:[^"\\]|\\.)*"?)|(?P<variable>\$\w+)'
    r"|(?P<number>\b\d+(?:\.\d+)?\b)|(?P<word>[A-Za-z_]\w*)|(?P<other>.)"
)


class _QueryLexer(Lexer):
    def __init__(self) -> None:
        self._keywords = frozenset(query_words()) | {"query"}

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines = document.lines
        is_command = document.text.lstrip().startswith(".")

        def line(number: int) -> StyleAndTextTuples:
            if number >= len(lines):
                return []
            if is_command:
                return [("class:command", lines[number])]
            return [(self._style(match), match[0]) for match in _TOKEN.finditer(lines[number])]

        return line

    def _style(self, match: re.Match[str]) -> str:
        kind = match.lastgroup or "other"
        if kind == "word":
            return "class:keyword" if match[0] in self._keywords else ""
        return "" if kind == "other" else f"class:{kind}"


class _QueryCompleter(Completer):
    def __init__(self, completions: Completions) -> None:
        self._completions = completions

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        written, found = self._completions.at(document.text_before_cursor)
        for one in found:
            yield Completion(one.text, -len(written), display_meta=one.meaning)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        text = buffer.text
        is_at_end = not buffer.document.text_after_cursor.strip()
        if buffer.complete_state and buffer.complete_state.current_completion:
            buffer.complete_state = None
        elif is_at_end and (text.lstrip().startswith(".") or is_complete(text)):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def run_prompt(session: ShellSession, name: str, history: Path | None, *, coloured: bool) -> None:
    """Ask for inputs and run them until the person leaves."""
    completions = Completions(session.catalog, session.refs, lambda: session.queries, COMMANDS)

    def toolbar() -> StyleAndTextTuples:
        problem = session.problem(get_app().current_buffer.text)
        if problem is not None:
            return [("class:problem", f" {problem} ")]
        return [("", f" {name} on {session.branch}   .help   Tab completes   Ctrl-D leaves ")]

    prompt: PromptSession[str] = PromptSession(
        history=InMemoryHistory() if history is None else FileHistory(str(history)),
        completer=_QueryCompleter(completions),
        complete_while_typing=False,
        lexer=_QueryLexer() if coloured else None,
        style=_STYLE,
        multiline=True,
        prompt_continuation=lambda width, line, wrapped: "." * (width - 1) + " ",
        key_bindings=_keys(),
        bottom_toolbar=toolbar,
        color_depth=None if coloured else ColorDepth.DEPTH_1_BIT,
    )
    # An interrupt ends the question that is answered, not the shell.
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        while True:
            try:
                text = prompt.prompt([("class:prompt", f"{session.branch}> ")])
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            try:
                session.enter(text)
            except KeyboardInterrupt:
                session.out.write("interrupted\n")
            except EndOfSession:
                return
            session.out.flush()
    finally:
        signal.signal(signal.SIGINT, previous)
