"""Rounds: a case on each of its systems, as often as chosen, in turn; medians of what was measured, answers checked."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path

from bench.bids import Part, csv_files, csv_halves, parquet_files
from bench.cases import Case, Contender
from bench.environments import FLINK, ROOT, Unavailable
from bench.expected import Answer, answer, last_watermark
from bench.measured import Run, measure
from bench.programs import Program, Task
from bench.results import Figure

OUT = ROOT / "out" / "bench"

Progress = Callable[[str], None]


def run_case(case: Case, runs: int, say: Progress) -> list[Figure]:
    """Run a case and return a figure a system; a system that cannot take part gets the reason in its place."""
    answers: dict[str, Answer] = {}
    return [_figure(case, contender, runs, say, answers) for contender in case.contenders]


def _figure(case: Case, contender: Contender, runs: int, say: Progress, answers: dict[str, Answer]) -> Figure:
    figure = Figure(case.name, case.keys, contender.system.name, case.emit)
    times = min(runs, contender.runs) if contender.runs else runs
    try:
        task = _task(case, contender)
        done = []
        for number in range(times):
            done.append(measure(contender.system, task, contender.seconds))
            _check(case, contender, done[-1])
            if case.agreed:
                _compare(answers, contender.system.title, done[-1])
            say(f"{contender.system.title}, run {number + 1} of {times}: {done[-1].whole_job_s:.1f} s")
    except Unavailable as reason:
        say(f"{contender.system.title}: {reason}")
        return replace(figure, reason=str(reason))
    return _medians(case, figure, done, task)


def _task(case: Case, contender: Contender) -> Task:
    parts = _parts(case, contender)
    data = OUT / "data"
    if case.format == "parquet" and contender.system.environment is not FLINK:
        files = parquet_files(parts, data)
    else:
        files = (csv_halves if contender.system.environment is FLINK else csv_files)(parts, data)
    return Task(
        program=case.program,
        keys=case.keys,
        files=files,
        format=case.format,
        file_rows=tuple(part.feed.batch_rows for part in parts for _ in range(part.count)),
        work=str(OUT / "work"),
        emit=case.emit,
        batch_files=case.batch_files,
        closed_ms=last_watermark(parts, case.program) - (case.emit == "close"),
    )


def _parts(case: Case, contender: Contender) -> tuple[Part, ...]:
    """Return the rows that a system gets."""
    if contender.parts or not contender.batches:
        return contender.parts or case.parts
    files = (Part(part.feed, n, 1) for part in case.parts for n in range(part.first, part.first + part.count))
    return tuple(islice(files, contender.batches))


def _check(case: Case, contender: Contender, run: Run) -> None:
    """Refuse a run whose results are not the expected ones; systems that report none were checked where they did."""
    if not case.checked or "checksum" not in run.figures or not run.figures["rows"]:
        return
    milliseconds = case.format == "csv" or contender.system.environment is FLINK
    expected = _expected(case.program, _parts(case, contender), milliseconds, case.emit)
    found = Answer(run.figures["rows"], run.figures["checksum"])
    if found != expected:
        raise Unavailable(f"its results are not the expected ones: {found}, expected {expected}")


def _compare(answers: dict[str, Answer], title: str, run: Run) -> None:
    """Refuse a run whose results are not those of the systems before it."""
    found = Answer(run.figures["rows"], run.figures["checksum"])
    for other, answer_of_other in answers.items():
        if found != answer_of_other:
            raise Unavailable(f"its results are not those of {other}: {found}, {answer_of_other}")
    answers[title] = found


@cache
def _expected(program: Program, parts: tuple[Part, ...], milliseconds: bool, emit: str) -> Answer:
    return answer(program, parts, milliseconds, emit)


def _medians(case: Case, figure: Figure, done: Sequence[Run], task: Task) -> Figure:
    def middle(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return statistics.median(known) if known else None

    phases = None
    if case.phases is not None:
        batches = done[0].figures.get("batches_s")
        phases = tuple(statistics.median(batches[first:last]) for first, last in case.phases) if batches else None
    return replace(
        figure,
        rows=task.rows,
        runs=len(done),
        rows_per_s=middle([run.figures.get("rows_per_s") for run in done]),
        batch_s=middle([run.figures.get("batch_s") for run in done]),
        whole_job_s=middle([run.whole_job_s for run in done]),
        peak_mb=middle([run.peak_mb for run in done]),
        worker_mb=middle([run.worker_mb for run in done]),
        state_mb=middle([run.figures.get("state_mb") for run in done]),
        cpu_s=middle([run.cpu_s for run in done]),
        phases_s=phases,
    )


def clean_up(out: Path = OUT) -> None:
    """Leave no task's folder behind."""
    import shutil

    shutil.rmtree(out / "work", ignore_errors=True)
