"""A declaration as one value: what a client captures of a directory and sends to a server.

The server checks every digest in it and opens no path of it. Tests: tests/server/test_deployments.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from omnigraph.cluster.config import parse_semantics, storage_root
from omnigraph.cluster.documents import ClusterStop, Diagnostics
from omnigraph.cluster.files import FilesInBundle
from omnigraph.cluster.ledger import text_digest
from omnigraph.cluster.resources import Desired, make_desired
from omnigraph.cluster.store import ClusterStore

VERSION: Final = 1
MAX_SOURCE_BYTES: Final = 1_048_576
MAX_SOURCES_BYTES: Final = 8 * 1_048_576
MAX_RESOURCES: Final = 4096

_DEPLOYMENT_ID: Final = re.compile(
    r"(?P<ledger>[0-7][0-9A-HJKMNP-TV-Z]{25}):(?P<sequence>[1-9][0-9]{0,17}):"
    r"(?P<nonce>[0-7][0-9A-HJKMNP-TV-Z]{25})"
)


class BundledResource(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A resource of a bundle: its digest, and the path by which the declaration names its file."""

    digest: str
    path: str | None = None


class Bundle(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A captured declaration."""

    version: int
    canonical_root: str
    config_digest: str
    config_semantics: str
    resources: Mapping[str, BundledResource]
    sources: Mapping[str, str]
    """Texts by digest."""


class PlanRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a client asks to plan."""

    deployment: Bundle


class DeploymentRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a client asks to deploy, and the id of the deployment."""

    deployment_id: str
    deployment: Bundle


class TooLarge(Exception):
    """A bundle is beyond a limit."""

    def __init__(self, resource: str, limit: int, actual: int) -> None:
        super().__init__(f"the bundle has {actual:,} {resource}; at most {limit:,} are accepted")
        self.resource = resource
        self.limit = limit
        self.actual = actual


class DeploymentId(Struct, frozen=True):
    """`<ledger id>:<sequence>:<nonce>`, the name of one deployment."""

    ledger_id: str
    sequence: int
    nonce: str

    @classmethod
    def parse(cls, text: str) -> DeploymentId | None:
        """None if a text is not the canonical spelling of an id."""
        found = _DEPLOYMENT_ID.fullmatch(text)
        if found is None:
            return None
        return cls(found["ledger"], int(found["sequence"]), found["nonce"])

    def __str__(self) -> str:
        return f"{self.ledger_id}:{self.sequence}:{self.nonce}"


def capture(desired: Desired, root: str | None = None) -> Bundle:
    """The bundle of a valid declaration. `root` is where it is stored if it does not say so.

    Raises `ClusterStop`.
    """
    if root is None or desired.config.storage is not None:
        root = storage_root(desired.config, desired.folder).identity
    sources: dict[str, str] = {}
    resources: dict[str, BundledResource] = {}
    for address, one in desired.resources.items():
        resources[address] = BundledResource(digest=one.digest, path=one.path)
        if one.path is not None and one.text is not None:
            sources[one.digest] = one.text
    return Bundle(
        version=VERSION,
        canonical_root=root,
        config_digest=desired.config_digest,
        config_semantics=desired.config.semantics(),
        resources=resources,
        sources=sources,
    )


def check_size(bundle: Bundle) -> None:
    """Raises `TooLarge`."""
    if len(bundle.resources) > MAX_RESOURCES:
        raise TooLarge("resources", MAX_RESOURCES, len(bundle.resources))
    sizes = [len(text.encode("utf-8", "surrogatepass")) for text in bundle.sources.values()]
    if (largest := max(sizes, default=0)) > MAX_SOURCE_BYTES:
        raise TooLarge("bytes in one source", MAX_SOURCE_BYTES, largest)
    if sum(sizes) > MAX_SOURCES_BYTES:
        raise TooLarge("bytes in its sources", MAX_SOURCES_BYTES, sum(sizes))


def read_bundle(bundle: Bundle, store: ClusterStore, found: Diagnostics) -> Desired | None:
    """What a bundle declares for a storage root; None if its declaration has problems.

    Raises `ClusterStop` if it is of another root, or not what its digests say.
    """
    if bundle.version != VERSION:
        message = f"the bundle has version {bundle.version}; this server knows {VERSION}"
        raise ClusterStop("bundle_unsupported_version", "deployment.version", message)
    root = store.root.identity
    if bundle.canonical_root != root:
        message = f"the bundle is for {bundle.canonical_root}, and this server serves {root}"
        raise ClusterStop("bundle_other_root", "deployment.canonical_root", message)
    texts: dict[str, str] = {}
    for address, resource in bundle.resources.items():
        if resource.path is None:
            continue
        text = bundle.sources.get(resource.digest)
        if text is None or _digest(text) != resource.digest:
            raise _damaged(address)
        if texts.setdefault(str(Path(resource.path)), text) != text:
            raise _damaged(address)
    for digest, text in bundle.sources.items():
        if _digest(text) != digest:
            raise _damaged(f"deployment.sources.{digest[:64]}")
    config = parse_semantics(bundle.config_semantics, found)
    if config is None:
        return None
    if config.semantics() != bundle.config_semantics:
        raise _damaged("deployment.config_semantics")
    if config.storage is not None:
        _check_storage(config.storage, store)
    desired = make_desired(Path(store.root.uri), config, FilesInBundle(texts), found)
    if desired is None:
        return None
    declared = {address: one.digest for address, one in desired.resources.items()}
    if declared != {address: one.digest for address, one in bundle.resources.items()}:
        raise _damaged("deployment.resources")
    if desired.config_digest != bundle.config_digest:
        raise _damaged("deployment.config_digest")
    return desired


def _digest(text: str) -> str | None:
    try:
        return text_digest(text)
    except UnicodeEncodeError:
        return None


def _damaged(path: str) -> ClusterStop:
    message = "the content is not the one of its digest; capture the declaration again"
    return ClusterStop("bundle_digest_mismatch", path, message)


def _check_storage(storage: str, store: ClusterStore) -> None:
    """An address in the declaration has to be that of the server; a path was resolved by the client."""
    if storage.startswith("s3://") and storage.rstrip("/") != store.root.uri.rstrip("/"):
        message = f"the declaration is stored at {storage}, and this server serves {store.root.uri}"
        raise ClusterStop("bundle_other_root", "storage", message)
