"""The exception tree: drawn as it is, stable codes, and errors that cross process borders."""

import inspect
import pickle
import re

import pytest

from omnigraph import errors
from omnigraph.diagnostics import Diagnostic, Position
from omnigraph.errors import LanguageError, OmnigraphError, Retry

DIAGNOSTIC = Diagnostic(
    code="T6",
    category="type",
    message="T6: type `Maker` has no property `agee`",
    position=Position("q.gq", 2, 25, 2, 29, 30, 34),
    source_line="  match { $m: Maker  $m.agee > 3 }",
    hint="did you mean `age`?",
)

SAMPLES = {
    "str": "some text",
    "ChangesReason": "schema_boundary",
    "int": 7,
    "bool": True,
    "str | None": None,
    "int | None": None,
    "Sequence[str]": ["one", "another"],
    "Sequence[Diagnostic]": [DIAGNOSTIC],
    "Sequence[MergeConflict]": [
        errors.MergeConflict("node:Author", "ada", "divergent_update", "no", {"id": "ada"})
    ],
    "Sequence[BrokenQuery]": [errors.BrokenQuery("friends", DIAGNOSTIC)],
    "Sequence[UnknownProperty]": [
        errors.UnknownProperty(
            type="Person", property="agee", message="…", records=4, first=(("a.jsonl", 2),)
        )
    ],
    "Sequence[EdgesOfType]": [errors.EdgesOfType("Knows", 3, ("k1", "k2"))],
    "Sequence[LoadProblem]": [
        errors.LoadProblem(source="a.jsonl", record=3, code="bad_value", message="no")
    ],
}


def tree(cls=OmnigraphError, depth=0):
    yield depth, cls
    for child in cls.__subclasses__():
        if child.__module__.startswith(f"{errors.__name__}."):
            yield from tree(child, depth + 1)


CLASSES = [cls for _, cls in tree()]


def instance(cls):
    """An error with a sample value for each argument its constructor requires."""
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    required = [p for p in parameters if p.default is inspect.Parameter.empty]
    return cls(*(SAMPLES[p.annotation] for p in required))


def test_the_drawn_tree_is_the_real_one():
    drawn: set[tuple[str, str]] = set()
    path: list[str] = []
    for line in errors.__doc__.splitlines():
        match = re.match(r"    ([│ ├└─]*)([A-Z]\w+)", line)
        if match:
            depth = len(match[1]) // 4
            path[depth:] = [match[2]]
            drawn.add((path[depth - 1] if depth else "Exception", match[2]))
    assert drawn == {(cls.__bases__[0].__name__, cls.__name__) for cls in CLASSES}


def test_codes_are_distinct_and_well_formed():
    codes = [cls.code for cls in CLASSES]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"OG-[A-Z]-\d{3}", code) for code in codes)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_survives_pickling_with_its_fields(cls):
    error = instance(cls)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is cls
    assert str(copy) == str(error)
    assert copy.__dict__ == error.__dict__
    assert isinstance(copy.retry, Retry)


def test_an_error_raised_in_another_process_arrives_whole():
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        future = pool.submit(_raise_language_error)
        with pytest.raises(LanguageError) as caught:
            future.result()
    assert caught.value.diagnostic == DIAGNOSTIC


def _raise_language_error():
    raise LanguageError([DIAGNOSTIC])


def test_the_wire_message_joins_headline_and_hint():
    error = errors.TypeCheckError([DIAGNOSTIC])
    assert error.wire_message == (
        "q.gq:2:25: type error: T6: type `Maker` has no property `agee`; did you mean `age`?"
    )


def test_advice_about_a_load_id_depends_on_what_used_it():
    assert str(errors.LoadIdReused("x", "C", "append")) == (
        "load id 'x' was already used by commit C in mode 'append'; use a new id or that mode"
    )
    assert str(errors.LoadIdReused("x", "C")).endswith("C for another write; use a new id")


def test_the_advice_of_a_lost_lease_is_not_part_of_its_reason():
    lost = errors.BranchLockLost("main", "load")
    assert str(lost).startswith(f"{lost.reason}; recovery will finish or undo it")
    unknown = errors.CommitStateUnknown("O", "C", "K", reason=lost.reason)
    assert str(unknown) == (
        "could not confirm commit C (load lost its write lease on branch 'main' and stopped); repeat "
        "the call with idempotency_key='K': it returns the receipt if the commit was published"
    )
