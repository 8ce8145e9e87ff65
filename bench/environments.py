"""Environments: a virtual environment for each peer, made when it is first needed; or the reason why there is none."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_VENVS = ROOT / ".venvs"
_SECONDS = 1_200


class Unavailable(Exception):  # noqa: N818
    """A peer cannot be had here; the message says why."""


@dataclass(frozen=True)
class Environment:
    """Packages of a peer, and the Python versions they run on, the best first; no packages: this very environment."""

    name: str
    packages: tuple[str, ...] = ()
    pythons: tuple[str, ...] = ()

    def python(self) -> str:
        """Return the interpreter with the packages, installing them the first time.

        Raises:
            Unavailable: there is no such Python, or the packages do not install.
        """
        return sys.executable if not self.packages else _installed(self)


OWN = Environment("windowpane")
FLINK = Environment("bench-flink", ("apache-flink==2.3.0",), ("3.11", "3.12", "3.10"))
BYTEWAX = Environment("bench-bytewax", ("bytewax==0.21.1", "pyarrow"), ("3.12", "3.11", "3.10"))


@cache
def _installed(environment: Environment) -> str:
    folder = _VENVS / environment.name
    python, stamp = folder / "bin" / "python", folder / ".installed"
    wanted = hashlib.sha256(repr(environment).encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted and python.exists():
        return str(python)
    _run([_interpreter(environment), "-m", "venv", "--clear", str(folder)], f"no virtual environment for {environment.name}")
    _run([str(python), "-m", "pip", "install", "--quiet", *environment.packages], f"{environment.packages} do not install")
    stamp.write_text(wanted)
    return str(python)


def _interpreter(environment: Environment) -> str:
    for version in environment.pythons:
        found = shutil.which(f"python{version}")
        if found and subprocess.run([found, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0:
            return found
    raise Unavailable(f"{' '.join(environment.packages)} needs Python {' or '.join(environment.pythons)}, which is not here")


def _run(command: list[str], failure: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, env=os.environ)
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{failure}: not done in {_SECONDS} s") from error
    if done.returncode:
        lines = [line for line in done.stderr.strip().splitlines() if "WARNING" not in line]
        raise Unavailable(f"{failure}: {lines[-1] if lines else done.returncode}")
