"""The Dockerfile, read and carried out without Docker: its steps run below an empty folder.

All stages share that folder, so what one copies from another is already where it belongs.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "Dockerfile"
_PLACES = re.compile(r"(?<![\w./])/(?=(?:build|data|opt/omnigraph)\b)")


class Instruction(NamedTuple):
    name: str
    rest: str

    @property
    def options(self) -> dict[str, str]:
        return dict(re.findall(r"--(\S+?)=(\S+)", self.rest))

    @property
    def words(self) -> list[str]:
        """What is neither an option nor a comment."""
        return [word for word in shlex.split(self.rest) if not word.startswith("--")]

    @property
    def command(self) -> list[str]:
        """The program and arguments of `ENTRYPOINT` and `HEALTHCHECK … CMD`, written as JSON."""
        found: list[str] = json.loads(self.rest[self.rest.index("[") :])
        return found


def instructions() -> list[Instruction]:
    text = re.sub(r"^\s*#.*\n", "", DOCKERFILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    joined = re.sub(r"\\\n\s*", " ", text)
    lines = [line for line in joined.splitlines() if line.strip()]
    return [Instruction(*line.split(maxsplit=1)) for line in lines]


def last_stage() -> dict[str, list[Instruction]]:
    """The instructions of what becomes the image, by name."""
    stage: dict[str, list[Instruction]] = {}
    for one in instructions():
        stage = {} if one.name == "FROM" else stage
        stage.setdefault(one.name, []).append(one)
    return stage


def environment_of(stage: dict[str, list[Instruction]]) -> dict[str, str]:
    pairs = (word.partition("=") for one in stage["ENV"] for word in one.words)
    return {name: value for name, _, value in pairs}


@dataclass
class Image:
    """Where the steps of the Dockerfile were carried out."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    folder: str = "/"

    def here(self, text: str) -> str:
        """A text of the Dockerfile with the places of this machine."""
        return _PLACES.sub(f"{self.root}/", text)

    def build(self) -> None:
        arguments: dict[str, str] = {}
        for one in instructions():
            match one.name:
                case "WORKDIR":
                    self.folder = one.rest
                    Path(self.here(one.rest)).mkdir(parents=True, exist_ok=True)
                case "ARG":
                    name, _, value = one.rest.partition("=")
                    arguments[name] = value
                case "RUN":
                    self._run(one.rest, arguments)
                case "COPY":
                    self._copy(one)
                case "ENV":
                    for variable in one.words:
                        key, _, value = variable.partition("=")
                        self.environment[key] = self.here(value)
        # What only builds is not in the image.
        shutil.rmtree(self.here("/build"))

    def _run(self, line: str, arguments: dict[str, str]) -> None:
        own = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("OMNIGRAPH", "PYTHON"))}
        done = subprocess.run(
            ["sh", "-ec", self.here(line)],
            cwd=self.here(self.folder),
            env=kept | own | arguments,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def _copy(self, one: Instruction) -> None:
        *sources, target = one.words
        if "from" in one.options:
            assert sources == [target], "stages share a folder here"
            assert Path(self.here(target)).is_dir()
            return
        to = Path(self.here(str(Path(self.folder, target))))
        for source in sources:
            found = ROOT / source
            if found.is_dir():
                shutil.copytree(found, to, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(found, to)

    def command(self, *line: str) -> list[str]:
        return [self.here(word) for word in line]

    def variables(self) -> dict[str, str]:
        """The environment of a container."""
        system = "/usr/local/bin:/usr/bin:/bin"
        return {key: value.replace("$PATH", system) for key, value in self.environment.items()}
