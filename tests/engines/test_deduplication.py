"""Deduplication on a bucket: both engines beside the definition, in random batches, with a restart after each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.examples import seeds
from verify.sizes import drawn_sizes
from windowpane.engines.deduplication.engine import DeduplicationEngine
from windowpane.engines.deduplication.program import DeduplicationProgram, Keep
from windowpane.engines.deduplication.reference import DeduplicationReferenceEngine
from windowpane.engines.program import LATE, MAIN, Upstream
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.errors import ChangedPlanError, MissingEventTimeError
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.over.spec import OrderColumn
from windowpane.windowing.times import MAX, MIN

COLUMNS = pa.schema([("k", pa.string()), ("t", pa.int64()), ("v", pa.int64())])
FIRST = DeduplicationProgram(("k",), COLUMNS, ("k", "t", "v"), within=10, has_late_output=True)
LAST = replace(FIRST, keep=Keep.LAST)
ENGINES = [DeduplicationReferenceEngine, DeduplicationEngine]

Arrived = tuple[Any, int | None, int]
"""Key, time and value of a row."""


class Bucket:
    """An engine built anew for every batch, on bytes that a store was saved as."""

    def __init__(self, engine: Callable[[DeduplicationProgram], Any], program: DeduplicationProgram) -> None:
        self.engine, self.program = engine, program
        self.saved = MemoryBlobStore().snapshot()

    def run(self, rows: Sequence[Arrived], watermark: int = MIN, now: int = 0) -> BucketOutput:
        store = MemoryBlobStore()
        store.restore(self.saved)
        keys, times, values = zip(*rows, strict=True) if rows else ((), (), ())
        given: dict[str, Any] = {"k": keys, "t": times, "v": values, TIME: times}
        given |= {PARTITION: [0] * len(rows), POSITION: range(len(rows))}
        types = {"k": self.program.columns.field("k").type}
        table = pa.table({name: pa.array(each, types.get(name, pa.int64())) for name, each in given.items()})
        output: BucketOutput = self.engine(self.program).run(store, [table] if rows else [], Clock(watermark, now))
        self.saved = store.snapshot()
        return output


def rows_of(output: BucketOutput, number: int = MAIN) -> list[tuple[Any, ...]]:
    """Return the rows of an output; of late ones what they were."""
    tables = [table.select(("k", "t", "v")) if at == LATE else table for at, table in output.tables if at == number]
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]


@pytest.mark.parametrize("engine", ENGINES)
def test_first_rows_are_emitted_once_and_again_when_within_is_over(engine: Any) -> None:
    bucket = Bucket(engine, FIRST)
    assert rows_of(bucket.run([("a", 100, 1), ("a", 109, 2), (None, 100, 3), (None, 91, 4), ("a", 90, 5)])) == [
        ("a", 100, 1),
        (None, 100, 3),
        ("a", 90, 5),
    ]
    output = bucket.run([("a", 110, 6), ("a", 119, 7), ("b", 105, 8)], watermark=99)
    assert rows_of(output) == [("a", 110, 6), ("b", 105, 8)]
    assert output.counters.duplicates == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_late_rows_are_counted_and_are_emitted_on_the_side(engine: Any) -> None:
    bucket = Bucket(engine, FIRST)
    bucket.run([("a", 100, 1)])
    output = bucket.run([("a", 100, 2), ("b", 105, 3), ("c", 106, 4)], watermark=105)
    assert rows_of(output) == [("c", 106, 4)]
    assert rows_of(output, LATE) == [("a", 100, 2), ("b", 105, 3)]
    assert (output.counters.late_dropped, output.counters.duplicates) == (2, 0)
    patient = Bucket(engine, replace(FIRST, allowed_lateness=5))
    assert rows_of(patient.run([("b", 100, 1), ("c", 101, 2)], watermark=105)) == [("c", 101, 2)]


@pytest.mark.parametrize("engine", ENGINES)
def test_last_rows_are_a_changelog(engine: Any) -> None:
    bucket = Bucket(engine, LAST)
    assert rows_of(bucket.run([("a", 100, 1), ("a", 105, 2)])) == [("a", 105, 2, "insert")]
    assert rows_of(bucket.run([("a", 105, 3)])) == [
        ("a", 105, 2, "update_preimage"),
        ("a", 105, 3, "update_postimage"),
    ]
    assert rows_of(bucket.run([("a", 105, 3), ("a", 104, 9)])) == []
    assert rows_of(bucket.run([("a", 123, 4)])) == [("a", 123, 4, "insert")]
    # 114 is near to 105 and to 123: one run, of which 123 stays
    assert rows_of(bucket.run([("a", 114, 5)])) == [("a", 105, 3, "delete")]
    assert rows_of(bucket.run([("a", 90, 6), ("a", 95, 7)])) == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("program", [FIRST, LAST])
def test_what_is_near_to_no_row_to_come_is_forgotten(engine: Any, program: DeduplicationProgram) -> None:
    bucket = Bucket(engine, program)
    output = bucket.run([("a", 100, 1), ("b", 100, 2)])
    assert (output.counters.open_windows, output.is_idle) == (2, False)
    assert bucket.run([], watermark=108).counters.open_windows == 2
    output = bucket.run([], watermark=109)
    assert (output.counters.open_windows, output.is_idle) == (0, True)
    assert [row[:3] for row in rows_of(bucket.run([("a", 110, 3)], watermark=109))] == [("a", 110, 3)]


@pytest.mark.parametrize("engine", ENGINES)
def test_by_the_clock_the_batch_tells_the_time(engine: Any) -> None:
    bucket = Bucket(engine, replace(FIRST, is_event_time=False))
    assert rows_of(bucket.run([("a", None, 1), ("a", None, 2)], now=50)) == [("a", None, 1)]
    assert rows_of(bucket.run([("a", None, 3), ("b", None, 4)], now=59)) == [("b", None, 4)]
    assert rows_of(bucket.run([("a", None, 5)], now=40)) == []  # the clock was set back: it is still 59
    assert rows_of(bucket.run([("a", None, 6), ("b", None, 7)], now=60)) == [("a", None, 6)]
    last = Bucket(engine, replace(LAST, is_event_time=False))
    last.run([("a", None, 1), ("a", None, 2)], now=50)
    assert rows_of(last.run([("a", None, 3)], now=59)) == [
        ("a", None, 2, "update_preimage"),
        ("a", None, 3, "update_postimage"),
    ]
    assert rows_of(last.run([("a", None, 4)], now=69)) == [("a", None, 4, "insert")]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_order_within_a_batch(engine: Any) -> None:
    ordered = replace(FIRST, order_by=(OrderColumn("t", nulls_first=True),))
    assert rows_of(Bucket(engine, ordered).run([("a", 105, 1), ("a", 100, 2), ("b", 1, 3)])) == [("b", 1, 3), ("a", 100, 2)]


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_of_an_operator_are_late_by_the_watermark_before(engine: Any) -> None:
    bucket = Bucket(engine, replace(FIRST, upstream=Upstream.WINDOW))
    assert rows_of(bucket.run([("a", 100, 1)], watermark=200)) == [("a", 100, 1)]
    output = bucket.run([("a", 200, 2), ("a", 201, 3)], watermark=300)
    assert (rows_of(output), rows_of(output, LATE)) == ([("a", 201, 3)], [("a", 200, 2)])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_without_a_time_is_refused_and_so_is_another_plan(engine: Any) -> None:
    bucket = Bucket(engine, replace(FIRST, description={"within": 10}))
    with pytest.raises(MissingEventTimeError, match="key 'b' has no event time, and deduplication goes by it"):
        bucket.run([("a", 1, 1), ("b", None, 2)])
    bucket.run([("a", 1, 1)])
    bucket.program = replace(FIRST, description={"within": 20})
    with pytest.raises(ChangedPlanError, match="within"):
        bucket.run([("a", 2, 2)])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_that_is_equal_but_written_differently_replaces_the_last_one(engine: Any) -> None:
    columns = pa.schema([("k", pa.float64()), ("t", pa.int64()), ("v", pa.int64())])
    bucket = Bucket(engine, replace(LAST, columns=columns))
    assert list(map(repr, rows_of(bucket.run([(0.0, 5, 1)])))) == ["(0.0, 5, 1, 'insert')"]
    assert list(map(repr, rows_of(bucket.run([(-0.0, 5, 1)])))) == [
        "(0.0, 5, 1, 'update_preimage')",
        "(-0.0, 5, 1, 'update_postimage')",
    ]
    assert rows_of(bucket.run([(-0.0, 5, 1)])) == []


# Random batches, beside the definition.


def first_by_definition(rows: Iterable[tuple[Any, int, int]], within: int) -> list[tuple[Any, int, int]]:
    kept: list[tuple[Any, int, int]] = []
    for row in rows:
        if not any(spelled(other[0]) == spelled(row[0]) and abs(row[1] - other[1]) < within for other in kept):
            kept.append(row)
    return kept


def last_by_definition(rows: Sequence[tuple[Any, int, int]], within: int) -> list[tuple[Any, int, int]]:
    last: list[tuple[Any, int, int]] = []
    for key in {spelled(row[0]) for row in rows}:
        own = sorted((row for row in rows if spelled(row[0]) == key), key=lambda row: row[1])  # stable: by arrival
        last += [row for row, after in zip(own, [*own[1:], None], strict=True) if after is None or after[1] - row[1] >= within]
    return last


def spelled(value: Any) -> str:
    if isinstance(value, float):
        return repr(value + 0.0)
    return repr([each if each is None else each + 0.0 for each in value]) if isinstance(value, list) else repr(value)


KEYS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.string(), ["a", "b", "", None]),
    (pa.int64(), [1, 2, -1, None]),
    (pa.float64(), [0.0, -0.0, float("nan"), None]),
    (pa.list_(pa.float64()), [[0.0], [-0.0], [], None]),
]


def random_batches(draw: Random, keys: list[Any], within: int) -> list[tuple[int, list[tuple[Any, int, int]]]]:
    """Return batches with the watermark under which the rows of each are late."""
    origin = draw.choice([0, -(1 << 62), (1 << 62), MIN + 1000])
    batches, number, reached, watermark = [], 0, origin, MIN
    spread = draw.choice([1, 3 * within, 20 * within])
    for _ in range(draw.randrange(1, 6)):
        batch = []
        for _ in range(draw.randrange(draw.choice([1, 4, 60]))):
            number += 1
            batch.append((draw.choice(keys), reached + draw.randrange(-spread, spread + 1), number))
        batches.append((watermark, batch))
        reached = max([reached, *(row[1] for row in batch)])
        watermark = max(watermark, reached - draw.choice([0, within, spread])) if draw.random() < 0.7 else watermark
    return batches


@pytest.mark.parametrize("seed", seeds(120))
def test_random_batches_give_what_the_definition_says(seed: int) -> None:
    draw = Random(seed)
    kind, keys = draw.choice(KEYS)
    within = draw.choice([1, 2, 5, 50])
    columns = pa.schema([("k", kind), ("t", pa.int64()), ("v", pa.int64())])
    program = replace(FIRST, columns=columns, within=within, keep=draw.choice([Keep.FIRST, Keep.LAST]))
    batches = random_batches(draw, keys, within)
    punctual = [row for watermark, batch in batches for row in batch if row[1] > watermark]
    reference, fast = Bucket(DeduplicationReferenceEngine, program), Bucket(DeduplicationEngine, program)
    emitted: list[tuple[Any, ...]] = []
    late: list[tuple[Any, ...]] = []
    for watermark, batch in batches:
        expected = reference.run(batch, watermark)
        with drawn_sizes(seed):
            output = fast.run(batch, watermark)
        assert sorted(map(repr, rows_of(output))) == sorted(map(repr, rows_of(expected)))
        assert list(map(repr, rows_of(output, LATE))) == list(map(repr, rows_of(expected, LATE)))
        emitted += rows_of(output)
        late += rows_of(output, LATE)
    assert len(late) == sum(len(batch) for _, batch in batches) - len(punctual)
    if program.keep is Keep.FIRST:
        assert list(map(repr, emitted)) == list(map(repr, first_by_definition(punctual, within)))
    else:
        assert table_of(emitted) == sorted(repr(row) for row in last_by_definition(punctual, within))


def table_of(changes: Iterable[tuple[Any, ...]]) -> list[str]:
    """Return the rows that a changelog leaves."""
    table: list[str] = []
    for *row, word in changes:
        if word in ("insert", "update_postimage"):
            table.append(repr(tuple(row)))
        else:
            table.remove(repr(tuple(row)))
    return sorted(table)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", seeds(10))
def test_batches_make_no_difference(engine: Any, seed: int) -> None:
    draw = Random(seed)
    rows: list[Arrived] = [(draw.choice("abc"), draw.randrange(80), number) for number in range(60)]
    together = rows_of(Bucket(engine, FIRST).run(rows))
    bucket, cut = Bucket(engine, FIRST), draw.randrange(60)
    assert rows_of(bucket.run(rows[:cut])) + rows_of(bucket.run(rows[cut:], watermark=-1)) == together
    shuffled = draw.sample(rows, 60)
    times = [row[:2] for row in rows]
    alone = [row for row in rows if times.count(row[:2]) == 1]
    one, other = Bucket(engine, LAST), Bucket(engine, LAST)
    changes = rows_of(other.run([row for row in shuffled[:30] if row in alone]))
    changes += rows_of(other.run([row for row in shuffled[30:] if row in alone]))
    assert table_of(changes) == table_of(rows_of(one.run(alone)))


def test_the_end_of_time_forgets_everything() -> None:
    for engine in ENGINES:
        bucket = Bucket(engine, FIRST)
        bucket.run([("a", 100, 1)])
        assert bucket.run([], watermark=MAX, now=MAX).is_idle
