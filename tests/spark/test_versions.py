"""Other versions of PySpark, in environments of their own, with the Java they need."""

from __future__ import annotations

import json
import os
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.api.graph import init
from omnigraph.api.graph import open as open_graph
from tests.spark.environments import older_java, with_pyspark
from tests.spark.graphs import SCHEMA, exported, town

pytestmark = pytest.mark.slow

SOURCE = Path(omnigraph.__file__).parent.parent

WORK = """
    import json, sys
    import omnigraph as og
    import pyspark
    from omnigraph.load import spark_load
    from omnigraph.spark.session import open_session
    spark_load.LOAD_RANGE_BYTES = 20_000
    folder, seed = sys.argv[1:]
    spark = open_session("local[2,4]")
    graph = og.open(folder)
    loaded = graph.load(seed, "append", load_id="job", engine=spark)
    repeated = ""
    try:
        graph.load(seed, "append", engine=spark)
    except og.errors.LoadError as error:
        repeated = str(error).partition(chr(10))[0]
    options = {"graph": graph.uri, "type": "Person"}
    people = spark.read.format("omnigraph").options(**options).load()
    frame = spark.createDataFrame([("zoe", 3)], ["name", "age"])
    og.spark.write(frame, graph, "Person", "merge")
    changes = spark.readStream.format("omnigraph").options(changes="true", **options).load()
    query = (
        changes.writeStream.format("memory").queryName("changes")
        .option("checkpointLocation", f"{folder}-checkpoint").trigger(availableNow=True).start()
    )
    query.awaitTermination()
    parts = og.spark.nodes(graph, "Person", session=spark).count()
    graph.export(f"{folder}-export", format="parquet", engine=spark)
    print(json.dumps({
        "version": pyspark.__version__, "engine": loaded.engine, "rows": loaded.rows_loaded,
        "repeated": repeated, "read": people.count(), "after": parts,
        "changed": spark.table("changes").count(),
    }))
"""


def run(python: Path, code: str, *arguments: str, **variables: str) -> Any:
    command = [str(python), "-c", textwrap.dedent(code), *arguments]
    own = {"PYTHONPATH": str(SOURCE), "PYSPARK_PYTHON": str(python), "OMNIGRAPH_SPARK_CACHE": "off"}
    done = subprocess.run(
        command,
        env={**os.environ, **own, **variables},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("version", ["4.0.5", "4.1.4", "4.2.1"])
def test_an_earlier_version_loads_reads_writes_and_exports(tmp_path, version):
    java, python = older_java(), with_pyspark(version)
    seed = tmp_path / "seed.jsonl"
    seed.write_text(town(400))
    graph = init(str(tmp_path / "graph"), SCHEMA)
    found = run(python, WORK, graph.uri, str(seed), JAVA_HOME=str(java.home))
    assert found["version"] == version
    assert (found["engine"], sum(found["rows"].values())) == ("spark", 1202)
    assert found["repeated"].startswith("load failed: ")
    assert (found["read"], found["after"], found["changed"]) == (401, 401, 401)
    expected = init(str(tmp_path / "expected"), SCHEMA)
    expected.load(seed, "append", load_id="job", engine="inline")
    expected.load({"Person": [{"name": "zoe", "age": 3}]}, "merge", engine="inline")
    assert exported(open_graph(graph.uri)) == exported(expected)
    assert len(list(Path(f"{graph.uri}-export").glob("*.parquet"))) == 4


def test_an_earlier_version_names_a_java_that_it_does_not_run_on(tmp_path):
    code = """
        import json, sys
        from omnigraph.errors import SparkUnavailable
        from omnigraph.spark.session import open_session
        try:
            open_session("local[1]")
        except SparkUnavailable as error:
            print(json.dumps(str(error)))
    """
    told = run(with_pyspark("4.1.4"), code, JAVA_HOME="")
    assert "pyspark 4.1.4 does not run on Java 25" in told
    assert "set JAVA_HOME to Java 17 or 21" in told
