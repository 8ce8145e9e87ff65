"""``python -m verify.fuzz KIND --programs N [--seed S]``: run random programs of a kind and print those that differ."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import SystemRandom

from verify.fuzz import (
    chains,
    changes,
    closed_sessions,
    faults,
    filling,
    functions,
    histories,
    joins,
    over,
    patterns,
    rescaling,
    rolling,
    windowed,
)
from verify.fuzz.outcome import Outcome

KINDS: dict[str, Callable[[int], Outcome]] = {
    "windows": windowed.run,
    "functions": functions.run,
    "joins": joins.run,
    "over": over.run,
    "patterns": patterns.run,
    "rolling": rolling.run,
    "filling": filling.run,
    "closed": closed_sessions.run,
    "chains": chains.run,
    "changes": changes.run,
    "faults": faults.run,
    "rescaling": rescaling.run,
    "history": histories.run,
}
"""What makes and runs the program of a seed, by kind."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m verify.fuzz",
        description="Run random programs on the reference and on the engine the planner chooses, functions of the "
        "user's own on the row engine and on the operator, joins on an engine, the reference and DuckDB, row patterns on an "
        "engine and the matcher, rolling features and filled gaps on an engine, the reference and DuckDB, sessions that rows "
        "close on an engine, the reference and by definition, operators behind operators in a chain and one by one, or OVER "
        "windows on an engine and on DuckDB. Exit code 1 if any differed.",
    )
    parser.add_argument("kind", choices=list(KINDS), help="what the programs are made of")
    parser.add_argument("--programs", type=int, default=100, metavar="N", help="how many programs")
    parser.add_argument("--seed", type=int, metavar="S", help="seed of the first program, the next has S + 1; random if left out")
    parser.add_argument("--engine", choices=sorted(over.ENGINES), default="reference", help="what runs OVER windows")
    parser.add_argument(
        "--against", choices=("duckdb", "reference"), default="duckdb", help="what OVER windows are compared with"
    )
    return parser


def report(outcomes: Iterable[Outcome], line: Callable[[str], None], kind: str) -> int:
    """Print what differed as it comes and the counts at the end; return how many programs failed."""
    engines: Counter[str] = Counter()
    failed = 0
    for outcome in outcomes:
        engines[outcome.engine] += 1
        if outcome.differences:
            failed += 1
            again = f"python -m verify.fuzz {kind} --programs 1 --seed {outcome.seed}"
            line(f"FAILED seed {outcome.seed} ({kind}); again with: {again}")
            line(outcome.program)
            for each in outcome.differences:
                line(f"  {each}")
    line("engines: " + ", ".join(f"{name} {count}" for name, count in sorted(engines.items())))
    line(f"{engines.total() - failed} passed, {failed} failed")
    return failed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    given = _parser().parse_args(arguments)
    first = SystemRandom().randrange(2**32) if given.seed is None else given.seed
    line = partial(print, flush=True)  # a run that is cut short has printed what it found
    line(f"seeds {first} to {first + given.programs - 1}")
    run, kind = KINDS[given.kind], given.kind
    if kind == "over":
        run = partial(over.run, engine=given.engine, against=given.against)
        kind = f"over --engine {given.engine} --against {given.against}"
    failed = report((run(first + number) for number in range(given.programs)), line, kind)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
