"""Reading case files and playing them: a wrong file and a wrong outcome both name file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cases import Case, CaseError, CaseFailure, ModelBackend, read_cases, run_case
from tests.support.cases.actions import Load, Merge, Mutate
from tests.support.cases.expectations import Refused
from tests.support.cases.parse import parse_cases
from tests.support.outcome import LoadResult

PATH = Path("story.gqt")
SCHEMA = "--- schema\nnode P { n: String @key  a: I32? }\n"
HEAD = f"{SCHEMA}\n"
SEED = '--- seed\n{"type":"P","data":{"n":"x","a":1}}\n'


def parse(text: str) -> list[Case]:
    return list(parse_cases(PATH, text))


def play(steps: str, backend: type[ModelBackend] = ModelBackend) -> None:
    (case,) = parse(f"{SCHEMA}{SEED}=== story\n{steps}")
    run_case(case, backend)


# Reading


def test_a_case_is_its_settings_and_steps(tmp_path):
    (tmp_path / "p.pg").write_text("node P { n: String @key }\n")
    path = tmp_path / "story.gqt"
    path.write_text(
        "## about nothing\n"
        "--- schema p.pg\n"
        "node Q { n: String @key }\n"
        "\n"
        "=== First\n"
        "--- proves L-001 S-002\n"
        "--- load append branch=draft id=job-1 max_errors=3\n"
        '{"type":"P"}\n'
        "\n"
        "--- refused bad_request\n"
        "first fragment\n"
        "## not a fragment\n"
        "second fragment\n"
        "=== Second\n"
        "--- seed\n"
        '{"type":"P","data":{"n":"x"}}\n'
        '--- mutate actor="a b" params={"x": [1, "y"]}\n'
        "query q() {\n"
        "}\n"
        "--- merge draft into=other\n"
    )
    first, second = read_cases(path)
    assert first.schema == "node P { n: String @key }\nnode Q { n: String @key }"
    assert (first.title, first.line, first.proves, first.seed) == (
        "First",
        5,
        ("L-001", "S-002"),
        None,
    )
    load = Load("append", '{"type":"P"}', branch="draft", id="job-1", max_errors=3)
    refused = Refused("bad_request", ("first fragment", "second fragment"))
    assert [(s.line, s.does) for s in first.steps] == [(7, load), (10, refused)]
    assert (second.proves, second.seed) == ((), '{"type":"P","data":{"n":"x"}}')
    mutate = Mutate("query q() {\n}", params={"x": [1, "y"]}, actor="a b")
    assert [s.does for s in second.steps] == [mutate, Merge("draft", "other")]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("hello", 1, "expected a step"),
        ("=== \n--- branches main", 1, "needs a title"),
        ("=== a\n--- branches main", 1, "no schema"),
        (f"{HEAD}=== a\n", 4, "no steps"),
        (f"{HEAD}--- branches main", 4, "before the first case"),
        (f"{HEAD}=== a\n--- branches main\n=== a\n--- branches main", 6, "another case"),
        (f"{HEAD}=== a\n--- dance\n", 5, "unknown verb `dance`"),
        (f"{HEAD}=== a\n---\n", 5, "needs a verb"),
        (f"{HEAD}=== a\n--- load\n", 5, "takes MODE, got none"),
        (f"{HEAD}=== a\n--- load sideways\n", 5, "overwrite, append, merge, patch"),
        (f"{HEAD}=== a\n--- load append colour=red\n", 5, "no option `colour`"),
        (f"{HEAD}=== a\n--- load append repeat=many\n", 5, "`repeat` takes a value of kind int"),
        (f"{HEAD}=== a\n--- load append id=a id=b\n", 5, "given twice"),
        (f"{HEAD}=== a\n--- load append id=\n", 5, "needs a value"),
        (f"{HEAD}=== a\n--- mutate\n", 5, "needs text below"),
        (f"{HEAD}=== a\n--- mutate params={{x\nquery q() {{}}\n", 5, "not JSON"),
        (f"{HEAD}=== a\n--- branch b\nmore\n", 5, "takes no lines"),
        (f"{HEAD}=== a\n--- rows P\nnope\n", 5, "not JSON: nope"),
        (f"{HEAD}=== a\n--- rows P\n3\n", 5, "a row is a JSON object"),
        (f"{HEAD}=== a\n--- count P many\n", 5, "a number of rows"),
        (f"{HEAD}=== a\n--- load-errors\nthree bad_value\n", 5, "RECORD CODE FRAGMENT"),
        (f"{HEAD}=== a\n--- conflicts\nnode:P\n", 5, "TABLE ROW KIND"),
        (f"{HEAD}=== a\n--- counts\nnode:P added=1\n", 5, "inserted=N"),
        (f"{HEAD}=== a\n--- warnings\nodd\n", 5, "CODE COUNT"),
        (f"{HEAD}=== a\n--- quarantined\n3 bad\n", 5, "RECORD CODE"),
        (f"{HEAD}=== a\n--- branches main\n--- proves L-001\n", 6, "before the steps"),
        (f"{HEAD}=== a\n--- proves nothing\n", 5, "no acceptance row"),
        ("--- schema\n", 1, "one file name, or text below"),
        ("--- schema nowhere.pg\n", 1, "cannot read 'nowhere.pg'"),
    ],
)
def test_a_wrong_file_is_reported_with_its_line(text, line, problem):
    with pytest.raises(CaseError) as error:
        parse(text)
    assert str(error.value).startswith(f"story.gqt:{line}: ")
    assert problem in str(error.value)


# Playing

INSERT = '--- mutate\nquery q() { insert P { n: "y", a: 2 } }\n'
EMPTY = '--- mutate\nquery q() { delete P where n = "nobody" }\n'
BAD_LOAD = '--- load append\n{"type":"P","data":{"a":"x"}}\n'
DUPLICATE = '--- load append\n{"type":"P","data":{"n":"x"}}\n--- refused bad_request\n'
CLASH = (
    "--- branch b\n"
    '--- mutate branch=b\nquery q() { update P set { a: 2 } where n = "x" }\n'
    '--- mutate\nquery q() { update P set { a: 3 } where n = "x" }\n'
    "--- merge b\n--- refused conflict\n"
)


@pytest.mark.parametrize(
    "steps",
    [
        f"{INSERT}--- result affected_nodes=1 affected_edges=0 commits=1 version=3 actor=null",
        f"{INSERT}--- counts\nnode:P inserted=1",
        f'{INSERT}--- rows P\n{{"n":"x","a":1}}\n{{"n":"y","a":2}}',
        f"{EMPTY}--- result commits=0\n--- counts\n--- warnings",
        f"{INSERT}--- rows P at=@start".replace("--- mutate", "--- mark start\n--- mutate", 1)
        + '\n{"n":"x","a":1}',
        f"{CLASH}--- conflicts\nnode:P x divergent_update",
        f"{BAD_LOAD}--- refused bad_request\nmissing @key\n--- load-errors total=2\n"
        "1 bad_value property 'a' expects I32\n1 bad_key missing @key property 'n'",
        "--- reload\n--- export P\n--- history\ninit\nload\n--- branches main",
    ],
)
def test_a_story_that_is_true_passes(steps):
    play(steps)


@pytest.mark.parametrize(
    ("steps", "line", "problem"),
    [
        (f"{INSERT}--- result affected_nodes=2", 8, "affected_nodes is 1, not 2"),
        (f"{INSERT}--- result commits=0", 8, "commits is 1, not 0"),
        (f"{INSERT}--- result outcome=merged", 8, "the result has no 'outcome'"),
        (f"{INSERT}--- result replayed=true", 8, "the result has no 'replayed'"),
        (f"{INSERT}--- counts", 8, "the net counts are"),
        (f"{INSERT}--- warnings\nodd 1", 8, "the warnings are ()"),
        (f"{INSERT}--- quarantined", 8, "was no load"),
        ("--- branch b\n--- result commits=1", 7, "has no receipt"),
        ('--- rows P\n{"n":"x"}', 6, 'unexpected row {"a": 1, "n": "x"}'),
        ('--- rows P\n{"n":"x","a":true}', 6, "missing row"),
        ('--- rows P\n{"n":"x","a":1}\n{"n":"x","a":1}', 6, "missing row"),
        ("--- rows P", 6, "unexpected row"),
        ('--- rows P\n{"id":"<ulid>","n":"x","a":1}', 6, "missing row"),
        ("--- count P 2", 6, "P has 1 rows, not 2"),
        ("--- count P 1 at=@start", 6, "no commit was marked as 'start'"),
        ("--- branches main draft", 6, "the branches are main"),
        ("--- history\ninit", 6, "the commits of 'main' are init -, load -"),
        (f"--- mark a\n{INSERT}--- diff @a main", 9, "unexpected change"),
        ('--- export\n{"type":"P","data":{"id":"x","n":"x","a":2}}', 6, "missing record"),
        ("--- export Q", 6, "refused (bad_request): unknown export type 'Q'"),
        (BAD_LOAD, 6, "refused (bad_request): load failed"),
        (f"{INSERT}--- refused bad_request", 6, "it was not refused"),
        ("--- refused bad_request", 6, "was not refused"),
        (f"{BAD_LOAD}--- refused conflict", 8, "refused as bad_request, not conflict"),
        (f"{BAD_LOAD}--- refused bad_request\nnope", 8, "'nope' is not in the message"),
        (f"{DUPLICATE}--- load-errors\n1 unique", 9, "expected 1 unique"),
        (f"{DUPLICATE}--- load-errors\n1 exists nope", 9, "expected 1 exists"),
        (f"{DUPLICATE}--- load-errors\n1 exists\n2 exists", 9, "expected 2 errors, found 1"),
        (f"{DUPLICATE}--- load-errors listed=2", 9, "1 errors are listed"),
        (f"{DUPLICATE}--- load-errors total=2", 9, "1 errors, not 2"),
        (f"{INSERT}--- load-errors", 8, "not refused"),
        (f"{CLASH}--- conflicts\nnode:P y divergent_update", 13, "node:P x divergent_update"),
    ],
)
def test_a_story_that_is_not_true_fails_at_its_line(steps, line, problem):
    with pytest.raises(CaseFailure) as failure:
        play(steps)
    assert str(failure.value).startswith(f"story.gqt:{line}: ")
    assert problem in str(failure.value)


def test_a_schema_that_is_refused_fails_the_case():
    (case,) = parse("--- schema\nnode P { id: String }\n=== story\n--- branches main\n")
    with pytest.raises(CaseFailure, match=r"story\.gqt:3: refused \(compiler\).*is reserved"):
        run_case(case, ModelBackend)


class Leaky(ModelBackend):
    """A graph that keeps the good records of a load it refuses."""

    def load(self, data: str, mode, **options) -> LoadResult:
        if '"y"' in data:
            good = data.splitlines()[0]
            super().load(good, mode, **options)
        return super().load(data, mode, **options)


def test_a_refusal_that_changes_something_is_noticed():
    steps = (
        '--- load append\n{"type":"P","data":{"n":"y"}}\n{"type":"Q"}\n--- refused bad_request\n'
    )
    play(steps)
    with pytest.raises(CaseFailure, match=r"story\.gqt:6: .*the graph has changed"):
        play(steps, Leaky)


class Drifting(ModelBackend):
    """A graph whose export is never the same twice."""

    exports = 0

    def export(self, target, types):
        Drifting.exports += 1
        return [line + " " * Drifting.exports for line in super().export(target, types)]


def test_an_export_that_changes_on_the_way_is_noticed():
    play("--- reload")
    with pytest.raises(CaseFailure, match="the export changed"):
        play("--- reload", Drifting)


class Unordered(ModelBackend):
    """A graph that exports its rows backwards."""

    def export(self, target, types):
        return super().export(target, types)[::-1]


def test_an_export_out_of_order_is_noticed():
    with pytest.raises(CaseFailure, match="not ordered by table and id"):
        play(f"{INSERT}--- export", Unordered)


# Reads

ASK = "--- query\nquery q() { match { $p: P } return { $p.n, $p.a } }\n"


def test_an_answer_is_compared_row_by_row():
    play(f'{ASK}--- answer\n{{"p.n": "x", "p.a": 1}}')
    play(f'{ASK}--- answer ordered\n{{"p.n": "x", "p.a": 1}}')


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (f'{ASK}--- answer\n{{"p.n": "y", "p.a": 1}}', 'missing row {"p.n": "y", "p.a": 1}'),
        (f"{ASK}--- answer", "unexpected row"),
        (f'{ASK}--- answer\n{{"p.a": 1, "p.n": "x"}}', "the columns are p.n p.a, not p.a p.n"),
        ("--- answer", "no read stands before"),
    ],
)
def test_another_answer_is_a_failure(steps, message):
    with pytest.raises(CaseFailure) as caught:
        play(steps)
    assert str(caught.value).startswith(str(PATH))
    assert message in str(caught.value)


def test_rows_in_another_order_fail_only_where_order_is_asked_for():
    steps = (
        '--- load merge\n{"type":"P","data":{"n":"y"}}\n'
        "--- query\nquery q() { match { $p: P } return { $p } order { $p desc } }\n"
    )
    rows = '{"p": "x"}\n{"p": "y"}\n'
    play(f"{steps}--- answer\n{rows}")
    with pytest.raises(CaseFailure, match="the order of the rows is"):
        play(f"{steps}--- answer ordered\n{rows}")


def test_an_answer_takes_rows_and_at_most_one_word():
    with pytest.raises(CaseError, match="at most the word"):
        play("--- answer sorted")
    with pytest.raises(CaseError, match="a row is a JSON object"):
        play("--- answer\n[1]")
