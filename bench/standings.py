"""Standings: how windowpane compares with its goals in one run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.cases import Case, Goal
from bench.results import Figure, Results
from bench.systems import SQL, TITLES, WINDOWPANE, WINDOWPANE_ARROW


@dataclass(frozen=True)
class Standing:
    """One goal and what was reached.

    Args:
        case: name of the case, and how windowpane ran it where that is not the same for all goals.
        keys: number of keys.
        against: the other system, or what is bounded.
        goal: the goal as text.
        reached: what was reached with rows from Spark, as text, or why nothing was.
        met: whether the goal is met so; ``None`` if there is nothing to compare.
        in_arrow: what was reached with files read by Arrow, empty where that was not measured.
        met_in_arrow: whether the goal is met so.
    """

    case: str
    keys: int
    against: str
    goal: str
    reached: str
    met: bool | None
    in_arrow: str = ""
    met_in_arrow: bool | None = None

    @property
    def verdict(self) -> str:
        """Whether the goal is met, in words."""
        if self.met:
            return "met"
        if self.met_in_arrow:
            return "met in Arrow"
        return "nothing to compare" if self.met is None else "not met"


def standings(results: Results, cases: Sequence[Case]) -> list[Standing]:
    """Return the standing of every goal of the cases that were run."""
    return [standing for case in cases for standing in _of(case, results.of(case.name, case.keys, case.emit))]


def _of(case: Case, figures: dict[str, Figure]) -> Iterator[Standing]:
    for goal in case.goals:
        if goal.of in figures and goal.against in figures:
            yield _standing(case, goal, figures)
    own = figures.get(WINDOWPANE.name) or figures.get(SQL.name)
    if own is None:
        return
    if case.growth and own.phases_s is not None:
        before, after = own.phases_s
        goal_text, reached = f"at most {case.growth:g}x", f"{after / before:.2f}x ({before:.2f} s to {after:.3g} s)"
        yield Standing(case.name, case.keys, "itself, at the start", goal_text, reached, after <= case.growth * before)
    if case.worker_mb and own.worker_mb is not None:
        met = own.worker_mb < case.worker_mb
        yield Standing(
            case.name, case.keys, "memory of a worker", f"under {case.worker_mb:,.0f} MB", f"{own.worker_mb:,.0f} MB", met
        )


def _standing(case: Case, goal: Goal, figures: dict[str, Figure]) -> Standing:
    text = f"at most {goal.ratio:g}x its time" if goal.at_most else f"{goal.ratio:g}x"
    other, in_arrow = figures[goal.against], figures.get(WINDOWPANE_ARROW.name)
    found = (*_compared(goal, figures[goal.of], other), *(_compared(goal, in_arrow, other) if in_arrow else ("", None)))
    return Standing(_named(case, goal), case.keys, goal.against, text, *found)


def _named(case: Case, goal: Goal) -> str:
    """Return the name of a case, with what is special about the system that is compared."""
    own, _, special = TITLES[goal.of].partition(", ")
    return f"{case.name}: {special}" if own == TITLES[WINDOWPANE.name] and special else case.name


def _compared(goal: Goal, own: Figure, other: Figure) -> tuple[str, bool | None]:
    """Return what was reached as text, and whether that meets the goal."""
    ours, theirs = getattr(own, goal.figure), getattr(other, goal.figure)
    if ours is None or theirs is None:
        return own.reason or other.reason, None
    if goal.at_most:
        return f"{ours / theirs:.2f}x", ours <= goal.ratio * theirs
    ratio = ours / theirs if goal.figure == "rows_per_s" else theirs / ours
    return f"{ratio:.1f}x", ratio >= goal.ratio
