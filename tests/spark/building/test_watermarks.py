"""Watermark strategies on Spark: who makes the watermark, what it waits for, and what a restart remembers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import windowpane as wp
from tests.spark.helpers import Collected, Feed, instant, plain, run
from windowpane.errors import InvalidSpecError, UnknownColumnError
from windowpane.windowing.watermarks import Watermarks

pytestmark = pytest.mark.spark

PATIENCE = 90
SOURCES = "s string, k string, t timestamp, v long"
TEN = wp.TumblingEventTimeWindows.of("10 seconds")


def windowed(df: Any, watermark: Any, **options: Any) -> wp.WindowedStream:
    stream = wp.stream(df, event_time="t", watermark=watermark, **options)
    return stream.key_by("k").window(TEN).side_output_late_data("late")


def counts(df: Any, watermark: Any, **options: Any) -> wp.Result:
    return windowed(df, watermark, **options).aggregate(n=wp.sum("v"))


def fired(collected: Collected) -> list[tuple[Any, ...]]:
    """Return (key, start of the window, sum) of what fired."""
    return sorted((key, start, total) for key, start, _, total in collected.rows())


def observed(progress: Any) -> Any:
    """Return what the operator reported with a batch."""
    return progress["observedMetrics"]["windowpane"]


def watermarks(progress: Iterable[Any]) -> list[Any]:
    """Return the watermark after each batch."""
    return [plain(datetime.fromisoformat(observed(each)["watermark"])) for each in progress]


# Made by Spark.


def test_spark_watches_what_the_encoder_tells(spark: Any, tmp_path: Path) -> None:
    """A watermark in front of the encoder would copy each row once more."""
    feed = Feed(tmp_path / "in").add([("a", 1, 1)], [("a", 12, 2)], [("a", 3, 4)], [("a", 30, 8)])
    rows = feed.stream(spark).filter("v > 0")
    result = counts(rows, "5 seconds")
    plan = result.df._jdf.queryExecution().analyzed().toString()  # from the result down to the source
    assert plan.count("EventTimeWatermark") == 1
    assert plan.index("TransformWithState") < plan.index("EventTimeWatermark") < plan.index("MapInArrow")
    assert fired(run(result, "main")) == [("a", 0, 5), ("a", 10, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("said", [wp.Watermarks.bounded("5 seconds"), wp.Watermarks.monotonous()])
def test_bounded_and_monotonous_are_sparks_watermark(spark: Any, tmp_path: Path, said: Watermarks) -> None:
    feed = Feed(tmp_path / "in").add([("a", 1, 1)], [("a", 12, 2)], [("a", 3, 4)], [("a", 30, 8)])
    collected = run(counts(feed.stream(spark), said), "main", "late")
    is_late = said.delay == 0
    assert fired(collected) == [("a", 0, 1 if is_late else 5), ("a", 10, 2)]
    assert len(collected.rows("late")) == is_late


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["timestamp", "boolean"])
def test_rows_say_how_far_the_stream_is_complete(spark: Any, tmp_path: Path, kind: str) -> None:
    no, complete = (None, 20) if kind == "timestamp" else (False, True)
    feed = Feed(tmp_path / "in", f"k string, t timestamp, v long, said {kind}")
    feed.add([("a", 50, 1, no)], [("a", 5, 2, no)], [("b", 20, 4, complete)], [("a", 6, 8, no), ("a", 21, 16, no)])
    collected = run(counts(feed.stream(spark), wp.Watermarks.punctuated("said")), "main", "late")
    assert fired(collected) == [("a", 0, 2)]  # not by the row at 50: nobody said that all before it had come
    assert [row[2] for row in collected.rows("late")] == [8]


@pytest.mark.slow
def test_python_rows_are_punctuated_too(spark: Any, tmp_path: Path) -> None:
    schema = "k string, t timestamp, v long, said timestamp"
    feed = Feed(tmp_path / "in", schema).add([("a", 5, 2, None)], [("b", 20, 4, 20)])
    made = wp.map_in_arrow(feed.stream(spark), lambda batches: batches, schema)
    result = counts(made, wp.Watermarks.punctuated("said"))
    assert "to Spark and back: Spark watches column 'said'" in result.explain()
    assert fired(run(result)) == [("a", 0, 2)]


def test_a_delay_finer_than_sparks_milliseconds_waits_for_all_that_it_says(spark: Any, tmp_path: Path) -> None:
    stream = wp.stream(Feed(tmp_path / "in").add([("a", 1, 1)]).stream(spark), "t", "1500 microseconds")
    assert stream.source.spark_watermark == "2 milliseconds"


# Made by the operator.


FAST_AND_SLOW = [
    [("fast", "a", 1, 1), ("slow", "a", 2, 2)],
    [("fast", "a", 35, 4)],
    [("slow", "a", 4, 8)],
    [("slow", "a", 12, 16), ("fast", "a", 40, 32)],
]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["spark", "python"])
def test_a_fast_source_makes_no_slow_one_late(spark: Any, tmp_path: Path, way: str) -> None:
    feed = Feed(tmp_path / "in", SOURCES).add(*FAST_AND_SLOW)
    stream = feed.stream(spark)
    df = stream.filter("v > 0") if way == "spark" else wp.map_in_arrow(stream, lambda batches: batches, SOURCES)
    collected = run(counts(df, wp.Watermarks.bounded("1 second").per_source("s")), "main", "late")
    assert fired(collected) == [("a", 0, 11)]  # slow has reached 12, less a second: the window of 10 is open
    assert collected.rows("late") == []
    assert watermarks(collected.progress)[-1] == 11
    assert observed(collected.progress[-1])["watermark_held_by"] == "s slow; whose latest row is at 2024-01-01T00:00:12Z"


@pytest.mark.slow
def test_without_sources_the_slow_one_is_late(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in", SOURCES).add(*FAST_AND_SLOW)
    collected = run(counts(feed.stream(spark), "1 second"), "main", "late")
    assert [row[3] for row in collected.rows("late")] == [16, 8]
    why = {(row[3], *row[-4:]) for _, row in collected.batches["late"]}
    assert why == {(8, 34, 30_000_000, 1_000_000, None), (16, 34, 22_000_000, 1_000_000, None)}
    assert fired(collected) == [("a", 0, 3)]


@pytest.mark.slow
def test_a_restart_keeps_what_is_known_of_sources(spark: Any, tmp_path: Path) -> None:
    feed, reached = Feed(tmp_path / "in", SOURCES), []
    outputs: dict[str, list[tuple[int, tuple[Any, ...]]]] = {"main": [], "late": []}
    for batch in [*FAST_AND_SLOW, [("late", "a", 3, 64)], [("late", "a", 21, 128), ("slow", "a", 22, 256)]]:
        feed.add(batch)
        result = counts(feed.stream(spark), wp.Watermarks.bounded("1 second").per_source("s").with_idleness("1 hour"))
        collected = run(result, "main", "late", checkpoint=tmp_path / "c")
        for name, rows in outputs.items():
            rows += collected.batches[name]
        reached += watermarks(collected.progress)
    assert sorted((key, start, n) for _, (key, start, _, n) in outputs["main"]) == [("a", 0, 11), ("a", 10, 16)]
    led = "s slow, whose latest row is at 2024-01-01T00:00:12Z"  # a source that is new brings no watermark back
    assert [(row[3], *row[-4:]) for _, row in outputs["late"]] == [(64, 11, 8_000_000, 1_000_000, led)]
    assert reached == sorted(reached)
    assert reached[-1] == 20


def test_each_key_has_a_watermark_of_its_own_over_restarts(spark: Any, tmp_path: Path) -> None:
    feed, strategy = Feed(tmp_path / "in"), wp.Watermarks.bounded("1 second").per_key()
    outputs: list[tuple[Any, ...]] = []
    late: list[tuple[Any, ...]] = []
    for batch in ([("a", 35, 1), ("b", 2, 2)], [("b", 3, 4), ("a", 5, 8)], [("b", 11, 16), ("a", 41, 32)]):
        collected = run(counts(feed.add(batch).stream(spark), strategy), "main", "late", checkpoint=tmp_path / "c")
        outputs += fired(collected)
        late += collected.rows("late")
    assert outputs == [("a", 30, 1), ("b", 0, 6)]
    assert [row[:3] for row in late] == [("a", 5, 8)]


@pytest.fixture
def queries() -> Iterator[list[Any]]:
    """Queries to stop at the end of the test."""
    started: list[Any] = []
    yield started
    for query in started:
        query.stop()


def wait_for(happened: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.1)


def started(result: Any, folder: Path, queries: list[Any]) -> Collected:
    collected = Collected()
    sinks = {name: collected.sink(name) for name in ("main", "late")}
    trigger = {"processingTime": "300 milliseconds"}
    queries.append(result.start(checkpoint=str(folder / "c"), trigger=trigger, **sinks))
    return collected


@pytest.mark.slow
def test_an_idle_source_holds_a_busy_one_back_no_more(spark: Any, tmp_path: Path, queries: list[Any]) -> None:
    feed = Feed(tmp_path / "in", SOURCES).add([("idle", "a", 1, 1), ("busy", "a", 2, 2)])
    strategy = wp.Watermarks.bounded("0 seconds").per_source("s").with_idleness("4 seconds")
    collected = started(counts(feed.stream(spark), strategy), tmp_path, queries)
    for second in range(12, 60):  # busy: a row in every batch
        feed.add([("busy", "a", second, 4)])
        time.sleep(0.4)
        if collected.batches["main"]:
            break
    assert fired(collected)[0] == ("a", 0, 3)
    feed.add([("idle", "a", 3, 8)], [("idle", "b", 60, 16)])
    wait_for(lambda: collected.rows("late"))
    assert [row[1:] for row in collected.rows("late")] == [("a", 3, 8, [(0, 10)], True)]
    # Now both fall silent, and at last nothing is waited for: the watermark is that of the one that is ahead.
    wait_for(lambda: any(start >= 50 for _, start, _ in fired(collected)) or second < 51)
    wait_for(lambda: watermarks([queries[0].lastProgress])[-1] == 60)


@pytest.mark.slow
def test_windows_close_when_the_stream_has_stopped(spark: Any, tmp_path: Path, queries: list[Any]) -> None:
    now = datetime.now(UTC)
    feed = Feed(tmp_path / "in").add([("a", now, 1), ("b", now - timedelta(seconds=1), 2)])
    strategy = wp.Watermarks.bounded("1 hour").not_behind_now("2 seconds")
    result = counts(feed.stream(spark), strategy)
    collected = started(result, tmp_path, queries)
    wait_for(lambda: len(collected.batches["main"]) == 2)
    assert sorted((row[0], row[3]) for row in collected.rows()) == [("a", 1), ("b", 2)]
    assert observed(queries[0].lastProgress)["watermark_held_by"] == "the clock; less 2 seconds"
    feed.add([("a", now, 4)])
    wait_for(lambda: len(collected.batches["late"]) == 1)
    ((batch, _),) = collected.batches["late"]
    wait_for(lambda: queries[0].lastProgress["batchId"] >= batch)  # stopped before it ends, it would come again
    queries.pop().stop()

    feed.add([("a", now, 8), ("c", datetime.now(UTC), 16)])
    again = run(counts(feed.stream(spark), strategy), "main", "late", checkpoint=tmp_path / "c")  # and the run ends
    assert [row[2] for row in again.rows("late")] == [8]
    reached = watermarks(again.progress)
    assert reached == sorted(reached)


@pytest.mark.slow
def test_rows_that_close_windows_at_once_need_no_batch_behind_them(spark: Any, tmp_path: Path, queries: list[Any]) -> None:
    feed = Feed(tmp_path / "in").add([("a", 1, 1)], [("a", 25, 2)])
    collected = started(counts(feed.stream(spark), wp.Watermarks.bounded("1 second").at_once()), tmp_path, queries)
    queries[0].processAllAvailable()
    assert fired(collected) == [("a", 0, 1)]
    time.sleep(1.5)  # several intervals of the trigger
    assert queries[0].lastProgress["batchId"] == 1


@pytest.mark.slow
def test_a_query_that_is_behind_takes_what_has_queued_up(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in").add([("a", 1, 1)], [("a", 2, 2)], [("a", 13, 4)], [("a", 14, 8)])  # years ago
    collected = run(counts(feed.stream(spark), wp.Watermarks.bounded("1 second").not_behind_now("1 hour")), "main", "late")
    assert fired(collected) == [("a", 0, 3)]
    assert collected.rows("late") == []


@pytest.mark.slow
def test_over_windows_close_by_the_slowest_source(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in", SOURCES).add(*FAST_AND_SLOW)
    stream = wp.over(feed.stream(spark), "t", wp.Watermarks.bounded("1 second").per_source("s"), key="v")
    result = stream.partition_by("k").order_by("t").select("t", "v", n=wp.row_number()).emit_on_window_close()
    assert sorted(run(result).rows()) == [(1, 1, 1), (2, 2, 2), (4, 8, 3)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "blobs"])
def test_a_window_over_windows_has_the_watermark_of_the_first(spark: Any, tmp_path: Path, kind: str) -> None:
    batches = [*FAST_AND_SLOW, [("slow", "b", 24, 64), ("fast", "a", 60, 128)], [("slow", "a", 41, 256)]]
    feed = Feed(tmp_path / "in", SOURCES).add(*batches)
    own = wp.Watermarks.bounded("1 second").per_source("s")
    first = windowed(feed.stream(spark), own.at_once() if kind == "blobs" else own)
    sums = first.aggregate(n=wp.sum("v"), all=wp.collect_list("v")) if kind == "blobs" else first.aggregate(n=wp.sum("v"))
    twenty = sums.window_all(wp.TumblingEventTimeWindows.of("20 seconds")).aggregate(windows=wp.count(), n=wp.sum("n"))
    assert "watermark       that of the window before" in twenty.explain()
    collected = run(twenty)
    completed = 4 if kind == "blobs" else 5  # the batch that completes the first window, or the one after
    assert collected.batches["main"] == [(completed, (0, 20, 2, 27)), (completed + 1, (20, 40, 2, 68))]
    assert sum(collected.counted("late_elements", "windowpane_2")) == 0


@pytest.mark.slow
def test_several_over_operators_have_the_watermark_of_the_first(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in", SOURCES).add(*FAST_AND_SLOW)
    stream = wp.over(feed.stream(spark), "t", wp.Watermarks.bounded("1 second").per_source("s").at_once(), key="v")
    calls = {"a": wp.row_number(), "b": wp.row_number().over(partition_by="s", order_by="t")}
    result = stream.partition_by("k").order_by("t").select("t", "v", **calls).emit_on_window_close()
    assert sorted(run(result).batches["main"]) == [(2, (1, 1, 1, 1)), (2, (2, 2, 2, 1)), (3, (4, 8, 3, 2))]


@pytest.mark.slow
def test_deduplication_and_rolling_features_wait_for_the_slowest_source(spark: Any, tmp_path: Path) -> None:
    feed, own = Feed(tmp_path / "in", SOURCES).add(*FAST_AND_SLOW), wp.Watermarks.bounded("1 second").per_source("s")
    once = wp.stream(feed.stream(spark), "t", own).key_by("k").deduplicate(within="3 seconds").side_output_late_data("late")
    collected = run(once, "main", "late")
    assert sorted(row[3] for row in collected.rows()) == [1, 4, 8, 16, 32]
    assert collected.rows("late") == []
    assert watermarks(collected.progress)[-1] == 11
    rolling = wp.rolling(feed.stream(spark), "t", own).by("k").over("10 seconds", n=wp.sum("v")).hop("5 seconds")
    features = run(rolling.side_output_late_data("late").emit("each"), "main", "late")
    assert sorted((row[1], row[2]) for row in features.rows()) == [(1, 1), (2, 3), (4, 11)]
    assert features.rows("late") == []


# What is refused, and what a plan says.


def source_of(spark: Any, tmp_path: Path) -> Any:
    return Feed(tmp_path / "in", SOURCES).add([("a", "a", 1, 1)]).stream(spark)


def test_what_a_watermark_cannot_be_made_from_is_refused(spark: Any, tmp_path: Path) -> None:
    df, bounded = source_of(spark, tmp_path), wp.Watermarks.bounded("1 second")
    with pytest.raises(UnknownColumnError, match="nowhere"):
        wp.stream(df, "t", bounded.per_source("nowhere"))
    with pytest.raises(UnknownColumnError, match="nowhere"):
        wp.stream(df, "t", wp.Watermarks.punctuated("nowhere"))
    with pytest.raises(InvalidSpecError, match="punctuated: column 'v' is bigint"):
        wp.stream(df, "t", wp.Watermarks.punctuated("v"))
    with pytest.raises(InvalidSpecError, match="without key_by there is no key"):
        wp.stream(df, "t", bounded.per_key()).window_all(TEN).aggregate(n=wp.count())
    with pytest.raises(InvalidSpecError, match="heartbeats speak for the whole stream"):
        windowed(df.withColumn("beat", F.lit(False)), bounded.per_key(), heartbeat="beat").aggregate(n=wp.count())
    with pytest.raises(InvalidSpecError, match="no engine 'slices'"):
        windowed(df, bounded.per_key()).engine("slices").aggregate(n=wp.count())
    with pytest.raises(InvalidSpecError, match="per_source: column 't' is timestamp"):
        wp.stream(df, "t", bounded.per_source("t"))


def test_operators_that_would_not_see_the_watermark_are_refused(spark: Any, tmp_path: Path) -> None:
    df, own = source_of(spark, tmp_path), wp.Watermarks.bounded("1 second").per_source("s")
    with pytest.raises(InvalidSpecError, match="of an operator that makes its watermark itself"):
        wp.stream(counts(df, own).df.select("window_end"), event_time="window_end")
    with pytest.raises(InvalidSpecError, match=r"the left side has watermark=.*A join goes by Spark's watermark of both inputs"):
        wp.join(wp.stream(df, "t", own), wp.stream(df, "t", "1 second")).on("k").within("-1 second", "1 second").explain()
    with pytest.raises(InvalidSpecError, match="a second window may have other keys"):
        counts(df, wp.Watermarks.monotonous().per_key()).key_by("k").window(TEN).aggregate(n=wp.count())
    by_key = wp.over(df, "t", wp.Watermarks.monotonous().per_key(), key="v").partition_by("k").order_by("t")
    with pytest.raises(InvalidSpecError, match="per_key: emit_on_update forgets rows by one watermark for all"):
        by_key.select(n=wp.row_number()).emit_on_update()


@pytest.mark.slow
@pytest.mark.parametrize("of_each_key", [False, True])
def test_over_windows_behind_windows_whose_watermark_spark_does_not_know(spark: Any, tmp_path: Path, of_each_key: bool) -> None:
    """That of the stream comes with the results; one of each key is said again, and the newest result of a key waits."""
    feed = Feed(tmp_path / "in").add([("a", 1, 1), ("a", 12, 2)])
    own = wp.Watermarks.monotonous().per_key() if of_each_key else wp.Watermarks.monotonous().at_once()
    results, again = counts(feed.stream(spark), own).df, own if of_each_key else None
    over = wp.over(results, event_time="window_end", watermark=again, key=("k", "window_end")).partition_by("k")
    chain = over.order_by("window_end").select("k", "window_end", "n", before=wp.lag("n")).emit_on_window_close()
    first = run(chain, checkpoint=tmp_path / "c").rows()
    feed.add([("a", 25, 4), ("b", 1000, 8)], [("a", 31, 16)])
    found = [*first, *run(chain, checkpoint=tmp_path / "c").rows()]
    if of_each_key:
        assert found == [("a", 10, 1, None), ("a", 20, 2, 1)]
    else:  # b is far ahead, and closes the windows of a; the last row is late
        assert (first, found) == ([("a", 10, 1, None)], [("a", 10, 1, None), ("a", 20, 2, 1), ("a", 30, 4, 2)])


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("5 minutes", "the latest t less 5 minutes; made by Spark"),
        (wp.Watermarks.monotonous(), "the latest t; made by Spark"),
        (
            wp.Watermarks.monotonous().per_key(),
            "the latest t of each key; made by windowpane, since Spark has one watermark for all",
        ),
        (
            wp.Watermarks.monotonous().at_once(),
            "the latest t, in the batch that brings it; made by windowpane, since Spark's is that of the batches before",
        ),
        (
            wp.Watermarks.bounded("5 minutes").per_source("s").with_idleness("1 minute").not_behind_now("1 hour"),
            "the latest t less 5 minutes of each s, the least of them but those idle for 1 minute, at least the clock less "
            "1 hour; made by windowpane, since Spark's is the latest of all rows and moves by rows alone",
        ),
    ],
)
def test_a_plan_says_which_watermark_is_in_force(spark: Any, tmp_path: Path, said: Any, line: str) -> None:
    assert f"watermark       {line}" in counts(source_of(spark, tmp_path), said).explain()


def test_an_idle_time_shorter_than_a_batch_is_refused(spark: Any, tmp_path: Path) -> None:
    own = wp.Watermarks.bounded("1 second").per_source("s").with_idleness("1 second")
    first = counts(source_of(spark, tmp_path), own)
    for result in (first, first.window_all(TEN).aggregate(n=wp.count())):
        with pytest.raises(InvalidSpecError, match=r"with_idleness.*1 second.*processingTime='1 minute'"):
            result.start(main=f"{tmp_path}/main", checkpoint=f"{tmp_path}/c", trigger={"processingTime": "1 minute"})


def test_a_static_dataframe_needs_no_watermark(spark: Any, tmp_path: Path) -> None:
    df = spark.createDataFrame([("a", "a", instant(1), 1)], SOURCES).withColumn("v", F.col("v"))
    result = counts(df, wp.Watermarks.bounded("1 second").per_source("s").not_behind_now("1 minute"))
    assert [row.n for row in result.df.collect()] == [1]
