"""Names of columns mean what they mean in Spark: without regard to case, unless the session says otherwise."""

from __future__ import annotations

import datetime as dt

import duckdb
import pytest
from pyspark.sql import functions as F

import windowpane as wp
from windowpane.errors import DuplicateColumnError, UnknownColumnError
from windowpane.sinks import RedisHashes
from windowpane.stores import redis

pytestmark = pytest.mark.spark

HOUR = wp.TumblingEventTimeWindows.of("1 hour")


def at(minute: int) -> dt.datetime:
    return dt.datetime(2024, 5, 1, 10, minute)


def passing(batches):
    """Write nothing."""
    yield from ()


@pytest.fixture
def readings(spark):
    rows = [("a", at(1), 5, False), ("a", at(2), 7, False), ("b", at(3), 1, False)]
    return spark.createDataFrame(rows, "DeviceId string, EventTime timestamp, Value int, IsBeat boolean")


@pytest.fixture
def case_sensitive(spark):
    spark.conf.set("spark.sql.caseSensitive", "true")
    yield
    spark.conf.unset("spark.sql.caseSensitive")


def collected(result, *names):
    return sorted(tuple(row) for row in result.df.select(*names).collect())


def test_windows_take_names_in_any_case(readings):
    stream = wp.stream(readings, event_time="eventtime", heartbeat="isbeat")
    counted = stream.key_by("deviceid", order_by="VALUE").window(HOUR).aggregate(n=wp.count("value"), last=wp.last("vaLue"))
    assert collected(counted, "deviceId", "N", "last") == [("a", 2, 7), ("b", 1, 1)]
    summed = (
        stream.key_by(F.col("deviceid")).window(HOUR).reduce(lambda one, other: one | {"Value": one["Value"] + other["Value"]})
    )
    assert collected(summed, "deviceid", "value") == [("a", 12), ("b", 1)]
    best = counted.top(1, by="N", per="DEVICEID")
    assert collected(best, "deviceid", "n", "rank") == [("a", 2, 1), ("b", 1, 1)]


def test_over_windows_take_names_in_any_case(readings):
    stream = wp.over(readings, event_time="EVENTTIME", key=("deviceid", "eventtime"))
    result = (
        stream.partition_by("deviceid")
        .order_by(F.col("eventTime").asc())
        .select("DEVICEID", before=wp.lag("VALUE"), step=wp.col("value") - wp.lag("Value"))
        .emit_on_window_close()
    )
    assert result.df.columns == ["DEVICEID", "before", "step"]  # a selected column has the name by which it is selected
    assert sorted(map(tuple, result.df.collect()), key=str) == [("a", 5, 2), ("a", None, None), ("b", None, None)]


def test_rolling_features_and_deduplication_take_names_in_any_case(spark, readings):
    features = wp.rolling(readings, event_time="eventtime").by("DEVICEID").over("1 hour", total=wp.sum("value"))
    assert collected(features.emit("batch"), "deviceid", "total") == [("a", 12), ("b", 1)]
    labels = spark.createDataFrame([("a", at(9))], "card string, DecidedAt timestamp")
    assert collected(features.at(labels, time="decidedat", on="CARD"), "card", "total") == [("a", 12)]
    kept = wp.stream(readings, event_time="eventTIME").key_by("deviceID").deduplicate(within="1 hour")
    assert collected(kept, "deviceid", "value") == [("a", 5), ("b", 1)]


def test_joins_take_names_in_any_case(spark, readings):
    limits = spark.createDataFrame([("a", at(0), 6, at(30))], "DEVICEID string, since timestamp, VALUE int, Until timestamp")
    left, right = wp.stream(limits, event_time="SINCE"), wp.stream(readings, event_time="eventtime")
    joined = wp.join(left, right).on("deviceid").within("0 seconds", wp.left("UNTIL")).where(wp.right("value") > wp.left("value"))
    assert joined.df.columns[0] == "DEVICEID"
    assert {"left_VALUE", "right_Value"} <= {*joined.df.columns}  # both sides have that name
    assert collected(joined, "deviceid", "right_value") == [("a", 7)]
    chosen = joined.select("DeviceID", over=wp.right("value") - wp.left("value"))
    assert collected(chosen, "deviceid", "over") == [("a", 1)]


def test_sinks_take_names_in_any_case(spark, readings, tmp_path, monkeypatch):
    wp.sinks.apply_changes(readings.limit(1).drop("EventTime"), str(tmp_path / "s.duckdb"), "DEVICEID", table="latest")
    with duckdb.connect(str(tmp_path / "s.duckdb")) as store:
        assert store.execute("SELECT * FROM latest").fetchall() == [("a", 5, False)]
    readings.drop("IsBeat").write.parquet(f"{tmp_path}/out/query=q/batch=0")
    assert wp.sinks.read_latest(spark, f"{tmp_path}/out", key="deviceid").count() == 2
    written = []

    def writer(url, key, prefix, version, live):
        written.append((key, version))
        return passing

    monkeypatch.setattr(redis, "HashWriter", writer)
    RedisHashes("redis://nowhere", key="deviceid", version="VALUE")(readings, 0)
    assert written == [(("DeviceId",), "Value")]


def test_results_with_names_that_differ_by_case_are_refused_when_they_are_built(spark, readings):
    windows = wp.stream(readings, event_time="EventTime").key_by("DeviceId").window(HOUR)
    over = wp.over(readings, key=("DeviceId", "EventTime")).order_by("EventTime")
    programs = [
        lambda: windows.aggregate(n=wp.count(), N=wp.count()),
        lambda: windows.aggregate(deviceid=wp.count()),
        lambda: windows.apply(lambda key, window, rows: rows, schema="n int, N int"),
        lambda: over.select("*", value=wp.lag("Value")).emit_on_update(),
        lambda: wp.rolling(readings, event_time="EventTime").by("DeviceId").over("1 hour", DEVICEID=wp.count()).emit("batch"),
    ]
    for program in programs:
        with pytest.raises(DuplicateColumnError, match="one name"):
            program()
    twins = spark.createDataFrame([("a", "b", at(1))], "k string, x string, at timestamp")
    with pytest.raises(DuplicateColumnError, match="'k', 'K'"):
        wp.stream(twins.toDF("k", "K", "at"), event_time="at").key_by("k")


def test_a_session_that_tells_case_apart_is_obeyed(readings, case_sensitive):
    windows = wp.stream(readings, event_time="EventTime")
    with pytest.raises(UnknownColumnError, match="deviceid"):
        windows.key_by("deviceid")
    with pytest.raises(UnknownColumnError, match="deviceid"):
        RedisHashes("redis://nowhere", key="deviceid", version="Value")(readings, 0)
    with pytest.raises(UnknownColumnError, match="eventtime"):
        wp.stream(readings, event_time="eventtime")
    both = windows.key_by("DeviceId").window(HOUR).aggregate(n=wp.count(), N=wp.max("Value"))
    assert sorted((row["n"], row["N"]) for row in both.df.collect()) == [(1, 1), (2, 7)]
