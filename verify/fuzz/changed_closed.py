"""Sessions that rows, sums and lengths end, whose rule changes in the middle of a stream, up to three times.

Two engines go on with each change, the reference and the columnar one, each with a state of its own, and give the same. Some
batches are run a second time, and the state is spread over other buckets before some.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from verify.fuzz.changed_buckets import Buckets
from verify.fuzz.closed_sessions import random_batches, random_program, table_of
from verify.fuzz.comparison import difference
from verify.fuzz.outcome import Outcome, differences_of
from verify.fuzz.windowed_streams import Batch
from windowpane.engines.program import Program
from windowpane.engines.sessions.closed import ClosedSessionsEngine, rule_of
from windowpane.engines.sessions.closed_reference import ClosedSessionsReferenceEngine
from windowpane.errors import present
from windowpane.planning.changing import Held, continued

ENGINES = (ClosedSessionsReferenceEngine.name, ClosedSessionsEngine.name)


def run(seed: int) -> Outcome:
    """Run the rules of a seed, one after the other, on two engines, and compare."""
    draw = Random(seed)
    first = random_program(draw)
    programs = [first, *(_ruled(first, random_program(draw)) for _ in range(draw.randint(1, 3)))]
    batches = [Batch(each.watermark, 0, (table_of(each),)) for each in random_batches(draw)]
    text = "\n  becomes\n".join(str(each.spec.assigner) for each in programs)
    return Outcome(seed, text, first.engine, differences_of(seed, lambda: _differences(draw, programs, batches)))


def _ruled(program: Program, other: Program) -> Program:
    """Return a program by the rule of another one."""
    assigner = other.description["assigner"]
    spec = replace(program.spec, assigner=rule_of(other))
    return replace(program, spec=spec, description={**program.description, "assigner": assigner})


def _on(program: Program, engine: str) -> Program:
    return replace(program, engine=engine, description={**program.description, "engine": engine})


def _differences(draw: Random, programs: list[Program], batches: list[Batch]) -> Iterator[str]:
    slow, fast = (
        Buckets(_on(programs[0], engine), count) for engine, count in zip(ENGINES, (1, draw.choice([1, 3])), strict=True)
    )
    left = programs[1:]
    for number, batch in enumerate(batches):
        if number and left and draw.random() < 0.5:
            now = left.pop(0)
            for buckets, engine in zip((slow, fast), ENGINES, strict=True):
                headers = [("header", present(store.get("header"), "a batch has run")) for store in buckets.stores]
                going_on, _ = continued(_on(now, engine), present(Held.of(headers), "there are headers"))
                if not isinstance(going_on, Program):
                    return
                buckets.program = going_on
        if draw.random() < 0.15:
            fast.rescale(draw.choice([1, 2, 5]))
        got, is_same = fast.run_again(batch, draw)
        if not is_same:
            yield f"batch {number}, repeated, differs"
        if (found := difference(slow.run(batch), got)) is not None:
            yield f"batch {number}, {len(left)} rules left: {found}"
