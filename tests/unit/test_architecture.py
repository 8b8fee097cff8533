"""The shape of the package: which way imports point, what stays pure, what stays small.

Every rule here is shown to fail on code that breaks it, so that a green run means something.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import omnigraph

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PACKAGE = Path(omnigraph.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

PURE_PACKAGES = ("language", "catalog", "plan")
ARROW_DOOR = PACKAGE / "catalog" / "arrow.py"
IMPURE_MODULES = {
    "os", "io", "pathlib", "shutil", "tempfile", "glob", "time", "socket", "subprocess",
    "lance", "lancedb", "pyspark", "duckdb", "pyarrow", "numpy", "pandas",
}  # fmt: skip
CLOCK_READS = {"now", "utcnow", "today"}
HEAVY_MODULES = {"pyarrow", "numpy", "pandas", "lance", "pyspark", "duckdb", "rich"}
NAMES_THAT_SAY_NOTHING = {"utils", "util", "helpers", "helper", "common", "misc"}
LONGEST_MODULE = 600


def name_of(module: Path) -> str:
    return str(module.relative_to(PACKAGE))


# Imports point one way


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts in a folder's pyproject.toml against the package found there first."""
    command = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from importlinter.cli import lint_imports\n"
        "sys.exit(lint_imports(no_cache=True, no_logo=True))"
    )
    return subprocess.run(
        [sys.executable, "-c", command, str(folder / "src")],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def write_package(folder: Path, modules: dict[str, str]) -> None:
    """A minimal omnigraph with every layer, under the contracts of the real one."""
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    source = folder / "src" / "omnigraph"
    layers = ["cli", "api", "read", "commit", "graph", "plan", "versioning", "catalog", "storage"]
    empty = {
        f"{layer}/__init__.py": "" for layer in [*layers, "language", "load", "export", "spark"]
    }
    empty |= {"__init__.py": "", "errors.py": ""}
    # A contract may only name modules that exist.
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]:
        for name in contract.get("source_modules", ()):
            if name.count(".") > 1:
                empty[name.removeprefix("omnigraph.").replace(".", "/") + ".py"] = ""
    for name, text in (empty | modules).items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_no_import_points_the_wrong_way():
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_package_with_right_arrows_passes(tmp_path):
    write_package(
        tmp_path,
        {
            "cli/main.py": "import omnigraph.api, omnigraph.plan, rich",
            "plan/lower.py": "import omnigraph.catalog, omnigraph.errors",
            "catalog/model.py": "import omnigraph.language",
            "catalog/arrow.py": "import pyarrow",
            "read/reader.py": "import omnigraph.plan, omnigraph.versioning",
            "versioning/publish.py": "import omnigraph.catalog, omnigraph.storage, pyarrow",
            "storage/scan.py": "import omnigraph.errors, lance",
        },
    )
    result = lint_imports(tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("errors", "omnigraph.language"),
        ("language.parse", "omnigraph.catalog"),
        ("catalog.model", "omnigraph.plan"),
        ("plan.lower", "omnigraph.read"),
        ("plan.lower", "omnigraph.versioning"),
        ("storage.scan", "omnigraph.versioning"),
        ("storage.scan", "omnigraph.catalog"),
        ("versioning.publish", "omnigraph.commit"),
        ("versioning.publish", "omnigraph.plan"),
        ("api.graph", "omnigraph.cli"),
        ("read.reader", "omnigraph.api"),
        ("read.reader", "omnigraph.commit"),
        ("plan.lower", "lance"),
        ("plan.lower", "pyspark"),
        ("language.parse", "os"),
        ("catalog.model", "pathlib"),
        ("catalog.model", "pyarrow"),
        ("load.columns", "omnigraph.versioning"),
    ],
)
def test_a_wrong_arrow_is_reported(tmp_path, importer, imported):
    write_package(tmp_path, {f"{importer.replace('.', '/')}.py": f"import {imported}"})
    result = lint_imports(tmp_path)
    assert result.returncode == 1
    assert f"omnigraph.{importer} -> {imported}" in result.stdout


def test_a_package_outside_the_layers_is_reported(tmp_path):
    write_package(tmp_path, {"sidecar/__init__.py": ""})
    result = lint_imports(tmp_path)
    assert result.returncode == 1
    assert "sidecar" in result.stdout


# The compiler half is pure


def impurities(source: str, *, arrow_allowed: bool = False) -> Iterator[str]:
    """What a module does that touches files, clocks, the environment or an engine."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                imported = [alias.name for alias in names]
            case ast.ImportFrom(module=str(module), level=0):
                imported = [module]
            case ast.Call(func=ast.Name(id="open")):
                yield f"line {node.lineno}: calls open()"
                continue
            case ast.Attribute(
                value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=attribute
            ) if owner in {"datetime", "date"} and attribute in CLOCK_READS:
                yield f"line {node.lineno}: reads the clock with {owner}.{attribute}"
                continue
            case _:
                continue
        for name in imported:
            top = name.partition(".")[0]
            if top in IMPURE_MODULES and not (top == "pyarrow" and arrow_allowed):
                yield f"line {node.lineno}: imports {name}"


@pytest.mark.parametrize(
    "module",
    [module for package in PURE_PACKAGES for module in sorted((PACKAGE / package).rglob("*.py"))],
    ids=name_of,
)
def test_language_catalog_and_plan_touch_nothing_outside(module):
    assert list(impurities(module.read_text(), arrow_allowed=module == ARROW_DOOR)) == []


@pytest.mark.parametrize(
    "source",
    [
        "import os",
        "import os.path as p",
        "from pathlib import Path",
        "from os import environ",
        "import time",
        "import lance",
        "from pyspark.sql import SparkSession",
        "import pyarrow as pa",
        "def f():\n    import pyarrow",
        "open('schema.pg')",
        "from datetime import datetime\ndatetime.now()",
        "import datetime\ndatetime.datetime.now(datetime.UTC)",
        "import datetime\nclock = datetime.date.today",
    ],
)
def test_an_impure_module_is_reported(source):
    assert list(impurities(source))


def test_arrow_and_date_arithmetic_are_allowed_where_they_belong():
    assert list(impurities("import pyarrow as pa", arrow_allowed=True)) == []
    assert list(impurities("from datetime import date\ndate.fromisoformat('2020-02-01')")) == []


# Starting is quick


def modules_loaded_by(statement: str) -> set[str]:
    command = f"import sys; {statement}; print('\\n'.join(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in result.stdout.split()}


@pytest.mark.parametrize("module", ["omnigraph", "omnigraph.cli.main"])
def test_importing_loads_nothing_heavy(module):
    assert modules_loaded_by(f"import {module}") & HEAVY_MODULES == set()


def test_a_heavy_import_is_noticed():
    assert "pyarrow" in modules_loaded_by("import pyarrow")


NOT_FOR_A_READ = (
    "omnigraph.catalog.migrate",
    "omnigraph.providers",
    "omnigraph.diff",
    "omnigraph.embedding",
    "omnigraph.maintenance",
    "omnigraph.merge",
    "omnigraph.read.explain",
    "omnigraph.read.ranks",
    "omnigraph.schema",
    "omnigraph.commit",
    "omnigraph.error_codes",
    "omnigraph.export",
    "omnigraph.language.format",
    "omnigraph.load",
    "omnigraph.plan.check_mutation",
    "omnigraph.spark",
    "omnigraph.storage.compact",
    "omnigraph.storage.delta",
    "omnigraph.storage.remote_objects",
    "omnigraph.storage.stage",
    "omnigraph.storage.torn",
    "omnigraph.text",
    "omnigraph.versioning.locks",
    "omnigraph.versioning.ancestry",
    "omnigraph.versioning.publish",
    "omnigraph.versioning.recovery",
    "omnigraph.versioning.retention",
    "omnigraph.versioning.snapshot_rows",
    "omnigraph.versioning.upgrade",
)
"""Packages and modules that write, convert, search or describe."""

LIBRARIES_OF_A_READ = {"click", "msgspec", "typing_extensions"}


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    found = tmp_path_factory.mktemp("started") / "graph"
    source = "node Person { name: String @key }  edge Knows: Person -> Person"
    people = "".join(f'{{"type": "Person", "data": {{"name": "{name}"}}}}\n' for name in "ab")
    known = '{"edge": "Knows", "from": "a", "to": "b"}\n'
    omnigraph.init(found, source).load((people + known).encode(), mode="append")
    return str(found)


QUERY = """query friends($name: String) {
    match { $p: Person { name: $name }  $p knows $f }
    return { $f.name as name }
    order { name }
}"""


def modules_of_a_query(graph: str) -> set[str]:
    """The names of all modules after `omnigraph query`."""
    arguments = ["query", "-e", QUERY, "--params", '{"name": "a"}', graph]
    command = (
        "import sys; from omnigraph.cli.entry import run; assert run() == 0;"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", command, *arguments], capture_output=True, text=True, check=True
    )
    return set(ran.stderr.split())


def test_a_query_loads_only_what_a_read_needs(graph):
    loaded = modules_of_a_query(graph)
    assert "omnigraph.read.execute" in loaded
    assert {name for name in loaded if is_part_of(name, NOT_FOR_A_READ)} == set()


def test_a_query_loads_no_library_that_the_table_library_does_not(graph):
    loaded = {name.partition(".")[0] for name in modules_of_a_query(graph)}
    beside = loaded - modules_loaded_by("import lance")
    assert beside & set(packages_distributions()) <= LIBRARIES_OF_A_READ | {"omnigraph"}
    assert "pyspark" not in loaded


def is_part_of(name: str, parts: tuple[str, ...]) -> bool:
    return any(name == part or name.startswith(f"{part}.") for part in parts)


# Modules are named after an idea and stay small


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_a_module_is_named_after_an_idea(module):
    assert not NAMES_THAT_SAY_NOTHING & {module.stem, module.parent.name}


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_a_module_fits_in_a_reader_s_head(module):
    assert len(module.read_text().splitlines()) <= LONGEST_MODULE


def test_the_contracts_cover_the_packages_checked_here():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = config["tool"]["importlinter"]["contracts"]
    pure = next(c for c in contracts if c["name"] == "Language, catalog and plan are pure")
    assert pure["source_modules"] == [f"omnigraph.{package}" for package in PURE_PACKAGES]
