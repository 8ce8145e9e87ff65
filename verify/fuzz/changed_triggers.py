"""Sessions and global windows whose trigger, lateness, refinement, gap or evictor changes in the middle of a stream.

Two engines go on with the change each with a state of its own, and give the same: the reference, one window after the other, and
the one that the planner chooses. Where windows fire at their end, none was emptied, and both programs wait as long for late rows,
results are those of the new program alone. A batch after the change is run a second time, and the state is spread over other
buckets before it or behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pyarrow as pa

from verify.fuzz.changed_buckets import Buckets, held_of
from verify.fuzz.columns import COLUMNS
from verify.fuzz.comparison import difference
from verify.fuzz.outcome import Outcome, differences_of
from verify.fuzz.windowed import text_of
from verify.fuzz.windowed_programs import program_of, random_aggregates, random_keys, random_panes, random_tree, random_trigger
from verify.fuzz.windowed_streams import Batch, random_stream
from windowpane.engines.changes import Verdict
from windowpane.engines.program import Program
from windowpane.errors import UnmovableStateError, WindowpaneError
from windowpane.planning.changing import continued
from windowpane.windowing import assigners, evictors
from windowpane.windowing.spec import DEFAULT_PANES
from windowpane.windowing.triggers import EventTimeTrigger, ProcessingTimeTrigger, Trigger

Pair = tuple[Program, Program]
"""A program of an engine that the planner has chosen, and of the reference."""


def run(seed: int) -> Outcome:
    """Make two programs that differ in what fires their windows, and compare two engines across the change."""
    draw = Random(seed)
    old, new = _drawn(draw)
    stream = random_stream(draw, old[0], COLUMNS)
    text = "\n  becomes\n".join(text_of(each[0]) for each in (old, new))
    found = differences_of(seed, lambda: list(_differences(draw, old, new, stream)))
    return Outcome(seed, text, " -> ".join(each[0].engine for each in (old, new)), found)


def _drawn(draw: Random) -> tuple[Pair, Pair]:
    while True:
        keys, calls = random_keys(draw), random_aggregates(draw)
        gap = draw.randint(1, 12)
        makers = [assigners.EventTimeSessionWindows.with_gap] * 4 + [assigners.ProcessingTimeSessionWindows.with_gap]
        assigner = draw.choice([*(make(gap) for make in makers), assigners.GlobalWindows.create()])
        both = [{"assigner": assigner, "aggregates": calls, **_firing(draw, assigner)} for _ in range(2)]
        if draw.random() < 0.3:
            both[1]["trigger"] = both[0]["trigger"]
            panes = random_panes(draw) if draw.random() < 0.5 else DEFAULT_PANES
            both = [{**parts, "panes": panes} for parts in both]
        if draw.random() < 0.3:
            kept = draw.sample(sorted(calls.items()), draw.randint(1, len(calls)))
            both[1]["aggregates"] = {f"was_{name}": call for name, call in kept}
        # From a source of its own, so that the programs of seeds that were kept stay what they are.
        apart = Random(repr(both))
        if apart.random() < 0.2:
            both = [{**parts, "evictor": each} for parts, each in zip(both, _evictors(apart), strict=True)]
        if apart.random() < 0.2 and not isinstance(assigner, assigners.GlobalWindows):
            both[1]["assigner"] = type(assigner).with_gap(apart.randint(1, 12))
        try:
            made = [_pair(keys, parts) for parts in both]
        except WindowpaneError:
            continue
        if made[0][0].description != made[1][0].description:
            return made[0], made[1]


def _firing(draw: Random, assigner: assigners.WindowAssigner) -> dict[str, Any]:
    triggers: list[Trigger | Any] = [None, random_trigger(draw, assigner), random_tree(draw)]
    return {
        "trigger": draw.choice(triggers),
        "allowed_lateness": draw.choice([0, 0, 3, 20]),
        "refine": draw.choice(["last", "each"]),
    }


def _evictors(draw: Random) -> list[evictors.Evictor]:
    """Return two evictors that differ in their size alone."""
    make = draw.choice([evictors.CountEvictor.of, evictors.TimeEvictor.of])
    after = draw.random() < 0.5
    return [make(draw.randint(0, 6), after) for _ in range(2)]


def _pair(keys: tuple[str, ...], parts: dict[str, Any]) -> Pair:
    made = [program_of(keys=keys, window_bound=pa.int64(), columns=COLUMNS, **parts, engine=each) for each in (None, "reference")]
    return made[0], made[1]


def _differences(draw: Random, old: Pair, new: Pair, stream: Sequence[Batch]) -> Iterator[str]:
    try:
        earlier, whole = Buckets(old[1]), Buckets(new[1])
        alone = [(earlier.run(batch), whole.run(batch))[1] for batch in stream]
    except WindowpaneError:
        return  # what a program refuses is compared elsewhere
    fast, slow = Buckets(old[0], draw.choice([1, 1, 3])), Buckets(old[1])
    at, moved = draw.choice([1, 2, draw.randint(1, max(1, len(stream) - 1))]), draw.randint(1, len(stream))
    specs = old[0].spec, new[0].spec
    is_exact = type(specs[1].trigger) in (EventTimeTrigger, ProcessingTimeTrigger) and not specs[0].purges
    is_exact &= all(getattr(specs[0], part) == getattr(specs[1], part) for part in ("allowed_lateness", "assigner", "evictor"))
    for number, batch in enumerate(stream):
        if number == at:
            for buckets, program in ((fast, new[0]), (slow, new[1])):
                held = held_of(buckets.stores, stream[:number])
                if held is None:
                    return
                going_on, report = continued(program, held)
                if report.verdict is Verdict.REFUSED or not isinstance(going_on, Program):
                    return
                buckets.program = going_on
        if number == moved:
            try:
                fast.rescale(draw.choice([1, 2, 5]))
            except UnmovableStateError as error:
                if "since the last change" not in str(error):
                    raise
        got, is_same = fast.run_again(batch, draw)
        if not is_same:
            yield f"batch {number}, repeated, differs"
        if (found := difference(slow.run(batch), got)) is not None:
            yield f"batch {number}, changed at {at}, moved at {moved}: {found}"
        if is_exact and number >= at and (found := difference(alone[number], got)) is not None:
            yield f"batch {number}, changed at {at}: the new program alone differs: {found}"
