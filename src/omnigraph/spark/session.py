"""Sessions: the caller's is used as it is; otherwise this process has one of its own.

It is started by the first call that needs it and kept for later ones. It ends with the
process, or when another master is asked for.
Tests: tests/spark/test_session.py.

Before the first job on a cluster, the versions installed on executors are compared with ours.
"""

from __future__ import annotations

import atexit
import logging
import os
import platform
import re
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final

from omnigraph.errors import MissingExtra, SparkExecutorUnfit, SparkUnavailable
from omnigraph.extras import CONNECT, is_installed
from omnigraph.limits import SPARK_HEAP_BYTES, SPARK_HEAP_SHARE, SPARK_REACH_SECONDS
from omnigraph.settings import read_settings
from omnigraph.spark.gateway import (
    Gateway,
    StartingJava,
    has_room_for_sockets,
    start_java,
    was_submitted,
)
from omnigraph.spark.java import find_java
from omnigraph.spark.start_cache import cache_flags
from omnigraph.spark.tasks import is_embedded, run_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


EMBEDDED: Final = "local[*,4]"
"""All cores of this machine; a task whose process dies is tried again."""

_CONNECT_MODULES: Final = ("grpc", "grpc_status", "zstandard")
"""What pyspark imports for a master at `sc://`."""

_STANDALONE: Final = re.compile(r"spark://([^/]+)")
_SETTINGS: Final = {
    "spark.app.name": "omnigraph",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
    # The number of partitions is chosen per job; coalescing some of them loses cores.
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.driver.maxResultSize": "0",
    "spark.task.maxFailures": "4",
}
_SOCKETS: Final = "spark.python.unix.domain.socket.enabled"
_EMBEDDED_ONLY: Final = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


@dataclass(frozen=True, slots=True)
class _Own:
    """The session of this process and the Java process behind it."""

    master: str
    spark: SparkSession
    gateway: Gateway | None


@dataclass(slots=True)
class _Preferences:
    """Defaults that the operator of this process configured."""

    master: str | None = None
    settings: dict[str, str] = field(default_factory=dict)


_lock = threading.Lock()
_own: list[_Own] = []
"""At most one: Spark allows one context per process."""
_early: list[tuple[dict[str, str], StartingJava]] = []
"""At most one Java process that a session will soon be wanted of, and its settings."""
_preferred: Final = _Preferences()


def prefer(master: str | None, settings: Mapping[str, str]) -> None:
    """Start sessions with these settings from now on, and on this master unless another is named."""
    _preferred.master, _preferred.settings = master, dict(settings)


def configured_master() -> str | None:
    """The master that the environment names, or the operator prefers."""
    return read_settings().spark_master or _preferred.master


def is_running() -> bool:
    """Whether this process has a session, its own or one of its caller. Never starts one."""
    return running_session() is not None


def cores_of(spark: SparkSession) -> int | None:
    """How many tasks a session runs at a time, if it tells."""
    with suppress(Exception):  # A session of Spark Connect has no context to ask.
        return int(spark.sparkContext.defaultParallelism)
    return None


def starts_quickly() -> bool:
    """Whether Java would start with its cache."""
    with suppress(SparkUnavailable, MissingExtra):
        return bool(cache_flags(find_java()))
    return False


def open_session(master: str | None = None, conf: Mapping[str, str] | None = None) -> SparkSession:
    """The session of this process, started if need be. Raises `SparkUnavailable`.

    Without a master, a running session is used, also the caller's. Settings (`conf`) count for
    a session that is started.
    """
    wanted = master or configured_master()
    with _lock:
        active = running_session()
        if active is not None and (wanted is None or wanted == _master_of(active)):
            return active
        if active is not None and not _own:
            raise SparkUnavailable(
                f"no session on {wanted}",
                f"this process has one on {_master_of(active)}; hand that one in, or stop it",
            )
        _close()
        if was_submitted():
            _own.append(_submitted(wanted, conf or {}))
        else:
            _own.append(_start(wanted or EMBEDDED, conf or {}))
        return _own[0].spark


def expect_session(master: str | None = None) -> None:
    """Start Java early, while this process is busy, if the session will be an embedded one."""
    wanted = master or configured_master() or EMBEDDED
    with _lock:
        begun = _own or _early or running_session() or was_submitted()
        if wanted.startswith("local") and not begun:
            settings = settings_for(wanted)
            # Opening the session reports what goes wrong.
            with suppress(SparkUnavailable):
                _early.append((settings, new_java(settings, cache_flags(find_java()))))


def close_session() -> None:
    """End the session of this process. A session of the caller stays."""
    with _lock:
        _close()


def _close() -> None:
    while _own:
        own = _own.pop()
        with suppress(Exception):  # Java may be gone already, in any of many ways.
            own.spark.stop()
        if own.gateway is not None:
            _forget_gateway()
            own.gateway.close()


def running_session() -> SparkSession | None:
    """The session of this process, its own or one of its caller, if it has one."""
    # Only who has imported pyspark can have a session.
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    found = SparkSession.getActiveSession()
    if found is None and _own:
        return _own[0].spark
    return found


def _master_of(spark: SparkSession) -> str:
    with suppress(Exception):  # A session of Spark Connect has no context to ask.
        return str(spark.sparkContext.master)
    return str(spark.conf.get("spark.master", "another server"))


def _start(master: str, conf: Mapping[str, str]) -> _Own:
    if master.startswith("sc://"):
        return _Own(master, _connect(master), None)
    _require_submit(master)
    _check_reachable(master)
    settings = {**settings_for(master), **conf}
    gateway = _started_early(settings) or new_java(settings, cache_flags(find_java())).wait()
    try:
        with gateway.offered():
            spark = new_session(settings)
    except Exception as error:
        _forget_gateway()
        gateway.close()
        raise SparkUnavailable(f"no session on {master}", _first_line(error)) from None
    except BaseException:
        _forget_gateway()
        gateway.end()
        raise
    return _Own(master, spark, gateway)


def _submitted(master: str | None, conf: Mapping[str, str]) -> _Own:
    """The session of a program that `spark-submit` has started. Its master and settings win."""
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    found = _master_of(spark)
    if master is not None and master != found:
        spark.stop()
        raise SparkUnavailable(
            f"no session on {master}", f"spark-submit has started this program on {found}"
        )
    return _Own(found, spark, None)


def _started_early(settings: Mapping[str, str]) -> Gateway | None:
    """The Java process that was started before it was wanted, if it was started like that."""
    while _early:
        given, java = _early.pop()
        if given == settings:
            return java.wait()
        java.end()
    return None


def settings_for(master: str) -> dict[str, str]:
    """The settings of a session on a master."""
    # On a cluster the UI is as the cluster has it.
    own = _EMBEDDED_ONLY if master.startswith("local") else {}
    # Over TCP the answer of every small task would wait for a delayed acknowledgement.
    sockets = {_SOCKETS: str(has_room_for_sockets()).lower()}
    return {**_SETTINGS, **sockets, **own, **_preferred.settings, "spark.master": master}


def new_java(settings: Mapping[str, str], flags: Sequence[str]) -> StartingJava:
    """Java with its share of the memory. Raises `SparkUnavailable`."""
    return start_java(settings, _heap_bytes(), flags)


def new_session(settings: Mapping[str, str]) -> SparkSession:
    """A session in the Java process that is offered."""
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    # A context that is made in the main thread would answer interrupts from then on, also those that
    # have nothing to do with it.
    with ThreadPoolExecutor(1, "omnigraph-spark-start") as other:
        other.submit(SparkContext.getOrCreate, SparkConf().setAll(list(settings.items()))).result()
    spark: SparkSession = builder.getOrCreate()
    return spark


def _connect(master: str) -> SparkSession:
    if not all(map(is_installed, _CONNECT_MODULES)):
        raise CONNECT.missing(f"the Spark master '{master}'")
    from pyspark.sql import SparkSession

    try:
        spark: SparkSession = SparkSession.builder.remote(master).getOrCreate()
        spark.range(1).count()
    except Exception as error:
        raise SparkUnavailable(f"no session on {master}", _first_line(error)) from None
    return spark


def _require_submit(master: str) -> None:
    """Only `spark-submit` knows how to bring a program to these; Spark itself would hang or fail late."""
    if master.startswith(("yarn", "k8s://", "mesos://")):
        raise SparkUnavailable(
            f"a session on {master} cannot be started from a running program",
            f"start the program with `spark-submit --master {master} program.py`; "
            "inside of it, engine='spark' uses the session of that master",
        )


def _check_reachable(master: str) -> None:
    """Spark would retry for a minute before it reports that the master does not answer."""
    standalone = _STANDALONE.match(master)
    if standalone is None:
        return
    for address in standalone[1].split(","):
        host, _, port = address.partition(":")
        try:
            socket.create_connection((host, int(port or 7077)), SPARK_REACH_SECONDS).close()
        except (OSError, ValueError) as error:
            reason = str(error)
        else:
            return
    raise SparkUnavailable(f"the master {master} cannot be reached", reason)


def _forget_gateway() -> None:
    """Make pyspark look for a new Java process next time, because this one is ending."""
    from pyspark import SparkContext

    context: Any = SparkContext
    gateway, context._gateway, context._jvm = context._gateway, None, None
    if gateway is not None:
        with suppress(Exception):  # Java may have closed the connection.
            gateway.shutdown()


def _heap_bytes() -> int:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(SPARK_HEAP_BYTES, int(memory * SPARK_HEAP_SHARE))


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _leave() -> None:
    """End what this process started. An embedded session need not clean up after itself."""
    for _, java in _early:
        java.end()
    for own in _own:
        if own.gateway is not None and own.master.startswith("local"):
            context: Any = own.spark.sparkContext
            if context._accumulatorServer is not None:  # It would complain that Java is gone.
                context._accumulatorServer.handle_error = lambda *_: None
            # So would a thread that releases unused Java objects.
            logging.getLogger().addFilter(lambda record: "py4j" not in record.pathname)
            own.gateway.end()
            return
    # Without the lock: no other thread is left, and an interrupt may have left it taken.
    _close()


atexit.register(_leave)


_PACKAGES: Final = ("omnigraph", "pylance", "pyarrow", "numpy")
_ASKED: Final = 4
"""Executors asked. One image usually serves all of them."""


def check_executors(spark: SparkSession) -> None:
    """Compare what is installed there with what is here. Raises `SparkError`.

    Executors of an embedded session are children of this process.
    """
    if not is_embedded(spark):
        _check(spark)


@lru_cache(maxsize=8)
def _check(spark: SparkSession) -> None:
    here = installed()
    for there in run_tasks(spark, "look at the executors", _ASKED, _installed_there):
        for name, found in there.items():
            if found != here[name]:
                raise SparkExecutorUnfit(f"{name} is {found} there and {here[name]} here")


def installed() -> dict[str, str]:
    """The versions that tasks depend on."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"Python": python, **{name: _version(name) for name in _PACKAGES}}


def _installed_there(_task: int) -> dict[str, str]:
    return installed()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"
