"""Functions on Arrow tables: every engine calls them on tables of many keys and gives what the reference gives key by key."""

from __future__ import annotations

import datetime as dt
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import windowpane as wp
from tests.examples import seeds
from verify.fuzz.columns import PLAIN
from verify.fuzz.comparison import difference
from verify.fuzz.windowed_programs import LATE, TIMESTAMP
from verify.fuzz.windowed_streams import random_rows
from windowpane.engines.program import Program
from windowpane.engines.protocol import Clock
from windowpane.errors import ArrowResultError, InvalidSpecError, UserFunctionError
from windowpane.planning.engines import combiner_of, make_engine
from windowpane.planning.settings import Settings
from windowpane.planning.window_programs import InputTypes, compile_program
from windowpane.planning.windows import FunctionPlan, WindowPlan
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.arrow_functions import ArrowWindowFunction, InPandas, fitted
from windowpane.windowing.assigners import WindowAssigner

PANE = ["k", "window_start", "window_end"]
ASSIGNERS = [
    wp.TumblingEventTimeWindows.of(10),
    wp.SlidingEventTimeWindows.of(12, 4),
    wp.CumulateEventTimeWindows.of(12, 4),
    wp.EventTimeSessionWindows.with_gap(3),
    wp.TumblingProcessingTimeWindows.of(5),
]


class WeightedSum(wp.ArrowAggregateFunction):
    """The sum of n, each times the length of s, and the number of rows."""

    def partial(self, rows: pa.Table) -> pa.Table:
        lengths = pc.fill_null(pc.utf8_length(rows["s"]), 0)
        products = pc.multiply(pc.fill_null(rows["n"], 0), lengths).cast(pa.int64())
        ones = pa.array([1] * rows.num_rows, pa.int64())
        return self.merge(pa.table({"total": products, "rows": ones, wp.GROUP: rows[wp.GROUP]}))

    def merge(self, partials: pa.Table) -> pa.Table:
        sums = partials.group_by(wp.GROUP).aggregate([("total", "sum"), ("rows", "sum")])
        return sums.rename_columns([wp.GROUP, "total", "rows"]).sort_by([(wp.GROUP, "descending")])

    def finish(self, partials: pa.Table) -> pa.Table:
        return partials.select(["rows", "total"])


WEIGHTED = pa.schema([("total", pa.int64()), ("rows", pa.int64())])


def numbered_rows(rows: pa.Table) -> pa.Table:
    """Return each row of s with its place in its key and window, which shows the order of arrival."""
    frame = rows.select([*PANE, "s"]).to_pandas()
    frame["place"] = frame.groupby(PANE, dropna=False).cumcount()
    return pa.Table.from_pandas(frame, preserve_index=False)


def numbered_frame(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[[*PANE, "s"]].assign(place=frame.groupby(PANE, dropna=False).cumcount())


PLACES = pa.schema([("s", pa.string()), ("place", pa.int64())])
FUNCTIONS: dict[str, tuple[Any, pa.Schema]] = {
    "aggregate": (WeightedSum(), WEIGHTED),
    "apply_in_arrow": (ArrowWindowFunction(numbered_rows, "apply_in_arrow"), PLACES),
    "apply_in_pandas": (ArrowWindowFunction(InPandas(numbered_frame), "apply_in_pandas"), PLACES),
}


def program_of(function: Any, schema: pa.Schema, assigner: WindowAssigner, late: bool = True, **parts: Any) -> Program:
    given = Settings.among({"late_tag": LATE if late else None, **parts})
    plan = WindowPlan(("k",), assigner, FunctionPlan("aggregate", arrow=function, schema="given"), event_time="t", **given)
    types = InputTypes(PLAIN, pa.schema([PLAIN.field("k")]), ("k",), TIMESTAMP, {}, declared=schema)
    return compile_program(plan, types, PLAIN.names)


def steps_of(seed: int) -> list[tuple[Clock, list[pa.Table]]]:
    draw, watermark, steps = Random(seed), -30, []
    for number in range(4):
        rows = random_rows(draw, draw.randint(1, 8), watermark)
        steps.append((Clock(watermark, 1 + number), [rows.slice(3), rows.slice(0, 3)]))
        watermark += draw.randint(0, 25)
    return [*steps, (Clock(1000, 1000), []), (Clock(2000, 2000), [])]


def run(program: Program, steps: list[tuple[Clock, list[pa.Table]]], combined: bool = False) -> list[list[list[dict]]]:
    """Return the rows of main and late output, batch by batch, with engine and state made anew each time."""
    store, outputs, combine = MemoryBlobStore(), [], combiner_of(program)
    for clock, tables in steps:
        sent = [combine(table) for table in tables if table.num_rows] if combined and combine else tables
        output = make_engine(program).run(store, sent, clock)
        outputs.append([_rows(output.tables, number) for number in (0, 1)])
    return outputs


def _rows(tables: Any, number: int) -> list[dict]:
    return [row for which, table in tables if which == number for row in table.to_pylist()]


@pytest.mark.slow_but_one_in(2)
@pytest.mark.parametrize("seed", seeds(4))
@pytest.mark.parametrize("assigner", ASSIGNERS, ids=lambda assigner: type(assigner).__name__)
@pytest.mark.parametrize("kind", FUNCTIONS)
@pytest.mark.parametrize("lateness", [0, 20])
def test_the_planners_engine_gives_what_the_reference_gives(
    kind: str, assigner: WindowAssigner, lateness: int, seed: int
) -> None:
    function, schema = FUNCTIONS[kind]
    parts: dict[str, Any] = {"allowed_lateness": lateness if assigner.is_event_time else 0}
    expected = run(program_of(function, schema, assigner, **parts, engine="reference"), steps_of(seed))
    got = run(program_of(function, schema, assigner, **parts), steps_of(seed))
    for wanted, shown in zip(expected, got, strict=True):
        assert difference(wanted[0], shown[0]) is None
        assert difference(wanted[1], shown[1]) is None


EARLY: list[dict[str, Any]] = [
    {"assigner": wp.TumblingEventTimeWindows.of(10), "trigger": wp.ContinuousEventTimeTrigger.of(3)},
    {"assigner": wp.SlidingEventTimeWindows.of(12, 4), "evictor": wp.CountEvictor.of(2)},
    {"assigner": wp.SlidingEventTimeWindows.of(12, 4), "evictor": wp.TimeEvictor.of(3), "allowed_lateness": 20},
    {"assigner": wp.TumblingProcessingTimeWindows.of(5), "trigger": wp.ContinuousProcessingTimeTrigger.of(2)},
]
COUNTED: list[dict[str, Any]] = [
    {"assigner": wp.GlobalWindows.create(), "trigger": wp.PurgingTrigger.of(wp.CountTrigger.of(2))},
    {"assigner": wp.GlobalWindows.create(), "trigger": wp.CountTrigger.of(2), "evictor": wp.CountEvictor.of(4)},
    {"assigner": wp.TumblingEventTimeWindows.of(30), "trigger": wp.CountTrigger.of(2), "evictor": wp.TimeEvictor.of(9)},
]


@pytest.mark.slow_but_one_in(2)
@pytest.mark.parametrize("seed", seeds(4))
@pytest.mark.parametrize(
    ("kind", "parts"), [*((kind, parts) for kind in FUNCTIONS for parts in EARLY), *(("aggregate", parts) for parts in COUNTED)]
)
def test_early_results_evictors_and_counts_give_what_the_reference_gives(kind: str, parts: dict[str, Any], seed: int) -> None:
    program = program_of(*FUNCTIONS[kind], **parts)
    assert program.engine == "panes"
    expected = run(program_of(*FUNCTIONS[kind], **parts, engine="reference"), steps_of(seed))
    for wanted, shown in zip(expected, run(program, steps_of(seed)), strict=True):
        assert difference(wanted[0], shown[0]) is None
        assert difference(wanted[1], shown[1]) is None


def test_partials_of_the_user_are_made_before_the_shuffle() -> None:
    program = program_of(WeightedSum(), WEIGHTED, wp.TumblingEventTimeWindows.of(10), late=False)
    assert combiner_of(program) is not None
    plain, combined = run(program, steps_of(3)), run(program, steps_of(3), combined=True)
    assert [difference(a[0], b[0]) for a, b in zip(plain, combined, strict=True)] == [None] * len(plain)


def test_whole_rows_are_not_folded_before_the_shuffle() -> None:
    program = program_of(*FUNCTIONS["apply_in_arrow"], wp.TumblingEventTimeWindows.of(10), late=False)
    assert program.engine == "slices"
    assert combiner_of(program) is None


def test_a_table_holds_all_keys_of_a_firing() -> None:
    seen: list[set] = []

    def remember(rows: pa.Table) -> pa.Table:
        seen.append(set(rows["k"].to_pylist()))
        return rows.select([*PANE, "s"])

    schema = pa.schema([("s", pa.string())])
    program = program_of(ArrowWindowFunction(remember, "apply_in_arrow"), schema, wp.TumblingEventTimeWindows.of(1000))
    steps = [(Clock(-100, 1), [random_rows(Random(1), 30, 300)]), (Clock(999, 1), [])]
    run(program, steps)
    assert seen == [{"a", "b", "c", None}]


class Broken(WeightedSum):
    def __init__(self, step: str, result: Any) -> None:
        self._step, self._result = step, result

    def _broken(self, step: str, table: pa.Table) -> pa.Table:
        if step != self._step:
            return getattr(WeightedSum, step)(WeightedSum(), table)
        return self._result(table) if callable(self._result) else self._result

    def partial(self, rows: pa.Table) -> pa.Table:
        return self._broken("partial", rows)

    def finish(self, partials: pa.Table) -> pa.Table:
        return self._broken("finish", partials)


def fail(table: pa.Table) -> pa.Table:
    raise RuntimeError("no luck")


@pytest.mark.parametrize("engine", [None, "reference"])
@pytest.mark.parametrize(
    ("function", "schema", "error", "words"),
    [
        (Broken("partial", lambda rows: rows.slice(0, 0)), WEIGHTED, ArrowResultError, "0 rows for"),
        (Broken("partial", lambda rows: rows.drop_columns([wp.GROUP])), WEIGHTED, ArrowResultError, "no column '__group'"),
        (Broken("partial", {"a": 1}), WEIGHTED, ArrowResultError, "a dict, but a pyarrow.Table"),
        (Broken("partial", fail), WEIGHTED, UserFunctionError, "RuntimeError: no luck"),
        (Broken("finish", lambda partials: partials.slice(1)), WEIGHTED, ArrowResultError, "finish returned"),
        (Broken("finish", lambda partials: partials), pa.schema([("x", pa.int64())]), ArrowResultError, r"\['x'\] were expected"),
        (ArrowWindowFunction(fail, "apply_in_arrow"), PLACES, UserFunctionError, "RuntimeError: no luck"),
        (ArrowWindowFunction(lambda rows: rows, "apply_in_arrow"), PLACES, ArrowResultError, "were expected"),
        (
            ArrowWindowFunction(lambda rows: rows.select([*PANE, "s"]), "apply_in_arrow"),
            pa.schema([("s", pa.date32())]),
            ArrowResultError,
            "has the types",
        ),
    ],
)
def test_what_does_not_fit_is_refused(engine: str | None, function: Any, schema: pa.Schema, error: type, words: str) -> None:
    program = program_of(function, schema, wp.TumblingEventTimeWindows.of(10), engine=engine)
    with pytest.raises(error, match=words):
        run(program, [(Clock(0, 1), [random_rows(Random(2), 5, 300)]), (Clock(10_000, 1), [])])


@pytest.mark.parametrize(
    ("found", "kind", "values", "words"),
    [
        (pa.timestamp("us"), pa.date32(), [dt.datetime(2024, 1, 2), dt.datetime(2024, 1, 2, 3)], "'x' with times of day"),
        (pa.struct([("a", pa.int8()), ("b", pa.int8())]), pa.struct([("a", pa.int8())]), [], "'x' with a field 'b'"),
        (
            pa.map_(pa.string(), pa.list_(pa.struct([("b", pa.int8())]))),
            pa.map_(pa.string(), pa.list_(pa.struct([("a", pa.int8())]))),
            [],
            "'x' with a field 'b'",
        ),
    ],
)
def test_what_a_cast_would_leave_out_is_refused(found: pa.DataType, kind: pa.DataType, values: list[Any], words: str) -> None:
    with pytest.raises(ArrowResultError, match=words):
        fitted("function", pa.table({"x": pa.array(values, found)}), pa.schema([("x", kind)]))


def test_what_a_cast_leaves_as_it_is_passes() -> None:
    days = pa.array([dt.datetime(2024, 1, 2), None], pa.timestamp("ns"))  # of pandas, which has no dates
    structs = pa.array([{"b": 2, "a": 1}, None], pa.struct([("b", pa.int64()), ("a", pa.int64())]))
    schema = pa.schema([("day", pa.date32()), ("s", pa.struct([("a", pa.int8()), ("b", pa.int8())]))])
    local = pc.assume_timezone(days, "Europe/Berlin")
    for each in (days, local):
        table = fitted("function", pa.table({"s": structs, "day": each}), schema)
        assert table.to_pylist() == [{"day": dt.date(2024, 1, 2), "s": {"a": 1, "b": 2}}, {"day": None, "s": None}]


def test_a_window_without_rows_has_nulls() -> None:
    """An evictor may leave no rows: an incremental function then has no partial to finish."""
    trigger, evictor = wp.CountTrigger.of(1), wp.CountEvictor.of(0)
    program = program_of(WeightedSum(), WEIGHTED, wp.GlobalWindows.create(), trigger=trigger, evictor=evictor)
    (output, *_) = run(program, [(Clock(0, 1), [random_rows(Random(2), 1, 300)])])
    assert [(row["total"], row["rows"]) for row in output[0]] == [(None, None)]


def test_a_process_function_behind_it_is_refused() -> None:
    windowed = wp.WindowedStream(None, ("k",), (), wp.TumblingEventTimeWindows.of(10))  # type: ignore[arg-type]
    with pytest.raises(InvalidSpecError, match="one key at a time"):
        windowed.aggregate(WeightedSum(), object(), "total bigint")  # type: ignore[call-overload]
