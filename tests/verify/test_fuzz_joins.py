"""Random joins agree with the reference and with DuckDB, and have every part."""

from __future__ import annotations

from random import Random

from tests.examples import examples
from verify.fuzz import joins
from verify.fuzz.__main__ import report
from windowpane.engines.join.program import JoinProgram
from windowpane.windowing.joins import ArrivalMatch, AsOfMatch, IntervalMatch, WindowMatch

PROGRAMS = 400


def test_random_joins_agree() -> None:
    programs = examples(PROGRAMS)
    lines: list[str] = []
    failed = report((joins.run(seed) for seed in range(programs)), lines.append, "joins")
    assert failed == 0, "\n".join(lines)
    assert lines[-1] == f"{programs} passed, 0 failed"


def test_programs_have_every_part() -> None:
    programs: list[JoinProgram] = [joins.random_program(Random(seed)) for seed in range(PROGRAMS)]
    assert {type(program.match) for program in programs} == {IntervalMatch, AsOfMatch, WindowMatch, ArrivalMatch}
    assert {program.how for program in programs} == {"inner", "left", "right", "full", "semi", "anti"}
    assert {program.null_safe for program in programs} == {True, False}
    assert {program.match.direction for program in programs if isinstance(program.match, AsOfMatch)} == {
        "backward",
        "forward",
        "nearest",
    }
    assert any(program.condition is not None for program in programs)
    assert any(isinstance(each.match, IntervalMatch) and each.match.upper_column for each in programs)
