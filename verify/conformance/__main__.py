"""``python -m verify.conformance PATH...``: replay vectors and print what differs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from verify.conformance.engines.by_name import ENGINES
from verify.conformance.replay.verdicts import Options
from verify.conformance.report import report
from verify.conformance.runner import replay_paths


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m verify.conformance",
        description="Replay conformance vectors through an engine. Exit code 1 if any case failed.",
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a vector file, or a folder of them")
    parser.add_argument("--engine", choices=sorted(ENGINES), default="row", help="what runs the cases")
    parser.add_argument(
        "--restart-every-step",
        action="store_true",
        help="take a snapshot after each step and continue with what is restored from it",
    )
    parser.add_argument(
        "--batch",
        choices=("elements", "steps"),
        default="elements",
        help="what a batch is: one element (the default), or all elements between two steps of a clock",
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="only the cases whose id contains TEXT")
    parser.add_argument("--limit", type=int, metavar="N", help="only N cases that are not skipped, spread evenly")
    parser.add_argument("--seed", type=int, metavar="S", help="shuffle the cases, so that --limit takes others of them")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser = _parser()
    given = parser.parse_args(arguments)
    options = Options(restart=given.restart_every_step, batches_steps=given.batch == "steps")
    try:
        verdicts = replay_paths(given.paths, given.engine, options, given.only, given.limit, given.seed)
        failed = report(verdicts, partial(print, flush=True), shows_share=given.engine == "columnar")
    except FileNotFoundError as error:
        parser.error(str(error))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
