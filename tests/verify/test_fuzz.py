"""Random programs agree on both engines, and a program that does not would be seen."""

from __future__ import annotations

import inspect
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.examples import examples
from verify.fuzz import functions, windowed
from verify.fuzz.__main__ import main, report
from verify.fuzz.columns import COLUMNS
from verify.fuzz.comparison import difference, identical
from verify.fuzz.windowed_programs import random_program
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.engines.row.engine import RowEngine
from windowpane.engines.slices.engine import SlicesEngine
from windowpane.errors import WindowpaneError
from windowpane.kernels.grouping import coded_groups, grouped_fold
from windowpane.state.blob_store import BlobStore
from windowpane.state.hash_pages import HashPages
from windowpane.windowing import assigners, evictors, triggers
from windowpane.windowing.aggregates.definition import definitions

BLOCK = 20


@pytest.mark.slow_but("0")
@pytest.mark.parametrize("block", range(60))
def test_random_programs_agree_with_the_reference(block: int) -> None:
    lines: list[str] = []
    failed = report((windowed.run(seed) for seed in range(block * BLOCK, (block + 1) * BLOCK)), lines.append, "windows")
    assert failed == 0, "\n".join(lines)
    assert lines[-1] == f"{BLOCK} passed, 0 failed"


@pytest.mark.slow
def test_every_type_is_a_key_and_an_argument() -> None:
    programs = [random_program(Random(seed))[0] for seed in range(700) if _goes_together(seed)]
    keys = {field.type for program in programs for field in program.keys}
    arguments = {COLUMNS.field(name).type for program in programs for _, each, _ in program.aggregates for name in each.arguments}
    assert keys == {field.type for field in COLUMNS if not pa.types.is_map(field.type)}
    assert arguments == {field.type for field in COLUMNS}
    assert {aggregate.name for program in programs for _, aggregate, _ in program.aggregates} == {
        each.name for each in definitions() if each.is_built_in
    }


def test_programs_of_functions_have_every_part() -> None:
    specs = [functions.random_spec(Random(seed)) for seed in range(400)]
    inner = [getattr(spec.trigger, "inner", spec.trigger) for spec in specs]
    others = {assigners.ClosedSessionWindows}  # programs of a kind of their own, ``closed``
    assert {type(spec.assigner) for spec in specs} == set(_assigners_of(assigners)) - others
    assert {type(each) for each in [*inner, *(spec.trigger for spec in specs)]} >= {
        triggers.ContinuousEventTimeTrigger,
        triggers.ContinuousProcessingTimeTrigger,
        triggers.CountTrigger,
        triggers.DeltaTrigger,
        triggers.EndOfStreamTrigger,
        triggers.EventTimeTrigger,
        triggers.NeverTrigger,
        triggers.ProcessingTimeTrigger,
        triggers.ProcessingTimeoutTrigger,
        triggers.PurgingTrigger,
        functions.OwnTrigger,
    }
    assert {type(spec.evictor) for spec in specs} == {
        type(None),
        evictors.CountEvictor,
        evictors.DeltaEvictor,
        evictors.TimeEvictor,
        functions.OwnEvictor,
    }
    assert len({type(spec.function.accumulate) for spec in specs}) == 4


def _assigners_of(room: Any) -> list[type]:
    made = [each for each in vars(room).values() if isinstance(each, type) and issubclass(each, room.WindowAssigner)]
    return [each for each in made if not inspect.isabstract(each)]


def test_a_row_engine_that_is_wrong_is_seen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def short_by_a_row(self: RowEngine, store: BlobStore, rows: list[pa.Table], clock: Clock) -> BucketOutput:
        output = run(self, store, rows, clock)
        return replace(output, tables=[(number, table.slice(1)) for number, table in output.tables])

    run = RowEngine.run
    monkeypatch.setattr(RowEngine, "run", short_by_a_row)
    seed = next(seed for seed in range(100) if any("results: expected" in each for each in functions.run(seed).differences))
    assert main(["functions", "--programs", "1", "--seed", str(seed)]) == 1
    printed = capsys.readouterr().out
    assert f"FAILED seed {seed} (functions); again with: python -m verify.fuzz functions --programs" in printed
    assert "results: expected" in printed


def _goes_together(seed: int) -> bool:
    try:
        random_program(Random(seed))
    except WindowpaneError:
        return False
    return True


def test_few_rows_take_the_ways_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: Counter[str] = Counter()

    def counted(room: object, name: str) -> None:
        work = getattr(room, name)

        def wrapped(*given: Any, **options: Any) -> Any:
            result = work(*given, **options)
            taken[name] += result is not None
            return result

        monkeypatch.setattr(room, name, wrapped)

    counted(grouped_fold, "coded_groups")
    counted(coded_groups, "_numbered")
    counted(HashPages, "_parts")
    seeds = {*range(10_000, 10_000 + examples(200)), 10_342}  # that one numbers codes
    assert not [each.differences for each in map(windowed.run, seeds) if each.differences]
    assert min(taken[name] for name in ("coded_groups", "_numbered", "_parts")) > 3


def test_a_seed_makes_the_same_program_again() -> None:
    assert windowed.run(17) == windowed.run(17)


def test_an_engine_that_is_wrong_is_seen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def short_by_a_row(self: SlicesEngine, store: BlobStore, rows: list[pa.Table], clock: Clock) -> BucketOutput:
        output = run(self, store, rows, clock)
        return replace(output, tables=[(number, table.slice(1)) for number, table in output.tables])

    run = SlicesEngine.run
    monkeypatch.setattr(SlicesEngine, "run", short_by_a_row)
    seed = next(seed for seed in range(100) if windowed.run(seed).engine == "slices" and windowed.run(seed).differences)
    assert main(["windows", "--programs", "1", "--seed", str(seed)]) == 1
    printed = capsys.readouterr().out
    assert f"FAILED seed {seed}" in printed
    assert "assigner" in printed
    assert printed.endswith("0 passed, 1 failed\n")


@pytest.mark.parametrize(
    ("expected", "got", "found"),
    [
        ([{"k": 1, "x": 0.1 + 0.2}], [{"k": 1, "x": 0.3}], None),
        ([{"x": float("nan")}, {"x": 0.0}], [{"x": 0.0}, {"x": float("nan")}], None),
        ([{"x": 0.0}], [{"x": -0.0}], "expected {'x': 0.0}"),
        ([{"x": [0.0]}], [{"x": [-0.0]}], "expected {'x': [0.0]}"),
        ([{"x": -0.0, "z": 1}, {"x": 0.0, "z": 1}], [{"x": 0.0, "z": 1}, {"x": -0.0, "z": 1}], None),
        ([{"x": [1.0, None]}], [{"x": [1.0, None]}], None),
        ([{"x": {"y": 0.0}, "z": 2}, {"x": {"y": 0.0}, "z": 1}], [{"x": {"y": 0.0}, "z": 1}, {"x": {"y": 0.0}, "z": 2}], None),
        ([{"x": 1}], [{"x": 2}], "expected {'x': 1}"),
        ([{"x": 1}, {"x": 2}], [{"x": 1}], "missing: {'x': 2}"),
        ([{"x": 1}], [{"x": 1}, {"x": 1}], "one too many: {'x': 1}"),
        ([{"x": None}], [{"x": float("nan")}], "expected {'x': None}"),
    ],
)
def test_rows_are_compared_in_any_order_and_up_to_rounding(expected: list, got: list, found: str | None) -> None:
    differs = difference(expected, got)
    assert (differs is None) if found is None else (differs is not None and differs.startswith(found))


def test_a_program_that_raises_is_told_with_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: SlicesEngine, store: BlobStore, rows: list[pa.Table], clock: Clock) -> BucketOutput:
        raise ZeroDivisionError("out of order")

    monkeypatch.setattr(SlicesEngine, "run", broken)
    outcome = next(each for each in map(windowed.run, range(100)) if each.differences)
    lines: list[str] = []
    assert report([outcome], lines.append, "windows") == 1
    assert lines[0].startswith(f"FAILED seed {outcome.seed} (windows); again with: python -m verify.fuzz")
    assert lines[2].endswith("ZeroDivisionError: out of order")


def test_a_change_of_the_last_bit_is_a_change() -> None:
    one, other = {"x": 0.1 + 0.2}, {"x": 0.3}
    assert difference([one], [other]) is None
    assert not identical(one, other)
    assert identical({"x": float("nan")}, {"x": float("nan")})
