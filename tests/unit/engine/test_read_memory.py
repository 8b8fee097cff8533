"""Freed memory is reused instead of being requested again."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

TIMES = 50
PAGES_OF_A_BLOCK = (8 << 20) // 4096
PAGES = f"""
import resource
import numpy as np
from omnigraph.read.reader import keep_freed_memory

def pages():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def use():
    blocks = [np.ones(2 << 20, np.uint32), np.ones(2 << 20, np.uint32)]

keep_freed_memory()
use()
before = pages()
for _ in range({TIMES}):
    use()
print(pages() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="about the allocator of glibc")
def test_blocks_used_again_and_again_are_not_new_memory_each_time():
    run = subprocess.run([sys.executable, "-c", PAGES], capture_output=True, text=True, check=True)
    assert int(run.stdout) < TIMES * PAGES_OF_A_BLOCK / 10
