"""The words of the query language, read from the package of the language itself.

A keyword is what its parser compares a word with; a function is a value of one of its tables. New ones
are therefore completed and coloured without a change here. Tests: tests/unit/cli/test_shell.py.
"""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
from collections.abc import Iterator
from enum import Enum
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Final

import omnigraph.language.query as query_package
from omnigraph.language.types import SCALAR_NAMES

_WORD: Final = re.compile(r"[a-z][a-z0-9_]+")
_FOREIGN: Final = frozenset({"habits"})
"""Modules with words of other languages, for hints."""

TYPE_NAMES: Final = (*SCALAR_NAMES, "Vector")


@cache
def query_words() -> tuple[str, ...]:
    """The keywords and functions of the query language, sorted."""
    found: set[str] = set()
    for module in _modules():
        found.update(_compared_words(module))
        found.update(_table_words(module))
    return tuple(sorted(found))


def _modules() -> Iterator[ModuleType]:
    for info in pkgutil.iter_modules(query_package.__path__):
        if info.name in _FOREIGN:
            continue
        yield import_module(f"{query_package.__name__}.{info.name}")


def _compared_words(module: ModuleType) -> Iterator[str]:
    """Words that a parser asks for, as in `self.accept_word("match")` and `word == "rrf"`."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self")), args=[*asked]):
                pass
            case ast.Compare(left=ast.Name(id="word"), comparators=[*asked]):
                pass
            case _:
                continue
        for one in asked:
            if isinstance(one, ast.Constant):
                yield from _words(one.value)


def _table_words(module: ModuleType) -> Iterator[str]:
    """Words of enumerations and constant tables, such as the names of functions."""
    for name, value in vars(module).items():
        if isinstance(value, type) and issubclass(value, Enum):
            if value.__module__ == module.__name__:
                for member in value:
                    yield from _words(member.value)
        elif name.isupper() and isinstance(value, dict | tuple | frozenset):
            for item in value:
                yield from _words(item)


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, str) and _WORD.fullmatch(value):
        yield value
