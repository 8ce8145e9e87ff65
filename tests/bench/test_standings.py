"""Standings: what a goal says of two figures, with rows from Spark and with files read by Arrow."""

from __future__ import annotations

from dataclasses import replace

from bench import systems
from bench.bids import Feed, Part
from bench.cases import Case, Contender, Goal, all_cases
from bench.programs import Program
from bench.results import Figure, Results
from bench.shapes import ROWS_OF_USERS
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


def test_a_goal_says_which_of_several_systems_it_is_about():
    goals = (Goal("users-spark", "rows_per_s", 2, of="users-rows"), Goal("users-spark", "rows_per_s", 3, of="users-default"))
    figures = [figure("users-rows", 20, 2.0), figure("users-default", 40, 1.0), figure("users-spark", 10, 4.0)]
    rows, default = standings(Results({}, tuple(figures)), [replace(CASE, goals=goals)])
    assert (rows.case, rows.reached, default.case, default.reached) == (
        "a case: rows from Spark",
        "2.0x",
        "a case: as it comes",
        "4.0x",
    )


def test_a_case_that_was_never_run_has_no_standing():
    assert standings(Results({}, ()), all_cases()) == []


def test_cases_are_chosen_by_all_of_several_texts_each_of_which_may_name_several():
    def chosen(*only: str) -> set[str]:
        return {f"{case.name.partition(',')[0]} {case.keys}" for case in all_cases() if case.is_among(only)}

    assert chosen("users,shapes", "100000 keys") == {"users 100000", "shapes 100000"}
    assert chosen("own functions, text keys", "1000 keys") == {"own functions 1000"}


def test_every_case_has_rows_and_a_name_of_its_own():
    cases = all_cases()
    assert len({(case.name, case.keys, case.emit) for case in cases}) == len(cases)
    assert {case.program.view for case in cases if case.name.startswith(("users", "shapes", "own"))} == set(ROWS_OF_USERS)


def test_systems_go_by_the_titles_that_are_listed_and_by_their_names():
    case = next(case for case in all_cases() if case.is_among(["tumbling, batches of 4 M 1000 keys"]))
    chosen = case.with_systems(["windowpane, in Arrow", "spark", "nobody"])
    assert [each.system.name for each in chosen.contenders] == ["windowpane-arrow", "spark"]
    assert not case.with_systems(["nobody"]).contenders
