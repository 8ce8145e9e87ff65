"""Joins that change in the middle of a stream: the bounds of an interval, an inner join that becomes a left one, other columns.

Windows hold all rows that they join: what comes out after the change is what the new program gives alone. Of intervals, pairs of
which a row comes after the change are those of the new program alone, and so are rows without a match that come after it. Rows
that are held may come out without a match where those that they matched were freed. Where bounds are wider, rows to come meet
none that was freed: then pairs of two rows to come are those of the new program, and others are among its pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa

from verify.fuzz.joins import Result, _Run, _Step, random_program, random_steps
from verify.fuzz.outcome import Outcome, differences_of
from windowpane.engines.changes import Verdict
from windowpane.engines.join.program import JoinProgram
from windowpane.errors import WindowpaneError
from windowpane.planning.changing import Held, continued
from windowpane.planning.description.programs import of_join
from windowpane.planning.engines import with_engine
from windowpane.windowing.joins import AsOfMatch, IntervalMatch, Match, WindowMatch
from windowpane.windowing.outputs import CHANGE_TYPE
from windowpane.windowing.times import MAX


def run(seed: int) -> Outcome:
    """Run a join, change it, and compare what comes out with the new program alone."""
    drawn, more = Random(seed), Random(f"columns {seed}")
    old = random_program(drawn)
    while isinstance(old.match, AsOfMatch) and old.updates:
        old = random_program(drawn)
    if more.random() < 0.3:
        old = with_engine(old, "join reference")
    new = old
    if isinstance(old.match, IntervalMatch):
        lower = old.match.lower + drawn.randint(-4, 4)
        upper = old.match.upper if old.match.upper_column else max(lower, old.match.upper + drawn.randint(-4, 4))
        new = replace(old, match=replace(old.match, lower=lower, upper=upper))
    if new == old or drawn.random() < 0.5:
        old, new = replace(old, how="inner"), replace(new, how="left")
    if isinstance(old.match, WindowMatch) and old.allowed_lateness:
        new = replace(new, how=old.how)
    old, new = (_with_columns(more, each) for each in (old, new))
    old, new = (replace(each, description=of_join(each, ("t", "t"))) for each in (old, new))
    steps = [*random_steps(drawn, old), _Step(MAX, {"left": [], "right": []})]
    text = (
        f"{old.match} {old.how}\n  becomes\n{new.match} {new.how}, lateness {old.allowed_lateness}, {old.condition!r}, {steps!r}"
    )
    at = drawn.randint(1, max(1, len(steps) - 1))
    found = differences_of(seed, lambda: _differences(old, new, steps, at), (WindowpaneError,))
    return Outcome(seed, text, f"{old.engine} {old.how} -> {new.how}", found)


def _with_columns(drawn: Random, program: JoinProgram) -> JoinProgram:
    """Return a program whose rows carry some columns beside those that it needs, of which some are in results, in any order."""
    sides = {}
    for side, of in program.sides.items():
        needed = {*of.keys, "id", "v", "n", "until", "reach", "seq", CHANGE_TYPE}
        spare = {"k", *(() if program.condition is not None else ("v", "n")), *_unread(program.match)} - {*of.keys}
        chosen = [name for name in of.columns.names if name in needed - spare or (name in spare and drawn.random() < 0.6)]
        chosen = drawn.sample(chosen, len(chosen)) if drawn.random() < 0.3 else chosen
        passed = ("id", *(name for name in chosen if name in spare and drawn.random() < 0.5))
        sides[side] = replace(of, columns=pa.schema([of.columns.field(name) for name in chosen]), passed=passed)
    return replace(program, left=sides["left"], right=sides["right"])


def _unread(match: Match) -> set[str]:
    """Return the columns that other ways of matching read."""
    read = {getattr(match, part, None) for part in ("upper_column", "tolerance_of", "sequence")}
    return {"until", "reach", "seq"} - read


def _differences(old: JoinProgram, new: JoinProgram, steps: list[_Step], at: int) -> Iterator[str]:
    bucket, alone, before = _Run(old), _Run(new), set[Any]()
    is_wider, is_exact = False, not isinstance(old.match, IntervalMatch)
    for number, step in enumerate(steps):
        if number == at:
            header = bucket.store.get("header")
            held = None if header is None else Held.of([("header", header)])
            if held is None:
                return
            made, report = continued(new, held)
            if report.verdict is Verdict.REFUSED or not isinstance(made, JoinProgram):
                return
            bucket.program = made
            is_wider = any(each.part == "match" and each.outcome.verdict is Verdict.ACCEPT for each in report.parts)
        if number < at:
            before |= {row["id"] for rows in step.rows.values() for row in rows}
        (got, _), (wanted, _) = bucket.step(step), alone.step(step)
        if number < at:
            continue
        if is_wider:
            if more := _pairs(got) - _pairs(wanted):
                yield f"step {number}, changed before {at}: {dict(more)} more"
            got, wanted = (_of_new_rows(_pairs(results), before, all) for results in (got, wanted))
        elif not is_exact:
            got, wanted = (_of_new_rows(results, before) for results in (got, wanted))
        if +got != +wanted:
            yield f"step {number}, changed before {at}: {dict(got - wanted)} more, {dict(wanted - got)} less"


def _pairs(results: Counter[Result]) -> Counter[Result]:
    return Counter({row: count for row, count in results.items() if None not in row[:2]})


def _of_new_rows(results: Counter[Result], before: set[Any], some: Callable[[Iterable[bool]], bool] = any) -> Counter[Result]:
    """Return results of which a row, or all of them, have come after the change."""
    are_new = {row: some(each not in before for each in row[:2] if each is not None) for row in results}
    return Counter({row: count for row, count in results.items() if are_new[row]})
