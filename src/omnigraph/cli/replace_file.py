"""Replacing a file in one step: readers see the old content or the new, never a half-written file."""

from __future__ import annotations

import errno
import os
import stat
import tempfile


def replace_file(path: str, text: str) -> None:
    """Give an existing file a new content and keep its mode; a symbolic link keeps pointing to it.

    Raises `OSError`, in which case the file is as it was.
    """
    target = os.path.realpath(path)
    mode = stat.S_IMODE(os.stat(target).st_mode)
    # A rename needs write access to the directory only; a file made read-only is still off limits.
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    folder, name = os.path.split(target)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
