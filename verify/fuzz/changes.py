"""Kind ``changes``: a program is changed in the middle of a stream, and goes on with its state.

Of every ten seeds one is of OVER windows (``changed_over``), one of triggers (``changed_triggers``) and two of joins
(``changed_joins``), the others are of windows; of every twenty one is of sessions that rows close (``changed_closed``).

Drawn are a program, a stream, a batch before which the query restarts, and a change. What comes out has to be what both programs
give that run alone on the whole stream: of the old one the windows that start before the cut, of the new one the others. A batch
after the change is run a second time from the state before it, as after a crash. In some, columns get a wider type with the
change, or calls that are added give what the rows since make of them: these values are not compared. Some begin with a history,
and in some the state of several buckets is spread over another number of them, before the change or behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa

from verify.fuzz import changed_closed, changed_joins, changed_over, changed_triggers
from verify.fuzz.changed_buckets import Buckets, held_of, times_of
from verify.fuzz.columns import COLUMNS
from verify.fuzz.comparison import difference
from verify.fuzz.histories import begins
from verify.fuzz.histories import parts as rows_by
from verify.fuzz.outcome import Outcome, differences_of
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
from windowpane.engines.changes import SINCE, Description, Incomplete, Verdict, matched_calls
from windowpane.engines.common.slicing import is_staggered
from windowpane.engines.program import WINDOW_START, Program
from windowpane.errors import UnmovableStateError, WindowpaneError
from windowpane.planning.changing import continued
from windowpane.windowing import assigners
from windowpane.windowing.times import MAX, MIN

Rows = list[dict[str, Any]]
WIDER = pa.schema(
    [field.with_type({"n": pa.int64(), "m": pa.decimal128(16, 3)}.get(field.name, field.type)) for field in COLUMNS]
)
"""The columns, two of them of a wider type."""


def run(seed: int) -> Outcome:
    """Make the program and the changes of a seed, and compare what comes out with each program alone."""
    if seed % 5 > 2:
        other = changed_triggers.run if seed % 10 == 8 else changed_over.run if seed % 5 == 3 else changed_joins.run
        return other(seed)
    if seed % 20 == 1:
        return changed_closed.run(seed)
    draw = Random(seed)
    programs = _drawn(draw)
    stream = random_stream(draw, programs[0], COLUMNS)
    text = "\n  becomes\n".join(map(text_of, programs))
    found = differences_of(seed, lambda: _differences(draw, programs, stream))
    return Outcome(seed, text, " -> ".join(each.engine for each in programs), found)


def _drawn(draw: Random) -> list[Program]:
    """Return two or three programs of the same keys and rows, each unlike the one before."""
    keys, kind = random_keys(draw), draw.choice(["fixed", "fixed", "sessions", "global", "clock"])
    parts, found, is_wider = _random_parts(draw, kind), list[Program](), draw.random() < 0.2
    wanted = 3 if kind == "fixed" and draw.random() < 0.4 else 2
    while len(found) < wanted:
        if len(found) == 2 and draw.random() < 0.4:  # back to the first one
            return [*found, found[0]]
        engine = "reference" if found and draw.random() < 0.3 else None
        columns = WIDER if found and is_wider else COLUMNS
        try:
            program = program_of(keys=keys, window_bound=pa.int64(), columns=columns, **parts, engine=engine)
        except WindowpaneError:
            keys, parts, found = random_keys(draw), _random_parts(draw, kind), []
            continue
        if not found or found[-1].description != program.description:
            found.append(program)
        parts = _changed(draw, parts, kind)
    return found


def _changed(draw: Random, parts: dict[str, Any], kind: str) -> dict[str, Any]:
    if draw.random() < 0.3:  # calls that are there, in another order and under other names
        calls = sorted(parts["aggregates"].items())
        chosen = draw.sample(calls, draw.randint(1, len(calls)))
        return {**parts, "aggregates": {f"was_{name}": each for name, each in chosen}}
    changed = {**parts, **{name: part for name, part in _random_parts(draw, kind).items() if draw.random() < 0.4}}
    if kind in ("sessions", "global"):  # calls alone: what else may change there is compared elsewhere
        changed = {**parts, "aggregates": random_aggregates(draw)}
    if draw.random() < 0.5:
        kept = dict(draw.sample(sorted(parts["aggregates"].items()), draw.randint(0, len(parts["aggregates"]))))
        changed["aggregates"] = {f"also_{name}": each for name, each in kept.items()} | changed["aggregates"]
    return changed


def _random_parts(draw: Random, kind: str) -> dict[str, Any]:
    clocks: Any = {"fixed": "event time", "clock": "processing time"}
    assigner = random_fixed_assigner(draw, clocks[kind]) if kind in clocks else _random_other(draw, kind)
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


def _differences(draw: Random, programs: Sequence[Program], stream: Sequence[Batch]) -> list[str]:
    try:
        whole = [Buckets(of) for of in programs]
        past, cut = _history(draw, programs, stream)
        for each in whole if past is not None else ():
            each.begin(past or (), cut)
        alone = [[each.run(batch) for batch in stream] for each in whole]
    except WindowpaneError:
        return []  # what a program refuses is compared elsewhere
    points = sorted({draw.choice([1, 1, 2, draw.randint(1, max(1, len(stream) - 1))]) for _ in programs[1:]})
    count = draw.choice([1, 1, 3])
    if any(is_staggered(each.spec.assigner) for each in programs):
        count = 1  # each bucket shifts its windows by an offset of its own
    bucket, owners, found = Buckets(programs[0], count), [(0, MIN)], list[str]()
    passed = 0  # so many batches were before a cut that was set by hand
    if past is not None:
        bucket.begin(past, cut)
    moves = {draw.randint(1, len(stream)) for _ in range(2)} if draw.random() < 0.4 else set[int]()
    for number, batch in enumerate(stream):
        if number in moves:
            try:
                bucket.rescale(draw.choice([1, 2, 5]))
            except UnmovableStateError as error:
                if not any(each in str(error) for each in ("stagger", "since the last change")):
                    raise
        if number in points:
            held = held_of(bucket.stores, stream[:number])
            if held is None:
                return found
            now = owners[-1][0] + 1
            cut_at = draw.choice(times_of(stream)) + 1 if draw.random() < 0.2 and times_of(stream) else None
            incomplete: Incomplete = "partial" if draw.random() < 0.25 else "null"
            going_on, report = continued(programs[now], held, cut_at, incomplete)
            if report.verdict is Verdict.REFUSED or not isinstance(going_on, Program):
                return found
            bucket.program = going_on
            if report.cut is not None:
                passed = 0 if cut_at is None else number
            if passed:  # rows so far are in no window behind the cut, nor of what the program there becomes
                after = Buckets(programs[now])
                if past is not None:
                    after.begin([], cut)
                alone[now] = [after.run(_without_rows(each) if at < passed else each) for at, each in enumerate(stream)]
            owners = [*owners, (now, report.cut)] if report.cut is not None else [*owners[:-1], (now, owners[-1][1])]
        before = [each.snapshot() for each in bucket.stores]
        got = bucket.run(batch)
        if draw.random() < 0.3:
            for store, snapshot in zip(bucket.stores, before, strict=True):
                store.restore(snapshot)
            if difference(got, bucket.run(batch)) is not None:
                found.append(f"batch {number}, repeated, differs")
        parts = [(programs[of].description, begins, alone[of][number]) for of, begins in owners]
        differs = difference(*as_one(parts, bucket.program.description, bucket.program.main_schema.names, got))
        found += [] if differs is None else [f"batch {number}, {owners}: {differs}"]
    return found[:3]


def _history(draw: Random, programs: Sequence[Program], stream: Sequence[Batch]) -> tuple[list[pa.Table] | None, int]:
    """Return the rows below a cut, with which some programs begin; ``None`` for those that begin without."""
    times = times_of(stream)
    if draw.random() < 0.75 or not times or not all(map(begins, programs)):
        return None, MIN
    cut = draw.choice(times)
    return [part for batch in stream for part in rows_by(batch.parts, cut, before=True)], cut


def _without_rows(batch: Batch) -> Batch:
    return replace(batch, parts=())


def as_one(
    parts: Sequence[tuple[Description, int, Rows]], now: Description, names: Sequence[str], got: Rows
) -> tuple[Rows, Rows]:
    """Return the results of windows that some programs give together, and those that came out, to be compared.

    Args:
        parts: of each program its description, the start from which on windows are its own, and its results alone.
        now: the description of the program that runs.
        names: its columns.
        got: what came out.
    """
    ends = [*(begins for _, begins, _ in parts[1:]), MAX]
    expected = [
        row
        for (was, begins, rows), end in zip(parts, ends, strict=True)
        for row in _as_shown(was, now, names, rows)
        if begins <= _start(row) < end
    ]
    since = {call["name"]: call[SINCE] for call in now["calls"] if SINCE in call}
    return [_null_before(since, row) for row in expected], [_null_before(since, row) for row in got]


def _as_shown(was: Description, now: Description, names: Sequence[str], rows: Rows) -> Rows:
    """Return the results of a program with the columns of a later one."""
    before, calls = was["calls"], now["calls"]
    numbers = zip(calls, matched_calls(before, calls), strict=True)
    sources = {call["name"]: None if number is None else before[number]["name"] for call, number in numbers}
    return [{name: _of(row, sources.get(name, name)) for name in names} for row in rows]


def _null_before(since: Mapping[str, int], row: dict[str, Any]) -> dict[str, Any]:
    """Return a result with NULL for calls that are not complete in its window."""
    return {name: None if _start(row) < since.get(name, MIN) else value for name, value in row.items()}


def _start(row: dict[str, Any]) -> int:
    start: int | None = row[WINDOW_START]
    return MIN if start is None else start


def _of(row: dict[str, Any], name: str | None) -> Any:
    return None if name is None else row[name]
