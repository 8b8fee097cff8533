"""Branch names: what people write, and the flattened names storage uses for them.

Storage cannot hold `a` and `a/b` side by side, so a public name is flattened reversibly: `_` becomes
`__`, `/` becomes `_s`. A name that is still taken by leftovers of an earlier branch gets an
incarnation suffix, `_i2`. A branch that begins at an earlier commit is made in several steps; its
storage name ends in `_c1`, and it exists only once its ref names it. Names that do not decode are
not ours and are never touched, unless their ref names the branch: graphs of older formats
stored names as they were written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NewType

from omnigraph.errors import InvalidBranchName

BranchName = NewType("BranchName", str)
"""A public branch name, checked and trimmed."""

PhysicalName = NewType("PhysicalName", str)
"""The name of a branch in storage."""

MAIN: Final = BranchName("main")
RESERVED: Final = "__schema_apply_lock__"
PUBLIC_NAME_KEY: Final = "omnigraph.public_name"
"""What the ref of a branch says its name is: one from an older format, where the storage name
misleads, or one that begins at an earlier commit, where it says that the branch is complete."""

RETIRED_KEY: Final = "omnigraph.retired"
"""Noted in the ref of a branch that was deleted and is kept because later merges compare with it."""

MAX_LENGTH: Final = 120
MAX_FLAT_LENGTH: Final = 200
"""Storage writes a ref under its name plus up to 44 characters, and file names end at 255."""

_SEGMENTS = re.compile(r"[\w.-]+(/[\w.-]+)*\Z", re.ASCII)
_INCARNATION = re.compile(r"(?<!_)((?:__)*)_([ic])([0-9]+)\Z")


def branch_name(written: str) -> BranchName:
    """Check a name a caller gave. Raises `InvalidBranchName` that says which rule it breaks."""
    name = written.strip()
    if not name:
        raise InvalidBranchName(written, "branch name cannot be empty")
    if name.lstrip("/") == RESERVED:
        raise InvalidBranchName(written, f"'{RESERVED}' is an internal system ref")
    if len(name) > MAX_LENGTH:
        raise InvalidBranchName(written, f"a branch name has at most {MAX_LENGTH} characters")
    if ".." in name:
        raise InvalidBranchName(written, "a branch name cannot contain '..'")
    if name.endswith(".lock"):
        raise InvalidBranchName(written, "a branch name cannot end in '.lock'")
    if not _SEGMENTS.match(name):
        advice = "use the letters a to z and A to Z, digits, '.', '-' and '_', with single '/' between parts"
        raise InvalidBranchName(written, advice)
    if "." in name.split("/"):
        raise InvalidBranchName(written, "no part of a branch name can be '.'")
    if len(_flattened(name)) > MAX_FLAT_LENGTH:
        advice = f"each '_' and '/' counts twice, and then at most {MAX_FLAT_LENGTH} characters fit"
        raise InvalidBranchName(written, advice)
    return BranchName(name)


@dataclass(frozen=True, slots=True)
class DecodedName:
    public: BranchName
    incarnation: int
    is_cut: bool = False
    """Whether the branch begins at an earlier commit, and exists only if its ref names it."""


def physical_name(
    public: BranchName, incarnation: int = 1, *, is_cut: bool = False
) -> PhysicalName:
    """The storage name of a branch other than main, which has none."""
    if public == MAIN:
        raise ValueError("the main lineage has no storage name")
    flat = _flattened(public)
    if is_cut:
        return PhysicalName(f"{flat}_c{incarnation}")
    return PhysicalName(flat if incarnation == 1 else f"{flat}_i{incarnation}")


def _flattened(public: str) -> str:
    return public.replace("_", "__").replace("/", "_s")


def decode_physical_name(physical: str) -> DecodedName | None:
    """The public name behind a storage name, or None when it is not one of ours."""
    incarnation, flat, is_cut = 1, physical, False
    match = _INCARNATION.search(physical)
    if match:
        incarnation, is_cut = int(match[3]), match[2] == "c"
        flat = physical[: match.start(2) - len("_")]
    out: list[str] = []
    at = 0
    while at < len(flat):
        char = flat[at]
        if char == "/":
            return None
        if char == "_":
            following = flat[at + 1 : at + 2]
            if following not in ("_", "s"):
                return None
            char = "_" if following == "_" else "/"
            at += 1
        out.append(char)
        at += 1
    try:
        public = branch_name("".join(out))
    except InvalidBranchName:
        return None
    # Only what we would write ourselves: `x_i0`, `x_i1` and `x_i02` are not how a branch `x` is stored.
    if public == MAIN or incarnation < 1:
        return None
    if physical_name(public, incarnation, is_cut=is_cut) != physical:
        return None
    return DecodedName(public, incarnation, is_cut)


def name_of_ref(physical: str, metadata: Mapping[str, str]) -> BranchName | None:
    """The public name of a stored branch, or None when it is not one of ours or not complete."""
    noted = metadata.get(PUBLIC_NAME_KEY)
    if noted is None:
        decoded = decode_physical_name(physical)
        return decoded.public if decoded and not decoded.is_cut else None
    try:
        return branch_name(noted)
    except InvalidBranchName:
        return None


def is_incomplete(physical: str, metadata: Mapping[str, str]) -> bool:
    """Whether a stored branch is one of ours that was never completed."""
    decoded = decode_physical_name(physical)
    return decoded is not None and decoded.is_cut and PUBLIC_NAME_KEY not in metadata


def public_name(physical: str | None) -> BranchName:
    """The public name of a lineage in messages and documents; a foreign name shows as it is."""
    if physical is None:
        return MAIN
    decoded = decode_physical_name(physical)
    return decoded.public if decoded else BranchName(physical)
