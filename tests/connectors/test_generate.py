"""``wp.generate``: the same rows whenever they are made, with the disorder and the spells that were asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from tests.spark.helpers import needs_limits, rows
from windowpane import TumblingEventTimeWindows
from windowpane.connectors.generated import BLOCK, Generated
from windowpane.errors import InvalidSpecError, UnknownColumnError
from windowpane.spark.sources.generated import ranges

GIVEN: dict[str, Any] = {
    "keys": 5, "skew": 1.0, "every": 1_000_000, "disorder": 0, "late": 0.0, "lateness": 0, "active": 0, "idle": 0, "start": 0,
    "partitions": 2, "seed": 7,
}  # fmt: skip


def made(start: int, end: int, **changed: Any) -> pa.Table:
    return pa.concat_tables(Generated(**{**GIVEN, **changed}).rows(start, end))


def test_a_range_is_the_same_however_it_is_cut() -> None:
    whole = made(0, 2 * BLOCK + 10)
    cut = pa.concat_tables([made(0, 5), made(5, BLOCK + 1), made(BLOCK + 1, 2 * BLOCK + 10)])
    assert whole.equals(cut.combine_chunks()) or whole.to_pylist() == cut.to_pylist()
    assert made(0, 100, seed=8)["value"].to_pylist() != made(0, 100)["value"].to_pylist()
    assert made(3, 5).select(["number", "partition"]).to_pylist() == [
        {"number": 3, "partition": 1},
        {"number": 4, "partition": 0},
    ]


def test_rows_are_late_disordered_and_silent_as_asked() -> None:
    at = np.array(made(0, BLOCK, disorder=10_000_000, late=0.25, lateness=100_000_000)["at"].cast(pa.int64()))
    behind = np.arange(BLOCK) * 1_000_000 - at
    assert ((behind >= 0) & (behind <= 110_000_000)).all()
    assert 0.2 < (behind >= 100_000_000).mean() < 0.3
    quiet = np.array(made(0, 30, active=10_000_000, idle=60_000_000)["at"].cast(pa.int64())) // 1_000_000
    assert quiet.tolist() == [*range(10), *range(70, 80), *range(140, 150)]
    counts = np.unique(made(0, BLOCK)["key"].to_numpy(zero_copy_only=False), return_counts=True)[1]
    assert counts[0] > 1.5 * counts[1] > 1.5 * counts[4]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"late": 2.0}, "a share of the rows"),
        ({"late": 0.5}, "lateness= says by how much"),
        ({"keys": 0}, "keys=0.*positive"),
        ({"keys": 2.5}, "a whole number"),
        ({"skew": float("nan")}, "skew=nan"),
        ({"disorder": -1}, "cannot be negative"),
        ({"active": 1}, "it is two durations"),
        ({"every": 10**15}, "row 1000 would be behind the year 9999"),
    ],
)
def test_what_cannot_be_is_refused(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidSpecError, match=words):
        made(0, 1_000, **changed)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"rows": -1}, "rows=-1"),
        ({"rows_per_batch": 0}, "at least one row"),
        ({"start": "soon"}, "a time of ISO 8601"),
        ({"idle": "10 minutes"}, "it is two durations"),
        ({"idle": ("1 hour",)}, "it is two durations"),
        ({"streaming": False}, "needs rows="),
    ],
)
def test_arguments_that_cannot_be_are_refused_before_spark_is_asked(changed: dict[str, Any], words: str) -> None:
    no_session: Any = None
    with pytest.raises(InvalidSpecError, match=words):
        wp.generate(no_session, **changed)


def test_neither_batches_nor_partitions_nor_tasks_change_what_is_drawn() -> None:
    one, four = (made(0, 3 * BLOCK, partitions=each, disorder=5_000_000) for each in (1, 4))
    assert one.drop_columns(["partition"]).equals(four.drop_columns(["partition"]))
    pieces = [each for start, end in ranges(0, 3 * BLOCK) for each in Generated(**GIVEN).rows(start, end)]
    assert pa.concat_tables(pieces).equals(made(0, 3 * BLOCK))


@pytest.mark.spark
@pytest.mark.slow
@needs_limits
def test_a_stream_of_them_into_shaped_sinks(spark: Any, tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "rows": 100,
        "keys": 3,
        "every": "1 second",
        "disorder": "5 seconds",
        "late": 0.2,
        "lateness": "1 minute",
    }
    stream = wp.generate(spark, rows_per_batch=40, **given)
    counts = (
        wp.stream(stream, event_time="at", watermark="5 seconds")
        .key_by("key")
        .window(TumblingEventTimeWindows.of("10 seconds"))
        .side_output_late_data("late")
        .aggregate(n=wp.count())
    )
    main, late = tmp_path / "main", tmp_path / "late"
    query = counts.start(
        main=str(main),
        late=wp.Files(str(late)).select("number", missed="size(windows_missed)"),
        trigger={"availableNow": True},
        checkpoint=str(tmp_path / "ck"),
        flush_at_end=True,
    )
    query.awaitTermination()
    kept = sum(row["n"] for row in spark.read.parquet(str(main)).collect())
    lost = rows(spark.read.parquet(str(late)).drop("query", "batch"))
    static = wp.generate(spark, streaming=False, **given)
    assert kept + len(lost) == static.count() == 100
    assert {missed for _, missed in lost} == {1}
    with pytest.raises(Exception, match="nobody") as caught:
        counts.start(main=wp.Files(str(main)).select("nobody"), trigger={"availableNow": True}).awaitTermination()
    assert UnknownColumnError.__name__ in str(caught.value)
