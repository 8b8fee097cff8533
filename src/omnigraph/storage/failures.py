"""Classify and explain errors of the table library. The only module that reads their texts.

The library raises the same few builtin exceptions for everything, so the text decides; guard tests in
tests/substrate fix the texts. A caller that acts on a conflict reads the store again before deciding.

Frequent causes have a sentence that a user can act on. For all others, the wrapping that the libraries
add (requests, retries, source positions) is removed.
Tests: tests/storage/test_causes.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Final

from lance.commit import CommitConflictError

from omnigraph.errors import OmnigraphError, StoreCallFailed, TableMissing

UNREACHABLE: Final = "the store cannot be reached; check the endpoint and the network"

_CAUSES: Final = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"No space left on device|os error 28\b", "No space left on device"),
        (r"Disk quota exceeded|os error 122\b", "Disk quota exceeded"),
        (r"Read-only file system|os error 30\b", "Read-only file system"),
        (r"Too many open files|os error 24\b", "Too many open files"),
        (r"NoSuchBucket", "the bucket does not exist"),
        (
            r"InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken|InvalidClientTokenId",
            "the credentials were refused",
        ),
        (
            r"AccessDenied|403 Forbidden|401 Unauthorized",
            "access was denied; check the credentials and what they allow",
        ),
        (r"Permission denied|os error 13\b", "Permission denied"),
        (r"CredentialsNotLoaded|169\.254\.169\.254", "no credentials were found"),
        (
            r"error sending request|Connection refused|dns error|error trying to connect"
            r"|operation timed out|connection closed before|connection reset",
            UNREACHABLE,
        ),
        (
            r"failed to fill whole buffer|Invalid range|unexpected end of file",
            "a file is shorter than it has to be, or damaged",
        ),
    )
)
_ANSWERED: Final = re.compile(r"Server returned non-2xx status code: (\d+[^:\n]*)")
_WRAPPING: Final = re.compile(
    r"^(?:External error: |Encountered internal error[^:]*: |LanceError\(\w+\): |Generic \w+ error: )+"
)
_SOURCE_POSITION: Final = re.compile(r"[,;]? ?(?:location: )?\S+\.rs:\d+(?::\d+)?")


def cause_in_words(text: str) -> str:
    """One sentence for what a library says."""
    for pattern, words in _CAUSES:
        if pattern.search(text):
            return words
    answered = _ANSWERED.search(text)
    if answered is not None:
        return f"the store answered {answered[1].strip()}"
    return _SOURCE_POSITION.sub("", _WRAPPING.sub("", text.strip())).strip().partition("\n")[0]


class Failure(Enum):
    """Kinds of failure that callers treat differently."""

    CONFLICT = "a concurrent commit conflicts"
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
    # The error of creating a branch that another process has just created.
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
    """Whether an exception may come from the table library; a panic of it is not an `Exception`."""
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
