"""``python -m verify.slt PATH...``: run sqllogictest files and print what differs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from verify.slt.parser import find_files
from verify.slt.report import report
from verify.slt.runner import run_file
from windowpane.sql import Session


def _local() -> Session:
    return Session(store=":memory:")


def _spark() -> Session:
    from verify.conformance.engines.spark_engine import session

    return Session(session(), store=":memory:")


ENGINES: dict[str, Callable[[], Session]] = {"local": _local, "spark": _spark}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m verify.slt",
        description="Run sqllogictest files as RisingWave writes them. Exit code 1 if any record failed.",
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a file, or a folder of *.slt and *.slt.part files")
    parser.add_argument("--engine", choices=sorted(ENGINES), default="local", help="what runs the statements")
    parser.add_argument("--only", default="", metavar="TEXT", help="only files whose path contains TEXT")
    parser.add_argument("--match-errors", action="store_true", help="messages of errors must be the expected ones")
    parser.add_argument("--show-refused", action="store_true", help="print each refused record")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        files = find_files(given.paths, given.only)
    except FileNotFoundError as error:
        parser.error(str(error))
    engine = ENGINES[given.engine]
    outcomes = (each for file in files for each in run_file(file, engine, match_errors=given.match_errors))
    return 1 if report(outcomes, partial(print, flush=True), refused=given.show_refused) else 0


if __name__ == "__main__":
    sys.exit(main())
