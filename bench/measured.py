"""Measured: one system in a process of its own; its wall-clock time, and the memory of the process with all its children."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from bench.environments import ROOT, Unavailable
from bench.process_tree import ProcessTree
from bench.programs import Task
from bench.systems import System
from bench.systems.task_folder import left_figures

_EVERY_SECONDS = 0.25
_MB = 1 << 20
_NAMES_AN_ERROR = re.compile(r"(Caused by: )?[\w.]*(Error|Exception)(:|$)")


@dataclass(frozen=True)
class Spent:
    """What a process and all that it starts took.

    Args:
        whole_job_s: from start of the process to its end.
        peak_mb: largest resident memory of the process and its children together; shared pages count in each.
        worker_mb: largest resident memory of one Python child.
        cpu_s: processor time of the process and its children.
    """

    whole_job_s: float
    peak_mb: float
    worker_mb: float
    cpu_s: float


@dataclass(frozen=True)
class Run(Spent):
    """One run of one system.

    Args:
        figures: what the system reported about itself.
    """

    figures: dict[str, Any]


def measure(system: System, task: Task, timeout: float) -> Run:
    """Run ``task`` on ``system``.

    Raises:
        Unavailable: the system cannot be had, failed, or took longer than ``timeout`` seconds; the message says which.
    """
    work = Path(task.work)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    (work / "task.json").write_text(json.dumps(task.to_json()))
    spent = watched([system.environment.python(), "-m", f"bench.systems.{system.module}", str(work)], work / "log.txt", timeout)
    figures = left_figures(work)
    shutil.rmtree(work)
    return Run(**vars(spent), figures=figures)


def watched(command: Sequence[str], log: Path, timeout: float) -> Spent:
    """Run a command to its end, with what it says in a file.

    Raises:
        Unavailable: it failed, or took longer than ``timeout`` seconds; the message says which.
    """
    begun = time.monotonic()
    with log.open("wb") as said:
        process = subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said, env=_environment())
        watch = _Watch(ProcessTree(process.pid))
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"not done in {timeout:.0f} s") from error
        finally:
            watch.stop()
            _end(process)
    if code:
        raise Unavailable(f"failed: {_why(log)}")
    return Spent(time.monotonic() - begun, watch.peak / _MB, watch.worker / _MB, watch.tree.cpu_s)


def _environment() -> dict[str, str]:
    """On two cores the parallel collector serves Spark and Flink better than G1, which works beside them."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "JAVA_TOOL_OPTIONS": "-XX:+UseParallelGC"}


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and its children, as far as they still run."""
    try:
        family = [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
    except psutil.NoSuchProcess:
        return
    for member in family:
        try:
            member.kill()
        except psutil.NoSuchProcess:
            continue
    process.wait()


def _why(log: Path) -> str:
    """Return the last line of a log that names an error, else its last line."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    named = [line for line in lines if _NAMES_AN_ERROR.match(line)]
    return (named or lines or ["without a word"])[-1][:300]


@dataclass
class _Watch:
    """Looks at the memory of a process tree until stopped."""

    tree: ProcessTree
    peak: int = 0
    worker: int = 0
    _stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(_EVERY_SECONDS):
            try:
                self._look()
            except psutil.NoSuchProcess:
                continue

    def _look(self) -> None:
        total = 0
        for member in self.tree.look():
            try:
                size, name = member.memory_info().rss, member.name()
            except psutil.NoSuchProcess:
                continue
            total += size
            if member.pid != self.tree.pid and name.startswith("python"):
                self.worker = max(self.worker, size)
        self.peak = max(self.peak, total)
