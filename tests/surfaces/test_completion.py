"""Completion scripts, loaded by the shells that they are for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BASH = """
source <(omnigraph completion bash)
complete() { :; }
COMP_WORDS=(%s) COMP_CWORD=%d
_omnigraph_completion omnigraph
printf '%%s\\n' "${COMPREPLY[@]}"
"""
ZSH = """
autoload -U compinit && compinit -u -D
source <(omnigraph completion zsh)
compadd() { :; }
_describe() { print -rl -- ${(P)3%%:*} ${(P)4%%:*} 2>/dev/null; local -a found; found=(${(P)${@[-1]}}); print -rl -- $found }
words=(%s) CURRENT=%d
_omnigraph_completion
"""


def complete(shell: str, script: str, *words: str) -> list[str]:
    quoted = " ".join(f"'{word}'" for word in ("omnigraph", *words))
    place = len(words) + (1 if shell == "zsh" else 0)
    folder = Path(sys.executable).parent
    done = subprocess.run(
        [shell, "-c", script % (quoted, place)],
        env={**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("que",), "query"),
        (("branch", "cr"), "create"),
        (("query", "--par"), "--params"),
        (("load", "--mode", "app"), "append"),
        (("completion", "z"), "zsh"),
    ],
)
def test_bash_offers_commands_options_and_choices(words, offered):
    assert offered in complete("bash", BASH, *words)


def test_bash_offers_no_hidden_command():
    assert "ingest" not in complete("bash", BASH, "in")


@pytest.mark.slow
@pytest.mark.parametrize(("words", "offered"), [(("que",), "query"), (("branch", "cr"), "create")])
def test_zsh_offers_the_same(words, offered):
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    assert any(offered in word for word in complete("zsh", ZSH, *words))
