"""Random rolling features agree with the reference, with labels and with DuckDB, and have every part."""

from __future__ import annotations

from random import Random

from tests.examples import examples
from verify.fuzz import rolling
from verify.fuzz.__main__ import report
from windowpane.windowing.rolling import RollingEmit

PROGRAMS = 200


def test_random_features_agree() -> None:
    programs = examples(PROGRAMS)
    lines: list[str] = []
    failed = report((rolling.run(seed) for seed in range(programs)), lines.append, "rolling")
    assert failed == 0, "\n".join(lines)
    assert lines[-1] == f"{programs} passed, 0 failed"


def test_programs_have_every_part() -> None:
    programs = [rolling.random_program(Random(seed)) for seed in range(PROGRAMS)]
    assert {program.spec.emit for program in programs} == {*RollingEmit}
    assert {program.engine for program in programs} == {"rolling", "rolling reference"}
    assert {window.is_exact for program in programs for window in program.spec.windows} == {True, False}
    assert {program.spec.grain == 1 for program in programs} == {True, False}
    assert any(program.spec.deletes_empty for program in programs)
    assert any(len({window.hop for window in program.spec.windows}) > 1 for program in programs)
    assert any(call.condition for program in programs for call in program.spec.calls)
