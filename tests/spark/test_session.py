"""Sessions: embedded, adopted, refused; and the Java process behind them."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import textwrap
from unittest.mock import patch

import pytest

from omnigraph.errors import SparkUnavailable, UsageError
from omnigraph.spark import session
from omnigraph.spark.choice import Spark, chosen_engine
from omnigraph.spark.gateway import start_java
from omnigraph.spark.java import Java, check_pair, find_java

FREE_PORT = "spark://127.0.0.1:1"


def run_child(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process of its own that starts Spark."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, **environment},
        check=False,
    )


def test_a_working_java_of_the_environment_is_used(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("")
    (tmp_path / "bin" / "java").chmod(0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="17.0.9"\n')
    found = find_java({"JAVA_HOME": str(tmp_path)})
    assert (found.home, found.major) == (tmp_path, 17)


@pytest.mark.parametrize("release", ['JAVA_VERSION="11.0.2"\n', "nothing\n", None])
def test_the_bundled_java_steps_in_for_one_that_does_not_work(tmp_path, release):
    if release is not None:
        (tmp_path / "release").write_text(release)
    bundled = find_java({})
    assert bundled.major >= 17
    assert find_java({"JAVA_HOME": str(tmp_path)}) == bundled


def test_a_master_that_does_not_answer_is_named_at_once():
    with pytest.raises(SparkUnavailable, match=r"127\.0\.0\.1:1 cannot be reached"):
        session._check_reachable(FREE_PORT)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("tempfile.mkdtemp", "Java cannot create a folder for its files .*No space left"),
        ("Path.write_text", "Java at .* did not start .*No space left"),
        ("subprocess.Popen", "Java at .* did not start .*No space left"),
    ],
)
def test_a_full_disk_is_told_before_java_starts(tmp_path, monkeypatch, call, told):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    full = OSError(errno.ENOSPC, "No space left on device")
    with (
        patch(f"omnigraph.spark.gateway.{call}", side_effect=full),
        pytest.raises(SparkUnavailable, match=told),
    ):
        start_java({}, 1 << 29)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("master", ["yarn", "yarn-client", "k8s://https://10.0.0.1:6443"])
def test_a_master_that_needs_spark_submit_says_so_before_java_starts(master, monkeypatch):
    monkeypatch.setattr(session, "new_java", None)
    with pytest.raises(SparkUnavailable, match=f"spark-submit --master {master} program.py"):
        session._start(master, {})


@pytest.mark.parametrize(
    ("pyspark", "java", "fits"),
    [
        ("4.0.1", "24", False), ("4.2.0", "25.0.2", False), ("4.1.0.dev1", "25-ea", False),
        ("4.0.1", "21.0.5", True), ("4.2.0", "17.0.9", True), ("4.3.0", "25.0.2", True),
        ("5.0.0", "26", True),
    ],
)  # fmt: skip
def test_a_java_on_which_this_spark_fails_is_named_before_it_starts(
    tmp_path, monkeypatch, pyspark, java, fits
):
    found = Java(tmp_path, java)
    if fits:
        check_pair(found, pyspark)
        return
    monkeypatch.setattr("omnigraph.spark.gateway.find_java", lambda: found)
    monkeypatch.setattr("omnigraph.spark.gateway.version", lambda _: pyspark)
    message = f"pyspark {pyspark} does not run on Java {java}.*set JAVA_HOME to Java 17 or 21"
    with pytest.raises(SparkUnavailable, match=message):
        start_java({}, 1 << 29)


def test_the_session_is_started_once(spark):
    assert session.open_session() is session.open_session()
    assert session.is_running()


def test_nothing_of_the_gateway_stays_in_the_environment(spark):
    assert not any(name.startswith("PYSPARK_GATEWAY") for name in os.environ)


def test_a_load_says_that_its_master_cannot_be_reached(tmp_path):
    code = f"""
        import omnigraph as og
        from omnigraph.errors import SparkUnavailable
        graph = og.init({str(tmp_path / "g")!r}, "node N {{ k: String @key }}")
        record = {{"type": "N", "data": {{"k": "a"}}}}
        try:
            graph.load([record], "append", engine=og.Spark(master={FREE_PORT!r}))
        except SparkUnavailable as error:
            print(error.code)
        graph.load([record], "append")
    """
    done = run_child(code)
    assert (done.stdout, done.stderr) == ("OG-J-001\n", "")


def test_an_unknown_engine_is_refused():
    with pytest.raises(UsageError, match=r"unknown engine 'cluster'"):
        chosen_engine("cluster")


def test_a_session_to_start_is_described_by_its_master_and_settings(monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_ENGINE", "inline")
    choice = chosen_engine(Spark(master="local[2]", conf={"spark.ui.enabled": "false"}))
    assert (choice.engine, choice.spark, choice.master) == ("spark", None, "local[2]")
    assert choice.conf == {"spark.ui.enabled": "false"}
    assert chosen_engine(Spark()).engine == "spark"
    assert chosen_engine(choice) is choice


@pytest.mark.parametrize("given", [None, 7, "local[2]"])
def test_what_is_no_engine_is_refused(given):
    with pytest.raises(UsageError, match=r"unknown engine .*; use one of auto, spark, inline"):
        chosen_engine(given)


@pytest.mark.parametrize(
    ("named", "expected"), [(None, "auto"), ("inline", "inline"), ("spark", "spark")]
)
def test_the_environment_chooses_for_callers_that_do_not(monkeypatch, named, expected):
    monkeypatch.delenv("OMNIGRAPH_ENGINE", raising=False)
    if named is not None:
        monkeypatch.setenv("OMNIGRAPH_ENGINE", named)
    assert chosen_engine("auto").engine == expected
    assert chosen_engine("inline").engine == "inline"


@pytest.mark.slow
@pytest.mark.parametrize("early", [False, True])
def test_an_embedded_session_is_quiet_leaves_nothing_behind_and_ends_with_its_process(
    tmp_path, early
):
    code = """
        from omnigraph.spark import session
        from omnigraph.spark.tasks import run_tasks
        if EARLY:
            session.expect_session()
            (_, java), = session._early
            print(java.process.pid)
        print(run_tasks(session.open_session(), "numbers", 2, float))
        print(session._own[0].gateway.process.pid)
    """.replace("EARLY", str(early))
    done = run_child(code, TMPDIR=str(tmp_path))
    *started, numbers, pid = done.stdout.splitlines()
    assert (done.returncode, done.stderr, numbers) == (0, "", "[0.0, 1.0]")
    assert started == [pid] * early
    assert list(tmp_path.iterdir()) == []
    assert not is_alive(int(pid))


@pytest.mark.parametrize("then", ["", "raise SystemExit(3)", "session.open_session('local[7]')"])
def test_java_that_was_expected_and_is_not_wanted_ends(tmp_path, then):
    code = f"""
        from unittest.mock import patch
        from omnigraph.spark import session
        session.expect_session("local[1]")
        (_, java), = session._early
        print(java.process.pid)
        del java
        with patch.object(session, "new_java", side_effect=SystemExit):
            {then or "pass"}
    """
    done = run_child(code, TMPDIR=str(tmp_path), PYTHONWARNINGS="always::ResourceWarning")
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []
    assert not is_alive(int(done.stdout))


@pytest.mark.slow
def test_a_session_that_its_caller_has_stopped_is_left_without_a_word(tmp_path):
    code = """
        from omnigraph.spark import session
        session.open_session().stop()
        print(session._own[0].gateway.process.pid)
    """
    done = run_child(code, TMPDIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert not is_alive(int(done.stdout))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.usefixtures("free_choice")
def test_a_session_of_the_caller_is_adopted_and_not_stopped(tmp_path):
    code = f"""
        import omnigraph as og
        from omnigraph.spark import session
        from omnigraph.spark.gateway import start_java
        # Stands for whatever way the caller started Spark.
        gateway = start_java({{"spark.master": "local[1]", **session._EMBEDDED_ONLY}}, 1 << 29).wait()
        with gateway.offered():
            mine = session.new_session({{"spark.ui.enabled": "false", "spark.app.name": "mine"}})
        graph = og.init({str(tmp_path / "g")!r}, "node N {{ k: String @key }}")
        print(graph.load(b'{{"type":"N","data":{{"k":"a"}}}}', "append", engine="spark").engine)
        session.close_session()
        print(mine.range(5).count())
        try:
            session.open_session("spark://elsewhere:7077")
        except Exception as error:
            print(type(error).__name__)
        mine.stop()
        gateway.close()
    """
    done = run_child(code)
    assert done.stdout.split() == ["spark", "5", "SparkUnavailable"], done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("free_choice")
def test_a_program_that_was_submitted_uses_the_session_of_its_master(tmp_path):
    code = f"""
        import omnigraph as og
        from omnigraph.spark import session
        from omnigraph.spark.gateway import start_java
        # As spark-submit does: Java is there, with a master, and waits for the program.
        settings = {{"spark.master": "local[1]", "spark.app.name": "submitted", **session._EMBEDDED_ONLY}}
        gateway = start_java(settings, 1 << 29).wait()
        with gateway.offered():
            try:
                session.open_session("spark://elsewhere:7077")
            except og.errors.SparkUnavailable as error:
                print("spark-submit has started this program on local[1]" in str(error))
            graph = og.init({str(tmp_path / "g")!r}, "node N {{ k: String @key }}")
            rows = b'{{"type":"N","data":{{"k":"a"}}}}'
            print(graph.load(rows, "append", engine="spark").engine)
        print(session.open_session().conf.get("spark.app.name"))
        session.close_session()
        gateway.close()
    """
    done = run_child(code)
    assert done.stdout.split() == ["True", "spark", "submitted"], done.stderr
