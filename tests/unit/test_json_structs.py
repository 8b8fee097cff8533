"""Structs are described once, before threads decode them."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import omnigraph

SOURCES = Path(omnigraph.__file__).parent
DECODERS = {"json.decode", "msgpack.decode", "json.Decoder", "msgpack.Decoder", "convert"}

# Threads that decode new types at once and switch often. Without `described` the process is killed.
_RACE = """
import sys, threading
import msgspec
from msgspec import defstruct
from omnigraph.json_structs import described

sys.setswitchinterval(1e-6)
TEXT = b'{"m":{"i":{"a":1},"l":[{"a":2}]},"d":{}}'

def decode(barrier, kinds):
    barrier.wait()
    for kind in kinds:
        try:
            msgspec.json.decode(TEXT, type=described(kind))
        except msgspec.ValidationError:
            pass

for number in range(150):
    inner = defstruct(f"I{number}", [("a", int), *((f"x{n}", int, 0) for n in range(30))])
    middle = defstruct(f"M{number}", [("i", inner), ("l", list[inner])])
    outer = defstruct(f"O{number}", [("m", middle), ("d", dict[str, middle])])
    barrier = threading.Barrier(8)
    kinds = (outer, middle, inner)
    threads = [threading.Thread(target=decode, args=(barrier, kinds)) for _ in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""


def test_types_are_decoded_first_by_several_threads_at_once():
    subprocess.run([sys.executable, "-c", _RACE], check=True, timeout=120)


def decodings(path: Path) -> Iterator[str]:
    """The calls inside functions that decode a type which is not described."""
    for function in ast.walk(ast.parse(path.read_text())):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func).removeprefix("msgspec.")
            if name not in DECODERS or not ast.unparse(node.func).startswith("msgspec."):
                continue
            named = [keyword.value for keyword in node.keywords if keyword.arg == "type"]
            given = node.args[: 1 if name.endswith("Decoder") else 2]
            places = named or (given[-1:] if name in ("convert", "json.Decoder") else [])
            for kind in map(ast.unparse, places):
                if not kind.startswith(("described(", "dict[")):
                    yield f"{path.name}:{node.lineno}: {ast.unparse(node)}"


def test_every_type_that_a_function_decodes_is_described():
    found = [
        call
        for path in SOURCES.rglob("*.py")
        if path.name != "json_structs.py"
        for call in decodings(path)
    ]
    assert found == [], "wrap the type: `described(…)`"
