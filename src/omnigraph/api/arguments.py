"""Checks of arguments that many calls share. A wrong one is an `InputError` that names it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from omnigraph.errors import InputError
from omnigraph.versioning.commits import CommitId

if TYPE_CHECKING:
    from omnigraph.history.refs import Ref


def text_argument(name: str, value: object) -> str:
    """A text that must be given."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be a string, not {kind_of(value)}")
    return value


def optional_text(name: str, value: object) -> str | None:
    """A text that may be left out."""
    return None if value is None else text_argument(name, value)


def staleness_argument(value: object) -> float:
    """Seconds; 0 if left out."""
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise InputError(f"max_staleness must be a number of seconds from 0, not {value!r}")
    return float(value)


def names_argument(name: str, values: object) -> tuple[str, ...]:
    """Names, in a list or another collection; a single string is taken for a mistake."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        example = f"[{values!r}]" if isinstance(values, str) else "a list of names"
        raise InputError(f"{name} must be a list of strings; pass {example}")
    return tuple(text_argument(f"{name}[{place}]", one) for place, one in enumerate(values))


def rows_argument(name: str, value: object) -> None:
    """A number of rows, or None."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"{name} must be a number of rows from 0, not {value!r}")


def parameters_argument(values: object) -> Mapping[str, object]:
    """Parameters by name; None for none."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise InputError(f"params must map names to values, not {kind_of(values)}")
    return values


def commit_argument(name: str, value: Ref | None) -> CommitId | None:
    """The commit id of a commit, a receipt or a result, or an id as text."""
    if value is None:
        return None
    found = commit_id_of(name, value)
    if found is None:
        raise InputError(f"{name} must be a commit or its id, not {kind_of(value)}")
    return found


def commit_id_of(name: str, value: object) -> CommitId | None:
    """The commit an object stands for. None for anything but commits, receipts, results and text.

    Raises `InputError` for a receipt without a commit.
    """
    if isinstance(value, str):
        return CommitId(text_argument(name, value))
    if not hasattr(value, "commit_id"):
        return None
    if value.commit_id is None:
        raise InputError(f"{name} is a write that changed nothing, so it has no commit")
    return CommitId(value.commit_id)


def kind_of(value: Any) -> str:
    return "None" if value is None else type(value).__name__


def only_one(**given: object) -> None:
    """Raises `InputError` when more than one of the arguments is given."""
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise InputError(f"pass either {' or '.join(names)}, not {_both(names)}")


def _both(names: Sequence[str]) -> str:
    return "both" if len(names) == 2 else "all of them"
