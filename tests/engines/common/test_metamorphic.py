"""What must hold of any engine, without an oracle: relations between the results of two related runs."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import windowpane as wp
from tests.examples import seeds
from verify.fuzz.columns import COLUMNS
from verify.fuzz.comparison import difference
from verify.fuzz.windowed_programs import LATE, program_of, random_aggregates, random_assigner, random_trigger
from verify.fuzz.windowed_streams import random_rows
from windowpane.engines.program import Program
from windowpane.engines.protocol import Clock
from windowpane.hidden_columns import POSITION, TIME
from windowpane.planning.engines import make_engine
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.assigners import GlobalWindows, MergingWindowAssigner, WindowAssigner

Steps = Sequence[tuple[int, pa.Table]]
"""(watermark, rows that come after it), one step a batch."""

END = 10_000
SEEDS = pytest.mark.parametrize("seed", seeds(40))
ADDABLE = {"n": wp.count(), "total": wp.sum("n"), "money": wp.sum("m")}


def event_time_assigner(draw: Random) -> WindowAssigner:
    while True:
        assigner = random_assigner(draw)
        if assigner.is_event_time and not isinstance(assigner, GlobalWindows):
            return assigner


def small_aggregates(draw: Random) -> dict[str, Aggregate]:
    """Return aggregates none of which may overflow."""
    while True:
        aggregates = random_aggregates(draw)
        if not any(each.name == "sum" and "big" in each.arguments for each in aggregates.values()):
            return aggregates


def unordered_aggregates(draw: Random) -> dict[str, Aggregate]:
    while True:
        aggregates = small_aggregates(draw)
        if not any(each.definition.ordered for each in aggregates.values()):
            return aggregates


def random_steps(draw: Random) -> list[tuple[int, pa.Table]]:
    watermark, steps = -30, []
    for _ in range(draw.randint(2, 5)):
        steps.append((watermark, random_rows(draw, draw.randint(0, 8), watermark, columns=COLUMNS)))
        watermark += draw.randint(0, 25)
    return steps


def run(program: Program, steps: Steps) -> tuple[list[dict], list[dict]]:
    """Return the rows of the main and of the late output, in order, the end of the stream included."""
    engine, store = make_engine(program), MemoryBlobStore()
    outputs: tuple[list[dict], list[dict]] = [], []
    for watermark, rows in [*steps, (END, None)]:
        output = engine.run(store, [] if rows is None else [rows], Clock(watermark, 1))
        for number, table in output.tables:
            outputs[number].extend(_without_system(row) for row in table.to_pylist())
    return outputs


def _without_system(row: dict) -> dict:
    return {name: value for name, value in row.items() if not name.startswith("__windowpane_")}


def last_of_each(rows: list[dict]) -> list[dict]:
    """Return the last result of each key and window."""
    return list({_pane(row): row for row in rows}.values())


def _pane(row: dict) -> tuple:
    return row.get("k"), row["window_start"], row["window_end"]


def both_engines(*args, **parts) -> list[Program]:
    """Return the program for the planner's engine, and for the reference."""
    parts |= {"columns": COLUMNS}
    return [program_of(*args, **parts), program_of(*args, **parts, engine="reference")]


def cut(draw: Random, steps: Steps) -> list[tuple[int, pa.Table]]:
    """Return the same steps in more batches: cuts between rows, where no watermark moves."""
    finer = []
    for watermark, rows in steps:
        at = sorted(draw.randint(0, rows.num_rows) for _ in range(2))
        finer += [(watermark, rows.slice(start, end - start)) for start, end in zip([0, *at], [*at, rows.num_rows], strict=True)]
    return finer


@SEEDS
def test_batch_cuts_do_not_change_final_results(seed: int) -> None:
    draw = Random(seed)
    assigner, steps = event_time_assigner(draw), random_steps(draw)
    # A session that fired late and merges afterwards has fired under bounds that one cut shows and another does not.
    lateness = 0 if isinstance(assigner, MergingWindowAssigner) else draw.choice([0, 5, 30])
    for program in both_engines(assigner, small_aggregates(draw), allowed_lateness=lateness, late_tag=LATE):
        whole, finer = run(program, steps), run(program, cut(draw, steps))
        assert difference(last_of_each(whole[0]), last_of_each(finer[0])) is None, program
        assert difference(whole[1], finer[1]) is None, program


@SEEDS
def test_the_order_of_rows_within_the_bound_of_disorder_does_not_matter(seed: int) -> None:
    draw, bound = Random(seed), 12
    assigner, aggregates = event_time_assigner(draw), unordered_aggregates(draw)
    rows = random_rows(draw, 30, 0, columns=COLUMNS)
    for program in both_engines(assigner, aggregates, late_tag=LATE):
        results = []
        for _ in range(2):
            main, late = run(program, arriving(draw, rows, bound))
            assert late == []
            results.append(main)
        assert difference(*results) is None, program


def arriving(draw: Random, rows: pa.Table, bound: int) -> list[tuple[int, pa.Table]]:
    """Return the rows with at most ``bound`` of disorder, each batch under a watermark that makes none of them late."""
    times = rows[TIME].to_pylist()
    order = sorted(range(len(times)), key=lambda row: times[row] + draw.randint(0, bound))
    steps, watermark = [], -100
    for start in range(0, len(order), 7):
        batch = order[start : start + 7]
        steps.append((watermark, renumbered(rows.take(pa.array(batch)))))
        watermark = max([watermark, *(times[row] - bound - 1 for row in batch)])
    return steps


def renumbered(rows: pa.Table) -> pa.Table:
    return rows.set_column(rows.column_names.index(POSITION), POSITION, pa.array(range(rows.num_rows), pa.int64()))


@SEEDS
def test_the_discarded_panes_add_up_to_the_last_accumulated_one(seed: int) -> None:
    draw = Random(seed)
    assigner = event_time_assigner(draw)
    while isinstance(assigner, MergingWindowAssigner):  # a session that purged and then merges has other panes
        assigner = event_time_assigner(draw)
    trigger = random_trigger(draw, assigner)
    inner = getattr(trigger, "inner", trigger) or assigner.default_trigger()
    steps, lateness = random_steps(draw), draw.choice([0, 5, 30])
    for name in (None, "reference"):
        parts: dict[str, Any] = {"allowed_lateness": lateness, "engine": name}
        accumulated, _ = run(program_of(assigner, ADDABLE, trigger=inner, columns=COLUMNS, **parts), steps)
        discarded, _ = run(program_of(assigner, ADDABLE, trigger=wp.PurgingTrigger.of(inner), columns=COLUMNS, **parts), steps)
        assert difference(last_of_each(accumulated), added_up(discarded)) is None, (assigner, inner)


def added_up(rows: list[dict]) -> list[dict]:
    """Return the sums of all panes of each key and window; the sum of no values is NULL."""
    sums: dict[tuple, dict] = {}
    for row in rows:
        held = sums.setdefault(_pane(row), {**row, **dict.fromkeys(ADDABLE)})
        for name in ADDABLE:
            parts = [part for part in (held[name], row[name]) if part is not None]
            held[name] = sum(parts[1:], parts[0]) if parts else None
    return list(sums.values())


@SEEDS
def test_two_aggregates_in_one_program_are_those_of_two_programs(seed: int) -> None:
    draw = Random(seed)
    assigner, aggregates, steps = event_time_assigner(draw), small_aggregates(draw), random_steps(draw)
    parts: dict[str, Any] = {"trigger": random_trigger(draw, assigner), "allowed_lateness": draw.choice([0, 5])}
    together, _ = run(program_of(assigner, aggregates, columns=COLUMNS, **parts), steps)
    for name, aggregate in aggregates.items():
        alone, _ = run(program_of(assigner, {name: aggregate}, columns=COLUMNS, **parts), steps)
        kept = {"k", "window_start", "window_end", name}
        assert difference(alone, [{key: row[key] for key in row if key in kept} for row in together]) is None
