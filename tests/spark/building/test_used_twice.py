"""A result that is used twice in one streaming query: each use has the rows that it has alone.

Spark reuses the shuffle below two operators of equal plans, and then the second one has no watermark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import functions as F

import windowpane as wp
from tests.examples import seeds
from tests.spark.helpers import EVENTS, Feed, rows, run

pytestmark = pytest.mark.spark

MINUTE = wp.TumblingEventTimeWindows.of("60 seconds")
BATCHES: list[list[tuple[Any, ...]]] = [
    [("a", 5, 1), ("b", 15, 7)],
    [("a", 65, 30)],
    [("b", 110, 4), ("a", 125, 3)],
    [("a", 1, 9)],
    [("a", 7200, 8)],
]


def windows(stream: Any) -> wp.Result:
    result: wp.Result = (
        wp.stream(stream, "t", "0 seconds").key_by("k").window(MINUTE).side_output_late_data("late").aggregate(s=wp.sum("v"))
    )
    return result


def interval_join(stream: Any) -> Any:
    left, right = wp.stream(stream, "t", "0 seconds"), wp.stream(stream, "t", "0 seconds", name="right")
    return wp.join(left, right).on("k").within("-2 minutes", "0 seconds").how("left").df


def below_a_shuffle(stream: Any) -> Any:
    spread = stream.withWatermark("t", "0 seconds").repartition(2, "v")
    return wp.stream(spread, "t").key_by("k").window(MINUTE).aggregate(s=wp.sum("v")).df


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "tumbling": lambda stream: windows(stream).df,
    "sessions": lambda stream: (
        wp.stream(stream, "t", "0 seconds")
        .key_by("k")
        .window(wp.EventTimeSessionWindows.with_gap("20 seconds"))
        .aggregate(s=wp.sum("v"))
        .df
    ),
    "over_on_close": lambda stream: (
        wp.over(stream, "t", "0 seconds", key="v")
        .partition_by("k")
        .order_by("t")
        .select("k", "t", "v", before=wp.lag("v"))
        .emit_on_window_close()
        .df
    ),
    "rolling": lambda stream: wp.rolling(stream, "t", "0 seconds").by("k").over("5 minutes", s=wp.sum("v")).emit("tick").df,
    "chain": lambda stream: windows(stream).window_all(wp.TumblingEventTimeWindows.of("5 minutes")).aggregate(t=wp.sum("s")).df,
    "interval_join": interval_join,
    "below_a_shuffle": below_a_shuffle,
}


def collected(df: Any, folder: Path) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    writer = df.writeStream.foreachBatch(lambda batch, number: found.extend(rows(batch)))
    writer.option("checkpointLocation", str(folder)).trigger(availableNow=True).start().awaitTermination()
    return sorted(found, key=repr)


def both(found: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted([(*row, use) for row in found for use in (1, 2)], key=repr)


@pytest.mark.slow_but("below_a_shuffle")
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_use_of_a_result_in_one_query_has_the_rows_of_the_use_alone(spark: Any, tmp_path: Path, name: str) -> None:
    df = PROGRAMS[name](Feed(tmp_path / "in", EVENTS).add(*BATCHES).stream(spark))
    alone = collected(df, tmp_path / "alone")
    assert alone
    twice = df.withColumn("use", F.lit(1)).union(df.withColumn("use", F.lit(2)))
    assert collected(twice, tmp_path / "twice") == both(alone)


def drawn(random: Random, stream: Any) -> Any:
    """Return the results of a random program: windows of some kind, perhaps late rows, perhaps windows over them."""
    seconds = f"{random.randint(5, 90)} seconds"
    assigner = random.choice([wp.TumblingEventTimeWindows.of(seconds), wp.EventTimeSessionWindows.with_gap(seconds)])
    keyed = wp.stream(stream, "t", f"{random.randint(0, 60)} seconds").key_by("k").window(assigner)
    result = keyed.allowed_lateness(f"{random.choice([0, 30])} seconds").aggregate(s=wp.sum("v"), n=wp.count())
    for _ in range(random.randint(0, 2)):
        size = wp.TumblingEventTimeWindows.of(f"{random.randint(60, 200)} seconds")
        by_key = "k" in result.df.columns and random.random() < 0.5
        windowed = result.key_by("k").window(size) if by_key else result.window_all(size)
        result = windowed.aggregate(s=wp.sum("s"), n=wp.sum("n"))
    return result.df


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(4))
def test_each_use_of_a_random_program_has_the_rows_of_the_use_alone(spark: Any, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    batches = [
        [(random.choice("abc"), at + random.randint(-90, 60), random.randint(1, 9)) for _ in range(random.randint(1, 12))]
        for at in range(0, 240, 60)
    ]
    df = drawn(random, Feed(tmp_path / "in", EVENTS).add(*batches, [("a", 7200, 1)]).stream(spark))
    uses = [df.where(f"n % 2 = {half}").withColumn("use", F.lit(half)) for half in (0, 1)] + [df.withColumn("use", F.lit(2))]
    alone = collected(df, tmp_path / "alone")
    expected = sorted([(*row, use) for row in alone for use in (row[df.columns.index("n")] % 2, 2)], key=repr)
    assert collected(uses[0].union(uses[1]).union(uses[2]), tmp_path / "thrice") == expected


@pytest.mark.slow
def test_main_and_late_rows_of_one_result_are_whole_in_one_query(spark: Any, tmp_path: Path) -> None:
    result = windows(Feed(tmp_path / "in", EVENTS).add(*BATCHES).stream(spark))
    main, late = result.df.select("k", F.col("s").alias("v")), result.get_side_output("late").select("k", F.col("v"))
    assert collected(main.union(late), tmp_path / "both") == [("a", 1), ("a", 3), ("a", 30), ("a", 9), ("b", 4), ("b", 7)]


@pytest.mark.slow
def test_a_result_is_joined_with_itself(spark: Any, tmp_path: Path) -> None:
    result = windows(Feed(tmp_path / "in", EVENTS).add(*BATCHES).stream(spark)).df
    left = wp.stream(result, event_time="window_end", name="left")
    right = wp.stream(result.withColumnRenamed("s", "r"), event_time="window_end", name="right")
    joined = wp.join(left, right).on("k").within("-2 minutes", "0 seconds").how("left").df
    pairs = [(1, 1), (3, 1), (3, 3), (3, 30), (30, 1), (30, 30), (4, 4), (4, 7), (7, 7)]
    assert collected(joined.select("s", "r"), tmp_path / "joined") == pairs


def test_two_changelogs_are_joined(spark: Any, tmp_path: Path) -> None:
    """Each side settles by an operator of its own, whose counters have a name of their own, be both one changelog or two."""
    df = (
        Feed(tmp_path / "in").add([("a", 60, 1), ("a", 61, 2)], [("b", 900, 3)], [("b", 1800, 3)], [("b", 3600, 3)]).stream(spark)
    )
    last = [
        wp.stream(df, event_time="t", watermark="1 minute", name=name).key_by("k").deduplicate(within="5 minutes", keep="last").df
        for name in ("one", "other")
    ]
    for sides in ((last[0], last[0]), last):
        left, right = (wp.stream(side, event_time="t") for side in sides)
        joined = wp.join(left, right).on("k").within("0 seconds", "0 seconds").select("k", one=wp.left("v"), other=wp.right("v"))
        assert {"windowpane_left_settled", "windowpane_right_settled"} <= {each.name for each in joined._built.programs}
        assert run(joined, checkpoint=tmp_path / f"checkpoint{len(set(map(id, sides)))}").rows()[:1] == [("a", 2, 2)]
