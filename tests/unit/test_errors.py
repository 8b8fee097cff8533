"""The exception tree: drawn as it is, stable codes, and errors that cross process borders."""

import pickle
import re

import pytest

import omnigraph
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

INSTANCES = {
    "LanguageError": lambda cls: cls([DIAGNOSTIC]),
    "SourceUnreadable": lambda cls: cls("a.pg", "is a directory", "name a file"),
    "ParameterError": lambda cls: cls("n", "param 'n': expected integer"),
    "HostValueError": lambda cls: cls("n", "exceeds current engine range"),
}


def tree(cls=OmnigraphError, depth=0):
    yield depth, cls
    for child in cls.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from tree(child, depth + 1)


CLASSES = [cls for _, cls in tree()]


def instance(cls):
    for base in cls.__mro__:
        if base.__name__ in INSTANCES:
            return INSTANCES[base.__name__](cls)
    return cls("something went wrong")


def test_the_drawn_tree_is_the_real_one():
    drawn = []
    for line in errors.__doc__.splitlines():
        match = re.match(r"    ([│ ├└─]*)([A-Z]\w+)", line)
        if match:
            drawn.append((len(match[1]) // 4, match[2]))
    assert drawn == [(depth, cls.__name__) for depth, cls in tree()]


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


def test_the_public_names_are_exactly_the_documented_ones():
    assert sorted(omnigraph.__all__) == ["OmnigraphError", "__version__", "errors"]
    assert all(hasattr(omnigraph, name) for name in omnigraph.__all__)
