"""Rolling features that begin with a history, in the kind ``rolling``: what they give is that of one live run over all rows.

The rows of a program's steps below a cut are its history; the steps still have them, and they must be passed over. The engine
that planning chooses and the reference must agree after every step. Where no row is behind the watermark, rows after the cut are
those of one run whose first batch is the history: each of them, at ticks but for the first one, which gives every key; and of
the latest row of each key the features.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from random import Random
from typing import Any

from verify.fuzz.comparison import difference, same
from verify.fuzz.rolling_runs import REFERENCE, Run, Step, in_order, key_text, table_of
from windowpane.arrays.values import Row
from windowpane.engines.rolling.program import AS_OF, RollingProgram
from windowpane.hidden_columns import TIME
from windowpane.kernels.rolling import bound_calls
from windowpane.planning.engines import make_engine, with_engine
from windowpane.windowing.rolling import RollingEmit
from windowpane.windowing.times import MIN


def history_differences(seed: int, program: RollingProgram, steps: list[Step]) -> Iterator[str]:
    """Yield what differs where the rows of a program below a random cut are its history."""
    rows = [row for step in steps for row in step.rows]
    if not rows:
        return
    drawn = Random(seed ^ 0x5EED)
    times = [row[TIME] for row in rows]
    cut = drawn.randint(min(times), max(times) + 1)
    past = [row for row in rows if row[TIME] < cut]
    running, reference = (_begun(each, past, cut) for each in (program, with_engine(program, REFERENCE)))
    found: list[Row] = []
    for number, step in enumerate(steps):
        got, late, counters = running.step(step)
        wanted, wanted_late, wanted_counters = reference.step(step)
        found += got
        if (text := in_order(program, wanted, got)) is not None:
            yield f"cut {cut}, step {number}: {text}"
        if (late, counters) != (wanted_late, wanted_counters):
            yield f"cut {cut}, step {number}: {late, counters}, the reference has {wanted_late, wanted_counters}"
    if not _has_late_rows(steps, cut):
        text = _from_one_run(program, past, steps, cut, found)
        if text is not None:
            yield f"cut {cut}: one live run: {text}"


def _begun(program: RollingProgram, past: list[Row], cut: int) -> Run:
    """Return a run whose state begins with the history."""
    run = Run(dataclasses.replace(program, cut=cut), position=len(past))
    make_engine(program).begin(run.store, [table_of(program, past, 0)], cut)  # type: ignore[attr-defined]
    return run


def _has_late_rows(steps: list[Step], cut: int) -> bool:
    return any(cut <= row[TIME] <= step.watermark for step in steps for row in step.rows)


def _from_one_run(program: RollingProgram, past: list[Row], steps: list[Step], cut: int, found: list[Row]) -> str | None:
    """Return in what a history and live rows differ from one live run over both."""
    run = Run(program)
    run.step(Step(MIN, past))
    after = [Step(step.watermark, [row for row in step.rows if row[TIME] >= cut]) for step in steps]
    whole = [row for step in after for row in run.step(step)[0] if row[AS_OF] >= cut]
    emit = program.spec.emit
    if emit is RollingEmit.EACH:
        return difference(whole, found)
    if emit is RollingEmit.TICK:
        first = program.spec.tick_from(cut)
        return difference(*([row for row in rows if row[AS_OF] > first] for rows in (whole, found)))
    return _latest_differs(program, whole, found)


def _latest_differs(program: RollingProgram, whole: list[Row], found: list[Row]) -> str | None:
    """Return for which key the features that were emitted last differ; a key that has none has those of no rows."""
    nothing = [each.get_result(each.create_accumulator()) for each in bound_calls(program.spec, program.columns)]
    latest = [{key_text(program, row): row for row in rows} for rows in (whole, found)]
    for key in latest[0]:
        if key not in latest[1] and program.spec.emit is RollingEmit.BATCH:
            continue
        one, other = (_features(program, each.get(key), nothing) for each in latest)
        if not all(map(same, one, other)):
            return f"key {key} has {other}, wanted {one}"
    return None


def _features(program: RollingProgram, row: Row | None, nothing: list[Any]) -> list[Any]:
    return nothing if row is None else [row[call.name] for call in program.spec.calls]
