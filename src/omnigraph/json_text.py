"""Reading JSON that people write: parameters, decisions, mappings, specifications.

Whatever is wrong with it is said in one sentence, with line and column where there is one.
Tests: tests/unit/test_json_text.py.
"""

from __future__ import annotations

import json
from typing import Any

from omnigraph.diagnostics import shortened


class JsonError(ValueError):
    """A text that is not valid JSON; the message says where and why."""


def parse_json(text: str) -> Any:
    """The value that a text holds. Raises `JsonError`."""
    try:
        return json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        problem = f"{error.msg[:1].lower()}{error.msg[1:]}"
        raise JsonError(f"line {error.lineno}, column {error.colno}: {problem}") from None
    except RecursionError:
        raise JsonError("it is nested too deeply") from None
    except JsonError:
        raise
    except ValueError:
        # Python refuses to convert numbers of more than some thousand digits.
        raise JsonError("a number has too many digits") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for number, key in enumerate(keys) if key in keys[:number])
        raise JsonError(f"key '{shortened(twice)}' stands twice in an object")
    return found
