"""The public names of the package, and what importing it costs."""

import subprocess
import sys

import omnigraph


def test_the_public_names_are_exactly_the_documented_ones():
    assert sorted(omnigraph.__all__) == [
        "Analysis",
        "AppliedCommit",
        "Blob",
        "Blobs",
        "Branches",
        "CancelToken",
        "Catalog",
        "CleanupReport",
        "Commit",
        "CommitChanges",
        "Diff",
        "EmbedResult",
        "EntityChange",
        "Explanation",
        "Graph",
        "GraphAt",
        "GraphAtProtocol",
        "GraphProtocol",
        "GraphStatus",
        "IndexReport",
        "LoadResult",
        "Maintenance",
        "MergeResult",
        "MigrationPlan",
        "MutationResult",
        "OmnigraphError",
        "OptimizeReport",
        "Progress",
        "QueryBudget",
        "ReadView",
        "Receipt",
        "RecordedAudit",
        "Ref",
        "RepairReport",
        "Result",
        "Schema",
        "SchemaApplyResult",
        "Spark",
        "Tag",
        "Tags",
        "VerifyReport",
        "__version__",
        "connect",
        "errors",
        "init",
        "open",
        "spark",
    ]


def test_the_package_shows_its_public_names_and_no_other():
    assert dir(omnigraph) == sorted(omnigraph.__all__)


def test_every_public_name_can_be_used():
    for name in omnigraph.__all__:
        assert getattr(omnigraph, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(omnigraph, "nothing")


def test_importing_the_package_loads_no_storage_library():
    code = "import sys, omnigraph; print([m for m in ('lance', 'pyarrow') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
