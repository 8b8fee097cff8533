"""Loads through Spark Connect: a master at `sc://`, and a session that is handed in."""

from __future__ import annotations

import socket
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.slow

SERVER = """
    import sys
    from omnigraph.spark import session
    session.prefer(None, {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": sys.argv[1],
    })
    session.open_session("local[2]")
    print("up", flush=True)
    sys.stdin.read()
"""


def command(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(code), *arguments]


@pytest.fixture(scope="module")
def server():
    """The address of a server of Spark Connect."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen(
        command(SERVER, str(port)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        yield f"sc://127.0.0.1:{port}"
        process.communicate(timeout=120)


@pytest.mark.parametrize(
    "given",
    ["og.Spark(master=address)", "SparkSession.builder.remote(address).getOrCreate()"],
    ids=["a master", "a session"],
)
def test_a_load_runs_on_a_server(server, tmp_path, given):
    code = f"""
        import sys
        import omnigraph as og
        from pyspark.sql import SparkSession
        folder, address = sys.argv[1:]
        graph = og.init(folder, "node N {{ k: String @key }}")
        record = b'{{"type": "N", "data": {{"k": "a"}}}}'
        print(graph.load(record, "append", engine={given}).engine)
        print(graph.at("main").counts["N"])
    """
    done = subprocess.run(
        command(code, str(tmp_path / "g"), server),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.stdout.split() == ["spark", "1"], done.stderr
