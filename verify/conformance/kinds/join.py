"""Kind ``join``: one input of two sides, in steps, through a join; a step is a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from verify.conformance.reading.fields import Json, NotUnderstoodError, require_known
from verify.conformance.reading.vectors import Case
from verify.conformance.replay.verdicts import Difference, Options
from windowpane.engines.batch.late_rows import DROPPED, WINDOWS_MISSED
from windowpane.engines.common.tagged import tagged
from windowpane.engines.join.program import LATE, JoinProgram, JoinSide, passed_name
from windowpane.engines.program import MAIN, WINDOW_END, WINDOW_START
from windowpane.engines.protocol import Clock
from windowpane.errors import InvalidSpecError
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.planning.engines import make_engine, with_engine
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.assigners import (
    CumulateEventTimeWindows,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from windowpane.windowing.expressions import SIDES, Side
from windowpane.windowing.joins import AsOfMatch, IntervalMatch, Match, WindowMatch
from windowpane.windowing.outputs import CHANGE_TYPE, DELETE, INSERT
from windowpane.windowing.times import MIN

REFERENCE = "join reference"

_COMMON = {"id", "name", "kind", "join", "input", "how", "allowed_lateness", "steps", "late", "checked_by"}
_TEXT = pa.string()
_LEFT = pa.schema([("key", _TEXT), ("id", _TEXT)])
_RIGHT = _LEFT.append(pa.field(CHANGE_TYPE, _TEXT))


def replay(case: Case, options: Options, engine: str | None = REFERENCE) -> list[Difference]:
    """Run the steps through an engine, the planner's choice if ``None``; with ``restart`` it is built anew after each.

    Raises:
        NotUnderstoodError: the engine does not run the join.
    """
    replayed = _Replay(_program(case, engine), options)
    differences = []
    for number, (step, expected) in enumerate(zip(case.get("input"), case.get("steps"), strict=True)):
        got, wanted = replayed.run(step), Counter[tuple[Any, ...]]()
        for row in expected:
            word, row = (row[0], row[1:]) if row[0] in (INSERT, DELETE) and replayed.retracts else (INSERT, row)
            wanted[tuple(row)] += -1 if word == DELETE else 1
        differences += _differences(f"step {number}", wanted, got)
    for side in SIDES:
        differences += _differences(f"late {side}", Counter(map(_late, case.get("late")[side])), replayed.late[side])
    return differences


def _differences(where: str, wanted: Counter[Any], got: Counter[Any]) -> list[Difference]:
    nets = [{row: count for row, count in each.items() if count} for each in (wanted, got)]
    return [] if nets[0] == nets[1] else [Difference(where, *(sorted(net.items(), key=str) for net in nets))]


def _late(entry: Any) -> tuple[Any, ...]:
    if isinstance(entry, str):
        return entry, (), True
    return entry["id"], tuple(sorted(map(tuple, entry.get("windows_missed", ())))), entry["dropped"]


def _program(case: Case, engine: str | None) -> JoinProgram:
    is_as_of = case.get("join") == "as_of"
    left = JoinSide(("key",), _LEFT, ("id",), has_late_output=True)
    right = JoinSide(("key",), _RIGHT if is_as_of else _LEFT, ("id",), has_late_output=True)
    lateness = case.get("allowed_lateness")
    program = JoinProgram(_match(case), case.get("how"), left, right, allowed_lateness=lateness, window_bound=pa.int64())
    try:
        return with_engine(program, engine)
    except InvalidSpecError as refused:
        raise NotUnderstoodError(str(refused)) from refused


def _match(case: Case) -> Match:
    kind = case.get("join")
    if kind == "interval_join":
        require_known(case.body, _COMMON | {"lower", "upper", "lower_open", "upper_open"}, "interval join")
        return IntervalMatch.of(*(case.get(name) for name in ("lower", "upper", "lower_open", "upper_open")))
    if kind == "as_of":
        require_known(case.body, _COMMON | {"direction", "tolerance", "allow_exact"}, "as-of join")
        return AsOfMatch(*(case.get(name) for name in ("direction", "tolerance", "allow_exact")))
    require_known(case.body, _COMMON | {"assigner"}, "window join")
    return WindowMatch(_assigner(case.get("assigner")))


_ASSIGNERS: dict[str, tuple[Callable[..., WindowAssigner], tuple[str, ...]]] = {
    "tumbling": (TumblingEventTimeWindows.of, ("size",)),
    "sliding": (SlidingEventTimeWindows.of, ("size", "slide")),
    "cumulate": (CumulateEventTimeWindows.of, ("size", "step")),
    "session": (EventTimeSessionWindows.with_gap, ("gap",)),
}


def _assigner(fields: Json) -> WindowAssigner:
    if fields["type"] not in _ASSIGNERS:
        raise NotUnderstoodError(f"assigner {fields['type']!r}")
    make, names = _ASSIGNERS[fields["type"]]
    require_known(fields, {"type", *names}, "assigner")
    return make(*(fields[name] for name in names))


class _Replay:
    """A program on its state."""

    def __init__(self, program: JoinProgram, options: Options) -> None:
        self._program = program
        self._options = options
        self._engine = make_engine(program)
        self._store = MemoryBlobStore()
        self._position = 0
        self.late: dict[Side, Counter[tuple[Any, ...]]] = {side: Counter() for side in SIDES}

    @property
    def retracts(self) -> bool:
        """Whether results are a changelog."""
        return self._program.retracts

    def run(self, step: Json) -> Counter[tuple[Any, ...]]:
        """Run a step as one batch and return its results: ids of both sides or of one, and bounds; of a changelog the net."""
        watermark = MIN if step["watermark"] is None else _least(step["watermark"])
        tables = [self._table(side, step[side]) for side in SIDES if step[side]]
        output = self._engine.run(self._store, tables, Clock(watermark, 0))
        if self._options.restart:
            restored = MemoryBlobStore()
            restored.restore(self._store.snapshot())
            self._store, self._engine = restored, make_engine(self._program)
        results = Counter[tuple[Any, ...]]()
        sides = {LATE[side]: side for side in SIDES}
        for number, table in output.tables:
            for row in table.to_pylist():
                if number == MAIN:
                    names = [passed_name("left", "id"), passed_name("right", "id"), WINDOW_START, WINDOW_END]
                    word = row.get(CHANGE_TYPE, INSERT)
                    results[tuple(row[name] for name in names if name in row)] += -1 if word == DELETE else 1
                else:
                    missed = tuple(sorted((each["start"], each["end"]) for each in row.get(WINDOWS_MISSED) or ()))
                    self.late[sides[number]][row["id"], missed, row.get(DROPPED, True)] += 1
        return results

    def _table(self, side: Side, rows: list[Any]) -> pa.Table:
        ids, keys, times, *tombstones = zip(*rows, strict=True)
        columns = {
            "key": pa.array(keys, _TEXT),
            "id": pa.array(ids, _TEXT),
            TIME: pa.array(times, pa.int64()),
            PARTITION: pa.array([SIDES.index(side)] * len(rows), pa.int32()),
            POSITION: pa.array(range(self._position, self._position + len(rows)), pa.int64()),
        }
        if CHANGE_TYPE in self._program.sides[side].columns.names:
            columns[CHANGE_TYPE] = pa.array([DELETE if deleted else INSERT for deleted in tombstones[0]], _TEXT)
        self._position += len(rows)
        return tagged(pa.table(columns), side=side)


def _least(watermark: Any) -> int:
    return watermark if isinstance(watermark, int) else min(watermark)
