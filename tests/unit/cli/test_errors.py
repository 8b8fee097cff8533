"""`omnigraph errors`: the list, one code, and an unknown code."""

from __future__ import annotations

import json

import pytest

from omnigraph.error_codes import REGISTRY


def test_all_codes_are_listed_in_natural_order(cli):
    code, out, err = cli("errors")
    assert (code, err) == (0, "")
    header, rule, *rows = out.splitlines()
    assert header.split(" | ")[0].rstrip() == "code"
    assert set(rule) == {"-", "+"}
    codes = [row.split(" | ")[0].rstrip() for row in rows]
    assert set(codes) == set(REGISTRY)
    assert codes.index("T2") < codes.index("T10")


@pytest.mark.acceptance("U-151")
def test_one_code_is_explained(cli):
    entry = REGISTRY["T6"]
    code, out, err = cli("errors", "T6")
    assert (code, err) == (0, "")
    assert out.startswith(f"T6: {entry.title}\n")
    assert entry.explanation.strip() in out


def test_case_does_not_matter(cli):
    assert cli("errors", "t6") == cli("errors", "T6")


def test_the_document_holds_every_field(cli):
    documents = json.loads(cli("errors", "--json").out)["errors"]
    assert len(documents) == len(REGISTRY)
    for document in documents:
        assert list(document) == ["code", "kind", "title", "explanation", "example"]


def test_the_document_of_one_code_holds_that_code(cli):
    (document,) = json.loads(cli("errors", "T6", "--json").out)["errors"]
    assert document["code"] == "T6"


@pytest.mark.acceptance("U-151")
def test_an_unknown_code_is_an_error(cli):
    code, out, err = cli("errors", "NOPE")
    assert (code, out) == (1, "")
    assert (
        err == "error[OG-N-000]: no error has the code 'NOPE'; `omnigraph errors` lists all codes\n"
    )


def test_a_misspelt_code_gets_the_close_one(cli):
    code, _, err = cli("errors", "OG-L-0001", "--json")
    assert code == 1
    assert "did you mean `OG-L-00" in err


def test_an_unknown_variable_is_named_with_what_was_meant(cli, full, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_MAX_ROW", "1")
    code, _, err = cli("schema", "show", full)
    assert code == 0
    assert "warning: the environment variable OMNIGRAPH_MAX_ROW is not known" in err
    assert "did you mean `OMNIGRAPH_MAX_ROWS`?" in err
