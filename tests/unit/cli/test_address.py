"""Which graph a data-plane command works on, and the addresses none of them can use."""

from __future__ import annotations

import pytest

AT_THE_END: list[tuple[str, ...]] = [
    ("snapshot",),
    ("export",),
    ("commit", "list"),
    ("load", "--mode", "merge", "--data", "library.jsonl"),
    ("ingest", "--data", "library.jsonl"),
]
AS_AN_OPTION: list[tuple[str, ...]] = [
    ("branch", "list"),
    ("branch", "create", "feature"),
    ("branch", "delete", "feature"),
    ("commit", "show", "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
]
EVERY = [(w, ()) for w in AT_THE_END] + [(w, ("--uri",)) for w in AS_AN_OPTION]

every_command = pytest.mark.parametrize(
    ("words", "flag"), EVERY, ids=[" ".join(words[:2]) for words, _ in EVERY]
)


def errors_of(outcome) -> str:
    """What a failed command says, without the note on an old spelling."""
    assert (outcome.code, outcome.out) == (1, "")
    return "".join(
        line for line in outcome.err.splitlines(keepends=True) if "is deprecated" not in line
    )


@every_command
def test_no_address_is_an_error_that_says_how_to_give_one(cli, library, words, flag):
    message = errors_of(cli(*words))
    assert message == (
        "error[OG-I-005]: URI must be provided via <URI>, --target, or config; "
        "OMNIGRAPH_URI and a graph in this folder work too\n"
    )


@every_command
def test_a_server_that_does_not_run_is_named(cli, library, words, flag):
    consent = ("--yes",) if words[:2] == ("branch", "delete") else ()
    message = errors_of(cli(*words, *consent, *flag, "http://127.0.0.1:9/g"))
    assert message.startswith("error[OG-H-001]: http://127.0.0.1:9/g: cannot connect")


@every_command
def test_an_undefined_server_is_unknown(cli, library, words, flag):
    message = errors_of(cli(*words, "--server", "prod"))
    assert message.startswith("error[OG-I-005]: unknown server 'prod'")


@every_command
def test_a_server_and_an_address_are_exclusive(cli, library, words, flag):
    assert "exclusive" in errors_of(cli("--server", "prod", *words, *flag, "G"))


@every_command
def test_a_place_without_a_graph_is_named(cli, library, words, flag):
    message = errors_of(cli(*words, *flag, "nowhere"))
    assert message.startswith(
        f"error[OG-N-001]: no graph at '{library}/nowhere'; create one with og.init()"
    )
    assert f"hint: `omnigraph init --schema FILE {library}/nowhere` creates one" in message
    assert not (library / "nowhere").exists()


def test_a_file_is_no_graph(cli, library):
    before = (library / "library.pg").read_bytes()
    message = errors_of(cli("snapshot", "library.pg"))
    assert f"{library}/library.pg" in message
    assert "internal error" not in message
    assert (library / "library.pg").read_bytes() == before


@every_command
def test_an_address_no_store_has_is_refused(cli, library, words, flag):
    assert "ftp://" in errors_of(cli(*words, *flag, "ftp://h.invalid/g"))
