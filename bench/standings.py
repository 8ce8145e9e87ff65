"""Standings: how windowpane compares with its goals in one run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.cases import Case, Goal
from bench.results import Figure, Results


@dataclass(frozen=True)
class Standing:
    """One goal and what was reached.

    Args:
        case: name of the case.
        keys: number of keys.
        against: the other system, or what is bounded.
        goal: the goal as text.
        reached: what was reached as text, or why nothing was.
        met: whether the goal is met; ``None`` if there is nothing to compare.
    """

    case: str
    keys: int
    against: str
    goal: str
    reached: str
    met: bool | None


def standings(results: Results, cases: Sequence[Case]) -> list[Standing]:
    """Return the standing of every goal of the cases that were run."""
    return [standing for case in cases for standing in _of(case, results.of(case.name, case.keys, case.emit))]


def _of(case: Case, figures: dict[str, Figure]) -> Iterator[Standing]:
    for goal in case.goals:
        if goal.of in figures and goal.against in figures:
            yield _compared(case, goal, figures[goal.of], figures[goal.against])
    own = figures.get("windowpane")
    if own is None:
        return
    if case.growth and own.phases_s is not None:
        before, after = own.phases_s
        goal_text, reached = f"at most {case.growth:g}x", f"{after / before:.2f}x ({before:.2f} s to {after:.2f} s)"
        yield Standing(case.name, case.keys, "itself, at the start", goal_text, reached, after <= case.growth * before)
    if case.worker_mb and own.worker_mb is not None:
        met = own.worker_mb < case.worker_mb
        yield Standing(
            case.name, case.keys, "memory of a worker", f"under {case.worker_mb:,.0f} MB", f"{own.worker_mb:,.0f} MB", met
        )


def _compared(case: Case, goal: Goal, own: Figure, other: Figure) -> Standing:
    ours, theirs = getattr(own, goal.figure), getattr(other, goal.figure)
    text = f"at most {goal.ratio:g}x its time" if goal.at_most else f"{goal.ratio:g}x"
    if ours is None or theirs is None:
        return Standing(case.name, case.keys, goal.against, text, own.reason or other.reason, None)
    if goal.at_most:
        return Standing(case.name, case.keys, goal.against, text, f"{ours / theirs:.2f}x", ours <= goal.ratio * theirs)
    ratio = ours / theirs if goal.figure == "rows_per_s" else theirs / ours
    return Standing(case.name, case.keys, goal.against, text, f"{ratio:.1f}x", ratio >= goal.ratio)
