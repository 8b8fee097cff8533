"""What an error of the table library means. The one place that reads its texts.

The library raises the same few builtin exceptions for everything, so the text decides; guard tests
in tests/substrate pin the texts. Whoever acts on a conflict reads the store again before deciding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Final

from lance.commit import CommitConflictError

from omnigraph.errors import OmnigraphError, StoreCallFailed, TableMissing
from omnigraph.storage.causes import cause_in_words


class Failure(Enum):
    """Kinds of failure that callers treat differently."""

    CONFLICT = "somebody else's commit is in the way"
    NOT_FOUND = "the table, version or branch does not exist"
    ALREADY_EXISTS = "the table, branch or index exists"
    BRANCH_IN_USE = "other branches refer to the branch"
    OTHER = "anything else"


_TEXTS: Final = (
    (Failure.CONFLICT, "Too many concurrent writers"),
    (Failure.CONFLICT, "Retryable commit conflict"),
    (Failure.CONFLICT, "Incompatible transaction"),
    (Failure.BRANCH_IN_USE, "Ref conflict error"),
    (Failure.ALREADY_EXISTS, "already exists"),
    # What creating a branch says when somebody else has created it.
    (Failure.ALREADY_EXISTS, "Clone operation should not enter build_manifest"),
    (Failure.NOT_FOUND, "Ref not found error"),
    (Failure.NOT_FOUND, "was not found"),
    (Failure.NOT_FOUND, "Version not found error"),
)

# A version that was listed and then removed, with its whole branch or by a cleanup.
_VANISHED_VERSION: Final = re.compile(r"Not found: \S*/_versions/\d+\.manifest")

# A Ctrl-C that arrived while the library was calling back into Python.
_INTERRUPT: Final = re.compile(r"(External error: |^)KeyboardInterrupt\b", re.MULTILINE)


def classify(error: BaseException) -> Failure:
    """What an error raised by the table library means."""
    if isinstance(error, CommitConflictError):
        return Failure.CONFLICT
    text = str(error)
    if _VANISHED_VERSION.search(text):
        return Failure.NOT_FOUND
    return next((failure for failure, part in _TEXTS if part in text), Failure.OTHER)


def is_vanished_ref(error: BaseException) -> bool:
    """Whether a branch was deleted between listing the refs and reading its own."""
    text = str(error)
    return "Not found" in text and "/_refs/branches/" in text


def is_vanished_file(error: StoreCallFailed) -> bool:
    """Whether a file with rows is gone, as those of a deleted branch are."""
    return "Not found: " in error.cause


def cause_of(error: BaseException) -> str:
    """What an error of the library says, in one sentence."""
    return cause_in_words(str(error))


def is_library_failure(error: BaseException) -> bool:
    """Whether an exception may come from the table library; a panic of it is no `Exception`."""
    if isinstance(error, OmnigraphError):
        return False
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


@contextmanager
def naming_failures(action: str, uri: str) -> Iterator[None]:
    """Raise what the table library reports as `TableMissing` or `StoreCallFailed`.

    An interrupt that the library took for a failure of its own is an interrupt again.
    """
    try:
        yield
    except BaseException as error:
        if not is_library_failure(error):
            raise
        if _INTERRUPT.search(str(error)):
            raise KeyboardInterrupt from error
        kind = TableMissing if classify(error) is Failure.NOT_FOUND else StoreCallFailed
        raise kind(action, uri, cause_of(error)) from error
