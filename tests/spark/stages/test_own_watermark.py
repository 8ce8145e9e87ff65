"""What a bucket keeps of the watermark it makes, and what tasks report of their rows: no Spark is started for it."""

from __future__ import annotations

import pyarrow as pa

from windowpane.hidden_columns import TIME
from windowpane.spark.stages.blobs import pack, unpack
from windowpane.spark.stages.messages import Mark, Moves, latest_of, received, reported
from windowpane.spark.stages.process import OwnWatermark
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.times import MIN
from windowpane.windowing.watermarks import SourceMark, Watermarks, WatermarkState

SOURCES = Watermarks.bounded(5).per_source("s")


def mark(source: str | None, *rows: tuple[object, int | None]) -> pa.Table:
    """Return what a task reports of rows (source, event time), which come in two batches."""
    made = Mark(source)
    for part in (rows[:2], rows[2:]):
        values = [[each[number] for each in part] for number in (0, 1)]
        made.see(pa.table({"s": values[0], TIME: pa.array(values[1], pa.int64())}))
    blob = made.blob()
    assert blob is not None
    return unpack(blob)


def test_a_mark_has_the_latest_time_of_each_source() -> None:
    one, other = mark("s", (1, 10), (2, 30), (1, 20), (None, 5)), mark("s", (2, 7), (3, 40), (3, None))
    assert received([pack(one)]).marks == [one]
    assert latest_of([one]) == {"1": 20, "2": 30, None: 5}
    assert latest_of([one, other]) == {"1": 20, "2": 30, "3": 40, None: 5}
    assert latest_of([mark(None, ("a", 10), ("b", 30), ("a", None))]) == {None: 30}


def test_no_mark_is_reported_of_no_rows() -> None:
    none = Mark("s")
    none.see(pa.table({"s": pa.array([], pa.string()), TIME: pa.array([], pa.int64())}))
    assert none.blob() is None


def test_operators_behind_have_the_least_that_buckets_report() -> None:
    one, other = Moves(5, 9), Moves(MIN, 7)
    assert reported(unpack(pack(one.report()))) == one
    assert Moves.least([one, other]) == Moves(MIN, 7)
    assert Moves.least([]) == Moves(MIN, MIN)
    assert one.less(3) == Moves(2, 6)
    assert other.less(3) == Moves(MIN, 4)
    assert reported(pa.table({})) is None


def test_the_state_is_kept_whole() -> None:
    own, store = OwnWatermark(SOURCES.with_idleness(100).not_behind_now(1000)), MemoryBlobStore()
    assert own.read(store) == WatermarkState()
    after = own.advanced(store, own.read(store), [mark("s", ("a", 10), ("b", 30))], now=50)
    assert after.watermark == 4
    assert own.read(store) == after


def test_a_change_of_the_column_forgets_sources_and_keeps_the_watermark() -> None:
    store = MemoryBlobStore()
    OwnWatermark(SOURCES).advanced(store, WatermarkState(), [mark("s", ("a", 10), ("b", 30))], now=50)
    changed = OwnWatermark(Watermarks.bounded(5).not_behind_now(1000))
    assert (changed.read(store).watermark, changed.read(store).sources) == (4, {})
    assert changed.advanced(store, changed.read(store), [mark(None, ("a", 90))], now=60).watermark == 84
    assert changed.read(store).watermark > MIN


def test_a_batch_that_another_run_repeats_is_under_the_same_watermarks() -> None:
    """Sinks take a batch once: what the clock adds depends on the run, so it counts from the next batch on."""
    own = OwnWatermark(SOURCES.with_idleness(100).not_behind_now(1000).at_once())
    sources: dict[str | None, SourceMark] = {"a": SourceMark(10, silent=60), "b": SourceMark(30)}
    before = WatermarkState(4, sources=sources, now=1500, run="first", caught_up=True)
    for marks in ([], [mark("s", ("b", 700))], [mark("s", ("a", 700), ("b", 900))]):
        rows = latest_of(marks)
        moves = own.moves(before, marks, 1590)
        assert moves.before == 4
        assert moves.after == max(499, 694 if "a" in rows else 4)  # the clock of the batch before, less 1000; the rows less 5
    assert OwnWatermark(SOURCES).moves(before, [mark("s", ("a", 700), ("b", 900))], 1590) == Moves(4, 4)
