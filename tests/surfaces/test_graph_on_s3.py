"""The same commands on an object store: only the address differs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from omnigraph.cli.main import main
from tests.contract.objects.moto_server import BUCKET, environment_for, running_server

URI = f"s3://{BUCKET}/library"
NOWHERE = "s3://no-such-bucket/library"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with running_server() as address:
        yield address


@pytest.fixture
def cli(
    endpoint: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., tuple[int, str, str]]:
    """Run a command next to `library.pg` and `library.jsonl`, with the store at hand."""
    for name, value in environment_for(endpoint).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    Path("library.pg").write_text("node Author {\n    slug: String @key\n}\n")
    records = ({"type": "Author", "data": {"slug": slug}} for slug in ("ada", "bob"))
    Path("library.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))

    def run(*args: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(args)
        return code, *capsys.readouterr()

    return run


def test_a_graph_is_created_loaded_branched_changed_and_exported(cli):
    def run(*args: str) -> str:
        code, out, err = cli(*args)
        assert (code, err) == (0, "")
        return str(out)

    assert run("init", "--schema", "library.pg", URI).startswith(f"initialized {URI}\n")
    load = ["load", URI, "--mode", "append", "--data", "library.jsonl"]
    loaded = json.loads(run(*load, "--branch", "draft", "--from", "main", "--json"))
    assert (loaded["uri"], loaded["nodes_loaded"], loaded["branch_created"]) == (URI, 2, True)
    assert run("branch", "list", "--uri", URI) == "draft\nmain\n"
    assert run("export", URI) == ""
    exported = run("export", URI, "--branch", "draft").splitlines()
    assert [json.loads(line)["data"]["slug"] for line in exported] == ["ada", "bob"]
    assert len(run("commit", "list", URI, "--branch", "draft").splitlines()) == 2
    change = 'query q() { insert Author { slug: "cy" }  delete Author where slug = "ada" }'
    assert run("mutate", URI, "--branch", "draft", "-e", change).startswith(
        "changed draft via q: 2"
    )
    exported = run("export", URI, "--branch", "draft").splitlines()
    assert [json.loads(line)["data"]["slug"] for line in exported] == ["bob", "cy"]


@pytest.mark.parametrize("command", [("init", "--schema", "library.pg"), ("snapshot",)])
def test_a_bucket_that_does_not_exist_is_an_error_that_names_the_address(cli, command):
    code, out, err = cli(*command, NOWHERE)
    assert (code, out) == (1, "")
    assert NOWHERE in err
    assert "internal error" not in err
