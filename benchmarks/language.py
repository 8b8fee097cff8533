"""The newer constructs of the query language against LadybugDB and DuckDB, in one run on one network.

All answers must be equal. The same handle is asked again and again; shortest paths are asked for random
pairs of persons, and the line is their sum. The ratio is how many times quicker we are than the quickest
peer. Goals: ahead on each, and 5 times on the shortest paths.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.social import Measured, make_all, same_answer, show, warm
from benchmarks.support.engines import ENGINES, Engine, Rows
from benchmarks.support.network import Sizes, generate
from benchmarks.support.pattern_questions import PATTERN_QUESTIONS, SHORTEST

EACH, SHORTEST_GOAL = 1.0, 5.0
"""How many times quicker than the quickest peer we must be."""


def shortest(engines: dict[str, Engine], persons: int, pairs: int) -> Measured:
    """The shortest paths between random pairs, each asked once; engines take turns."""
    chance = np.random.default_rng(5)
    taken = dict.fromkeys(engines, 0.0)
    for engine in engines.values():
        engine.ask(replace(SHORTEST, parameters={"a": 0, "b": 1}))
    for _ in range(pairs):
        a, b = (int(number) for number in chance.choice(persons, 2, replace=False))
        question = replace(SHORTEST, parameters={"a": a, "b": b})
        answers: dict[str, Rows] = {}
        for name, engine in engines.items():
            started = time.perf_counter()
            answers[name] = engine.ask(question)
            taken[name] += time.perf_counter() - started
        same_answer(question, answers)
    return Measured(f"shortest path, {pairs} pairs", taken)


def run(console: Console, folder: Path, sizes: Sizes, runs: int, pairs: int) -> None:
    make_all(console, folder, generate(sizes))
    engines: dict[str, Engine] = {name: made(folder) for name, made in ENGINES.items()}
    show(console, "warm", list(warm(engines, runs, PATTERN_QUESTIONS)), EACH)
    show(console, "paths", [shortest(engines, sizes.persons, pairs)], SHORTEST_GOAL)
    for engine in engines.values():
        engine.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--persons", type=int, default=Sizes().persons)
    parser.add_argument("--runs", type=int, default=25, help="times each question is asked")
    parser.add_argument("--pairs", type=int, default=100, help="pairs for shortest paths")
    options = parser.parse_args()
    os.environ.setdefault("OMNIGRAPH_DURABILITY", "none")
    with tempfile.TemporaryDirectory() as folder:
        sizes = Sizes.of(options.persons)
        run(Console(width=140), Path(folder), sizes, options.runs, options.pairs)


if __name__ == "__main__":
    main()
