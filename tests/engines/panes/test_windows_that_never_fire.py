"""Global windows without a trigger: nothing is emitted, so nothing is kept, and a restart still knows the program."""

from __future__ import annotations

from random import Random

import pytest

import windowpane as wp
from verify.fuzz.windowed_programs import program_of
from verify.fuzz.windowed_streams import random_rows
from windowpane.engines.protocol import Clock
from windowpane.errors import ChangedPlanError
from windowpane.planning.engines import make_engine
from windowpane.state.memory import MemoryBlobStore

GLOBAL = wp.GlobalWindows.create()


def test_rows_are_taken_and_nothing_is_kept_of_them() -> None:
    program, store = program_of(GLOBAL, {"n": wp.count()}), MemoryBlobStore()
    assert program.engine == "panes"
    outputs = [make_engine(program).run(store, [random_rows(Random(1), 9, 0)], Clock(time, time)) for time in (1, 2**62)]
    assert [(output.tables, output.is_idle) for output in outputs] == [([], True)] * 2
    assert store.keys() == ["header"]


def test_another_program_is_refused() -> None:
    store = MemoryBlobStore()
    make_engine(program_of(GLOBAL, {"n": wp.count()})).run(store, [], Clock(0, 0))
    with pytest.raises(ChangedPlanError):
        make_engine(program_of(GLOBAL, {"n": wp.sum("n")})).run(store, [], Clock(0, 0))


@pytest.mark.parametrize("evictor", [wp.CountEvictor.of(2), wp.DeltaEvictor.of(1, lambda old, last: 0)])
def test_an_evictor_that_is_never_asked_is_no_matter(evictor: wp.Evictor) -> None:
    program, store = program_of(GLOBAL, {"n": wp.count()}, evictor=evictor), MemoryBlobStore()
    assert program.engine == "panes"
    assert make_engine(program).run(store, [random_rows(Random(1), 9, 0)], Clock(1, 1)).tables == []
    assert store.keys() == ["header"]


def test_windows_with_an_end_have_late_rows_to_report() -> None:
    program = program_of(wp.TumblingEventTimeWindows.of(5), {"n": wp.count()}, trigger=wp.NeverTrigger())
    assert program.engine == "panes"
