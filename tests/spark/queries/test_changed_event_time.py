"""A checkpoint is refused to a program that counts by another column of event time, whatever the kind of program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import windowpane as wp
from windowpane.engines.batch.header import BucketHeader
from windowpane.errors import ChangedPlanError
from windowpane.state.memory import MemoryBlobStore

pytestmark = pytest.mark.spark

HOUR = "1 hour"


def keyed(df: Any, column: str) -> Any:
    return wp.stream(df, column, "1 second").key_by("k")


def joined(df: Any, left: str, right: str) -> Any:
    sides = wp.stream(df, left, "1 second"), wp.stream(df, right, "1 second")
    return wp.join(*sides).on("k").within("-1 hour", HOUR).how("inner")


def labelled(df: Any, time: str, known_at: str) -> Any:
    features = wp.rolling(df, "at", "1 second").by("k").over(HOUR, n=wp.count())
    return features.at(df.select("k", "at", "at2").withWatermark(time, "1 second"), time=time, known_at=known_at)


KINDS: dict[str, Callable[[Any, str], Any]] = {
    "tumbling": lambda df, at: keyed(df, at).window(wp.TumblingEventTimeWindows.of(HOUR)).aggregate(n=wp.count()),
    "evicted": lambda df, at: (
        keyed(df, at).window(wp.TumblingEventTimeWindows.of(HOUR)).evictor(wp.CountEvictor.of(2)).aggregate(n=wp.count())
    ),
    "sessions": lambda df, at: keyed(df, at).window(wp.EventTimeSessionWindows.with_gap(HOUR)).aggregate(n=wp.count()),
    "deduplication": lambda df, at: keyed(df, at).deduplicate(within=HOUR),
    "the last of near rows": lambda df, at: keyed(df, at).deduplicate(within=HOUR, keep="last"),
    "rolling": lambda df, at: wp.rolling(df, at, "1 second").by("k").over(HOUR, n=wp.count()).emit("changed"),
    "over": lambda df, at: (
        wp.over(df, key="k", event_time=at, watermark="1 second")
        .partition_by("k")
        .order_by("v")
        .select(n=wp.row_number())
        .emit_on_update()
    ),
    "the left side of a join": lambda df, at: joined(df, at, "at"),
    "the right side of a join": lambda df, at: joined(df, "at", at),
    "labels": lambda df, at: labelled(df, at, "at"),
    "when a row was known": lambda df, at: labelled(df, "at", at),
}


@pytest.fixture(scope="module")
def rows(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("rows")
    return spark.readStream.schema("k string, at timestamp, at2 timestamp, v long").json(str(folder))


@pytest.mark.parametrize("kind", KINDS)
def test_another_event_time_on_an_old_checkpoint_is_refused(rows: Any, kind: str) -> None:
    before, after = (KINDS[kind](rows, at)._built.operators[0].program.description for at in ("at", "at2"))
    store = MemoryBlobStore()
    BucketHeader(before).write(store)
    BucketHeader.read(store, before)
    with pytest.raises(ChangedPlanError, match="at2"):
        BucketHeader.read(store, after)


def test_a_run_by_another_event_time_writes_nothing(spark: Any, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()

    def run(column: str) -> None:
        df = spark.readStream.schema("k string, at timestamp, at2 timestamp").json(str(source))
        result = keyed(df, column).window(wp.TumblingEventTimeWindows.of("2 minutes")).aggregate(n=wp.count())
        query = result.start(main=str(tmp_path / "out"), checkpoint=str(tmp_path / "ck"), trigger={"availableNow": True})
        query.awaitTermination()

    (source / "0.json").write_text('{"k": "a", "at": "2024-01-01T00:00:00Z", "at2": "2024-01-01T01:00:00Z"}\n')
    run("at")
    (source / "1.json").write_text('{"k": "a", "at": "2024-01-01T00:10:00Z", "at2": "2024-01-01T01:10:00Z"}\n')
    with pytest.raises(ChangedPlanError, match="event time: was at, is at2"):
        run("at2")
    run("at")
    assert [tuple(row) for row in spark.read.parquet(str(tmp_path / "out")).select("k", "n").collect()] == [("a", 1)]
