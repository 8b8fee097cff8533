"""The reference page of the Python API, made from the signatures and docstrings themselves.

`python -m omnigraph.api.reference > docs/user/python.md` writes it. Only people and tests run this.
Tests: tests/docs/test_python_reference.py.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any, Final

import omnigraph

_INTRODUCTION: Final = """\
# Python API

<!-- Made by `python -m omnigraph.api.reference`; changes by hand are lost. -->

```python
import omnigraph as og
```

The examples use this graph: people who write notes and know each other.

```pg
node Person {
    email: String @key
    name: String
    born: Date?
    photo: Blob?
}

node Note {
    slug: String @key
    text: String @index
}

edge Wrote: Person -> Note

edge Knows: Person -> Person {
    since: Date?
    @unique(src, dst)
}
```

- **Handles** are bound to one branch and one actor, are thread-safe and can be pickled. `checkout` and
  `as_actor` return new handles; a handle is never bound to something else.
- **Queries and schemas** are text. A `Path`, or a string of one line that ends in `.gq` or `.pg`, is a file.
- **Data** given as a string or `Path` is a path, a glob or a URI. JSON text comes as bytes or as a stream.
- **Values** are Python values: `date`, `datetime` in UTC, lists, bytes. Only JSON documents have text forms.
- **A ref** names a state: a branch or tag; a commit id, or its unique beginning or end of at least 6
  characters; `ref~n`, the n-th commit before; `branch@{2026-01-31T12:00:00Z}` or a `datetime`; an `int`, the
  n-th commit of the bound branch; a commit, a tag, a receipt, or the result of a write.
- **Every write** returns a result with a receipt, is one commit or none, and takes `message` and
  `expected_head`. Repeated with the same `idempotency_key` it returns the first receipt.
- **Bulk calls** take `engine`: `"auto"`, `"inline"`, `"spark"`, a `SparkSession`, or `og.Spark(…)`.
- **Errors** are classes of `og.errors` with a stable code ([list](errors.md)), below `og.OmnigraphError`.
"""

_SECTIONS: Final = {
    "Open": ("init", "open", "connect"),
    "Graphs": ("Graph", "GraphAt"),
    "Groups": ("Branches", "Tags", "Schema", "Blobs", "Maintenance"),
    "Arguments": ("Ref", "QueryBudget", "CancelToken", "ReadView", "Spark", "Progress"),
    "Results": (
        "Result",
        "Explanation",
        "Analysis",
        "Commit",
        "Tag",
        "Receipt",
        "MutationResult",
        "LoadResult",
        "EmbedResult",
        "MergeResult",
        "AppliedCommit",
        "SchemaApplyResult",
        "Diff",
        "CommitChanges",
        "EntityChange",
        "Blob",
        "Catalog",
        "MigrationPlan",
        "GraphStatus",
        "VerifyReport",
        "OptimizeReport",
        "CleanupReport",
        "RepairReport",
        "IndexReport",
        "RecordedAudit",
    ),
    "Spark data frames": ("spark",),
    "Errors": ("OmnigraphError", "errors"),
    "Protocols": ("GraphProtocol", "GraphAtProtocol"),
    "Version": ("__version__",),
}
_TEXTS: Final = {
    "Ref": "What names a state of a graph; see above.",
    "errors": "The module with all exceptions; its docstring draws the tree.",
    "spark": "A module: `nodes` and `edges` return types of a graph as data frames, `write` loads a data frame\n"
    "([Spark](spark.md#read-a-graph-from-spark)).",
    "__version__": "The version of the package, as text.",
}
_LINE_LENGTH: Final = 96
_WITHOUT_MEMBERS: Final = frozenset({"GraphProtocol", "GraphAtProtocol", "OmnigraphError"})


def reference() -> str:
    """The whole page. Raises `ValueError` for a public name that no section has."""
    listed = {name for names in _SECTIONS.values() for name in names}
    if listed != set(omnigraph.__all__):
        raise ValueError(f"sections and public names differ: {listed ^ set(omnigraph.__all__)}")
    parts = [_INTRODUCTION]
    for title, names in _SECTIONS.items():
        parts.append(f"## {title}\n")
        parts += [_entry(name) for name in names]
    return "\n".join(parts)


def _entry(name: str) -> str:
    found = getattr(omnigraph, name)
    if name in _TEXTS:
        return f"### `{name}`\n\n{_TEXTS[name]}\n"
    if inspect.isclass(found):
        members = [] if name in _WITHOUT_MEMBERS else list(_members(name, found))
        return "\n".join([f"### `{name}`\n\n{_text(found)}", *members])
    return f"### `{name}`\n\n{_signature(name, found)}\n{_text(found)}"


def _members(name: str, cls: type[Any]) -> Iterator[str]:
    """Public methods and properties, those of base classes included, in the order of the source."""
    seen: dict[str, Any] = {}
    for base in cls.__mro__:
        if base.__module__.startswith("omnigraph"):
            for member, value in vars(base).items():
                if not member.startswith("_"):
                    seen.setdefault(member, value)
    for member, value in seen.items():
        if isinstance(value, property):
            yield f"#### `{name}.{member}`\n\n{_text(value)}"
        elif inspect.isfunction(value):
            yield f"#### `{name}.{member}`\n\n{_signature(member, value)}\n{_text(value)}"


def _signature(name: str, function: Any) -> str:
    """A block with the signature, without `self` and with types as they are written."""
    signature = inspect.signature(function)
    parts: list[str] = []
    for parameter_name, parameter in signature.parameters.items():
        if parameter_name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        type = "" if parameter.annotation is parameter.empty else f": {parameter.annotation}"
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parts.append(f"{parameter_name}{type}{default}")
    result = f" -> {signature.return_annotation}"
    line = f"{name}({', '.join(parts)}){result}"
    if len(line) > _LINE_LENGTH:
        line = f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){result}"
    return f"```python\n{line}\n```\n"


def _text(found: Any) -> str:
    """A docstring with its examples as sessions."""
    text = inspect.getdoc(found) or ""
    return (
        re.sub(r"(?m)^>>> (?:.|\n)*?(?=\n\n|\Z)", lambda m: f"```pycon\n{m[0]}\n```", text) + "\n"
    )


if __name__ == "__main__":
    print(reference(), end="")
