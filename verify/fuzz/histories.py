"""Kind ``history``: a program begins with the rows below a cut, and what comes out is what one run over all rows gives.

Of every four seeds one is of a chain (``chains``), the others are of the programs that faults happen to. The rows of a program's
batches below a random cut are its history; the batches still have them, and they must be passed over.

- Batch by batch it is one run whose first batch is the history, and whose watermark then is at the cut; what a history emits is
  what that batch does.
- Where no row is late, it is also the run over the batches as they are: the last result of each window that ends behind the cut,
  or all rows, where how they are cut into batches makes no difference.
- A chain ends with the rows that its operators have one by one, each over the table of the one before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from verify.fuzz import chains, faults
from verify.fuzz.comparison import difference
from verify.fuzz.faults import Given, on_reference
from verify.fuzz.outcome import Outcome, differences_of, raised
from windowpane.engines.beginning import Past, begun
from windowpane.engines.join.program import JoinProgram
from windowpane.engines.over.program import Emit, OverProgram
from windowpane.engines.patterns.program import PatternProgram
from windowpane.engines.program import MAIN, WINDOW_END, WINDOW_START, Program, Upstream
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.engines.rolling.program import RollingProgram
from windowpane.errors import WindowpaneError
from windowpane.hidden_columns import FIRING_WATERMARK, TIME
from windowpane.planning.engines import make_engine
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.joins import IntervalMatch
from windowpane.windowing.times import MAX, MIN
from windowpane.windowing.triggers import EventTimeTrigger

Rows = list[dict[str, Any]]


def run(seed: int) -> Outcome:
    """Run the program of a seed with a history and without, and compare."""
    draw = Random(seed)
    if seed % 4 == 0:
        return _chain(seed, draw)
    kinds = {name: make for name, make in faults.CASES.items() if name != "rolling"}  # see ``rolling_history``
    case = kinds[draw.choice(sorted(kinds))](draw, seed)
    program = case.program
    if draw.random() < 0.35:
        program = on_reference(program)
    text = f"{program}\n    {len(case.batches)} batches"
    return Outcome(seed, text, program.engine, differences_of(seed, lambda: _differences(program, case.batches, draw)))


def begins(program: Any) -> bool:
    """Whether a program begins with a history of a source: it goes by event time, with one watermark."""
    if isinstance(program, Program):
        spec = program.spec
        by_clock = not spec.assigner.is_event_time or spec.trigger.uses_processing_time
        return program.upstream is Upstream.SOURCE and not by_clock and program.key_delay is None
    return program.upstream is Upstream.SOURCE and not isinstance(program, RollingProgram)


def parts(tables: Sequence[pa.Table], cut: int, before: bool) -> list[pa.Table]:
    """Return the rows before a cut, or from it on; those without a time are from it on."""
    filled = [table for table in tables if table.num_rows]
    wanted = [pc.fill_null(pc.less(table[TIME], cut), False) for table in filled]
    return [table.filter(mask if before else pc.invert(mask)) for table, mask in zip(filled, wanted, strict=True)]


def rows(outputs: Sequence[BucketOutput]) -> Rows:
    """Return all rows, each with its output."""
    return [{"output": number, **row} for each in outputs for number, table in each.tables for row in table.to_pylist()]


def _differences(program: Any, batches: Sequence[Given], draw: Random) -> Iterator[str]:
    if not begins(program) or not batches:
        return
    times = [time for given in batches for part in given.parts for time in part[TIME].to_pylist() if time is not None]
    cut = min(draw.choice([draw.choice(batches).clock.watermark + 1, draw.choice(times or [0])]), 10**15)
    past = [part for given in batches for part in parts(given.parts, cut, before=True)]
    end = Clock(max(cut - 1, MIN), MIN)
    alone, with_past = MemoryBlobStore(), MemoryBlobStore()
    try:
        engine = make_engine(program)
        wanted = [engine.run(alone, past, Clock(MIN, MIN)).followed_by(engine.run(alone, [], end))]
        wanted += [engine.run(alone, parts(given.parts, cut, before=False), given.clock) for given in batches]
    except WindowpaneError:
        return  # what a program refuses is compared elsewhere
    got = [begun(make_engine(program), with_past, past, Past.below(cut))]
    for given in batches:
        before = with_past.snapshot()
        got.append(make_engine(program).run(with_past, list(given.parts), given.clock))
        if draw.random() < 0.2:
            with_past.restore(before)
            again = make_engine(program).run(with_past, list(given.parts), given.clock)
            if (differs := difference(rows(got[-1:]), rows([again]))) is not None:
                yield f"cut {cut}, a batch repeated: {differs}"
    for number, (one, other) in enumerate(zip(wanted, got, strict=True)):
        if (differs := difference(rows([one]), rows([other]))) is not None:
            yield f"cut {cut}, batch {number - 1}: {differs}"
    skipped = sum(each.counters.before_cut for each in got[1:])
    if program.engine != "join_window" and skipped != sum(table.num_rows for table in past):
        yield f"cut {cut}: {skipped} rows passed over, and the history has {sum(table.num_rows for table in past)}"
    differs = _from_the_stream(program, batches, cut, got, with_past)
    if differs is not None:
        yield f"cut {cut}, the stream as it is: {differs}"


def _from_the_stream(
    program: Any, batches: Sequence[Given], cut: int, got: Sequence[BucketOutput], with_past: MemoryBlobStore
) -> str | None:
    """Return what differs from a run over the batches as they are, ``None`` where rows are late or batches matter."""
    alone, engine = MemoryBlobStore(), make_engine(program)
    plain = [engine.run(alone, list(given.parts), given.clock) for given in [*batches, Given([], Clock(MAX, MAX))]]
    if any(each.counters.late_elements for each in plain):
        return None
    last = engine.run(with_past, [], Clock(MAX, MAX))
    main = [
        [{name: value for name, value in row.items() if name != FIRING_WATERMARK} for row in rows(each) if row["output"] == MAIN]
        for each in (plain, [*got, last])
    ]
    if isinstance(program, Program):
        if not isinstance(program.spec.trigger, EventTimeTrigger) or program.spec.evictor or not program.spec.assigner.has_ends:
            return None
        return difference(*(_last_of_windows(program, each, cut) for each in main))
    is_append = isinstance(program, PatternProgram) or (isinstance(program, OverProgram) and program.mode is Emit.CLOSE)
    is_append = is_append or (isinstance(program, JoinProgram) and isinstance(program.match, IntervalMatch))
    return difference(*main) if is_append else None


def _last_of_windows(program: Program, found: Rows, cut: int) -> Rows:
    """Return the last result of each window that ends behind the cut."""
    names = (*program.keys.names, WINDOW_START, WINDOW_END)
    behind = [row for row in found if row[TIME] >= cut]
    return list({repr([row[name] for name in names]): row for row in behind}.values())


# Chains.


def _chain(seed: int, draw: Random) -> Outcome:
    kinds = chains.random_kinds(draw)
    batches = [
        ([(k, number, v, max(at, watermark + 1)) for k, number, v, at in batch], watermark)
        for batch, watermark in chains.random_batches(draw)
    ]
    times = [row[3] for batch, _ in batches for row in batch]
    cut = draw.choice(times) + draw.randint(0, 1) if times else 10
    text = f"{' -> '.join(kinds)}, cut {cut}, {batches!r}"
    try:
        chain = list(chains.linked(draw, kinds))
        text = f"{' -> '.join(link.text for link in chain)}, cut {cut}, {batches!r}"
    except Exception as error:
        return Outcome(seed, text, "", [raised(error)])
    return Outcome(seed, text, chain[-1].programs[-1].engine, differences_of(seed, lambda: _chain_differs(chain, batches, cut)))


def _chain_differs(chain: Sequence[chains.Link], batches: Sequence[chains.Batch], cut: int) -> Iterator[str]:
    past = [row for batch, _ in batches for row in batch if row[3] < cut]
    after = [([row for row in batch if row[3] >= cut], max(watermark, cut - 1)) for batch, watermark in batches]
    expected = chains.one_by_one(chain, [(past, MIN), *after])
    found, late = _with_history(chain, past, cut, batches)
    if late:
        yield f"late on the way: {late}"
    if expected is not None and Counter(found) != Counter(expected):
        yield f"one by one {sorted(expected, key=repr)}, with a history {sorted(found, key=repr)}"


def _with_history(
    chain: Sequence[chains.Link], past: Sequence[chains.Row], cut: int, batches: Sequence[chains.Batch]
) -> tuple[list[chains.Row], list[str]]:
    """Return the rows that a chain ends with, and which of its operators had late rows; watermarks begin anew behind the cut."""
    runs, table = list(chains.runs_of(chain)), chains.table_of(past, MIN)
    for number, each in enumerate(runs):
        end = Past.below(cut, each.delay, is_first=number == 0, emits=True)
        table = each.handed_on(begun(make_engine(each.program), each.store, each.given(table), end))
    left, late = chains.changes_in(table), list[str]()
    for batch, watermark in [*batches, ([], MAX)]:
        table = chains.table_of(batch, watermark)
        for each in runs:
            table, dropped = each.take(table, watermark)
            late += [each.link.text] if dropped else []
        left += chains.changes_in(table)
    return chains.applied(left, chain[-1].retracts), late
