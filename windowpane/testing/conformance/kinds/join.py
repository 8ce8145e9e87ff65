"""Kind ``join``: one input of two sides, in steps, through a join; a step is a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from windowpane.engines.common.late_rows import DROPPED
from windowpane.engines.join.program import LATE_LEFT, LATE_RIGHT, JoinProgram
from windowpane.engines.join.reference import JoinReferenceEngine
from windowpane.engines.program import MAIN
from windowpane.engines.protocol import Clock, Engine
from windowpane.hidden_columns import PARTITION, POSITION, SIDE, TIME
from windowpane.state.memory import MemoryBlobStore
from windowpane.testing.conformance.reading.fields import Json, NotUnderstoodError, require_known
from windowpane.testing.conformance.reading.vectors import Case
from windowpane.testing.conformance.replay.verdicts import Difference, Options
from windowpane.windowing.changes import CHANGE_TYPE, DELETE, INSERT
from windowpane.windowing.joins import LEFT, RIGHT, AsOfJoin, IntervalJoin
from windowpane.windowing.times import MIN

MakeEngine = Callable[[JoinProgram], Engine]
"""Makes the engine of a program, or raises ``NotUnderstoodError`` with the reason why it does not run it."""

_COMMON = {"id", "name", "kind", "join", "input", "how", "allowed_lateness", "steps", "late", "checked_by"}
_KEY = pa.schema([("key", pa.string())])
_SIDES = pa.schema([("lid", pa.string())]), pa.schema([("rid", pa.string())])


def replay(case: Case, options: Options, engine: MakeEngine = JoinReferenceEngine) -> list[Difference]:
    """Run the steps through the engine; with ``restart`` it is built anew on what its state was written to, after each."""
    if case.get("join") == "window_join":
        raise NotUnderstoodError("window joins are not understood yet")
    replayed = _Replay(_program(case), engine, options)
    differences = []
    for number, (step, expected) in enumerate(zip(case.get("input"), case.get("steps"), strict=True)):
        got = Counter(replayed.run(step))
        if got != Counter(map(tuple, expected)):
            differences.append(
                Difference(f"step {number}", sorted(map(tuple, expected), key=str), sorted(got.elements(), key=str))
            )
    expected_late = {side: Counter(map(_late, case.get("late")[side])) for side in ("left", "right")}
    if replayed.late != expected_late:
        differences.append(Difference("late", expected_late, replayed.late))
    return differences


def _late(entry: Any) -> tuple[str, bool]:
    return (entry, True) if isinstance(entry, str) else (entry["id"], entry["dropped"])


def _program(case: Case) -> JoinProgram:
    return JoinProgram(_spec(case), _KEY, *_SIDES, right_is_changelog=case.get("join") == "as_of", late_outputs=(True, True))


def _spec(case: Case) -> IntervalJoin | AsOfJoin:
    how, lateness = case.get("how"), case.get("allowed_lateness")
    if case.get("join") == "interval_join":
        require_known(case.body, _COMMON | {"lower", "upper", "lower_open", "upper_open"}, "interval join")
        lower, upper = case.get("lower") + case.get("lower_open"), case.get("upper") - case.get("upper_open")
        return IntervalJoin(how, lower, upper, allowed_lateness=lateness)
    require_known(case.body, _COMMON | {"direction", "tolerance", "allow_exact"}, "as-of join")
    return AsOfJoin(how, case.get("direction"), case.get("tolerance"), case.get("allow_exact"), lateness)


@dataclass
class _Replay:
    """A program on its state."""

    program: JoinProgram
    make: MakeEngine
    options: Options
    late: dict[str, Counter[tuple[str, bool]]] = field(default_factory=lambda: {"left": Counter(), "right": Counter()})

    def __post_init__(self) -> None:
        self._engine = self.make(self.program)
        self._store = MemoryBlobStore()
        self._position = 0

    def run(self, step: Json) -> list[tuple[str | None, ...]]:
        """Run a step as one batch and return its results: ids of both sides, or of one."""
        watermark = step["watermark"]
        watermark = MIN if watermark is None else watermark if isinstance(watermark, int) else min(watermark)
        tables = [self._table(LEFT, step["left"]), self._table(RIGHT, step["right"])]
        output = self._engine.run(self._store, tables, Clock(watermark, 0))
        if self.options.restart:
            restored = MemoryBlobStore()
            restored.restore(self._store.snapshot())
            self._store, self._engine = restored, self.make(self.program)
        results = []
        for number, table in output.tables:
            if number == MAIN:
                names = [name for name in ("lid", "rid") if name in table.column_names]
                results += [tuple(row[name] for name in names) for row in table.to_pylist()]
            for late, side, name in ((LATE_LEFT, "left", "lid"), (LATE_RIGHT, "right", "rid")):
                if number == late:
                    self.late[side].update((row[name], row[DROPPED]) for row in table.to_pylist())
        return results

    def _table(self, side: int, rows: list[Any]) -> pa.Table:
        ids, keys, times, *tombstones = zip(*rows, strict=True) if rows else ((), (), ())
        columns = {
            "key": pa.array(keys, pa.string()),
            _SIDES[side].names[0]: pa.array(ids, pa.string()),
            SIDE: pa.array([side] * len(rows), pa.int8()),
            TIME: pa.array(times, pa.int64()),
            PARTITION: pa.array([side] * len(rows), pa.int32()),
            POSITION: pa.array(range(self._position, self._position + len(rows)), pa.int64()),
        }
        if side == RIGHT and self.program.right_is_changelog:
            words = [DELETE if deleted else INSERT for deleted in (tombstones[0] if tombstones else ())]
            columns[CHANGE_TYPE] = pa.array(words, pa.string())
        self._position += len(rows)
        return pa.table(columns)
