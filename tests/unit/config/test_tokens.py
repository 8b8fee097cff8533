"""Which token a request gets: the sources in their order, and the URLs each is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.config.credentials import (
    credentials_path,
    find_server,
    find_token,
    store_token,
    variable_of,
)
from omnigraph.config.operator import OperatorConfig
from omnigraph.errors import CredentialsError, UsageError

DEV = "http://h:8080"


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OperatorConfig:
    for name in ("OMNIGRAPH_TOKEN_DEV", "OMNIGRAPH_BEARER_TOKEN", "TEAM_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return OperatorConfig(tmp_path / "config.yaml", servers={"dev": DEV})


def test_the_environment_wins_over_the_file_and_both_over_the_rest(operator, monkeypatch):
    dotenv = {"TEAM_TOKEN": "of-env-file", "OMNIGRAPH_BEARER_TOKEN": "any-of-env-file"}

    def found() -> tuple[str, str] | None:
        token = find_token(DEV, operator, "TEAM_TOKEN", dotenv)
        return None if token is None else (token.secret, token.source)

    assert found() == ("of-env-file", "TEAM_TOKEN in auth.env_file")
    monkeypatch.setenv("TEAM_TOKEN", "of-graph")
    assert found() == ("of-graph", "environment variable TEAM_TOKEN")
    store_token(credentials_path(operator), "dev", "of-file")
    assert found() == ("of-file", f"[dev] in {operator.path.parent}/credentials")
    monkeypatch.setenv("OMNIGRAPH_TOKEN_DEV", "of-server")
    assert found() == ("of-server", "environment variable OMNIGRAPH_TOKEN_DEV")


def test_the_general_variable_comes_last(operator, monkeypatch):
    assert find_token(DEV, operator) is None
    token = find_token(DEV, operator, None, {"OMNIGRAPH_BEARER_TOKEN": "file"})
    assert token is not None
    assert token.secret == "file"
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "environment")
    token = find_token(DEV, operator, None, {"OMNIGRAPH_BEARER_TOKEN": "file"})
    assert token is not None
    assert token.secret == "environment"


@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
def test_blank_counts_as_absent_and_blanks_around_a_token_are_removed(operator, monkeypatch, blank):
    monkeypatch.setenv("OMNIGRAPH_TOKEN_DEV", blank)
    monkeypatch.setenv("TEAM_TOKEN", blank)
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", " general\n")
    token = find_token(DEV, operator, "TEAM_TOKEN", {"TEAM_TOKEN": blank})
    assert token is not None
    assert token.secret == "general"


@pytest.mark.acceptance("U-057", partly="no request is sent")
@pytest.mark.parametrize(
    ("url", "is_dev"),
    [
        ("http://h:8080", True),
        ("http://h:8080/", True),
        ("http://h:8080/graphs/team", True),
        ("http://h:8080-x", False),
        ("http://h:80801", False),
        ("http://h:8080.evil.org", False),
        ("http://h:8080@evil.org", False),
        ("http://evil.org/http://h:8080", False),
        ("https://h:8080", False),
        ("http://h", False),
    ],
)
def test_a_token_is_only_for_urls_of_its_server(operator, monkeypatch, url, is_dev):
    monkeypatch.setenv("OMNIGRAPH_TOKEN_DEV", "secret")
    store_token(credentials_path(operator), "dev", "stored")
    assert (find_token(url, operator) is not None) is is_dev


def test_the_longest_url_that_fits_decides():
    servers = {"a": "http://h", "b": "http://h/team", "c": "http://h/team/x"}
    assert find_server("http://h/team/x/graphs/g", servers) == "c"
    assert find_server("http://h/team/xy", servers) == "b"
    assert find_server("http://h/teams", servers) == "a"
    assert find_server("http://other", servers) is None


def test_the_name_of_a_server_becomes_that_of_a_variable():
    assert variable_of("prod-eu.1") == "OMNIGRAPH_TOKEN_PROD_EU.1"


def test_two_servers_with_one_variable_are_refused_once_it_is_set(operator, monkeypatch):
    both = OperatorConfig(operator.path, servers={"a-b": "http://x", "a_b": "http://y"})
    assert find_token("http://x", both) is None
    monkeypatch.setenv("OMNIGRAPH_TOKEN_A_B", "secret")
    with pytest.raises(UsageError) as caught:
        find_token("http://x", both)
    assert "'a-b' and 'a_b'" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("token", ["two words", "a\nHost: evil", "naïve"])
def test_a_token_that_would_change_the_request_is_refused(operator, monkeypatch, token):
    monkeypatch.setenv("OMNIGRAPH_TOKEN_DEV", token)
    with pytest.raises(UsageError, match="environment variable OMNIGRAPH_TOKEN_DEV") as caught:
        find_token(DEV, operator)
    assert token not in str(caught.value)


def test_a_file_that_others_can_read_is_refused_only_if_it_is_needed(operator, monkeypatch):
    path = credentials_path(operator)
    store_token(path, "dev", "secret")
    path.chmod(0o644)
    with pytest.raises(CredentialsError, match="chmod 600"):
        find_token(DEV, operator)
    assert find_token("http://other", operator) is None
    monkeypatch.setenv("OMNIGRAPH_TOKEN_DEV", "environment")
    assert find_token(DEV, operator) is not None
