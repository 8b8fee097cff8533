"""`omnigraph explore`: a server of its own, with a token in the part of the address that no request contains."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import contextmanager

import httpx
import pytest

from tests.server.serving import H, environment, library

COMMAND = (sys.executable, "-c", "import sys; from omnigraph.cli.entry import run; sys.exit(run())")


@contextmanager
def exploring(root, *options):
    process = subprocess.Popen(
        [*COMMAND, "explore", str(root), "--no-browser", "--json", *options],
        stdout=subprocess.PIPE,
        env=environment(),
        text=True,
    )
    assert process.stdout is not None
    lines: list[str] = []
    try:
        while not (lines and lines[-1] == "}\n"):
            line = process.stdout.readline()
            assert line, "the command has ended"
            lines.append(line)
            if line.startswith("{") and line.rstrip().endswith("}"):
                break
        address, _, token = json.loads("".join(lines))["address"].partition("#token=")
        yield process, address, {"Authorization": f"Bearer {token}"} | H
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return library(tmp_path_factory.mktemp("explored"))


def test_it_serves_the_page_to_whoever_has_the_token_until_it_is_interrupted(root):
    with exploring(root, "--as", "ada") as (process, address, headers):
        assert address.startswith("http://127.0.0.1:")
        assert address.endswith("/explore")
        assert httpx.get(address).status_code == 200
        base = address.removesuffix("/explore")
        assert httpx.get(f"{base}/session", headers=H).status_code == 401
        assert httpx.get(f"{base}/session", headers=headers).json()["actor_id"] == "ada"
        allowed = httpx.get(f"{base}/graphs/default/permissions", headers=headers).json()
        assert (allowed["change"], allowed["merge"]) == (True, True)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0


def test_read_only_refuses_changes(root):
    with exploring(root, "--read-only") as (_, address, headers):
        graph = address.replace("/explore", "/graphs/default")
        allowed = httpx.get(f"{graph}/permissions", headers=headers).json()
        assert (allowed["read"], allowed["change"], allowed["merge"]) == (True, False, False)
        change = {"query": 'query q() { insert Author { slug: "x" } }'}
        assert httpx.post(f"{graph}/mutate", json=change, headers=headers).status_code == 403
