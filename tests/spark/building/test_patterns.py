"""Row patterns on Spark: static rows, a stream that is stopped in the middle, side outputs, chains, and what is refused."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import windowpane as wp
from windowpane.errors import (
    ChangedPlanError,
    InvalidSpecError,
    NeverClosesError,
    PatternError,
    UnboundedPatternWarning,
    UnboundedStateError,
    UnknownColumnError,
)
from windowpane.testing import draw

pytestmark = pytest.mark.spark

SCHEMA = "id string, at timestamp, kind string, amount int"
ORDERS = [
    ("paid", "00:00", "order", 5),
    ("unpaid", "00:01", "order", 7),
    ("paid", "00:10", "payment", 5),
    ("too late", "00:20", "order", 9),
    ("too late", "00:55", "payment", 9),
    (None, "01:30", "order", 1),
]
PLACED, PAID = wp.col("kind") == "order", wp.col("kind") == "payment"


def at(time: str) -> dt.datetime:
    return dt.datetime.fromisoformat(f"2024-01-01 {time}")


def orders(spark: SparkSession, rows: list[Any] = ORDERS) -> Any:
    return spark.createDataFrame([(key, at(time), kind, amount) for key, time, kind, amount in rows], SCHEMA)


def keyed(rows: Any) -> Any:
    return wp.stream(rows, event_time="at", watermark="5 minutes").key_by("id")


def values(frame: Any) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in frame.collect())


def test_absence_and_its_time(spark: SparkSession) -> None:
    unpaid = keyed(orders(spark)).match("placed -> !paid", placed=PLACED, paid=PAID).within("30 minutes")
    result = unpaid.select(placed=wp.first("placed.at"), twice=wp.first("placed.amount") * 2, sure=wp.match_time())

    almost = dt.timedelta(minutes=30) - dt.timedelta(microseconds=1)
    assert values(result.df) == Counter(
        {
            ("unpaid", at("00:01"), 14, at("00:01") + almost): 1,
            ("too late", at("00:20"), 18, at("00:20") + almost): 1,
            (None, at("01:30"), 2, at("01:30") + almost): 1,
        }
    )
    assert result.df.schema["twice"].dataType.simpleString() == "int"
    assert "pattern         placed -> !paid" in result.explain()
    assert "pattern text" in result.explain()


def test_all_rows_show_measures_so_far_and_of_the_whole_match(spark: SparkSession) -> None:
    prices = orders(spark, [("x", f"00:0{minute}", "t", price) for minute, price in enumerate([5, 4, 3, 6, 7, 1])])
    fell, rose = wp.col("amount") < wp.lag("amount"), F.col("amount") > F.lit(5)
    v = keyed(prices).match("start down+ up+", down=fell, up=rose)
    shown = v.all_rows("amount", part=wp.classifier(), n=wp.count(), low=wp.min("down.amount").final(), at=wp.match_number())

    assert [tuple(row) for row in shown.df.collect()] == [
        (5, "start", 1, 3, 1),
        (4, "down", 2, 3, 1),
        (3, "down", 3, 3, 1),
        (6, "up", 4, 3, 1),
        (7, "up", 5, 3, 1),
    ]
    unmatched = v.all_rows("*", unmatched=True, part=wp.classifier()).df
    assert [row["part"] for row in unmatched.orderBy("at").collect()] == ["start", "down", "down", "up", "up", None]


def test_conditions_of_the_match_so_far(spark: SparkSession) -> None:
    prices = orders(spark, [("x", f"00:0{minute}", "t", price) for minute, price in enumerate([3, 1, 2, 5, 4, 9])])
    above = keyed(prices).match("low high+", high=wp.col("amount") >= wp.first("low.amount") + wp.count("high.amount"))
    result = above.after_match("to next row").select(
        low=wp.first("low.amount"), n=wp.count("high.at"), top=wp.last("high.amount")
    )

    # From 3: 1 is below 4. From 1: 2, 5, 4 and 9 are at least 2, 3, 4 and 5. From 2: 5, 4 and 9. From 5: 4 is below 6. From 4: 9.
    assert values(result.df) == Counter({("x", 1, 4, 9): 1, ("x", 2, 3, 9): 1, ("x", 4, 1, 9): 1})
    assert "pattern reference" in result.explain()


def write(folder: Path, number: int, spark: SparkSession, rows: list[Any]) -> None:
    orders(spark, rows).coalesce(1).write.mode("append").parquet(str(folder / "in"))


def test_a_stream_that_is_stopped_in_the_middle(spark: SparkSession, tmp_path: Path) -> None:
    def run(**options: Any) -> Any:
        rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
        paid = keyed(rows).match("placed -> paid", placed=PLACED, paid=options.get("paid", PAID)).within("30 minutes")
        asked = paid.timeouts("gave_up").side_output_late_data("late").select(placed=wp.first("placed.at"), n=wp.count())
        outputs = {name: str(tmp_path / name) for name in ("main", "late", "gave_up")}
        return asked.start(**outputs, checkpoint=str(tmp_path / "checkpoint"), trigger={"availableNow": True})

    write(tmp_path, 0, spark, ORDERS[:3])
    run().awaitTermination()
    write(tmp_path, 1, spark, ORDERS[3:])
    run().awaitTermination()
    write(tmp_path, 2, spark, [("late", "00:30", "order", 1), ("y", "03:00", "order", 1)])
    query = run()
    query.awaitTermination()

    read = {name: spark.read.parquet(str(tmp_path / name)) for name in ("main", "late", "gave_up")}
    assert values(read["main"].select("id", "placed", "n")) == Counter({("paid", at("00:00"), 2): 1})
    assert values(read["late"].select("id", "kind")) == Counter({("late", "order"): 1})
    assert values(read["gave_up"].select("id", "placed", "n")) == Counter(
        {("unpaid", at("00:01"), 1): 1, ("too late", at("00:20"), 1): 1, (None, at("01:30"), 1): 1}
    )
    assert wp.progress(query)["timeouts"] >= 1
    write(tmp_path, 3, spark, [("z", "03:00", "order", 1)])
    with pytest.raises((ChangedPlanError, StreamingQueryException), match="conditions"):
        run(paid=wp.col("kind") == "refund").awaitTermination()


@pytest.mark.slow
def test_another_pattern_goes_on_over_the_rows_that_wait(spark: SparkSession, tmp_path: Path) -> None:
    def run(text: str, **options: Any) -> None:
        rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
        asked = keyed(rows).match(text, paid=PAID, placed=PLACED).within("30 minutes").select(placed=wp.first("placed.at"))
        outputs = {"main": str(tmp_path / "main"), "checkpoint": str(tmp_path / "checkpoint")}
        asked.start(**outputs, trigger={"availableNow": True}, **options).awaitTermination()

    write(tmp_path, 0, spark, [*ORDERS[:2], ("z", "00:08", "order", 1)])
    run("placed -> paid")
    write(tmp_path, 1, spark, [("z", "00:12", "payment", 1), ("y", "03:00", "order", 1)])
    with pytest.raises((ChangedPlanError, StreamingQueryException), match="pattern"):
        run("placed -> !paid")
    with pytest.raises(InvalidSpecError, match="on_changed_pattern='go on'"):
        run("placed -> !paid", on_changed_pattern="go on")
    run("placed -> !paid", on_changed_pattern="continue")
    found = spark.read.parquet(str(tmp_path / "main"))
    assert values(found.select("id", "placed")) == Counter({("paid", at("00:00")): 1, ("unpaid", at("00:01")): 1})


def test_the_picture_of_a_pattern_has_its_rows_and_matches(spark: SparkSession) -> None:
    unpaid = keyed(orders(spark)).match("placed -> !paid", placed=PLACED, paid=PAID).within("30 minutes")
    svg = draw(unpaid.select(amount=wp.first("placed.amount")), watermark="5 minutes").svg
    for text in ("unpaid 7", "unpaid: 7", "too late: 9", "paid 5"):
        assert f">{text}<" in svg, svg


def test_windows_over_matches(spark: SparkSession) -> None:
    unpaid = keyed(orders(spark)).match("placed -> !paid", placed=PLACED, paid=PAID).within("30 minutes")
    matches = unpaid.select(sure=wp.match_time())
    hours = wp.stream(matches.df, event_time="sure").window_all(wp.TumblingEventTimeWindows.of("1 hour")).aggregate(n=wp.count())

    assert values(hours.df.select("window_start", "n")) == Counter({(at("00:00"), 2): 1, (at("01:00"), 1): 1})


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda s: s.match("a b )", a=PAID).select(n=wp.count()), PatternError, "column 5: '\\)' has no place here"),
        (lambda s: s.match("a b", c=PAID).select(n=wp.count()), InvalidSpecError, "'c' is not in the pattern"),
        (lambda s: s.match("a b", a=PAID).select(n=wp.first("x.at")), UnknownColumnError, "x.at"),
        (lambda s: s.match("a b", a=PAID).select(id=wp.count()), InvalidSpecError, "two columns of the name 'id'"),
        (lambda s: s.match("a b", a=PAID).select(), InvalidSpecError, "select needs a measure"),
        (lambda s: s.match("a b", a="kind").select(n=wp.count()), InvalidSpecError, "expected a condition"),
        (lambda s: s.match("a b", a=wp.col("amount")).select(n=wp.count()), InvalidSpecError, "a=.* this is int"),
        (lambda s: s.match("a b", b=wp.lag("amount") - 1).select(n=wp.count()), InvalidSpecError, "b=.* a number or a time"),
        (lambda s: s.match("a b", a=PAID).timeouts("t").select(n=wp.count()), InvalidSpecError, "needs a bound"),
        (lambda s: s.match("a b", a=PAID).after_match("past").select(n=wp.count()), InvalidSpecError, "it is 'past last row'"),
        (
            lambda s: s.match("a b", a=PAID).after_match(("to last", "z")).select(n=wp.count()),
            InvalidSpecError,
            "no variable 'z'",
        ),
        (lambda s: s.match("a {- b -}").all_rows(unmatched=True), InvalidSpecError, "takes rows out"),
        (lambda s: s.match("a b", a=wp.lag("amount", 1, 0) > 1).select(n=wp.count()), InvalidSpecError, "without default"),
        (lambda s: s.match("a b", a=wp.sum("amount") > wp.first("b.at", 1)).within(0), InvalidSpecError, "takes some time"),
    ],
)
def test_what_is_refused_says_why(spark: SparkSession, build: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        build(keyed(orders(spark)))


def test_what_would_wait_for_ever_on_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    stream = keyed(spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in")))
    with pytest.raises(NeverClosesError, match="within"):
        stream.match("a -> !b", a=PLACED, b=PAID).select(n=wp.count())
    with pytest.raises(UnboundedStateError, match="'any\\*' takes any row"):
        stream.match("a any* b", a=PLACED, b=PAID).select(n=wp.count())
    with pytest.warns(UnboundedPatternWarning, match="within"):
        stream.match("a+ b", a=PLACED, b=PAID).select(n=wp.count())
    with pytest.raises(InvalidSpecError, match="needs a watermark"):
        wp.stream(spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in")), event_time="at").key_by("id").match("a").select(
            n=wp.count()
        )
