"""The pictures of the documents, each made by a run. ``python -m tests.docs.pictures`` writes them anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import windowpane as wp
from windowpane.engines.patterns.program import PatternProgram
from windowpane.testing import PatternTestHarness, WindowTestHarness
from windowpane.testing.timeline import Timeline
from windowpane.windowing.expressions import Constant, Operation
from windowpane.windowing.functions import ProcessWindowFunction, WindowFunctionSpec
from windowpane.windowing.panes import PaneOptions
from windowpane.windowing.patterns.spec import Measure, PatternSpec
from windowpane.windowing.patterns.text import parse_pattern
from windowpane.windowing.patterns.values import Picked
from windowpane.windowing.triggers.composable.pane_trigger import PaneTrigger

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
MINUTE = 60_000_000
DAY = 1_357_027_200_000_000  # 2013-01-01 08:00 UTC


class Count(ProcessWindowFunction):
    """How many flights a window has."""

    def process(self, key, context, elements):
        return [f"{len(elements)} flight{'' if len(elements) == 1 else 's'}"]


def minutes(count: int) -> int:
    """Return an instant so many minutes after the hour."""
    return DAY + count * MINUTE


def panes() -> Timeline:
    """Early, on-time and late panes of one hour."""
    trigger = PaneTrigger(
        wp.AfterWatermark(early=wp.AfterCount(3), late=wp.AfterCount(1)),
        "accumulating",
        "fire_always",
        "fire_if_non_empty",
        120 * MINUTE,
    )
    spec = wp.WindowSpec(
        wp.TumblingEventTimeWindows.of("1 hour"),
        WindowFunctionSpec.full(Count()),
        trigger,
        allowed_lateness=120 * MINUTE,
        panes=PaneOptions(shows_info=True),
    )
    harness = WindowTestHarness(spec)
    for at, watermark in ((5, None), (20, None), (12, 0), (41, 20), (52, 40), (30, 60), (25, 90), (100, 190), (50, None)):
        harness.process_element("", minutes(at))
        if watermark is not None:
            harness.process_watermark(minutes(watermark) - 1)
    return harness.timeline()


def sessions() -> Timeline:
    """Two sessions that a late element joins."""
    spec = wp.WindowSpec(
        wp.EventTimeSessionWindows.with_gap("15 minutes"),
        WindowFunctionSpec.full(Count()),
        wp.EventTimeTrigger(),
        allowed_lateness=60 * MINUTE,
    )
    harness = WindowTestHarness(spec)
    for at, watermark in ((5, None), (12, None), (32, 30), (38, None), (22, 60), (75, 95)):
        harness.process_element("", minutes(at))
        if watermark is not None:
            harness.process_watermark(minutes(watermark) - 1)
    return harness.timeline()


def pattern() -> Timeline:
    """Orders, payments, and what does not come within 30 minutes."""
    columns = pa.schema([("order", pa.string()), ("at", pa.int64()), ("kind", pa.string())])
    spec = PatternSpec(
        parse_pattern("placed -> !paid"),
        {name: Operation("==", (Picked("last", None, "kind"), Constant(name))) for name in ("placed", "paid")},
        measures=(Measure("unpaid", Picked("first", "placed", "order")),),
        within=30 * MINUTE,
    )
    harness = PatternTestHarness(PatternProgram(spec, ("order",), columns, pa.schema([("unpaid", pa.string())]), (), "at"))
    rows = (
        (2, "a", "placed"),
        (8, "b", "placed"),
        (20, "a", "paid"),
        (27, "c", "placed"),
        (41, "b", "paid"),
        (60, "d", "placed"),
    )
    for at, order, kind in rows:
        harness.process_row({"order": order, "at": minutes(at), "kind": f"{kind}"}, minutes(at))
        harness.process_watermark(minutes(at) - 1)
    return harness.timeline()


PICTURES: dict[str, Callable[[], Timeline]] = {"panes": panes, "sessions": sessions, "pattern": pattern}
MOVING: dict[str, Callable[[], Timeline]] = {"panes_arriving": panes}
SECONDS = 12
"""How long a picture that moves takes."""

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, make in PICTURES.items():
        make().save(FOLDER / f"{name}.svg")
    for name, make in MOVING.items():
        make().save(FOLDER / f"{name}.svg", SECONDS)
