"""Spark's errors in a few words: the deepest cause, without the frames around it."""

from __future__ import annotations

from typing import Any, Final

from omnigraph.errors import SparkExecutorUnfit, SparkJobFailed

_TRACEBACK: Final = "Traceback (most recent call last):"
_MAX_CAUSES: Final = 50
"""Causes that are followed: Java does not rule out that one causes itself."""


def failure(job: str, error: Exception) -> SparkExecutorUnfit | SparkJobFailed:
    """The error of a job, with its deepest cause."""
    for line in str(error).splitlines():
        if "ModuleNotFoundError" in line or "PYTHON_VERSION_MISMATCH" in line:
            return SparkExecutorUnfit(line.strip().rpartition("ModuleNotFoundError: ")[2])
    return SparkJobFailed(job, _reason(_deepest_text(error)) or type(error).__name__)


def _deepest_text(error: Exception) -> str:
    """The message of the last Java exception that has one; a Python error has its own."""
    text = str(error)
    cause: Any = getattr(error, "java_exception", None)
    try:
        for _ in range(_MAX_CAUSES):
            if cause is None:
                break
            message = cause.getMessage()
            if message and message.strip():
                text = f"{cause.getClass().getSimpleName()}: {message}"
            cause = cause.getCause()
    except Exception:  # Java may be gone, and then what is known so far is all there is.
        return text
    return text


def _reason(text: str) -> str:
    """The first line of a message; of a Python traceback the error it ends with."""
    _, traceback, frames = text.rpartition(_TRACEBACK)
    for line in frames.splitlines() if traceback else ():
        if line and not line[0].isspace():
            return line.strip()
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
