"""Why a call to a store failed, in words that a user can act on.

The libraries below wrap an error in several of their own, with requests, retries and places in their
source. What is frequent has a sentence here; of everything else the wrapping is taken off.
Tests: tests/storage/test_causes.py.
"""

from __future__ import annotations

import re
from typing import Final

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
