"""Every Spark type as a key and as a value, against Spark's own groupBy; what cannot work is refused by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

import windowpane as wp
from tests.spark.helpers import EVENTS, SPARK, Feed, rows, run, table
from windowpane import OutputTag, ProcessWindowFunction, TumblingEventTimeWindows
from windowpane.errors import AggregateTypeError, UnsupportedTypeError
from windowpane.spark.stages.types import arrow_schema

pytestmark = pytest.mark.spark

TEN = TumblingEventTimeWindows.of("10 seconds")


@dataclass(frozen=True)
class Kind:
    """A column type by two different values of it, as SQL; ``spelling`` is the first value written in another way."""

    name: str
    one: str
    other: str
    spelling: str = ""
    orderable: bool = True


KINDS = [
    Kind("c_boolean", "true", "false"),
    Kind("c_byte", "1Y", "-128Y"),
    Kind("c_short", "1S", "-32768S"),
    Kind("c_int", "1", "-2147483648"),
    Kind("c_long", "1L", "9223372036854775807L"),
    Kind("c_float", "0.0F", "1.5F", "-0.0F"),
    Kind("c_double", "double('nan')", "double('-infinity')", "-double('nan')"),
    Kind("c_decimal", "1.50BD", "99999999999999999999.99BD"),
    Kind("c_whole", "CAST(7 AS DECIMAL(5, 0))", "CAST(-99999 AS DECIMAL(5, 0))"),
    Kind("c_string", "'é'", "''"),
    Kind("c_binary", "X'00FF'", "X''"),
    Kind("c_date", "DATE'0001-01-01'", "DATE'9999-12-31'"),
    # One wall time in Berlin, before and after the end of summer time.
    Kind("c_timestamp", "TIMESTAMP'2024-10-27T00:30:00Z'", "TIMESTAMP'2024-10-27T01:30:00Z'"),
    Kind("c_ntz", "TIMESTAMP_NTZ'2024-10-27 02:30:00'", "TIMESTAMP_NTZ'0001-01-01 00:00:00'"),
    Kind("c_interval", "INTERVAL '1 02:03:04.000005' DAY TO SECOND", "INTERVAL '-1' DAY"),
    Kind("c_struct", "struct(1 AS x, struct('u' AS y) AS z)", "struct(1 AS x, struct(CAST(NULL AS STRING) AS y) AS z)"),
    Kind("c_array", "array(1, 2, NULL)", "CAST(array() AS ARRAY<INT>)"),
    Kind("c_nested", "array(struct(array(0.0D) AS a))", "array(struct(array(1.0D) AS a))", "array(struct(array(-0.0D) AS a))"),
    Kind("c_map", "map('k', 1, 'l', 2)", "map('k', 1)", "map('l', 2, 'k', 1)", orderable=False),
    Kind("c_deep", "struct(array(map(1, 'x', 2, 'y')) AS m)", "NULL", "struct(array(map(2, 'y', 1, 'x')) AS m)", orderable=False),
    Kind("c_instants", "map('a', array(TIMESTAMP'2024-10-27T00:30:00Z'))", "map('a', NULL)", orderable=False),
]
NAMES = [kind.name for kind in KINDS]
ORDERED = [kind for kind in KINDS if kind.orderable]
EQUAL, OTHER, RESPELT, NULL = 0, 1, 2, 3


@pytest.fixture(scope="module")
def berlin(spark: Any) -> Iterator[Any]:
    """The session in a zone with summer time."""
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.fixture(scope="module")
def batches(berlin: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of typed rows: two batches in the first window, one that lets it end, and one of late rows.

    A batch has, for each kind, a row for each way in which its column can differ from the first value; ``k`` names the kind.
    """
    folder = tmp_path_factory.mktemp("typed") / "in"
    parts = [(1, (EQUAL, OTHER, NULL)), (2, (OTHER, RESPELT, NULL)), (60, (EQUAL,)), (3, (OTHER, NULL))]
    ways = [(kind.name, at, way, batch) for batch, (at, ways) in enumerate(parts) for kind in KINDS for way in ways]
    columns = [
        f"CASE WHEN k <> '{kind.name}' OR v = {EQUAL} THEN {kind.one} WHEN v = {OTHER} THEN {kind.other} "
        f"WHEN v = {RESPELT} THEN {kind.spelling or kind.one} END AS {kind.name}"
        for kind in KINDS
    ]
    events = table(berlin, ways, f"{EVENTS}, batch int").selectExpr("*", *columns)
    events.write.partitionBy("batch").parquet(str(folder))
    for path in folder.glob("batch=*/*.parquet"):
        moment = 1_700_000_000 + int(path.parent.name.removeprefix("batch="))
        os.utime(path, (moment, moment))
    return folder


def read(spark: Any, folder: Path, *batch: int) -> Any:
    return spark.read.parquet(str(folder)).filter(F.col("batch").isin(*batch)).drop("batch").coalesce(1)


@pytest.mark.slow
def test_keys_of_every_type_group_as_equal_values_do_through_state_and_a_session_zone(berlin, batches):
    late = OutputTag("late")
    schema = read(berlin, batches, 0).schema
    stream = berlin.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(f"{batches}/batch=*")
    windowed = wp.stream(stream, "t", watermark=0).key_by(*NAMES).window(TEN).side_output_late_data(late)
    collected = run(windowed.aggregate(n=wp.count()), "main", "late")

    # Twice a key for the other value of each kind and for its null (they are one where the other value is NULL); all rows
    # that equal the first values, however spelt, make one more.
    twice = [kind for kind in KINDS if kind.other != "NULL"]
    counts = sorted(row[-1] for row in collected.rows())
    assert counts == sorted([2, 2] * len(twice) + [4] * (len(KINDS) - len(twice)) + [2 * len(KINDS)])
    # Rows that differ from the first values only in columns that Spark can group by, as Spark groups them.
    names = [kind.name for kind in ORDERED]
    arrived = read(berlin, batches, 0, 1).filter(F.col("k").isin(names))
    native = arrived.groupBy(F.window("t", "10 seconds"), *names).count().drop("window")
    mine = [
        (*row[: len(names)], row[-1]) for row in collected.rows() if row[len(names) : len(NAMES)] == _last_values(berlin, batches)
    ]
    assert repr([row for row in sorted(mine, key=repr) if row[-1] == 2]) == repr([row for row in rows(native) if row[-1] == 2])
    # Late rows leave as they came.
    assert repr(sorted((row[:-2] for row in collected.rows("late")), key=repr)) == repr(rows(read(berlin, batches, 3)))
    assert {(repr(row[-2]), row[-1]) for row in collected.rows("late")} == {("[(0, 10)]", True)}


def _last_values(spark: Any, batches: Path) -> tuple[Any, ...]:
    """Return the first values of the kinds that Spark cannot group by."""
    first = read(spark, batches, 2).limit(1).select(*[kind.name for kind in KINDS if not kind.orderable])
    return rows(first)[0]


@dataclass(frozen=True)
class Without(ProcessWindowFunction):
    """Emits what it is given, less some columns."""

    columns: tuple[str, ...]

    def process(self, key, context, elements):
        for row in elements:
            yield {name: value for name, value in row.items() if name not in self.columns}


def test_values_of_every_type_pass_through_functions_and_state(berlin, batches):
    events = read(berlin, batches, 0, 1).withColumn("one", F.lit(1))
    schema = events.drop("t", "one").schema
    copied = wp.stream(events, "t").key_by("one").window(TEN).process(Without(("t", "one")), schema).df
    assert [f.dataType.simpleString() for f in copied.schema.fields[3:]] == [f.dataType.simpleString() for f in schema.fields]
    assert repr(rows(copied.drop("one", "window_start", "window_end"))) == repr(rows(events.drop("t", "one")))


def one_zero(values: Any) -> str:
    """Return values as text: of 0.0 and -0.0, which are equal, either may be the largest."""
    return repr(values).replace("-0.0", "0.0")


def test_values_of_every_type_aggregate_as_in_spark(berlin, batches):
    events = read(berlin, batches, 0, 1)
    calls = [(name, call) for name in NAMES for call in ("first", "last", "collect_list")]
    calls += [(kind.name, call) for kind in ORDERED for call in ("min", "max")]
    mine = {f"{name}_{call}": getattr(wp, call)(name) for name, call in calls}
    native = [getattr(F, call)(name).alias(f"{name}_{call}") for name, call in calls]
    result = wp.stream(events, "t").key_by("k").window(TEN).aggregate(**mine)
    assert one_zero(rows(result.df.drop("window_start", "window_end"))) == one_zero(rows(events.groupBy("k").agg(*native)))
    with pytest.raises(AggregateTypeError, match="c_map"):
        wp.stream(events, "t").key_by("k").window(TEN).aggregate(m=wp.max("c_map"))


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        ("double('nan'), -double('nan'), 0.0D, -0.0D, NULL, NULL", ["0.0", "None", "nan"]),
        ("map(1, 'x', 2, 'y'), map(2, 'y', 1, 'x'), map(), map(), NULL, NULL", ["None", "[(1, 'x'), (2, 'y')]", "[]"]),
        (
            "struct(-0.0F AS f), struct(0.0F AS f), NULL, NULL, struct(NULL AS f), struct(NULL AS f)",
            ["None", "{'f': 0.0}", "{'f': None}"],
        ),
        ("NULL, NULL", ["None"]),
        pytest.param(
            "TIME'12:30:00', TIME'12:30:00', TIME'00:00:00.000001', TIME'00:00:00.000001'",
            ["datetime.time(0, 0, 0, 1)", "datetime.time(12, 30)"],
            marks=pytest.mark.skipif(SPARK < (4, 1), reason="TIME came with Spark 4.1"),
        ),
    ],
)
def test_a_single_key_column(spark, values, keys):
    events = spark.sql(f"SELECT explode(array({values})) AS k, TIMESTAMP'2024-01-01T00:00:01Z' AS t").coalesce(1)
    result = wp.stream(events, "t").key_by("k").window(TEN).aggregate(n=wp.count()).df
    assert [f.dataType for f in result.schema.fields if f.name == "k"] == [events.schema["k"].dataType]
    assert sorted((repr(row["k"]), row["n"]) for row in result.toArrow().to_pylist()) == [(key, 2) for key in keys]


def test_char_varchar_and_variant_columns_keep_their_types(spark):
    spark.sql("CREATE TABLE texts (c CHAR(3), d VARCHAR(5), t TIMESTAMP) USING parquet")
    spark.sql("INSERT INTO texts VALUES ('ab', 'xyz', timestamp_seconds(1))")
    events = spark.table("texts")
    events = events.withColumn("j", F.parse_json(F.lit('{"a": [1, null]}')))
    windowed = wp.stream(events, "t").key_by("c", "d").window(TEN)
    result = windowed.aggregate(js=wp.collect_list("j"), d_last=wp.last("d"), n=wp.count()).df
    assert result.select("c", "d").schema.simpleString() == events.select("c", "d").schema.simpleString()
    expected = events.select("c", "d", F.lit("xyz").alias("d_last"), F.lit(1).alias("n"))
    assert rows(result.select("c", "d", "d_last", "n")) == rows(expected)
    assert rows(windowed.process(Without(("t", "c", "d")), "j variant").df.select(F.to_json("j"))) == [('{"a":[1,null]}',)]


def test_types_that_cannot_work_are_refused_by_name(spark):
    events = spark.sql("SELECT 'a' AS k, INTERVAL '1' YEAR AS y, array(INTERVAL '1' MONTH) AS ys, timestamp_seconds(1) AS t")
    windowed = wp.stream(events, "t").key_by("k").window(TEN)
    for build in (
        lambda: windowed.reduce(max),
        lambda: windowed.aggregate(y=wp.last("y")),
        lambda: windowed.aggregate(ys=wp.last("ys")),
        lambda: wp.stream(events, "t").key_by("y").window(TEN).aggregate(n=wp.count()),
        lambda: windowed.process(Without(()), "y interval year"),
    ):
        with pytest.raises(UnsupportedTypeError, match=r"(?s)'ys?' is .*interval.*Arrow.*Cast it"):
            build()
    # Columns that nothing needs do no harm.
    assert rows(windowed.aggregate(n=wp.count()).df.select("k", "n")) == [("a", 1)]


def test_keys_that_a_collation_makes_equal_are_refused(spark):
    events = spark.sql("SELECT 'a' COLLATE UNICODE_CI AS k, array('a' COLLATE UNICODE_CI) AS ks, timestamp_seconds(1) AS t")
    for key in ("k", "ks", F.struct("k").alias("s")):
        with pytest.raises(UnsupportedTypeError, match=r"(?s)key_by.*UNICODE_CI.*collation_key"):
            wp.stream(events, "t").key_by(key).window(TEN).aggregate(n=wp.count())
    assert rows(wp.stream(events, "t").window_all(TEN).aggregate(k=wp.last("k")).df.select("k")) == [("a",)]


TEXTS = """
    SELECT 'k' AS k, x COLLATE UTF8_LCASE AS v, x, timestamp_seconds(i) AS t
    FROM VALUES (1, 'a'), (2, 'A'), (3, 'B') AS r(i, x)
"""


def test_texts_of_a_collation_are_not_compared_by_bytes(spark):
    # Under UTF8_LCASE two of the three texts are equal, and the least is 'a'; by bytes there are three, and 'A' is.
    events = spark.sql(TEXTS).coalesce(1)
    stream = wp.stream(events, "t")
    windowed = stream.key_by("k").window(TEN)
    over = wp.over(events, event_time="t", key="t").partition_by("k").order_by("t")
    rolling = wp.rolling(events, event_time="t").by("k")
    joined = wp.join(stream, stream, prefixes=("l_", "r_")).on("k").within("-1 second", "1 second")
    refused: dict[str, list[Callable[[], Any]]] = {
        "aggregate o": [
            lambda call=call: windowed.aggregate(o=call)  # type: ignore[misc]
            for call in (wp.min("v"), wp.mode(F.array("v")), wp.count_distinct("v"), wp.collect_set("v"), wp.arg_max("x", "v"))
        ],
        "order_by": [
            lambda: stream.key_by("k", order_by="v").window(TEN).aggregate(o=wp.first("v")),
            lambda: stream.key_by("k", order_by="v").deduplicate(within="1 hour"),
            lambda: wp.over(events, "t", key="t").partition_by("k").order_by("v").select(r=wp.rank()).emit_on_update(),
        ],
        "max": [lambda: over.select(r=wp.max("v")).emit_on_update()],
        "key": [lambda: wp.over(events, "t", key="v").partition_by("k").order_by("t").select(r=wp.count()).emit_on_update()],
        "over o": [lambda: rolling.over("1 hour", o=wp.max("v")).emit("each")],
        "top": [lambda: windowed.aggregate(o=wp.first("v")).top(1, by="o")],
        "condition: right side": [lambda: joined.where(wp.left("x") == wp.right("v"))],
    }
    for role, builds in refused.items():
        for build in builds:
            with pytest.raises(UnsupportedTypeError, match=f"(?s){role}.*UTF8_LCASE.*cast it to string"):
                build().df  # noqa: B018 (it is built)
    calls = {"n": "count", "lo": "first", "hi": "last", "all": "collect_list"}
    mine = windowed.aggregate(**{name: getattr(wp, call)("v") for name, call in calls.items()}).df.drop(
        "window_start", "window_end"
    )
    native = events.groupBy("k").agg(*[getattr(F, call)("v").alias(name) for name, call in calls.items()])
    assert mine.schema.simpleString() == native.schema.simpleString()
    assert rows(mine.where("hi = 'b' and lo = 'A'")) == rows(native) == [("k", 3, "a", "B", ["a", "A", "B"])]


def test_results_that_are_values_of_the_input_have_its_type(spark):
    hours = "VALUES (1, INTERVAL '3' HOUR), (2, INTERVAL '1' HOUR) AS r(i, v)"
    events = spark.sql(f"SELECT 'k' AS k, timestamp_seconds(i) AS t, v FROM {hours}").coalesce(1)
    calls = ("min", "max", "first", "last", "collect_list")
    windowed = wp.stream(events, "t").key_by("k").window(TEN)
    mine = windowed.aggregate(**{call: getattr(wp, call)("v") for call in calls}).df.select(*calls)
    native = events.agg(*[getattr(F, call)("v").alias(call) for call in calls])
    assert mine.schema.simpleString() == native.schema.simpleString()
    assert rows(mine) == rows(native)


@pytest.mark.skipif(SPARK < (4, 1), reason="TIME came with Spark 4.1")
def test_times_of_day_with_nanoseconds_are_refused():
    for kind in (T.TimeType(9), T.ArrayType(T.TimeType(7)), T.StructType([T.StructField("x", T.TimeType(8))])):
        with pytest.raises(UnsupportedTypeError, match=r"(?s)key_by: column 'k' is .*time\([789]\).*cast it to time\(6\)"):
            arrow_schema(T.StructType([T.StructField("k", kind)]), "key_by")
    assert arrow_schema(T.StructType([T.StructField("k", T.TimeType(6))]), "key_by").names == ["k"]


def test_times_that_python_cannot_hold_pass_where_no_function_sees_them(spark, tmp_path):
    late = OutputTag("late")
    rates = spark.readStream.schema("k string, t timestamp, v long").option("maxFilesPerTrigger", 1)
    feed = Feed(tmp_path / "in").add([("a", 1, 1), ("a", 30, 2)], [("a", 2, 3)], [("a", 3, 4)])
    far = rates.parquet(str(feed.folder)).withColumn("far", F.timestamp_micros(F.lit(2**62)))
    windowed = wp.stream(far, "t", watermark=0).key_by("k").window(TEN).side_output_late_data(late)
    seen: list[Any] = []
    result = windowed.aggregate(n=wp.count())
    query = result.start(
        main=lambda df, batch: None,
        late=lambda df, batch: seen.extend(df.select("v", F.unix_micros("far")).collect()),
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    assert [tuple(row) for row in seen] == [(3, 2**62), (4, 2**62)]
