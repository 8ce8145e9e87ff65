"""Random OVER windows give what DuckDB gives, and an engine that does not would be seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from itertools import islice

import pyarrow as pa
import pytest

from verify.fuzz import over
from verify.fuzz.__main__ import main, report
from verify.fuzz.columns import COLUMNS
from verify.fuzz.over_parts.inputs import random_trial
from windowpane.engines.over.program import Emit, Inconsistent, OverProgram
from windowpane.engines.over.reference import OverReferenceEngine
from windowpane.engines.program import LATE, MAIN, Upstream
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.state.blob_store import BlobStore
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.aggregates.definition import definitions
from windowpane.windowing.calls import FUNCTIONS
from windowpane.windowing.frames import Exclude, Units
from windowpane.windowing.outputs import CHANGE_TYPE, INSERT
from windowpane.windowing.over.spec import OverSpec

BLOCK = 10


@cache
def program_of(seed: int) -> OverProgram:
    return random_trial(seed).program


@pytest.mark.slow_but("reference-duckdb-0", "columnar-duckdb-20", "columnar-reference-50")
@pytest.mark.parametrize(
    ("engine", "against", "block"),
    [
        *[("reference", "duckdb", block) for block in range(20)],
        *[("columnar", "duckdb", block) for block in range(20, 50)],
        *[("columnar", "reference", block) for block in range(50, 200)],
    ],
)
def test_random_programs_agree(engine: str, against: str, block: int) -> None:
    lines: list[str] = []
    seeds = range(block * BLOCK, (block + 1) * BLOCK)

    failed = report(
        (over.run(seed, engine, against) for seed in seeds), lines.append, f"over --engine {engine} --against {against}"
    )

    assert failed == 0, "\n".join(lines)
    assert lines[-1] == f"{BLOCK} passed, 0 failed"


@pytest.mark.slow
def test_the_programs_have_everything() -> None:
    programs = [*map(program_of, range(1200))]
    calls = [call for program in programs for call in program.spec.calls]
    frames = [call.frame for call in calls if call.frame is not None]

    drawn = {call.function for call in calls}
    assert drawn | {"increase"} == FUNCTIONS | {each.name for each in definitions() if each.is_built_in}
    assert "rate" in drawn  # of the same maker as increase, and as rare: few columns are instants
    assert {frame.units for frame in frames} == set(Units)
    assert {frame.exclude for frame in frames} == set(Exclude)
    bounds = [(frame.start.steps, frame.end.steps) for frame in frames]
    assert any(start is not None and end is not None and start > end for start, end in bounds)  # no row is ever in it
    assert any(call.distinct for call in calls)
    assert any(call.filter for call in calls)
    assert {program.mode for program in programs} == set(Emit)
    assert any(len(program.spec.order_by) > 1 for program in programs)
    assert any(not program.spec.partition_by for program in programs)


def test_a_seed_makes_the_same_trial_again() -> None:
    one, other = random_trial(11), random_trial(11)

    assert one.program == other.program
    texts = [repr([batch.rows.to_pylist() for batch in trial.batches]) for trial in (one, other)]
    assert texts[0] == texts[1]


def without_a_row(table: pa.Table) -> pa.Table:
    return table.slice(1)


def twice(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table, table])


def as_inserts(table: pa.Table) -> pa.Table:
    if CHANGE_TYPE not in table.column_names:
        return table.slice(1)
    return table.set_column(table.column_names.index(CHANGE_TYPE), CHANGE_TYPE, pa.array([INSERT] * table.num_rows, pa.string()))


@pytest.mark.parametrize("spoil", [without_a_row, twice, as_inserts])
@pytest.mark.parametrize("mode", list(Emit))
def test_an_engine_that_is_wrong_is_seen(
    spoil: object, mode: Emit, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def spoiled(self: OverReferenceEngine, store: BlobStore, rows: list[pa.Table], clock: Clock) -> BucketOutput:
        output = run(self, store, rows, clock)
        tables = [(number, spoil(table) if number == MAIN else table) for number, table in output.tables]  # type: ignore[operator]
        return replace(output, tables=tables)

    run = OverReferenceEngine.run
    monkeypatch.setattr(OverReferenceEngine, "run", spoiled)
    seed = next(seed for seed in range(200) if random_trial(seed).program.mode is mode and over.run(seed).differences)
    assert main(["over", "--programs", "1", "--seed", str(seed)]) == 1
    printed = capsys.readouterr().out
    assert f"over --engine reference --against duckdb --programs 1 --seed {seed}" in printed
    assert printed.endswith("0 passed, 1 failed\n")


def test_late_rows_that_are_missing_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(self: OverReferenceEngine, store: BlobStore, rows: list[pa.Table], clock: Clock) -> BucketOutput:
        output = run(self, store, rows, clock)
        return replace(output, tables=[(number, table) for number, table in output.tables if number != LATE])

    run = OverReferenceEngine.run
    monkeypatch.setattr(OverReferenceEngine, "run", silent)

    assert any("late rows: missing" in text for seed in range(60) for text in over.run(seed).differences)


@pytest.mark.slow
def test_the_input_has_everything() -> None:
    trials = [random_trial(seed) for seed in range(400)]
    programs = [trial.program for trial in trials]

    assert len({trial.beyond_duckdb for trial in trials}) == 6
    assert {program.upstream for program in programs} == set(Upstream)
    assert any(program.time_column and program.mode is Emit.UPDATE for program in programs)
    assert any(batch.rows.num_rows > 200 for trial in trials for batch in trial.batches)


@pytest.mark.slow
def test_windows_are_over_columns_of_every_type() -> None:
    programs = [*map(program_of, range(1_500))]

    def types(names: Callable[[OverSpec], Iterable[str]]) -> set[pa.DataType]:
        return {program.columns.field(name).type for program in programs for name in names(program.spec)}

    plain = {field.type for field in COLUMNS if not pa.types.is_nested(field.type)}
    assert types(lambda spec: spec.partition_by) >= plain
    assert types(lambda spec: spec.order_names) >= plain
    assert types(lambda spec: [name for call in spec.calls for name in call.arguments]) >= {field.type for field in COLUMNS}


def test_changes_that_cannot_be_are_made_and_counted() -> None:
    trials = (trial for trial in map(random_trial, range(400)) if trial.program.on_inconsistent is Inconsistent.WARN)
    counted = 0
    for trial in islice(trials, 10):
        engine, store = OverReferenceEngine(trial.program), MemoryBlobStore()
        counted += sum(
            engine.run(store, [batch.rows], Clock(batch.watermark, 0)).counters.inconsistent for batch in trial.batches
        )
    assert counted > 10
