"""An exception of the engine is the same exception after it went through an error body."""

from __future__ import annotations

import msgspec
import pytest

from omnigraph import errors
from omnigraph.client.failures import failure
from omnigraph.errors import OmnigraphError
from omnigraph.server.problems import RETRY_AFTER_SECONDS, HttpProblem, error_answer
from omnigraph.wire.contracts import CONTRACT_07, CONTRACT_13
from tests.unit.test_errors import CLASSES, instance

SERVER = "http://127.0.0.1:1"


def through(error: BaseException, contract=CONTRACT_07) -> OmnigraphError:
    answer = error_answer(error, contract)
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return failure(SERVER, answer.status, headers, msgspec.json.encode(answer.body))


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_arrives_with_its_class_message_and_fields(cls):
    sent = instance(cls)
    found = through(sent)
    assert type(found) is cls
    assert (found.args, str(found)) == (sent.args, str(sent))
    waits = {"retry_after": RETRY_AFTER_SECONDS} if cls is errors.TooManyRequests else {}
    assert vars(found) == vars(sent) | waits


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_contract_13_says_the_class_and_the_message_too(cls):
    sent = instance(cls)
    found = through(sent, CONTRACT_13)
    assert (type(found), str(found)) == (cls, str(sent))


def test_a_message_about_routes_is_replaced_by_that_of_the_call():
    cause = errors.WrongQueryKind("add", is_mutation=True)
    found = through(HttpProblem(400, "use POST /mutate", cause=cause))
    assert type(found) is errors.WrongQueryKind
    assert str(found) == str(cause)


def test_the_conflicts_of_both_contracts_are_the_same():
    conflict = errors.MergeConflict("node:Author", "ada", "divergent_update", "both changed it")
    sent = errors.MergeConflicts([conflict], total=3)
    for contract in (CONTRACT_07, CONTRACT_13):
        found = through(sent, contract)
        assert isinstance(found, errors.MergeConflicts)
        assert (found.conflicts, found.total) == ((conflict,), 3)


@pytest.mark.parametrize(
    "name", ["Exception", "OmnigraphErrorX", "msgspec", "Retry", "", "__doc__"]
)
def test_a_class_that_is_not_of_the_tree_is_an_error_by_status(name):
    body = {"error": "no", "exception": {"type": name, "code": "OG-X-1", "retry": "never"}}
    found = failure(SERVER, 409, {}, msgspec.json.encode(body))
    assert type(found) is errors.ConflictError


def test_fields_of_another_shape_make_an_error_by_status():
    described = {"type": "ParseError", "code": "", "retry": "", "fields": {"diagnostics": [1]}}
    found = failure(SERVER, 400, {}, msgspec.json.encode({"error": "no", "exception": described}))
    assert type(found) is errors.InputError
