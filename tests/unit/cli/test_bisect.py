"""Which commit made an assertion fail, and how few of them are read to find it."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.cli.commands.bisect import Found, State, find_first_failure

HAS = """query q() { match { $a: Author { slug: "%s" } } return { $a.slug } }"""


@given(st.integers(1, 400), st.data())
def test_the_first_failure_is_found_in_logarithmic_time(count, data):
    first = data.draw(st.integers(0, count - 1))
    removed = data.draw(st.integers(0, first))
    asked: list[int] = []

    def state(number: int) -> State:
        asked.append(number)
        if number < removed:
            return State.REMOVED
        return State.FAILS if number >= first else State.HOLDS

    found = find_first_failure(count, state)
    last = first - 1 if first > removed else None
    assert found == Found(first, last, len(asked))
    assert len(asked) == len(set(asked)) <= math.ceil(math.log2(count)) + 2


def test_nothing_is_found_while_the_assertion_holds():
    assert find_first_failure(9, lambda number: State.HOLDS) is None
    assert find_first_failure(0, lambda number: State.FAILS) is None


@pytest.fixture
def history(cli, full) -> list[str]:
    """Twelve mutations by several actors; the commits they made."""
    made = []
    for number in range(12):
        text = f'query add() {{ insert Author {{ slug: "n{number}", born: {number} }} }}'
        outcome = cli("mutate", "G", "-e", text, "--as", f"actor-{number % 3}", "--json")
        made.append(json.loads(outcome.out)["graph_commit_id"])
    return made


def test_the_commit_and_its_actor_are_named(cli, history):
    found = json.loads(cli("bisect", "G", "-e", HAS % "n7", "--json").out)
    assert found["first_failing"]["graph_commit_id"] == history[7]
    assert found["first_failing"]["actor_id"] == "actor-1"
    assert found["last_holding"] == history[6]
    assert found["tested"] <= 6
    code, out, _ = cli("bisect", "G", "-e", HAS % "n7")
    assert code == 0
    assert history[7] in out
    assert "actor=actor-1" in out


def test_an_assertion_may_expect_rows(cli, history):
    delete = 'query gone() { delete Author where slug = "n3" }'
    gone = json.loads(cli("mutate", "G", "-e", delete, "--json").out)["graph_commit_id"]
    found = cli("bisect", "G", "-e", HAS % "n3", "--expect", "rows", "--good", history[3], "--json")
    assert json.loads(found.out)["first_failing"]["graph_commit_id"] == gone


def test_ends_may_be_given_as_refs(cli, history):
    found = cli("bisect", "G", "-e", HAS % "n7", "--good", "main~8", "--bad", "main~2", "--json")
    assert json.loads(found.out)["first_failing"]["graph_commit_id"] == history[7]
    code, _, err = cli("bisect", "G", "-e", HAS % "n7", "--good", "main~2")
    assert (code, "fails at 'main~2' already" in err) == (1, True)
    code, _, err = cli("bisect", "G", "-e", HAS % "n7", "--good", "main~1", "--bad", "main~5")
    assert (code, "swap --good and --bad" in err) == (1, True)


def test_an_assertion_that_holds_is_said_and_exits_with_1(cli, history):
    code, out, _ = cli("bisect", "G", "-e", HAS % "nobody-has-this")
    assert code == 1
    assert "the assertion holds at the newest" in out


def test_a_query_that_does_not_compile_at_the_end_is_an_error(cli, history):
    code, _, err = cli("bisect", "G", "-e", "query q() { match { $a: Autor } return { $a.slug } }")
    assert code == 1
    assert "did you mean `Author`?" in err
