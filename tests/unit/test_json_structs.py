"""Structs are described before threads decode them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import omnigraph
from omnigraph.server.boot import _DECODING

SOURCES = Path(omnigraph.__file__).parent
DECODES = re.compile(r"msgspec\.json\.decode\([^\n]*type=|msgspec\.convert\(")
_ENGINE = ("catalog", "read", "storage", "versioning")

# Threads that decode a prepared type for the first time, at once and switching often.
_RACE = """
import sys, threading
import msgspec
from omnigraph.json_structs import prepare_structs
from omnigraph.versioning.manifest_state import Checkpoint
assert prepare_structs() > 5
sys.setswitchinterval(1e-6)
barrier = threading.Barrier(8)
def decode():
    barrier.wait()
    try:
        msgspec.json.decode(b"{}", type=Checkpoint)
    except msgspec.DecodeError:
        pass
threads = [threading.Thread(target=decode) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_prepared_types_are_decoded_by_several_threads_at_once():
    subprocess.run([sys.executable, "-c", _RACE], check=True, timeout=60)


def test_a_server_prepares_every_module_of_the_engine_that_decodes():
    decoding = {
        ".".join(("omnigraph", *path.relative_to(SOURCES).with_suffix("").parts))
        for package in _ENGINE
        for path in (SOURCES / package).rglob("*.py")
        if DECODES.search(path.read_text())
    }
    # Counts of rows, a type of the standard library.
    assert decoding - {"omnigraph.storage.indexes"} <= set(_DECODING)
