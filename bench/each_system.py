"""Benchmarks that run themselves once a system over one folder of input, each system in a process of its own."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


def arguments(description: str | None, systems: Sequence[str]) -> argparse.ArgumentParser:
    """Return a parser that knows the system and the folder of one process; a benchmark adds its own arguments."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--system", choices=systems, help="run only this one")
    parser.add_argument("--folder", type=Path, help="run the system over this input, in this process")
    return parser


def command(system: str, folder: Path, *more: str) -> list[str]:
    """Return the command that runs this benchmark again, for one system: with the arguments it has, and ``more``."""
    benchmark = sys.modules["__main__"].__spec__
    assert benchmark is not None, "it is run as python -m bench.name"
    return [sys.executable, "-m", benchmark.name, *sys.argv[1:], *more, "--system", system, "--folder", str(folder)]


def run_each(
    given: Any, systems: Sequence[str], write: Callable[[Path], None], run: Callable[[str, Path], None], *, group: bool = False
) -> None:
    """Write the input and run each system over it; in a process of one system, run that.

    Args:
        given: the arguments.
        systems: the systems, in their order.
        write: writes the input into a folder.
        run: runs a system over a folder.
        group: whether each process leads a session of its own, by which all that it starts is found.
    """
    if given.system is not None and given.folder is not None:
        run(given.system, given.folder)
        return
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        for system in systems if given.system is None else (given.system,):
            subprocess.run(command(system, Path(folder)), check=True, start_new_session=group)
