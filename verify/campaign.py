"""``python -m verify.campaign``: everything that looks for faults, part by part, and a table of what came of it.

A part is a command whose last line counts what passed and what failed. With ``--write`` the table goes into docs/reliability.md,
with the day, the machine and the commit. Every failure prints the seed or the test that makes it again.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reliability.md"
_BEGIN, _END = "<!-- table: written by `make campaign` -->", "<!-- end of table -->"

PROGRAMS = {
    "windows": 100_000,
    "functions": 20_000,
    "over": 100_000,
    "joins": 20_000,
    "rolling": 20_000,
    "patterns": 10_000,
    "filling": 20_000,
    "closed": 20_000,
    "chains": 20_000,
    "changes": 5_000,
    "rescaling": 5_000,
    "history": 5_000,
    "faults": 20_000,
}
"""How many random programs of each kind a whole campaign runs."""
STATEMENTS, SCRIPTS, SCRIPTS_ON_SPARK = 100_000, 10_000, 300
"""How many mutated SQL statements, and random SQL scripts, in this process and on Spark."""

KILLS = (
    "tests/spark/sinks/test_sinks_killed.py",
    "tests/spark/queries/test_restart.py",
    "tests/spark/queries/test_joins_killed.py",
    "tests/spark/queries/test_rolling_killed.py",
    "tests/spark/queries/test_patterns_killed.py",
    "tests/spark/queries/test_changes_killed.py",
    "tests/sql/on_spark/test_killed.py",
    "tests/sql/on_spark/test_killed_streams.py",
    "tests/sql/on_spark/test_killed_sinks.py",
)
"""Queries and sinks on Spark that are killed with SIGKILL and started again."""


@dataclass(frozen=True)
class Part:
    """One command.

    Args:
        title: what it tries, for people.
        command: the arguments of Python.
    """

    title: str
    command: Sequence[str]


@dataclass(frozen=True)
class Found:
    """What came of a part.

    Args:
        part: the part.
        passed: how many programs, statements or tests passed.
        failed: how many did not.
        seconds: how long it took.
    """

    part: Part
    passed: int
    failed: int
    seconds: float


def parts(share: float, vectors: Path) -> Iterator[Part]:
    """Yield the parts of a campaign.

    Args:
        share: of the whole numbers of programs, at least one of each.
        vectors: the folder of conformance vectors; left out where it is absent.
    """
    seed = str(int(datetime.now(UTC).strftime("%Y%m%d")))
    for kind, whole in PROGRAMS.items():
        engine = ["--engine", "columnar"] if kind == "over" else []
        number = str(max(1, int(whole * share)))
        yield Part(f"random programs: {kind}", ["-m", "verify.fuzz", kind, "--programs", number, "--seed", seed, *engine])
    statements, scripts = (max(1, int(whole * share)) for whole in (STATEMENTS, SCRIPTS))
    yield Part("mutated SQL statements", ["-m", "tests.sql.mutations", "--count", str(statements), "--seed", seed])
    yield Part("random SQL scripts", ["-m", "tests.sql.embedded.test_random_sql", seed, str(scripts)])
    on_spark = str(max(1, int(SCRIPTS_ON_SPARK * share)))
    yield Part("random SQL scripts on Spark", ["-m", "tests.sql.embedded.test_random_sql", seed, on_spark, "spark"])
    if vectors.is_dir():
        folders = [str(vectors / name) for name in ("flink", "oracle")]
        for name in ("row", "columnar"):
            command = ["-m", "verify.conformance", "--engine", name, "--restart-every-step", *folders]
            yield Part(f"vectors, restarted at every step: {name}", command)
    yield Part("kill -9 on Spark", ["-m", "pytest", "-q", *KILLS])


_COUNTED = re.compile(r"(\d[\d,]*) (passed|failed)")


def tried(part: Part, say: Console) -> Found:
    """Run a part; one that ends without a count, or with an error that it did not count, has failed once."""
    say.print(f"{part.title} ...")
    begun = time.monotonic()
    ran = subprocess.run([sys.executable, *part.command], capture_output=True, text=True, cwd=ROOT, check=False)
    lines = ran.stdout.splitlines()
    counts = {word: int(number.replace(",", "")) for number, word in _COUNTED.findall(lines[-1] if lines else "")}
    failed = max(counts.get("failed", 0), int(ran.returncode != 0 or not counts))
    if failed:
        say.print("\n".join([*lines[-60:], *ran.stderr.splitlines()[-20:]]), highlight=False, markup=False)
    return Found(part, counts.get("passed", 0), failed, time.monotonic() - begun)


def written(found: Sequence[Found], page: str) -> str:
    """Return the page with the table of what was found between its markers."""
    rows = [f"| {each.part.title} | {each.passed:,} | {each.failed:,} | {each.seconds / 60:,.1f} |" for each in found]
    table = ["| what | passed | failed | minutes |", "|---|--:|--:|--:|", *rows]
    text = "\n".join([_BEGIN, f"{_where()}", "", *table, _END])
    before, rest = page.split(_BEGIN)
    return before + text + rest.split(_END)[1]


def _where() -> str:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT, check=True)
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    return f"{datetime.now(UTC):%Y-%m-%d}, {machine}, commit {commit.stdout.strip()}."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code: 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m verify.campaign", description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the numbers of a whole campaign, which takes many hours")
    parser.add_argument("--only", default="", help="run the parts whose title has this text")
    parser.add_argument("--jobs", type=int, default=1, help="how many parts run at a time")
    parser.add_argument("--write", action="store_true", help="write the table into docs/reliability.md")
    given = parser.parse_args(arguments)
    vectors = Path(os.environ.get("WINDOWPANE_CONFORMANCE", ROOT.parent / "shared" / "conformance"))
    console = Console()
    chosen = [part for part in parts(given.share, vectors) if given.only in part.title]
    with ThreadPoolExecutor(given.jobs) as pool:
        found = list(pool.map(lambda part: tried(part, console), chosen))
    table = Table("what", "passed", "failed", "minutes")
    for each in found:
        table.add_row(each.part.title, f"{each.passed:,}", f"{each.failed:,}", f"{each.seconds / 60:.1f}")
    console.print(table)
    if given.write:
        PAGE.write_text(written(found, PAGE.read_text()))
    return 1 if any(each.failed for each in found) else 0


if __name__ == "__main__":
    sys.exit(main())
