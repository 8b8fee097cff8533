"""The settings that a query text may make for itself, and the values they take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from omnigraph.diagnostics import did_you_mean


@dataclass(frozen=True, slots=True)
class KnownSetting:
    """`words` are the values a setting takes; without them it takes a positive integer.

    `ignored` settings belong to other engines: they are checked and have no effect.
    """

    words: tuple[str, ...] = ()
    ignored: bool = False


_SWITCH: Final = ("true", "false")

SETTINGS: Final = {
    "exact": KnownSetting(_SWITCH),
    "traversal_mode": KnownSetting(("auto", "csr", "indexed")),
    "max_rows": KnownSetting(),
    "max_bytes": KnownSetting(),
    "max_seconds": KnownSetting(),
    "traversal_work_limit": KnownSetting(),
    "engine": KnownSetting(("v2",)),
    "ann_nprobes": KnownSetting(ignored=True),
    "rrf_plan": KnownSetting(("auto", "legacy", "unified"), ignored=True),
    "merge_lineage": KnownSetting(("auto", "on", "off"), ignored=True),
    "stage_write_concurrency": KnownSetting(ignored=True),
    "history_release_bytes": KnownSetting(ignored=True),
}

_SCHEMA_WORDS: Final = ("tables", "types", "schema", "databases")


def setting_problem(name: str | None, value: int | str | None) -> tuple[str, str | None] | None:
    """What is wrong with a setting, and a hint.

    No `name` stands for all settings; `value` is None where only the name was written.
    """
    if name is None:
        return None
    known = SETTINGS.get(name)
    if known is None:
        names = ", ".join(SETTINGS)
        hint = did_you_mean(name, SETTINGS)
        if name in _SCHEMA_WORDS:
            hint = "the schema is shown by `omnigraph schema show`"
        return f"unknown setting `{name}`; there are {names}", hint
    if value is None:
        return None
    if known.words:
        if value not in known.words:
            return f"`{name}` takes {' or '.join(known.words)}, not `{value}`", None
    elif not isinstance(value, int) or value < 1:
        return f"`{name}` takes a positive integer, not `{value}`", None
    return None
