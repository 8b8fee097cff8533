"""Text objects in an S3-compatible store, through obstore, with a cache of immutable objects.

Plain requests are repeated when the network fails. A conditional write is sent once: a repeat would be
refused because of its own first attempt, and the winner would believe it had lost.

`ObjectCache` keeps small immutable objects in memory and, if a folder is configured, on disk. An entry
is named after the object's URI and content token, or the URI alone if an object name is used only once,
so an entry never becomes stale. Processes may share a folder. A damaged entry or an unusable folder
only costs time. The table library reads its own files itself.
Tests: tests/contract/objects, tests/storage/test_object_cache.py, tests/cost/test_object_cache.py.
"""

from __future__ import annotations

import os
import random
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import S3Store

from omnigraph.errors import ObjectMissing, StoreCallFailed, UnsafeStore
from omnigraph.limits import CACHED_BYTES_IN_MEMORY, CACHED_BYTES_ON_DISK, CACHED_OBJECT_BYTES
from omnigraph.settings import read_settings
from omnigraph.storage.objects import (
    NO_CONDITIONAL_PUT,
    DirectoryListing,
    VersionToken,
    child_path,
    naming_object_failures,
    object_path,
)
from omnigraph.storage.uris import GraphRoot, is_addressable, normalise_path, s3_options

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutMode
    from obstore.store import RetryConfig


_SUFFIX: Final = ".object"
_DIGEST_BYTES: Final = 32
_KEPT_SHARE: Final = 0.75
"""How much of a folder that is full stays, so that not every new entry has to look for old ones."""


class ObjectCache:
    """Contents by name. Thread-safe."""

    def __init__(self, memory_bytes: int = CACHED_BYTES_IN_MEMORY) -> None:
        self._most = memory_bytes
        self._entries: OrderedDict[str, bytes] = OrderedDict()
        self._used = 0
        self._roots: set[str] = set()
        self._lock = Lock()

    def expects(self, root: str) -> bool:
        """Whether something may be kept of what is below a root: it was asked about before, or a
        folder is configured, in which others may have put it."""
        with self._lock:
            is_known = root in self._roots
            self._roots.add(root)
        return is_known or DiskFolder.configured() is not None

    def get(self, name: str) -> bytes | None:
        """What is kept under a name."""
        with self._lock:
            content = self._entries.get(name)
            if content is not None:
                self._entries.move_to_end(name)
                return content
        folder = DiskFolder.configured()
        content = None if folder is None else folder.get(name)
        if content is not None:
            self._keep(name, content)
        return content

    def put(self, name: str, content: bytes) -> None:
        """Keep a content, unless it is large."""
        if len(content) > CACHED_OBJECT_BYTES:
            return
        self._keep(name, content)
        folder = DiskFolder.configured()
        if folder is not None:
            folder.put(name, content)

    def clear(self) -> None:
        """Forget what is in memory."""
        with self._lock:
            self._entries.clear()
            self._roots.clear()
            self._used = 0

    def _keep(self, name: str, content: bytes) -> None:
        with self._lock:
            self._used += len(content) - len(self._entries.pop(name, b""))
            self._entries[name] = content
            while self._used > self._most:
                _, dropped = self._entries.popitem(last=False)
                self._used -= len(dropped)


class DiskFolder:
    """A folder of entries. Each is put in its place by a rename, behind a digest of its content."""

    def __init__(self, path: Path, most_bytes: int = CACHED_BYTES_ON_DISK) -> None:
        self._path = path
        self._most = most_bytes

    @classmethod
    def configured(cls) -> DiskFolder | None:
        """The folder that the environment names, if it names one."""
        path = read_settings().cache_dir
        return cls(Path(path)) if path else None

    def get(self, name: str) -> bytes | None:
        """A whole entry; one that is damaged goes."""
        file = self._file(name)
        try:
            stored = file.read_bytes()
        except OSError:
            return None
        digest, content = stored[:_DIGEST_BYTES], stored[_DIGEST_BYTES:]
        with suppress(OSError):
            if digest == _digest(name, content):
                os.utime(file)  # The entries that were not used for longest go first.
                return content
            file.unlink()
        return content if digest == _digest(name, content) else None

    def put(self, name: str, content: bytes) -> None:
        """Store an entry, and remove old ones if there are too many."""
        file = self._file(name)
        written = file.with_suffix(f".{uuid4().hex}")
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            try:
                written.write_bytes(_digest(name, content) + content)
                written.replace(file)
            finally:
                written.unlink(missing_ok=True)
            self._shrink()
        except OSError:
            return

    def _shrink(self) -> None:
        found = []
        for entry in os.scandir(self._path):
            with suppress(OSError):  # Another process may have removed it.
                stat = entry.stat()
                found.append((stat.st_mtime_ns, stat.st_size, entry.path))
        used = sum(size for _, size, _ in found)
        if used <= self._most:
            return
        for _, size, path in sorted(found):
            if used <= self._most * _KEPT_SHARE:
                return
            with suppress(OSError):
                os.unlink(path)
            used -= size

    def _file(self, name: str) -> Path:
        return self._path / f"{sha256(name.encode()).hexdigest()}{_SUFFIX}"


def _digest(name: str, content: bytes) -> bytes:
    """Of the name, too: an entry that was copied to another place is not that of its place."""
    return sha256(f"{name}\0".encode() + content).digest()


CACHE: Final = ObjectCache()
"""That of this process."""


_REPEAT: Final[RetryConfig] = {"max_retries": 5, "retry_timeout": timedelta(seconds=30)}
"""Half a minute rides out a restart or throttling; a caller is waiting for an answer."""

_SEND_ONCE: Final[RetryConfig] = {"max_retries": 0}

_CONTENDED_ATTEMPTS: Final = 20
"""How often a conditional write is sent again after the store said that it was busy with another
one on the same object. Each answer means that nothing was done, and one of the writers usually wins."""


class RemoteObjects:
    """An `ObjectStore` below a prefix of a bucket."""

    is_remote: Final = True

    def __init__(self, root: GraphRoot) -> None:
        self._root = root
        self._bucket, self._prefix = root.bucket_and_prefix
        self._endpoint = s3_options().get("aws_endpoint", "")
        with self._naming("open", ""):
            self._store = self._connect(_REPEAT)
            self._store_once = self._connect(_SEND_ONCE)

    def read_text(self, path: str) -> str:
        with self._naming("read", path):
            return self.read_bytes(path).decode()

    def read_bytes(self, path: str) -> bytes:
        return self._get(path)[0]

    def read_text_versioned(self, path: str) -> tuple[str, VersionToken]:
        content, e_tag = self._get(path)
        with self._naming("read", path):
            return content.decode(), self._token("read", path, e_tag)

    def read_text_of(self, path: str, token: VersionToken | None) -> str:
        content = CACHE.get(self._entry(path, token))
        if content is None:
            content, e_tag = self._get(path)
            # Another content than that of the token was written since the token was seen.
            if token is None or e_tag == token:
                CACHE.put(self._entry(path, token), content)
        with self._naming("read", path):
            return content.decode()

    def may_have_kept(self) -> bool:
        return CACHE.expects("\0".join((self._endpoint, self._bucket, self._prefix)))

    def stamp(self, paths: Sequence[str]) -> None:
        return None

    def _entry(self, path: str, token: VersionToken | None) -> str:
        """What an object is called in the cache. Buckets of one name may be those of two stores."""
        return "\0".join((self._endpoint, self._bucket, self._key(path), token or ""))

    def write_text(self, path: str, text: str) -> None:
        with self._naming("write", path):
            content = text.encode()
        self.write_bytes(path, content)

    def write_bytes(self, path: str, content: bytes | memoryview) -> None:
        with self._naming("write", path):
            # One request whatever the size: there are no parts that a crash could leave behind.
            obstore.put(self._store, self._key(path), content, use_multipart=False)

    def write_text_if_absent(self, path: str, text: str) -> VersionToken | None:
        with self._naming("create", path):
            for attempt in range(_CONTENDED_ATTEMPTS):
                _pause_before(attempt)
                try:
                    return self._token("create", path, self._put_once(path, text, "create"))
                except AlreadyExistsError:
                    # Also the answer while another request is undecided, and that one may fail.
                    if self._head(self._key(path)):
                        return None
        raise self._contended("create", path)

    def write_text_if_match(self, path: str, text: str, token: VersionToken) -> VersionToken | None:
        with self._naming("update", path):
            for attempt in range(_CONTENDED_ATTEMPTS):
                _pause_before(attempt)
                try:
                    e_tag = self._put_once(path, text, {"e_tag": token})
                    return self._token("update", path, e_tag)
                except PreconditionError:
                    return None
                except AlreadyExistsError:
                    # Busy with another request: refused, but perhaps not for good.
                    found = self._head(self._key(path))
                    if found is None or found["e_tag"] != token:
                        return None
        raise self._contended("update", path)

    def exists(self, path: str) -> bool:
        with self._naming("check", path):
            key = self._key_or_prefix(path)
            found = self._head(key) if key else None
            return found is not None or any(True for _ in self._below(key))

    def rename_text(self, source: str, target: str) -> None:
        with self._naming("rename", source):
            old, new = self._key(source), self._key(target)
            try:
                if old == new:
                    obstore.head(self._store, old)
                    return
                obstore.copy(self._store, old, new)
            except FileNotFoundError:
                raise self._missing("rename", source) from None
            self._delete([old])

    def delete(self, path: str) -> None:
        with self._naming("delete", path):
            self._delete([self._key(path)])

    def list_dir(self, path: str) -> list[str]:
        return list(self.list_level(path).objects)

    def list_level(self, path: str) -> DirectoryListing:
        with self._naming("list", path):
            prefix = self._key_or_prefix(path)
            start = len(prefix) + 1 if prefix else 0
            listing = obstore.list_with_delimiter(self._store, prefix or None)
            objects = {
                child_path(path, name): None if e_tag is None else VersionToken(e_tag)
                for name, e_tag in ((o["path"][start:], o["e_tag"]) for o in listing["objects"])
                if name and is_addressable(name)
            }
            return DirectoryListing(
                objects, [folder[start:] for folder in listing["common_prefixes"]]
            )

    def first_below(self, path: str) -> tuple[str, VersionToken] | None:
        """The object of a directory whose name sorts first, with its token, in one request."""
        with self._naming("list", path):
            key = self._key(path)
            for page in obstore.list(self._store, key, chunk_size=1):
                for found in page:
                    name = found["path"][len(key) + 1 :]
                    return name, self._token("list", path, found["e_tag"])
            return None

    def delete_prefix(self, path: str) -> None:
        with self._naming("delete", path):
            key = self._key(path)
            self._delete(list(self._below(key)))
            self._delete([key])

    def _connect(self, retry: RetryConfig) -> S3Store:
        # The names of the options are data here, which the declared keys cannot express.
        return S3Store(self._bucket, config=s3_options(), retry_config=retry)  # type: ignore[arg-type]

    def _naming(self, action: str, path: str) -> AbstractContextManager[None]:
        return naming_object_failures(self._root, action, path, BaseError, NotImplementedError)

    def _missing(self, action: str, path: str) -> ObjectMissing:
        return ObjectMissing(action, self._root.join(path), "no such object")

    def _contended(self, action: str, path: str) -> StoreCallFailed:
        return StoreCallFailed(action, self._root.join(path), "the store stayed busy with others")

    def _key(self, path: str) -> str:
        return f"{self._prefix}/{object_path(path)}".removeprefix("/")

    def _key_or_prefix(self, path: str) -> str:
        return f"{self._prefix}/{normalise_path(path)}".strip("/")

    def _token(self, action: str, path: str, e_tag: str | None) -> VersionToken:
        if e_tag is None:
            raise StoreCallFailed(action, self._root.join(path), "the store sent no e-tag")
        return VersionToken(e_tag)

    def _get(self, path: str) -> tuple[bytes, str | None]:
        with self._naming("read", path):
            try:
                answer = obstore.get(self._store, self._key(path))
            except FileNotFoundError:
                raise self._missing("read", path) from None
            return answer.bytes().to_bytes(), answer.meta["e_tag"]

    def _head(self, key: str) -> ObjectMeta | None:
        try:
            return obstore.head(self._store, key)
        except FileNotFoundError:
            return None

    def _put_once(self, path: str, text: str, mode: PutMode) -> str | None:
        key, content = self._key(path), text.encode()
        try:
            answer = obstore.put(self._store_once, key, content, mode=mode, use_multipart=False)
        except (BaseError, NotImplementedError) as error:
            if isinstance(error, NotImplementedError) or "501 Not Implemented" in str(error):
                check = "create if absent" if mode == "create" else "replace if unchanged"
                raise UnsafeStore(self._root.uri, check, NO_CONDITIONAL_PUT) from error
            raise
        return answer["e_tag"]

    def _below(self, key: str) -> Iterator[str]:
        """The objects below a key, page by page."""
        for page in obstore.list(self._store, key or None):
            yield from (found["path"] for found in page if found["path"] != key)

    def _delete(self, keys: list[str]) -> None:
        # S3 does not mind what is missing; some other servers do.
        with suppress(FileNotFoundError):
            obstore.delete(self._store, keys)


def _pause_before(attempt: int) -> None:
    """Wait a little longer, and by chance, before each repetition."""
    if attempt:
        time.sleep(random.uniform(0, min(0.01 * 2**attempt, 0.5)))
