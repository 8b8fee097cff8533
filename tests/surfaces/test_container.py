"""The image and its compose file: the Dockerfile is valid, the entrypoint decides, the server answers.

Nothing here needs Docker. The slow tests carry out the steps of the Dockerfile in an empty folder, and the
compose file with the object store that it names, as processes of this machine.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from omnigraph._version import __version__
from omnigraph.settings import VARIABLES
from tests.contract.objects.moto_server import environment_for
from tests.contract.objects.seaweed_server import BINARY as SEAWEED
from tests.server.serving import library
from tests.surfaces.dockerfile import (
    DOCKERFILE,
    ROOT,
    Image,
    environment_of,
    instructions,
    last_stage,
)

PROGRAMS = Path(sys.executable).parent
HADOLINT = PROGRAMS / "hadolint"
ENTRYPOINT = ROOT / "container" / "entrypoint.sh"
HEALTH = ROOT / "container" / "healthcheck.py"
COMPOSE = ROOT / "examples" / "container" / "compose.yaml"
START_SECONDS = 90

only_on_linux = pytest.mark.skipif(sys.platform != "linux", reason="hadolint is there for Linux")


# The Dockerfile


@only_on_linux
def test_hadolint_finds_nothing(tmp_path):
    assert hadolint(DOCKERFILE) == []
    careless = tmp_path / "Dockerfile"
    careless.write_text("FROM python\nRUN pip install omnigraph\n")
    assert {"DL3006", "DL3042"} <= {one["code"] for one in hadolint(careless)}


def hadolint(file: Path) -> list[dict[str, Any]]:
    done = subprocess.run(
        [HADOLINT, "--no-fail", "--format", "json", file], capture_output=True, check=True
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_the_image_runs_as_a_user_without_rights_and_is_checked():
    stage = last_stage()
    (user,) = stage["USER"]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user.rest)
    (health,) = stage["HEALTHCHECK"]
    assert health.command[-1].endswith("container/healthcheck.py")
    (port,) = stage["EXPOSE"]
    assert environment_of(stage)["OMNIGRAPH_BIND"] == f"0.0.0.0:{port.rest}"
    (entry,) = stage["ENTRYPOINT"]
    assert entry.command == ["/opt/omnigraph/container/entrypoint.sh"]
    assert os.access(ENTRYPOINT, os.X_OK)


def test_what_builds_is_not_in_the_image():
    first = [one.rest for one in instructions() if one.name == "FROM"]
    assert len(first) == 2
    assert all(":" in one for one in first)
    assert "RUN" not in last_stage()
    text = DOCKERFILE.read_text(encoding="utf-8")
    assert "://" not in text  # Packages come from where pip is told to look.


def test_the_context_has_what_is_copied_and_nothing_else():
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = {line[1:] for line in ignored if line.startswith("!")}
    copied = {
        source
        for one in instructions()
        if one.name == "COPY" and "from" not in one.options
        for source in one.words[:-1]
    }
    assert "*" in ignored
    assert allowed == copied
    assert [name for name in copied if not (ROOT / name).exists()] == []


# The entrypoint


@pytest.fixture
def echo(tmp_path):
    """A folder with programs that print how they were called."""
    for name in ("omnigraph", "omnigraph-server"):
        program = tmp_path / name
        program.write_text('#!/bin/sh\nprintf "%s" "${0##*/}"; printf " [%s]" "$@"\n')
        program.chmod(0o755)
    return tmp_path


def enter(*arguments: str, programs: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ENTRYPOINT, *arguments],
        env=env | {"PATH": f"{programs}{os.pathsep}/usr/bin:/bin"} | source_path(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def source_path() -> dict[str, str]:
    """Which sources the programs of this environment run, if something else than what is installed."""
    return {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}


BIND = "[--bind] [0.0.0.0:8080]"


@pytest.mark.parametrize(
    ("env", "arguments", "called"),
    [
        ({}, ["g.omni", "--spark"], "omnigraph-server [g.omni] [--spark]"),
        ({}, ["omnigraph", "init", "a b"], "omnigraph [init] [a b]"),
        ({}, ["omnigraph-server", "--help"], "omnigraph-server [--help]"),
        ({"OMNIGRAPH_CLUSTER": "/c"}, ["g.omni"], "omnigraph-server [g.omni]"),
        ({"OMNIGRAPH_CLUSTER": "s3://b/c"}, [], f"omnigraph-server [--cluster] [s3://b/c] {BIND}"),
        ({"OMNIGRAPH_TARGET_URI": "/a b"}, [], f"omnigraph-server [/a b] {BIND}"),
        (
            {"OMNIGRAPH_TARGET_URI": "/g", "OMNIGRAPH_CONFIG": "a b.yaml"},
            [],
            f"omnigraph-server [/g] [--config] [a b.yaml] {BIND}",
        ),
        ({"OMNIGRAPH_CONFIG": "o.yaml"}, [], f"omnigraph-server [--config] [o.yaml] {BIND}"),
        (
            {"OMNIGRAPH_CONFIG": "o.yaml", "OMNIGRAPH_TARGET": "team"},
            [],
            f"omnigraph-server [--config] [o.yaml] [--target] [team] {BIND}",
        ),
        (
            {"OMNIGRAPH_TARGET_URI": "/g", "OMNIGRAPH_BIND": "[::]:80"},
            [],
            "omnigraph-server [/g] [--bind] [[::]:80]",
        ),
        (
            {"OMNIGRAPH_TARGET_URI": "$(touch x); /g", "OMNIGRAPH_CLUSTER": ""},
            [],
            f"omnigraph-server [$(touch x); /g] {BIND}",
        ),
    ],
)
def test_arguments_or_the_environment_say_what_is_served(echo, env, arguments, called):
    done = enter(*arguments, programs=echo, **env)
    assert (done.returncode, done.stdout, done.stderr) == (0, called, "")


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({}, "nothing to serve. Set one of these variables:"),
        ({"OMNIGRAPH_TARGET": "team"}, "nothing to serve"),
        ({"OMNIGRAPH_CLUSTER": "/c", "OMNIGRAPH_TARGET_URI": "/g"}, "CLUSTER is exclusive"),
        ({"OMNIGRAPH_CLUSTER": "/c", "OMNIGRAPH_CONFIG": "o.yaml"}, "CLUSTER is exclusive"),
        ({"OMNIGRAPH_CLUSTER": "/c", "OMNIGRAPH_TARGET": "team"}, "CLUSTER is exclusive"),
        ({"OMNIGRAPH_TARGET_URI": "/g", "OMNIGRAPH_TARGET": "t"}, "are exclusive; unset one"),
    ],
)
def test_an_unclear_environment_is_refused_with_64(env, message):
    done = enter(programs=PROGRAMS, **env)
    assert (done.returncode, done.stdout) == (64, "")
    assert message in done.stderr


def test_the_server_behind_the_entrypoint_refuses_what_it_always_refuses(tmp_path):
    refused = enter(programs=PROGRAMS, OMNIGRAPH_TARGET_URI=str(tmp_path / "none.omni"))
    assert refused.returncode == 1
    assert "no bearer tokens are configured" in refused.stderr
    given = {"OMNIGRAPH_TARGET_URI": str(tmp_path / "none.omni"), "OMNIGRAPH_UNAUTHENTICATED": "1"}
    missing = enter(programs=PROGRAMS, **given)
    assert (missing.returncode, "create one with `omnigraph init" in missing.stderr) == (1, True)
    version = enter("--version", programs=PROGRAMS)
    assert version.stdout == f"omnigraph-server {__version__}\n"


# The server in the container


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        number: int = opened.getsockname()[1]
        return number


def health(address: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", HEALTH],
        env={"OMNIGRAPH_BIND": address, "http_proxy": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@contextmanager
def container(
    command: list[str], env: Mapping[str, str], log: Path, port: int
) -> Iterator[httpx.Client]:
    """The server of a container: it becomes healthy, and ends in order when it is told to."""
    with log.open("wb") as err:
        process = subprocess.Popen(command, env=env, stdout=err, stderr=err, cwd=log.parent)
    try:
        deadline = time.monotonic() + START_SECONDS
        while (checked := health(f"0.0.0.0:{port}")).returncode != 0:
            assert process.poll() is None, log.read_text(encoding="utf-8")
            assert time.monotonic() < deadline, checked.stderr
            time.sleep(0.2)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            yield client
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0, log.read_text(encoding="utf-8")
    finally:
        process.kill()
        process.wait()


def test_the_server_is_healthy_and_ends_with_the_signal_of_the_container(tmp_path):
    port = free_port()
    none = health(f"127.0.0.1:{port}")
    assert (none.returncode, f"no answer on 127.0.0.1:{port}" in none.stderr) == (1, True)
    env = {
        "PATH": f"{PROGRAMS}:/usr/bin:/bin",
        "OMNIGRAPH_TARGET_URI": str(library(tmp_path)),
        "OMNIGRAPH_BIND": f"127.0.0.1:{port}",
        "OMNIGRAPH_UNAUTHENTICATED": "1",
    }
    log = tmp_path / "server.log"
    with container([str(ENTRYPOINT)], env | source_path(), log, port) as client:
        assert client.get("/readyz").json()["status"] == "serving"
        elsewhere = health(f"127.0.0.1:{port + 1 if port < 65_535 else port - 1}")
        assert elsewhere.returncode == 1


# The compose file


def services() -> dict[str, Any]:
    document = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    found: dict[str, Any] = document["services"]
    return found


def test_the_compose_file_has_no_secret_and_opens_one_port_of_this_machine():
    for needed in re.findall(r"\$\{(.*?)\}", COMPOSE.read_text(encoding="utf-8")):
        assert re.fullmatch(r"[A-Z_]+:\?[^:]+", needed), "a secret with a default value"
    ports = {name: one["ports"] for name, one in services().items() if "ports" in one}
    assert ports == {"server": ["127.0.0.1:8080:8080"]}
    assert re.fullmatch(r"chrislusf/seaweedfs:\d+\.\d+", services()["store"]["image"])


def test_every_variable_of_the_compose_file_exists():
    known = {one.name for one in VARIABLES} | {"OMNIGRAPH_CLUSTER"}
    for name in ("apply", "server"):
        assert set(services()[name]["environment"]) <= known


TOKENS = {"ada": "token of ada", "agent": "token of the agent", "kim": "token of kim"}


class Composed:
    """The compose file on this machine: its commands and variables with the address of a store."""

    def __init__(self, endpoint: str, folder: Path, image: Image | None) -> None:
        self._endpoint, self._folder, self._image = endpoint, folder, image

    def environment(self, service: str) -> dict[str, str]:
        secrets = {"OMNIGRAPH_STORE_SECRET": "test", "OMNIGRAPH_TOKENS": json.dumps(TOKENS)}
        written = {
            name: re.sub(r"\$\{(\w+).*?\}", lambda match: secrets[match[1]], value)
            for name, value in services()[service]["environment"].items()
        }
        assert written["AWS_ENDPOINT_URL_S3"] == "http://store:8333"
        own = {"PATH": f"{PROGRAMS}:/usr/bin:/bin", "HOME": str(self._folder)}
        base = self._image.variables() if self._image else own | source_path()
        return base | written | {"AWS_ENDPOINT_URL_S3": self._endpoint}

    @property
    def entrypoint(self) -> str:
        (entry,) = last_stage()["ENTRYPOINT"]
        return self._image.here(*entry.command) if self._image else str(ENTRYPOINT)

    def apply(self) -> str:
        words = services()["apply"]["command"]
        given = [str(COMPOSE.parent) if word == "/cluster" else word for word in words]
        done = subprocess.run(
            [self.entrypoint, *given],
            env=self.environment("apply"),
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def server(self) -> Iterator[httpx.Client]:
        port = free_port()
        env = self.environment("server") | {"OMNIGRAPH_BIND": f"0.0.0.0:{port}"}
        with container([self.entrypoint], env, self._folder / "server.log", port) as client:
            yield client


def use(composed: Composed) -> None:
    """What the page promises: apply, serve, and different eyes on one graph."""
    before = {path: path.stat().st_mtime_ns for path in COMPOSE.parent.iterdir()}
    assert "Create graph.team [Applied]" in composed.apply()
    assert composed.apply().startswith("cluster apply: 0 applied")
    assert {path: path.stat().st_mtime_ns for path in COMPOSE.parent.iterdir()} == before
    with composed.server() as client:
        wait_until_served(client)
        assert client.get("/graphs/team/queries").status_code == 401
        for slug, confidential in (("plan", False), ("salaries", True)):
            given: dict[str, Any] = {"slug": slug, "text": f"about the {slug}"}
            if confidential:
                given["confidential"] = True
            added = invoke(client, "ada", "add_note", given)
            assert added.status_code == 200, added.text
        assert [row["slug"] for row in rows(client, "ada")] == ["plan", "salaries"]
        assert [row["slug"] for row in rows(client, "agent")] == ["plan"]
        refused = invoke(client, "agent", "add_note", {"slug": "x", "text": "x"})
        assert refused.status_code == 403


def wait_until_served(client: httpx.Client) -> None:
    """Graphs of a cluster are opened behind the port."""
    deadline = time.monotonic() + START_SECONDS
    while client.get("/readyz").status_code != 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def invoke(client: httpx.Client, actor: str, name: str, params: Any) -> httpx.Response:
    bearer = {"Authorization": f"Bearer {TOKENS[actor]}"}
    return client.post(f"/graphs/team/queries/{name}", json={"params": params}, headers=bearer)


def rows(client: httpx.Client, actor: str) -> list[dict[str, Any]]:
    answer = invoke(client, actor, "notes", {})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["rows"]
    return found


def test_the_composed_cluster_is_applied_and_served(s3_endpoint, tmp_path):
    use(Composed(environment_for(s3_endpoint)["AWS_ENDPOINT_URL"], tmp_path, None))


# All of it


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    made = Image(tmp_path_factory.mktemp("image"))
    made.build()
    return made


@pytest.mark.slow
def test_the_steps_of_the_dockerfile_make_both_programs(image):
    def ran(*line: str) -> subprocess.CompletedProcess[str]:
        (entry,) = last_stage()["ENTRYPOINT"]
        return subprocess.run(
            [*image.command(*entry.command), *line],
            env=image.variables(),
            cwd=image.here("/data"),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    assert ran("omnigraph", "--version").stdout == f"omnigraph {__version__}\n"
    assert ran("--version").stdout == f"omnigraph-server {__version__}\n"
    assert ran().returncode == 64
    needs = ran("omnigraph", "spark", "warm")
    assert (needs.returncode, "needs the extra 'spark'" in needs.stderr) == (1, True)
    assert not list(Path(image.here("/data")).iterdir())
    (check,) = last_stage()["HEALTHCHECK"]
    unhealthy = subprocess.run(
        image.command(*check.command)[1:],
        executable=image.here("/opt/omnigraph/bin/python"),
        env=image.variables() | {"OMNIGRAPH_BIND": f"0.0.0.0:{free_port()}"},
        check=False,
    )
    assert unhealthy.returncode == 1


@pytest.fixture
def store(tmp_path):
    """The object store with the arguments of the compose file, on free ports."""
    if not SEAWEED.exists():
        pytest.skip("there is no SeaweedFS for this system")
    names = ("master", "volume", "filer", "s3")
    ports = {name: free_port() for name in names}
    moved = {"-dir": str(tmp_path / "store"), "-ip": "127.0.0.1", "-ip.bind": "127.0.0.1"}
    given = [word.partition("=") for word in services()["store"]["command"]]
    line = [name + equals + moved.get(name, value) for name, equals, value in given]
    line += [f"-{name}.port={port}" for name, port in ports.items()]
    line += [f"-{name}.port.grpc={free_port()}" for name in names]
    (tmp_path / "store").mkdir()
    secrets = {"AWS_ACCESS_KEY_ID": "omnigraph", "AWS_SECRET_ACCESS_KEY": "test"}
    with (tmp_path / "store.log").open("wb") as log:
        process = subprocess.Popen(
            [SEAWEED, *line], env=secrets | {"HOME": str(tmp_path)}, stdout=log, stderr=log
        )
    try:
        yield f"http://127.0.0.1:{ports['s3']}"
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_the_image_serves_the_composed_cluster_on_the_store(image, store, tmp_path):
    wait_until_the_bucket_is_there(store)
    use(Composed(store, tmp_path, image))


def wait_until_the_bucket_is_there(endpoint: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            if httpx.get(f"{endpoint}/healthz").status_code == 200:
                break
        except httpx.HTTPError:
            pass
        assert time.monotonic() < deadline
        time.sleep(0.5)
