"""The table of changes, as data: what may change, the verdict, and programs that show it. The documentation has it, too."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tests.engines.common.test_added_columns import BEFORE, NOW, entry, rows
from tests.engines.common.test_changed_programs import deduplication
from tests.engines.rolling.test_rolling_growth import call
from tests.engines.rolling.test_rolling_growth import program_of as rolling_program
from verify.fuzz.windowed_programs import program_of
from windowpane import aggregates as agg
from windowpane.engines.deduplication.program import Keep
from windowpane.engines.join.program import JoinProgram, JoinSide
from windowpane.engines.over.program import Emit, OverProgram
from windowpane.engines.patterns.program import PatternProgram
from windowpane.engines.program import WINDOW_END, WINDOW_START
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.planning.description.programs import of_join, of_over, of_patterns, of_rolling
from windowpane.windowing import triggers
from windowpane.windowing.assigners import (
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from windowpane.windowing.evictors import CountEvictor
from windowpane.windowing.expressions import Constant, Operation
from windowpane.windowing.frames import UNBOUNDED_PRECEDING, Frame, preceding
from windowpane.windowing.joins import ArrivalMatch, AsOfMatch, IntervalMatch, WindowMatch
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec
from windowpane.windowing.over.types import output_schema
from windowpane.windowing.patterns.spec import Measure, PatternSpec
from windowpane.windowing.patterns.text import parse_pattern
from windowpane.windowing.patterns.values import Picked
from windowpane.windowing.spec import PaneSettings
from windowpane.windowing.times import MAX, MIN

Rows = list[dict[str, Any]]
Law = Callable[[Rows, Rows], Rows]
"""What the old program gives alone after the change, and the new one -> what comes out."""


@dataclass(frozen=True)
class Row:
    """One row of the table.

    Args:
        of: what kind of program it is about.
        change: what changes, as the documentation says.
        verdict: the verdict.
        engine: the engine of both programs, or of each.
        old: the program before.
        new: the program after.
        law: what comes out after the change, ``None`` where nothing may.
        incomplete: what calls that are added give for windows that are open.
        closes: whether all windows are closed before the change.
    """

    of: str
    change: str
    verdict: str
    engine: str
    old: Any
    new: Any
    law: Law | None = None
    incomplete: Any = "null"
    closes: bool = False


# Streams: (watermark, rows), of which those from the third on come after the change.

Times = Sequence[tuple[int, str, int]]
STREAM: Sequence[tuple[int, Times]] = [
    (MIN, [(1, "a", 1), (3, "b", 2), (12, "a", 4)]),
    (5, [(14, "b", 8), (16, "a", 16)]),
    (11, [(13, "a", 32), (18, "b", 64), (24, "a", 128), (31, "b", 256)]),
    (21, [(26, "a", 512), (33, "b", 1024)]),
    (MAX, []),
]
CHANGED_AT = 2
CLOSED = [(MIN, STREAM[0][1]), (30, []), (30, [(35, "a", 1), (41, "b", 2)]), (38, [(44, "a", 4)]), (MAX, [])]

NARROW = pa.schema([("k", pa.string()), ("n", pa.int32()), ("f", pa.float32()), ("m", pa.decimal128(12, 2))])
WIDE = pa.schema([("k", pa.string()), ("n", pa.int64()), ("f", pa.float64()), ("m", pa.decimal128(16, 3))])


def windows_table(columns: pa.Schema, entries: Times) -> pa.Table:
    found = [{"k": key, "n": value, "f": value / 2, "m": value, TIME: time} for time, key, value in entries]
    table = pa.Table.from_pylist(found, pa.schema([*columns, pa.field(TIME, pa.int64())]))
    table = table.append_column(PARTITION, pa.array([0] * len(entries), pa.int32()))
    return table.append_column(POSITION, pa.array(range(len(entries)), pa.int64()))


TENS, FIVES = TumblingEventTimeWindows.of(10), TumblingEventTimeWindows.of(5)
GAP, ALL = EventTimeSessionWindows(4), GlobalWindows.create()
SUM = {"s": agg.sum("n")}
MORE = {**SUM, "top": agg.max("n")}
MANY = {"s": agg.sum("n"), "c": agg.count("n"), "top": agg.max("f")}


def windows(assigner: Any, calls: Any, columns: pa.Schema = NARROW, **parts: Any) -> Any:
    return program_of(assigner, calls, ("k",), window_bound=pa.int64(), columns=columns, **parts)


def of_new(old: Rows, new: Rows) -> Rows:
    return new


def null_before(name: str, since: int) -> Law:
    """The new program's results, with NULL in a call where its window starts before an instant; one without a start, always."""

    def law(old: Rows, new: Rows) -> Rows:
        return [{**row, name: None if (row[WINDOW_START] or MIN) < since else row[name]} for row in new]

    return law


def by_cut(cut: int) -> Law:
    """The old program's windows that start before an instant, the new one's from there on; NULL in calls that the old lacks."""

    def law(old: Rows, new: Rows) -> Rows:
        names = new[0].keys()
        before = [{name: row.get(name) for name in names} for row in old if row[WINDOW_START] < cut]
        return before + [row for row in new if row[WINDOW_START] >= cut]

    return law


def partial_top(old: Rows, new: Rows) -> Rows:
    """The greatest value of the rows since the change, by hand, in the windows that were open."""
    seen = {("a", 0): None, ("b", 0): None, ("a", 10): 32, ("b", 10): 64}
    return [{**row, "top": seen.get((row["k"], row[WINDOW_START]), row["top"])} for row in new]


COUNTED = {"trigger": triggers.PurgingTrigger.of(triggers.CountTrigger.of(4))}
COUNT_3 = {"trigger": triggers.PurgingTrigger.of(triggers.CountTrigger.of(3))}
SHORTER = {"trigger": triggers.PurgingTrigger.of(triggers.CountTrigger.of(2))}
LAST_4 = {"trigger": triggers.CountTrigger.of(3), "evictor": CountEvictor.of(4)}
LAST_2 = {"trigger": triggers.CountTrigger.of(3), "evictor": CountEvictor.of(2)}


def results(*wanted: tuple[Any, ...]) -> Law:
    """Results by hand."""
    return lambda old, new: [{WINDOW_END: None, **dict(zip(("k", WINDOW_START, "s"), row, strict=True))} for row in wanted]


def longer_gap(old: Rows, new: Rows) -> Rows:
    """By hand: sessions that are open keep their end, rows to come have the gap of six."""
    sessions = [("b", 3, 7, 2), ("a", 12, 20, 52), ("b", 14, 24, 72), ("a", 24, 32, 640), ("b", 31, 39, 1280)]
    return [dict(zip(("k", WINDOW_START, WINDOW_END, "s"), each, strict=True)) for each in sessions]


def sessions_of(*found: tuple[Any, ...]) -> Law:
    """Sessions by hand."""
    return lambda old, new: [dict(zip(("k", WINDOW_START, WINDOW_END, "s"), each, strict=True)) for each in found]


# of the sessions that are open, a's from 12 has 20 and b's from 14 has 8; b's from 3 ends before a row comes to it
sessions_of_each_batch = sessions_of(
    ("a", 12, 20, 52), ("a", 24, 28, 128), ("b", 14, 22, 72), ("b", 31, 35, 256), ("a", 24, 30, 640), ("b", 31, 37, 1280)
)
early_and_final = sessions_of(
    ("b", 3, 7, 2), ("a", 12, 20, 52), ("b", 14, 22, 72), *[("a", 24, 30, 640), ("b", 31, 37, 1280)] * 2
)
EARLY = {
    "trigger": triggers.composable.AfterWatermark(early=triggers.composable.AfterCount(2)),
    "panes": PaneSettings("accumulating"),
}
sessions_of_two = sessions_of(("a", 24, 30, 640), ("b", 31, 37, 1280))

ADDED, REMOVED, RENAMED = "an aggregate is added", "an aggregate is removed", "aggregates are renamed, or in another order"
WIDER, LATER = "the type of an argument is wider (int to bigint, float to double, more digits)", "allowed lateness"
ANOTHER = {"s": agg.sum("n"), "total": agg.sum("n")}
OF_WINDOWS = [
    Row("windows", ADDED, "accept", "slices", windows(TENS, SUM), windows(TENS, MORE), null_before("top", 17)),
    Row("windows", ADDED, "accept", "sessions", windows(GAP, SUM), windows(GAP, MORE), null_before("top", 17)),
    Row(
        "windows", ADDED, "accept", "panes", windows(ALL, SUM, **COUNTED), windows(ALL, MORE, **COUNTED), null_before("top", MAX)
    ),
    Row(
        "windows",
        f"{ADDED}, where state is no partials",
        "accept",
        "reference",
        windows(TENS, SUM, engine="reference"),
        windows(TENS, MORE, engine="reference"),
        by_cut(20),
    ),
    Row(
        "windows",
        f'{ADDED}, with `incomplete="partial"`',
        "accept",
        "slices",
        windows(TENS, SUM),
        windows(TENS, MORE),
        partial_top,
        incomplete="partial",
    ),
    Row(
        "windows",
        f"{ADDED}, and no window is open",
        "safe",
        "slices",
        windows(TENS, SUM),
        windows(TENS, MORE),
        of_new,
        closes=True,
    ),
    Row(
        "windows",
        f"{ADDED}, and no window is open",
        "safe",
        "sessions",
        windows(GAP, SUM),
        windows(GAP, MORE),
        of_new,
        closes=True,
    ),
    *(
        Row(
            "windows",
            f"{ADDED} that others are made of: an average of a sum and a count",
            "safe",
            engine,
            windows(assigner, MANY, **more),
            windows(assigner, {**MANY, "mean": agg.avg("n")}, **more),
            of_new,
        )
        for engine, assigner, more in (("slices", TENS, {}), ("sessions", GAP, {}), ("panes", ALL, COUNT_3))
    ),
    *(
        Row("windows", REMOVED, "safe", engine, windows(assigner, MANY, **more), windows(assigner, SUM, **more), of_new)
        for engine, assigner, more in (("slices", TENS, {}), ("sessions", GAP, {}), ("panes", ALL, COUNT_3))
    ),
    Row(
        "windows", RENAMED, "safe", "slices", windows(TENS, MANY), windows(TENS, {"x": agg.count("n"), "y": agg.sum("n")}), of_new
    ),
    Row(
        "windows", RENAMED, "safe", "sessions", windows(GAP, MANY), windows(GAP, {"x": agg.count("n"), "y": agg.sum("n")}), of_new
    ),
    *(
        Row(
            "windows",
            WIDER,
            "safe",
            engine,
            windows(assigner, {**MANY, "e": agg.sum("m"), "l": agg.collect_set("n")}, **more),
            windows(assigner, {**MANY, "e": agg.sum("m"), "l": agg.collect_set("n")}, WIDE, **more),
            of_new,
        )
        for engine, assigner, more in (("slices", TENS, {}), ("sessions", GAP, {}), ("panes", ALL, COUNT_3))
    ),
    Row(
        "windows",
        "the type of an argument is narrower, or of another kind",
        "refused",
        "slices",
        windows(TENS, SUM, WIDE),
        windows(TENS, SUM),
    ),
    Row(
        "windows",
        f"{LATER} of windows with a start and an end",
        "safe",
        "slices",
        windows(TENS, SUM),
        windows(TENS, SUM, allowed_lateness=20),
        by_cut(20),
    ),
    *(
        Row(
            "windows",
            f"{LATER} of sessions",
            "safe",
            engine,
            windows(GAP, SUM, engine=engine, allowed_lateness=old, **parts),
            windows(GAP, SUM, engine=engine, allowed_lateness=new, **parts),
            of_new,
        )
        for engine in ("sessions", "reference")
        for parts in ({}, {"refine": "each"}, {"trigger": triggers.PurgingTrigger.of(triggers.EventTimeTrigger())}, SHORTER)
        for old, new in ((0, 2), (12, 2))
    ),
    Row(
        "windows",
        "another trigger of windows with a start and an end",
        "accept",
        "slices panes",
        windows(TENS, SUM),
        windows(TENS, SUM, trigger=triggers.EachBatch()),
        by_cut(20),
    ),
    Row(
        "windows",
        "another trigger of global windows",
        "accept",
        "panes",
        windows(ALL, SUM, **COUNTED),
        windows(ALL, SUM, trigger=triggers.EachBatch()),
        results(("a", None, 181), ("b", None, 330), ("a", None, 693), ("b", None, 1354)),
    ),
    *(
        Row(
            "windows",
            "another trigger of global windows",
            "accept",
            engine,
            windows(ALL, SUM, engine=engine, **COUNTED),
            windows(ALL, SUM, engine=engine, trigger=triggers.EndOfStreamTrigger()),
            of_new,
        )
        for engine in ("panes", "reference")
    ),
    Row(
        "windows",
        "another trigger of global windows that never fire",
        "refused",
        "panes",
        windows(ALL, SUM),
        windows(ALL, SUM, trigger=triggers.EachBatch()),
    ),
    *(
        Row(
            "windows",
            "`pane_info` of windows with a start and an end",
            "accept",
            engines,
            windows(TENS, SUM, **parts),
            windows(TENS, SUM, panes=PaneSettings(shows_info=True), **parts),
            by_cut(20),
        )
        for engines, parts in (("slices panes", {}), ("reference", {"engine": "reference"}))
    ),
    *(
        Row("windows", change, "safe", "reference", windows(assigner, MANY, **parts), windows(assigner, calls, **parts), of_new)
        for assigner, parts in ((GAP, {"engine": "reference"}), (ALL, {"engine": "reference", **COUNT_3}))
        for change, calls in ((REMOVED, SUM), (RENAMED, {"x": agg.count("n"), "y": agg.sum("n")}))
    ),
    *(
        Row(
            "windows",
            "another trigger of sessions",
            "accept",
            engine,
            windows(GAP, SUM, engine=engine, **old),
            windows(GAP, SUM, engine=engine, **new),
            law,
        )
        for engine in ("sessions", "reference")
        for old, new, law in (
            ({}, {"trigger": triggers.EachBatch()}, sessions_of_each_batch),
            ({"trigger": triggers.EachBatch()}, {}, of_new),
            ({}, SHORTER, sessions_of_two),
            (COUNTED, {}, of_new),
        )
    ),
    *(
        Row(
            "windows",
            "which late rows of sessions fire (`refine`)",
            "safe",
            engine,
            windows(GAP, SUM, engine=engine, allowed_lateness=20, refine=old),
            windows(GAP, SUM, engine=engine, allowed_lateness=20, refine=new),
            of_new,
        )
        for engine in ("sessions", "reference")
        for old, new in (("last", "each"), ("each", "last"))
    ),
    *(
        Row(
            "windows",
            "another trigger of sessions",
            "accept",
            engine,
            windows(GAP, SUM, engine=engine),
            windows(GAP, SUM, engine=engine, **EARLY),
            early_and_final,
        )
        for engine in ("sessions", "reference")
    ),
    Row(
        "windows",
        "another size, slide, offset, zone or kind of windows",
        "safe",
        "slices",
        windows(TENS, SUM),
        windows(FIVES, SUM),
        by_cut(20),
    ),
    Row(
        "windows",
        "another size, slide, offset, zone or kind of windows",
        "safe",
        "slices",
        windows(TENS, SUM),
        windows(SlidingEventTimeWindows.of(8, 4), SUM),
        by_cut(20),
    ),
    Row(
        "windows",
        "another gap of sessions",
        "safe",
        "sessions",
        windows(GAP, SUM),
        windows(EventTimeSessionWindows(6), SUM),
        longer_gap,
    ),
    # of a: 1, 4 and 16 are held, so 32 is the fourth; of b 2 and 8, of which the next is the third
    Row(
        "windows",
        "the size of count windows",
        "accept",
        "panes",
        windows(ALL, SUM, **COUNTED),
        windows(ALL, SUM, **SHORTER),
        results(("a", None, 53), ("b", None, 74), ("a", None, 640), ("b", None, 1280)),
    ),
    Row(
        "windows",
        "the parameters of an evictor",
        "accept",
        "panes",
        windows(ALL, SUM, **LAST_4),
        windows(ALL, SUM, **LAST_2),
        results(("b", None, 72), ("a", None, 640)),
    ),
    Row(
        "windows",
        "the keys, the event time, the kind of function, columns that functions see",
        "refused",
        "slices",
        windows(TENS, SUM),
        program_of(TENS, SUM, ("n",), window_bound=pa.int64(), columns=NARROW),
    ),
    Row(
        "windows",
        "the engine of windows with a start and an end",
        "safe",
        "reference slices",
        windows(TENS, SUM, engine="reference"),
        windows(TENS, SUM),
        by_cut(20),
    ),
    Row(
        "windows",
        "the engine of other windows",
        "refused",
        "reference sessions",
        windows(GAP, SUM, engine="reference"),
        windows(GAP, SUM),
    ),
]


# OVER windows, joins, rolling features, deduplication: rows of ``test_added_columns``, and results by hand.


def over(
    mode: Emit, calls: dict[str, OverCall], engine: str, *, is_timed: bool = True, columns: pa.Schema = BEFORE
) -> OverProgram:
    spec = OverSpec(("p",), (OrderColumn("t", nulls_first=False),), ("id",), tuple(calls.values()))
    made = OverProgram(spec, columns, output_schema(spec, columns, list(calls)), mode, "t" if is_timed else None, engine=engine)
    made = dataclasses.replace(made, append_only=is_timed)
    return dataclasses.replace(made, description=of_over(made))


TOTAL, LONGER = OverCall("sum", ("v",), Frame.rows(preceding(2))), OverCall("sum", ("v",), Frame.rows(preceding(3)))
LAG, NUMBER = OverCall("lag", ("v",)), OverCall("row_number")
RUNNING = OverCall("sum", ("v",), Frame.rows(UNBOUNDED_PRECEDING))
UPDATE, CLOSE = ("over update", "over reference"), ("over close", "over reference")


def join(match: Any, how: Any = "inner", columns: pa.Schema = BEFORE, engine: str = "join_interval") -> JoinProgram:
    left, right = (JoinSide(("p",), each, tuple(each.names)) for each in (columns, BEFORE))
    made = JoinProgram(how=how, left=left, right=right, match=match, engine=engine)
    return dataclasses.replace(made, description=of_join(made, ("t", "t")))


def rolling_of(*calls: Any, engine: str = "rolling") -> Any:
    made = dataclasses.replace(rolling_program(*calls), engine=engine)
    return dataclasses.replace(made, description=of_rolling(made, ["k"], "t"))


def pattern(text: str, engine: str, columns: pa.Schema = BEFORE, lateness: int = 0) -> PatternProgram:
    is_late = Operation(">=", (Picked("last", None, "id"), Constant(4)))
    spec = PatternSpec(parse_pattern(text), {"b": is_late}, measures=(Measure("first", Picked("first", None, "id")),), within=20)
    measures = pa.schema([("first", pa.int64())])
    made = PatternProgram(spec, ("p",), columns, measures, (), "t", allowed_lateness=lateness, engine=engine)
    return dataclasses.replace(made, description=of_patterns(made, {"b": "id >= 4"}))


FROM_ROWS = "on the reference operator, a feature is added, removed or finer that sees no farther back"
WEEK, DAY = call("w", agg.count(), 100, 50), call("d", agg.count(), 20, exact=True)
OF_OTHERS = [
    *(
        Row(
            "OVER on update",
            change,
            verdict,
            engine,
            over(Emit.UPDATE, old, engine, is_timed=is_timed),
            over(Emit.UPDATE, new, engine, is_timed=is_timed),
        )
        for engine in UPDATE
        for change, verdict, old, new, is_timed in (
            ("a call is added, or has another frame", "safe", {"x": TOTAL}, {"x": TOTAL, "before": LAG}, False),
            ("a call is added, or has another frame", "safe", {"x": TOTAL}, {"x": LONGER}, False),
            ("the same where rows are freed behind the watermark", "accept", {"x": TOTAL}, {"x": TOTAL, "before": LAG}, True),
            ("a call is removed, renamed or moved", "safe", {"x": TOTAL, "y": LAG}, {"z": LAG}, True),
        )
    ),
    *(
        Row(
            of,
            "a column is selected that was not",
            "accept",
            engine,
            over(mode, {"x": LAG}, engine),
            over(mode, {"x": LAG}, engine, columns=NOW),
        )
        for of, mode, engines in (("OVER on update", Emit.UPDATE, UPDATE), ("OVER on close", Emit.CLOSE, CLOSE))
        for engine in engines
    ),
    *(
        Row("OVER on close", change, verdict, engine, over(Emit.CLOSE, old, engine), over(Emit.CLOSE, new, engine))
        for engine in CLOSE
        for change, verdict, old, new in (
            (
                "a call is added, or a frame is shorter, whose rows are in state",
                "safe",
                {"x": TOTAL},
                {"x": TOTAL, "before": LAG},
            ),
            ("a call is added, or a frame is shorter, whose rows are in state", "safe", {"x": LONGER}, {"x": TOTAL}),
            ("a frame is longer; a call over all rows before is added", "accept", {"x": TOTAL}, {"x": LONGER}),
            ("a frame is longer; a call over all rows before is added", "accept", {"x": TOTAL}, {"x": TOTAL, "n": NUMBER}),
            ("a call is removed, renamed or moved", "safe", {"x": TOTAL, "y": LAG}, {"z": LAG}),
        )
    ),
    *(
        Row("joins", change, verdict, engine, join(match, engine=engine, columns=old), join(match, engine=engine, columns=new))
        for match, name in (
            (IntervalMatch(-10, 10), "join_interval"),
            (AsOfMatch(), "join_asof"),
            (ArrivalMatch(), "join_arrival"),
            (WindowMatch(TENS), "join_window"),
            (WindowMatch(GAP), "join_window"),
        )
        for engine in (name, "join reference")
        for change, verdict, old, new in (
            ("columns that are selected are removed, or in another order", "safe", BEFORE, BEFORE.remove(3)),
            ("columns that are selected are removed, or in another order", "safe", BEFORE, pa.schema(list(BEFORE)[::-1])),
            ("a column is selected that was not", "accept", BEFORE.remove(3), BEFORE),
        )
    ),
    *(
        Row("joins", change, verdict, engine, join(old, engine=engine), join(new, engine=engine))
        for engine in ("join_interval", "join reference")
        for change, verdict, old, new in (
            ("the bounds of an interval are narrower", "safe", IntervalMatch(-10, 10), IntervalMatch(-4, 5)),
            ("they are wider", "accept", IntervalMatch(-4, 2), IntervalMatch(-10, 10)),
        )
    ),
    *(
        Row("joins", "`inner` becomes `left`", "accept", engine, join(match, engine=engine), join(match, "left", engine=engine))
        for match, name in (
            (IntervalMatch(-4, 2), "join_interval"),
            (AsOfMatch(), "join_asof"),
            (ArrivalMatch(), "join_arrival"),
            (WindowMatch(TENS), "join_window"),
        )
        for engine in (name, "join reference")
    ),
    *(
        Row(
            "joins",
            "another kind of join, or way of matching",
            "refused",
            name,
            join(old[0], old[1], engine=name),
            join(new[0], new[1], engine=name),
        )
        for name, old, new in (
            ("join_interval", (IntervalMatch(-4, 2), "left"), (IntervalMatch(-4, 2), "inner")),
            ("join reference", (IntervalMatch(-4, 2), "left"), (IntervalMatch(-4, 2), "full")),
            ("join_window", (WindowMatch(TENS), "inner"), (WindowMatch(FIVES), "inner")),
            ("join reference", (WindowMatch(TENS), "inner"), (IntervalMatch(-4, 2), "inner")),
        )
    ),
    Row(
        "rolling features",
        "a feature is added, where state has what it needs",
        "safe",
        "rolling",
        rolling_of(DAY, WEEK),
        rolling_of(DAY, WEEK, call("d_10", agg.count(), 10, exact=True)),
    ),
    Row(
        "rolling features",
        "a feature is added that state does not have",
        "refused",
        "rolling",
        rolling_of(DAY),
        rolling_of(DAY, WEEK),
    ),
    Row(
        "rolling features",
        "a feature is removed, whose window others have",
        "safe",
        "rolling",
        rolling_of(DAY, WEEK, call("s", agg.sum("n"), 20, exact=True)),
        rolling_of(DAY, WEEK),
    ),
    Row(
        "rolling features",
        "a window is removed, or its hop is finer",
        "accept",
        "rolling",
        rolling_of(DAY, WEEK),
        rolling_of(DAY),
    ),
    Row(
        "rolling features",
        "a window is removed, or its hop is finer",
        "accept",
        "rolling",
        rolling_of(call("w", agg.count(), 10, 5), call("t", agg.sum("n"), 100, 50)),
        rolling_of(call("w", agg.count(), 10, 5), call("t", agg.sum("n"), 100, 25)),
    ),
    *(
        Row(
            "rolling features",
            change,
            verdict,
            "rolling reference",
            *(rolling_of(*each, engine="rolling reference") for each in plans),
        )
        for change, verdict, *plans in (
            (FROM_ROWS, "safe", (DAY, WEEK), (DAY, WEEK, call("s", agg.count(), 50))),
            ("a feature is added that state does not have", "refused", (DAY,), (DAY, WEEK)),
            (FROM_ROWS, "safe", (DAY, WEEK), (DAY,)),
            (FROM_ROWS, "safe", (DAY, WEEK), (DAY, call("w", agg.count(), 100, 25))),
        )
    ),
    *(
        Row(
            "deduplication",
            "`within`",
            "accept",
            engine,
            deduplication(BEFORE, 3, keep, engine),
            deduplication(BEFORE, 10, keep, engine),
        )
        for engine in ("deduplication", "deduplication reference")
        for keep in Keep
    ),
    *(
        Row("row patterns", change, verdict, engine, pattern("a b", engine, lateness=was), pattern("a b", engine, lateness=now))
        for engine in ("pattern text", "pattern reference")
        for change, verdict, was, now in (
            ("a shorter allowed lateness", "safe", 20, 5),
            ("a longer allowed lateness", "refused", 0, 20),
        )
    ),
    *(
        Row("row patterns", change, verdict, engine, pattern("a b", engine), pattern(text, engine, columns))
        for engine in ("pattern text", "pattern reference")
        for change, verdict, text, columns in (
            ("the pattern, conditions, subsets, `within`, what follows a match", "accept", "a b+?", BEFORE),
            ("a column that is selected is removed, and no condition reads it", "safe", "a b", BEFORE.remove(3)),
        )
    ),
]
TABLE = [*OF_WINDOWS, *OF_OTHERS]


def table_of(times: Times) -> pa.Table:
    """Return rows for the other programs: the value is the number of the row."""
    return rows(NOW, *(entry(time, p=key, id=value) for time, key, value in times))
