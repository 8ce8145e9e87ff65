"""Settling of changelogs on a bucket: both engines, with a restart after each batch, beside values found by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.examples import seeds
from verify.sizes import drawn_sizes
from windowpane.engines.program import LATE, MAIN, Upstream
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.engines.settling.program import SettlingProgram
from windowpane.errors import AbsentInsertError, ChangedPlanError, InconsistentChangeError, MissingEventTimeError
from windowpane.hidden_columns import FIRING_WATERMARK, PARTITION, POSITION, TIME
from windowpane.planning.description.programs import of_settling, read_back
from windowpane.planning.engines import make_engine, with_engine
from windowpane.planning.settling.programs import compile_settling
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.outputs import CHANGE_TYPE
from windowpane.windowing.times import MAX, MIN

COLUMNS = pa.schema([("k", pa.string()), ("v", pa.float64()), ("tags", pa.list_(pa.int64()))])
PROGRAM = compile_settling(COLUMNS, Upstream.SOURCE)
ENGINES = ("settling", "settling reference")
Change = tuple[str, str | None, float | None, int | None]
"""The word, key, value, and time."""


class Bucket:
    """An engine built anew for every batch, on bytes that a store was saved as."""

    def __init__(self, engine: str, program: SettlingProgram = PROGRAM) -> None:
        self.program = with_engine(program, engine)
        self.saved = MemoryBlobStore().snapshot()

    def run(self, changes: Sequence[Change], watermark: int) -> BucketOutput:
        store = MemoryBlobStore()
        store.restore(self.saved)
        words, keys, values, times = ([change[place] for change in changes] for place in range(4))
        given = {
            **{"k": pa.array(keys, pa.string()), "v": pa.array(values, pa.float64())},
            "tags": pa.array([[1, 2]] * len(changes), COLUMNS.field("tags").type),
            **{CHANGE_TYPE: pa.array(words, pa.string()), TIME: pa.array(times, pa.int64())},
            **{PARTITION: pa.array([0] * len(changes), pa.int32()), POSITION: pa.array(range(len(changes)), pa.int64())},
        }
        output = make_engine(self.program).run(store, [pa.table(given)], Clock(watermark, 0))
        self.saved = store.snapshot()
        return output

    def settled(self, changes: Sequence[Change], watermark: int) -> list[tuple[Any, ...]]:
        tables = [table for number, table in self.run(changes, watermark).tables if number == MAIN]
        return [tuple(row.values()) for table in tables for row in table.select(["k", "v", TIME]).to_pylist()]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_comes_once_when_the_watermark_has_passed_it(engine: str) -> None:
    bucket = Bucket(engine)
    assert bucket.settled([("insert", "a", 1.0, 10), ("insert", "b", 2.0, 15), ("insert", "a", 1.0, 10)], MIN) == []
    changes = [("update_preimage", "b", 2.0, 15), ("update_postimage", "b", 3.0, 15), ("insert", None, None, 9)]
    assert bucket.settled(changes, MIN) == []
    assert bucket.settled([("delete", "a", 1.0, 20), ("insert", "a", 1.0, 20), ("insert", "a", 1.0, 20)], 8) == []
    # Equal rows are as many as were inserted and not deleted; the word of an update says no more than that.
    assert bucket.settled([], 19) == [(None, None, 9), ("a", 1.0, 10), ("a", 1.0, 10), ("b", 3.0, 15)]
    assert bucket.settled([], MAX) == [("a", 1.0, 20)]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_change_behind_the_watermark_is_late_and_says_its_word(engine: str) -> None:
    bucket = Bucket(engine)
    bucket.run([("insert", "a", 1.0, 10)], MIN)
    output = bucket.run([("delete", "a", 1.0, 10), ("insert", "b", 1.0, 11)], 10)
    ((_, late),) = [each for each in output.tables if each[0] == LATE]
    why = ["dropped", "watermark", "late_by", "watermark_delay", "led_by"]
    assert late.column_names[-5:] == why
    assert late.drop_columns(why).to_pylist() == [{"k": "a", "v": 1.0, "tags": [1, 2], CHANGE_TYPE: "delete"}]
    assert output.counters.late_dropped == 1
    assert bucket.settled([], MAX) == [("b", 1.0, 11)]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_that_was_never_inserted_cannot_be_taken_back(engine: str) -> None:
    bucket = Bucket(engine)
    bucket.run([("delete", "a", 1.0, 10), ("insert", "a", 2.0, 10)], MIN)  # its insert may still come
    with pytest.raises(AbsentInsertError, match=r"'a', 'v': 1\.0.*1 more time than it inserted"):
        bucket.run([], 10)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_no_change_is_refused(engine: str) -> None:
    with pytest.raises(InconsistentChangeError, match="upsert"):
        Bucket(engine).run([("upsert", "a", 1.0, 10)], MIN)
    with pytest.raises(MissingEventTimeError):
        Bucket(engine).run([("insert", "a", 1.0, None)], MIN)


@pytest.mark.parametrize("seed", seeds(60))
def test_both_engines_leave_the_table_that_changes_make(seed: int) -> None:
    draw = Random(seed)
    table: list[tuple[Any, ...]] = []
    batches: list[tuple[list[Change], int]] = []
    watermark = MIN
    for _ in range(draw.randint(1, 6)):
        changes: list[Change] = []
        for _ in range(draw.randint(0, 12)):
            open_rows = [row for row in table if row[2] > watermark]
            if open_rows and draw.random() < 0.4:
                row = draw.choice(open_rows)
                table.remove(row)
                changes.append((draw.choice(["delete", "update_preimage"]), *row))
            else:
                time = max(watermark, 0) + draw.randint(1, 40)
                table.append(row := (draw.choice(["a", None]), draw.choice([0.0, None, 1.5]), time))
                changes.append((draw.choice(["insert", "update_postimage"]), *row))
        batches.append((changes, watermark))
        watermark = max(watermark, 0) + draw.choice([0, 10, 50])
    for engine in ENGINES:
        with drawn_sizes(seed):
            bucket = Bucket(engine)
            found = [row for changes, watermark in [*batches, ([], MAX)] for row in bucket.settled(changes, watermark)]
        assert sorted(found, key=repr) == sorted(table, key=repr), engine


def test_its_description_reads_back_and_another_column_is_refused() -> None:
    assert read_back(of_settling(PROGRAM)) == replace(PROGRAM, engine_reason="")
    bucket = Bucket("settling")
    bucket.run([("insert", "a", 1.0, 10)], MIN)
    bucket.program = replace(PROGRAM, description={**PROGRAM.description, "keys": ["k"]})
    with pytest.raises(ChangedPlanError, match="keys"):
        bucket.run([], 20)


def test_rows_carry_the_watermark_that_the_next_operator_compares_them_with() -> None:
    bucket = Bucket("settling")
    bucket.run([("insert", "a", 1.0, 10)], 5)
    ((_, rows),) = bucket.run([], 20).tables
    assert rows[FIRING_WATERMARK].to_pylist() == [5]
