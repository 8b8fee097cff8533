"""Writing a file in one step: readers see the old content or the new, never a half-written file."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import BinaryIO, TextIO


@contextmanager
def replacing(path: str) -> Iterator[TextIO]:
    """A text file that takes the place of `path` when the block ends well; see `replacing_bytes`."""
    with replacing_bytes(path) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="")
        yield text
        text.flush()
        text.detach()


@contextmanager
def replacing_bytes(path: str, *, new_mode: int = 0o666) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` when the block ends well.

    A file that exists keeps its mode, and a symbolic link keeps pointing to it. A new file, and
    every file while it is written, has `new_mode` less the umask. When the block or anything here
    raises, what was at `path` is as it was. A pipe or device has no place to be taken; it is written
    as it is. Raises `OSError`.
    """
    mode = _mode_of(path)
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "wb") as file:
            yield file
        return
    target = os.path.realpath(path)
    # A rename needs write access to the directory only; a file made read-only is still off limits.
    if mode is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name}.{os.urandom(4).hex()}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, new_mode)
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            if mode is not None:
                os.fchmod(descriptor, stat.S_IMODE(mode))
            os.fsync(descriptor)
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _mode_of(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None
