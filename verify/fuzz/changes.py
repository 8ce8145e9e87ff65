"""Kind ``changes``: a program of windows is changed in the middle of a stream, and goes on with its state.

Drawn are a program, a stream, a batch before which the query restarts, and a change. What comes out has to be what both programs
give that run alone on the whole stream: of the old one the windows that start before the cut, of the new one the others. A batch
after the change is run a second time from the state before it, as after a crash.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa

from verify.fuzz.columns import COLUMNS
from verify.fuzz.comparison import difference
from verify.fuzz.outcome import Outcome, raised
from verify.fuzz.windowed import text_of
from verify.fuzz.windowed_programs import (
    program_of,
    random_aggregates,
    random_evictor,
    random_fixed_assigner,
    random_keys,
    random_trigger,
    time_unit,
)
from verify.fuzz.windowed_streams import Batch, random_stream
from verify.sizes import drawn_sizes
from windowpane.engines.changes import SINCE, Verdict, matched_calls
from windowpane.engines.program import MAIN, WINDOW_START, Program
from windowpane.engines.protocol import Clock
from windowpane.errors import WindowpaneError
from windowpane.hidden_columns import TIME
from windowpane.planning.changing import Held, Report, continued
from windowpane.planning.engines import make_engine
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing import assigners
from windowpane.windowing.times import MIN

Rows = list[dict[str, Any]]


def run(seed: int) -> Outcome:
    """Make the program and the change of a seed, and compare what it gives with both programs alone."""
    draw = Random(seed)
    old, new, columns = _drawn(draw)
    stream = random_stream(draw, old, columns)
    text = f"{text_of(old)}\n  becomes\n{text_of(new)}"
    try:
        with drawn_sizes(seed), warnings.catch_warnings():
            warnings.simplefilter("error")
            found = _differences(draw, old, new, stream)
    except Exception as error:  # a program that raises, or warns, is a finding like any other
        found = [raised(error)]
    return Outcome(seed, text, f"{old.engine} -> {new.engine}", found)


def _drawn(draw: Random) -> tuple[Program, Program, pa.Schema]:
    """Return a program, another one of the same keys and rows, and the columns of these."""
    while True:
        keys, kind = random_keys(draw), draw.choice(["fixed", "fixed", "sessions", "global"])
        parts = _random_parts(draw, kind)
        changed = {**parts, **{name: part for name, part in _random_parts(draw, kind).items() if draw.random() < 0.4}}
        if kind != "fixed":  # calls alone: what else may change there is compared elsewhere
            changed = {**parts, "aggregates": random_aggregates(draw)}
        if draw.random() < 0.5:
            kept = dict(draw.sample(sorted(parts["aggregates"].items()), draw.randint(0, len(parts["aggregates"]))))
            changed["aggregates"] = {f"also_{name}": each for name, each in kept.items()} | changed["aggregates"]
        try:
            old, new = (program_of(keys=keys, window_bound=pa.int64(), columns=COLUMNS, **each) for each in (parts, changed))
        except WindowpaneError:
            continue
        if draw.random() < 0.3:
            new = program_of(keys=keys, window_bound=pa.int64(), columns=COLUMNS, **changed, engine="reference")
        if old.description != new.description:
            return old, new, COLUMNS


def _random_parts(draw: Random, kind: str) -> dict[str, Any]:
    assigner = random_fixed_assigner(draw, "event time") if kind == "fixed" else _random_other(draw, kind)
    trigger = random_trigger(draw, assigner) if draw.random() < 0.3 else None
    return {
        "assigner": assigner,
        "aggregates": random_aggregates(draw),
        "trigger": trigger,
        "evictor": random_evictor(draw) if draw.random() < 0.2 else None,
        "allowed_lateness": draw.choice([0, 0, 3, 20]) * time_unit(assigner),
        "refine": draw.choice(["last", "each"]),
    }


def _random_other(draw: Random, kind: str) -> assigners.WindowAssigner:
    if kind == "global":
        return assigners.GlobalWindows.create()
    return assigners.EventTimeSessionWindows.with_gap(draw.randint(1, 12))


class _Bucket:
    """A program on one bucket, opened anew in each batch."""

    def __init__(self, program: Program, store: MemoryBlobStore) -> None:
        self.program, self.store = program, store

    def run(self, batch: Batch) -> Rows:
        """Return the results of a batch."""
        clock = Clock(batch.watermark, batch.processing_time)
        output = make_engine(self.program).run(self.store, list(batch.parts), clock)
        return [row for number, table in output.tables if number == MAIN for row in table.to_pylist()]


def _differences(draw: Random, old: Program, new: Program, stream: Sequence[Batch]) -> list[str]:
    point = draw.choice([1, 1, draw.randint(1, max(1, len(stream) - 1))])
    bucket = _Bucket(old, MemoryBlobStore())
    alone = [_Bucket(old, MemoryBlobStore()), _Bucket(new, MemoryBlobStore())]
    try:
        both = [[each.run(batch) for batch in stream] for each in alone]
    except WindowpaneError:
        return []  # what a program refuses is compared elsewhere
    for batch in stream[:point]:
        bucket.run(batch)
    held = _held(bucket.store, stream[:point])
    if held is None:
        return []
    going_on, report = continued(new, held)
    if report.verdict is Verdict.REFUSED:
        return []
    assert isinstance(going_on, Program)
    bucket.program = going_on
    found: list[str] = []
    for number, batch in enumerate(stream[point:], start=point):
        before = bucket.store.snapshot()
        got = bucket.run(batch)
        if draw.random() < 0.3:
            bucket.store.restore(before)
            if difference(got, bucket.run(batch)) is not None:
                found.append(f"batch {number}, repeated, differs")
        expected = _expected(old, new, going_on, report, *(rows[number] for rows in both))
        differs = difference(expected, got)
        found += [] if differs is None else [f"batch {number}, cut {report.cut}: {differs}"]
    return found[:3]


def _held(store: MemoryBlobStore, batches: Sequence[Batch]) -> Held | None:
    times = [time for batch in batches for part in batch.parts for time in part[TIME].to_pylist() if time is not None]
    names = [name for name in store.keys() if name.endswith("header")]  # noqa: SIM118 (a store is no dict)
    headers = [(name, blob) for name in names if (blob := store.get(name)) is not None]
    return Held.of(headers, batches[-1].watermark, max(times, default=None))


def _expected(old: Program, new: Program, going_on: Program, report: Report, was: Rows, now: Rows) -> Rows:
    """Return what both programs together give in a batch."""
    added = [call[SINCE] for call in going_on.description["calls"] if SINCE in call]
    cut = report.cut if report.cut is not None else added[0] if added else MIN
    before, calls = old.description["calls"], new.description["calls"]
    numbers = zip(calls, matched_calls(before, calls), strict=True)
    names = {call["name"]: None if number is None else before[number]["name"] for call, number in numbers}
    shown = [{name: _of(row, names.get(name, name)) for name in new.main_schema.names} for row in was]
    return [row for row in shown if _start(row) < cut] + [row for row in now if _start(row) >= cut]


def _start(row: dict[str, Any]) -> int:
    start: int | None = row[WINDOW_START]
    return MIN if start is None else start


def _of(row: dict[str, Any], name: str | None) -> Any:
    return None if name is None else row[name]
