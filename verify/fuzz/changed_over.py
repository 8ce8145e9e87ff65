"""OVER windows whose calls change in the middle of a stream: some are added, removed, renamed or moved.

What comes out has to be what both programs give that run alone on the whole stream. On update, the changelog applied is after
each batch the table of the program that runs; where rows were freed before, calls that are new may differ. On close each row
comes out once, and is that of the program that emits it.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa

from verify.fuzz.comparison import difference
from verify.fuzz.outcome import Outcome, differences_of
from verify.fuzz.over import described
from verify.fuzz.over_parts.inputs import Batch, random_trial
from verify.fuzz.over_parts.run import UnsoundError, _UpdateCheck, _visible
from windowpane.engines.changes import Verdict, matched_calls
from windowpane.engines.over.program import Emit, OverProgram
from windowpane.engines.program import MAIN
from windowpane.engines.protocol import Clock
from windowpane.errors import WindowpaneError
from windowpane.planning.changing import Held, continued
from windowpane.planning.description.programs import of_over
from windowpane.planning.engines import make_engine, with_engine
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.outputs import CHANGE_TYPE

Rows = list[dict[str, Any]]


def run(seed: int) -> Outcome:
    """Run a program, change its calls, and compare what comes out with each program alone."""
    draw, trial = Random(seed), random_trial(seed)
    engine = "over reference" if draw.random() < 0.25 else None
    programs = [_with_calls(draw, trial.program, engine) for _ in range(draw.choice([2, 2, 3]))]
    if Random(f"read {seed}").random() < 0.3:  # what stands behind it reads the identity of rows, and the calls
        identity = {*trial.program.spec.partition_by, *trial.program.spec.key}
        programs = [replace(each, read=frozenset(identity.union(each.outputs.names))) for each in programs]
    text = "\n  becomes\n".join(described(replace(trial, program=each)) for each in programs)
    found = differences_of(seed, lambda: _differences(draw, programs, trial.batches), (WindowpaneError, UnsoundError))
    return Outcome(seed, text, " -> ".join(each.engine for each in programs), found)


def _with_calls(draw: Random, program: OverProgram, engine: str | None) -> OverProgram:
    numbers = list(range(len(program.spec.calls)))
    chosen = draw.sample(numbers, draw.randint(1, len(numbers)))
    among = draw.sample(program.outputs.names, len(chosen))  # a call may get the name that another one had
    pairs = zip(chosen, among, strict=True)
    names = [program.outputs.names[number] if draw.random() < 0.5 else f"u{name}" for number, name in pairs]
    outputs = pa.schema([program.outputs.field(number).with_name(name) for number, name in zip(chosen, names, strict=True)])
    spec = replace(program.spec, calls=tuple(program.spec.calls[number] for number in chosen))
    made = replace(program, spec=spec, outputs=outputs)
    made = replace(made, engine=engine or with_engine(made).engine)
    return replace(made, description=of_over(made))


class _Bucket:
    def __init__(self, program: OverProgram) -> None:
        self.program, self.store = program, MemoryBlobStore()
        self.table: dict[bytes, dict[str, Any]] = {}

    def run(self, batch: Batch) -> Rows:
        """Return what a batch emits, after it is applied to the table of results."""
        output = make_engine(self.program).run(self.store, [batch.rows], Clock(batch.watermark, 0))
        rows = [row for number, table in output.tables if number == MAIN for row in _visible(table, [CHANGE_TYPE])]
        if self.program.mode is Emit.UPDATE:
            check = _UpdateCheck(self.program, None)  # type: ignore[arg-type]  # it is not asked
            check._output = self.table
            check._apply([dict(row) for row in rows])
        return rows


def _differences(draw: Random, programs: list[OverProgram], batches: tuple[Batch, ...]) -> list[str]:
    alone = [_Bucket(each) for each in programs]
    told = [[of.run(batch) if of.program.mode is Emit.CLOSE else _of(of, batch) for batch in batches] for of in alone]
    points = sorted(draw.randint(1, max(1, len(batches) - 1)) for _ in programs[1:])
    seen: list[int] = []
    bucket, now, is_free = _Bucket(programs[0]), 0, set[str]()
    for number, batch in enumerate(batches):
        if points and points[0] <= number and now + 1 < len(programs):
            points.pop(0)
            headers = [("header", blob) for blob in [bucket.store.get("header")] if blob is not None]
            held = Held.of(headers)
            if held is None:
                return []
            before, now = bucket.program, now + 1
            made, report = continued(programs[now], replace(held, before=tuple(each.description for each in programs)))
            if report.verdict is Verdict.REFUSED or not isinstance(made, OverProgram):
                return []
            bucket.program = made
            sources = _sources(before, made)
            accepted = {each.part.removeprefix("call ") for each in report.parts if each.outcome.verdict is Verdict.ACCEPT}
            is_free = {name for name, old in sources.items() if old in is_free or name in accepted}
            bucket.table = {key: _renamed(row, before, made, sources) for key, row in bucket.table.items()}
        snapshot = bucket.store.snapshot()
        table = dict(bucket.table)
        try:
            got = bucket.run(batch)
            if draw.random() < 0.3:
                bucket.store.restore(snapshot)
                bucket.table = table
                if difference(got, bucket.run(batch)) is not None:
                    return [f"batch {number}, repeated, differs"]
        except UnsoundError as reason:
            return [f"batch {number}: {reason}"]
        expected = told[now][number]
        if bucket.program.mode is Emit.UPDATE:
            got = list(bucket.table.values())
        else:  # a row waits as long as its program says, and comes out once
            every = {row["id"]: row for rows in told[now] for row in rows}
            seen += [row["id"] for row in got]
            expected = [every[row["id"]] for row in got if row["id"] in every]
            if len(seen) > len({*seen}) or (number + 1 == len(batches) and {*seen} != every.keys()):
                return [f"batch {number}: rows {sorted(seen)}, where {sorted(every)} were expected"]
        free = is_free | {CHANGE_TYPE}
        found = difference(*([_without(row, free) for row in rows] for rows in (expected, got)))
        if found is not None:
            return [f"batch {number}, {is_free}: {found}"]
    return []


def _renamed(row: dict[str, Any], before: OverProgram, now: OverProgram, sources: dict[str, str | None]) -> dict[str, Any]:
    """Return a row of the table as readers of the new program see it."""
    alike = {field.name for field in before.outputs if field in [*now.outputs]}
    shown = {name: source or (name if name in alike else None) for name, source in sources.items()}
    return {name: row[name] for name in now.columns.names if name in row} | {
        name: old and row[old] for name, old in shown.items()
    }


def _of(bucket: _Bucket, batch: Batch) -> Rows:
    bucket.run(batch)
    return [dict(row) for row in bucket.table.values()]


def _sources(before: OverProgram, now: OverProgram) -> dict[str, str | None]:
    numbers = matched_calls(before.description["calls"], now.description["calls"])
    pairs = zip(now.outputs.names, numbers, strict=True)
    return {name: None if number is None else before.outputs.names[number] for name, number in pairs}


def _without(row: dict[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}
