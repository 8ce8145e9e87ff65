"""Standings: what a goal says of two figures, with rows from Spark and with files read by Arrow."""

from __future__ import annotations

from bench import systems
from bench.bids import Feed, Part
from bench.cases import Case, Contender, Goal
from bench.programs import Program
from bench.results import Figure, Results
from bench.standings import Standing, standings

CASE = Case(
    "a case",
    Program("tumbling", 10),
    (Part(Feed(7, 100), 0, 1),),
    (Contender(systems.WINDOWPANE), Contender(systems.WINDOWPANE_ARROW), Contender(systems.NATIVE)),
    (Goal("spark", "rows_per_s", 2), Goal("spark", "batch_s", 1.5, at_most=True)),
)


def found(*figures: Figure) -> list[Standing]:
    return standings(Results({}, figures), [CASE])


def figure(system: str, rows_per_s: float, batch_s: float) -> Figure:
    return Figure("a case", 7, system, rows_per_s=rows_per_s, batch_s=batch_s)


def test_a_goal_is_met_by_either_way_of_reading():
    rates, times = found(figure("windowpane", 15, 1.6), figure("windowpane-arrow", 20, 1.5), figure("spark", 10, 1.0))
    assert (rates.reached, rates.in_arrow, rates.verdict) == ("1.5x", "2.0x", "met in Arrow")
    assert (times.reached, times.in_arrow, times.verdict) == ("1.60x", "1.50x", "met in Arrow")


def test_a_goal_without_a_run_in_arrow_stands_by_itself():
    rates, times = found(figure("windowpane", 20, 2.0), figure("spark", 10, 1.0))
    assert (rates.reached, rates.in_arrow, rates.verdict) == ("2.0x", "", "met")
    assert (times.reached, times.in_arrow, times.verdict) == ("2.00x", "", "not met")


def test_a_peer_that_could_not_run_is_nothing_to_compare_with():
    rates, _ = found(figure("windowpane", 20, 2.0), Figure("a case", 7, "spark", reason="not installed"))
    assert (rates.reached, rates.verdict) == ("not installed", "nothing to compare")
