"""Results: every figure of a run of the suite, with the machine and the versions, as JSON."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

PATH = Path(__file__).resolve().parent / "results.json"
_PACKAGES = ("pyspark", "pyarrow", "pandas", "numpy", "duckdb")


@dataclass(frozen=True)
class Figure:
    """What one system reached in one case: medians; or the reason why there is nothing.

    Args:
        case: name of the case.
        keys: number of distinct keys.
        system: name of the system.
        emit: ``update`` or ``close`` for OVER programs.
        rows: rows it was given.
        runs: how often it ran.
        rows_per_s: rows a second: in steady batches where the system has batches, else of the whole run without its start.
        whole_job_s: from start of the process to its end.
        peak_mb: largest resident memory of all its processes together.
        worker_mb: largest resident memory of one Python worker.
        state_mb: largest state.
        batch_s: median time of a steady batch: one of the second half.
        cpu_s: processor time of all its processes.
        phases_s: median batch time before and after, where a case compares a system with itself.
        reason: why there are no figures.
        day: when it was measured, ``2026-11-25``; empty until it is published.
    """

    case: str
    keys: int
    system: str
    emit: str = ""
    rows: int = 0
    runs: int = 0
    rows_per_s: float | None = None
    whole_job_s: float | None = None
    peak_mb: float | None = None
    worker_mb: float | None = None
    state_mb: float | None = None
    batch_s: float | None = None
    cpu_s: float | None = None
    phases_s: tuple[float, float] | None = None
    reason: str = ""
    day: str = ""


@dataclass(frozen=True)
class Results:
    """A run of the suite."""

    machine: dict[str, Any]
    figures: tuple[Figure, ...]

    def of(self, case: str, keys: int, emit: str = "") -> dict[str, Figure]:
        """Return the figures of a case by system."""
        return {f.system: f for f in self.figures if _case(f) == (case, keys, emit)}


def write(results: Results, path: Path = PATH) -> None:
    """Write results, one line a figure."""
    figures = ",\n  ".join(json.dumps(_rounded(asdict(figure))) for figure in results.figures)
    path.write_text(f'{{"machine": {json.dumps(results.machine, indent=2)},\n "figures": [\n  {figures}\n]}}\n')


def read(path: Path = PATH) -> Results:
    """Return what ``write`` wrote."""
    held = json.loads(path.read_text())
    figures = [Figure(**{**figure, "phases_s": _pair(figure.get("phases_s"))}) for figure in held["figures"]]
    return dated(Results(held["machine"], tuple(figures)))


def dated(results: Results) -> Results:
    """Return results whose figures say when they were measured: those that do not, with the run."""
    day = results.machine["when"].partition(" ")[0]
    return replace(results, figures=tuple(figure if figure.day else replace(figure, day=day) for figure in results.figures))


def read_kept(path: Path = PATH) -> tuple[Figure, ...]:
    """Return the figures written before, none if there are none."""
    return read(path).figures if path.exists() else ()


def merged(earlier: tuple[Figure, ...], later: list[Figure]) -> Results:
    """Return earlier figures with those of the cases that ran again replaced, each in its place, on the machine of now."""
    places = list(dict.fromkeys(map(_case, (*earlier, *later))))
    again = {_case(figure) for figure in later}
    kept = [figure for figure in earlier if _case(figure) not in again]
    return Results(machine(), tuple(sorted((*kept, *later), key=lambda figure: places.index(_case(figure)))))


def _case(figure: Figure) -> tuple[str, int, str]:
    return figure.case, figure.keys, figure.emit


def machine() -> dict[str, Any]:
    """Return what the figures were measured on."""
    return {
        "when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30),
        "system": platform.platform(),
        "java": _java(),
        "python": platform.python_version(),
        **{name: _version(name) for name in _PACKAGES},
    }


def _rounded(values: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in values.items()}


def _pair(values: list[float] | None) -> tuple[float, float] | None:
    return None if values is None else (values[0], values[1])


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _java() -> str:
    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java" if "JAVA_HOME" in os.environ else Path("java")
    printed = subprocess.run([str(java), "-version"], capture_output=True, text=True)
    return printed.stderr.splitlines()[0] if printed.stderr else "unknown"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
