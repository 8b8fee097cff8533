"""The verbs of a case file and the steps they stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, get_args

from tests.support.cases.actions import (
    ApplySchema,
    CreateBranch,
    DeleteBranch,
    Load,
    Merge,
    Mutate,
)
from tests.support.cases.block import BadStep, Block
from tests.support.cases.expectations import (
    Conflicts,
    ErrorLine,
    LoadErrors,
    Mark,
    NetCounts,
    Quarantined,
    Refused,
    ResultIs,
    Warnings,
)
from tests.support.cases.readings import (
    AnswerIs,
    Ask,
    Branches,
    Count,
    Diff,
    Export,
    History,
    Reload,
    Rows,
)
from tests.support.cases.story import Action, Expectation
from tests.support.model.branch_names import MAIN
from tests.support.model.load import Mode
from tests.support.outcome import Counts


def read_step(block: Block) -> Action | Expectation:
    """The step a block stands for. Raises `BadStep`."""
    reader = _VERBS.get(block.verb)
    if reader is None:
        raise BadStep(f"unknown verb `{block.verb}`, expected one of {', '.join(_VERBS)}")
    return reader(block)


# -- actions ------------------------------------------------------------------------------------


def _load(block: Block) -> Load:
    (written,) = block.take_words("mode")
    mode = next((mode for mode in _MODES if mode == written), None)
    if mode is None:
        raise BadStep(f"`load` takes a mode, one of {', '.join(_MODES)}")
    options = block.allow_options(
        branch=str,
        base=str,
        actor=str,
        message=str,
        head=str,
        id=str,
        max_errors=int,
        quarantine=bool,
        cascade=bool,
        repeat=int,
    )
    repeat = options.pop("repeat", 1)
    return Load(mode, "\n".join([block.text] * repeat), **options)


def _mutate(block: Block) -> Mutate:
    block.take_words()
    options = block.allow_options(branch=str, actor=str, message=str, head=str, params=dict)
    return Mutate(block.require_body(), **options)


def _branch(block: Block) -> CreateBranch:
    (name,) = block.take_words("name")
    block.refuse_body()
    options = block.allow_options(**{"from": str})
    return CreateBranch(name, options.get("from", MAIN))


def _delete_branch(block: Block) -> DeleteBranch:
    (name,) = block.take_words("name")
    block.refuse_body()
    block.allow_options()
    return DeleteBranch(name)


def _merge(block: Block) -> Merge:
    (source,) = block.take_words("source")
    block.refuse_body()
    return Merge(source, **block.allow_options(into=str, actor=str, head=str))


def _apply_schema(block: Block) -> ApplySchema:
    block.take_words()
    return ApplySchema(block.require_body(), **block.allow_options(actor=str))


# -- what the action led to ---------------------------------------------------------------------


def _refused(block: Block) -> Refused:
    (kind,) = block.take_words("kind")
    block.allow_options()
    return Refused(kind, tuple(line.strip() for line in block.lines()))


def _load_errors(block: Block) -> LoadErrors:
    block.take_words()
    options = block.allow_options(listed=int, total=int)
    return LoadErrors(tuple(_error_line(line) for line in block.lines()), **options)


def _error_line(line: str) -> ErrorLine:
    parts = line.split(maxsplit=2)
    if len(parts) < 2 or not (parts[0] == "-" or parts[0].isdecimal()):
        raise BadStep("a load error is written as RECORD CODE FRAGMENT, with `-` for no record")
    record = None if parts[0] == "-" else int(parts[0])
    return ErrorLine(record, parts[1], parts[2] if len(parts) > 2 else "")


def _conflicts(block: Block) -> Conflicts:
    block.take_words()
    block.allow_options()
    return Conflicts(tuple(_conflict_line(line) for line in block.lines()))


def _conflict_line(line: str) -> tuple[str, str | None, str]:
    table, _, rest = line.strip().partition(" ")
    row, _, kind = rest.rpartition(" ")
    if not (table and row and kind):
        raise BadStep("a conflict is written as TABLE ROW KIND, with `-` for no row")
    return table, None if row == "-" else row, kind


def _result(block: Block) -> ResultIs:
    block.take_words()
    block.refuse_body()
    return ResultIs(block.options)


def _counts(block: Block) -> NetCounts:
    block.take_words()
    block.allow_options()
    return NetCounts(dict(_count_line(line) for line in block.lines()))


def _count_line(line: str) -> tuple[str, Counts]:
    table, *numbers = line.split()
    given = dict(number.partition("=")[::2] for number in numbers)
    if given.keys() - {"inserted", "updated", "deleted"} or not all(
        value.isdecimal() for value in given.values()
    ):
        raise BadStep("counts are written as TABLE inserted=N updated=N deleted=N")
    return table, Counts(**{name: int(value) for name, value in given.items()})


def _warnings(block: Block) -> Warnings:
    block.take_words()
    block.allow_options()
    warnings = []
    for line in block.lines():
        code, _, count = line.strip().partition(" ")
        if not count.isdecimal():
            raise BadStep("a warning is written as CODE COUNT")
        warnings.append((code, int(count)))
    return Warnings(tuple(warnings))


def _quarantined(block: Block) -> Quarantined:
    block.take_words()
    block.allow_options()
    records = []
    for line in block.lines():
        record, _, rest = line.strip().partition(" ")
        codes, _, raw = rest.partition(": ")
        if not (record.isdecimal() and raw):
            raise BadStep("a quarantined record is written as RECORD CODE…: TEXT")
        records.append((int(record), codes, raw))
    return Quarantined(tuple(records))


def _mark(block: Block) -> Mark:
    (name,) = block.take_words("name")
    block.refuse_body()
    return Mark(name, block.allow_options(branch=str).get("branch", MAIN))


# -- what the graph holds -----------------------------------------------------------------------


def _rows(block: Block) -> Rows:
    (type_name,) = block.take_words("type")
    rows = block.json_lines()
    if not all(isinstance(row, dict) and row for row in rows):
        raise BadStep("a row is a JSON object")
    return Rows(type_name, rows, block.allow_options(at=str).get("at", MAIN))


def _count(block: Block) -> Count:
    type_name, number = block.take_words("type", "number")
    block.refuse_body()
    if not number.isdecimal():
        raise BadStep("`count` takes a number of rows")
    return Count(type_name, int(number), block.allow_options(at=str).get("at", MAIN))


def _query(block: Block) -> Ask:
    block.take_words()
    return Ask(block.require_body(), **block.allow_options(params=dict, at=str))


def _answer(block: Block) -> AnswerIs:
    block.allow_options()
    if block.words not in ((), ("ordered",)):
        raise BadStep("`answer` takes at most the word `ordered`")
    rows = block.json_lines()
    if not all(isinstance(row, dict) and row for row in rows):
        raise BadStep("a row is a JSON object")
    return AnswerIs(rows, ordered=bool(block.words))


def _branches(block: Block) -> Branches:
    block.refuse_body()
    block.allow_options()
    return Branches(block.words)


def _history(block: Block) -> History:
    block.take_words()
    commits = []
    for line in block.lines():
        operation, _, actor = line.strip().partition(" ")
        commits.append((operation, actor or "-"))
    return History(tuple(commits), block.allow_options(branch=str).get("branch", MAIN))


def _export(block: Block) -> Export:
    target = block.allow_options(at=str).get("at", MAIN)
    return Export(block.words, block.json_lines(), target)


def _diff(block: Block) -> Diff:
    before, after = block.take_words("from", "to")
    block.allow_options()
    return Diff(before, after, block.json_lines())


def _reload(block: Block) -> Reload:
    block.take_words()
    block.refuse_body()
    return Reload(block.allow_options(at=str).get("at", MAIN))


_MODES: Final[tuple[Mode, ...]] = get_args(Mode)
_VERBS: Final[dict[str, Callable[[Block], Action | Expectation]]] = {
    "load": _load,
    "mutate": _mutate,
    "branch": _branch,
    "delete-branch": _delete_branch,
    "merge": _merge,
    "apply-schema": _apply_schema,
    "refused": _refused,
    "load-errors": _load_errors,
    "conflicts": _conflicts,
    "result": _result,
    "counts": _counts,
    "warnings": _warnings,
    "quarantined": _quarantined,
    "mark": _mark,
    "rows": _rows,
    "count": _count,
    "query": _query,
    "answer": _answer,
    "branches": _branches,
    "history": _history,
    "export": _export,
    "diff": _diff,
    "reload": _reload,
}
