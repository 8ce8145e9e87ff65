"""Names and values as users of PySpark, Flink and pandas give them: each is answered with what to write here."""
# mypy: disable-error-code="attr-defined,arg-type,call-overload,call-arg"

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.errors import (
    InvalidDurationError,
    InvalidFrameError,
    InvalidSpecError,
    NoDataFrameError,
    UnknownArgumentError,
    UnknownNameError,
)
from windowpane.guidance import WORDS, Guided, snake_case
from windowpane.result import Runnable
from windowpane.sql.session import Session

HOUR = wp.TumblingEventTimeWindows.of("1 hour")
ROWS = SimpleNamespace(isStreaming=False)
"""A DataFrame that no step of a program looks into."""


class Finished(Runnable):
    """A program that is ready to run."""


stream = wp.stream(ROWS, event_time="at")
keyed = stream.key_by("user")
windowed = keyed.window(HOUR)
over = wp.over(ROWS, event_time="at", key="id")
features = wp.rolling(ROWS, event_time="at").by("card")
sides = wp.join(stream, stream)

MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (lambda: Finished().show(), r"\.df: write result\.df\.show"),
    (lambda: Finished().select("n"), r"write result\.df\.select"),
    (lambda: Finished().writeStream, r"write result\.df\.writeStream"),
    (lambda: Finished().toPandas(), r"write result\.df\.toPandas.*start\(main=lambda"),
    (lambda: Finished().to_pandas(), r"write result\.df\.toPandas"),
    (lambda: Finished().awaitTermination(), r"start\(main="),
    (lambda: Finished().sink_to("x"), r"start\(main="),
    (lambda: Finished().getSideOutput("late"), "written 'get_side_output'"),
    (lambda: Finished().explian(), "did you mean 'explain'"),
    (lambda: Finished().whatever, r"\.df is the main output.*\.start\(main=\.\.\.\)"),
    (lambda: stream.groupBy("user"), r"\.key_by\('user'\)"),
    (lambda: stream.keyBy("user"), "written 'key_by'"),
    (lambda: stream.window(HOUR), r"key_by\('user'\)\.window.*window_all"),
    (lambda: stream.withWatermark("at", "1 minute"), r"watermark='10 minutes'"),
    (lambda: stream.filter("n > 1"), r"wp\.stream\(df\.filter\(\.\.\.\)"),
    (lambda: stream.withColumn("n", 1), r"wp\.stream\(df\.withColumn\(\.\.\.\)"),
    (lambda: keyed.aggregate(n=wp.count()), r"\.window\(wp\.TumblingEventTimeWindows"),
    (lambda: keyed.sum("amount"), r"\.window\(wp\.TumblingEventTimeWindows"),
    (lambda: keyed.df, r"\.window\(wp\.TumblingEventTimeWindows"),
    (lambda: windowed.agg(n=wp.count()), "it is called aggregate"),
    (lambda: windowed.sum("amount"), r"\.aggregate\(total=wp\.sum\('amount'\)"),
    (lambda: windowed.groupBy("user"), "keys come before windows"),
    (lambda: windowed.allowedLateness("1 hour"), "written 'allowed_lateness'"),
    (lambda: windowed.start(main="out"), r"\.aggregate\(n=wp\.count\(\)\)"),
    (lambda: over.groupBy("user"), "called partition_by"),
    (lambda: over.orderBy("at"), "written 'order_by'"),
    (lambda: over.window(HOUR), r"rows\(-10, -1\)"),
    (lambda: over.order_by("at").select(n=wp.row_number()).df, r"\.emit_on_update\(\).*\.emit_on_window_close\(\)"),
    (lambda: wp.rolling(ROWS, event_time="at").groupBy("card"), r"\.by\('card'\)"),
    (lambda: features.start(main="out"), r"\.emit\('changed'\)"),
    (lambda: sides.where(wp.left("a") == wp.right("a")), r"\.on\('user'\)"),
    (lambda: sides.on("user").between("0 s", "1 s"), "called within"),
    (lambda: wp.as_of(stream, stream).on("sym").df, r"\.match\('backward'"),
    (lambda: wp.avg("x").rowsBetween(-1, 0), "called rows"),
    (lambda: wp.col("x").isNull(), "written 'is_null'"),
    (lambda: wp.EventTimeSessionWindows.of("1 hour"), r"EventTimeSessionWindows\.with_gap"),
    (lambda: wp.GlobalWindows.of(), r"GlobalWindows\.create\(\)"),
    (lambda: wp.NeverTrigger.of(), r"wp\.NeverTrigger\(\)"),
    (lambda: Session(":memory:").sql("SELECT 1"), r"session\.query"),
    (lambda: wp.window("at", "1 hour"), r"TumblingEventTimeWindows\.of"),
    (lambda: wp.mean("x"), r"wp\.avg"),
    (lambda: wp.countDistinct("x"), "written 'count_distinct'"),
    (lambda: wp.Time.minutes(5), "durations are text"),
    (lambda: wp.Session(), r"from windowpane\.sql import Session"),
    (lambda: wp.from_kafka("topic"), r"wp\.read_kafka\(spark"),
    (lambda: wp.TumblingEventTimeWindow, "did you mean 'TumblingEventTimeWindows'"),
    (lambda: wp.Window.partitionBy("user"), r"wp\.over\(df, .*\.partition_by\('user'\)"),
    (lambda: wp.sinks.kafka_sink("topic"), r"wp\.sinks\.kafka\('topic'"),
    (lambda: wp.sinks.postgres("url"), "ChangeWriter"),
]


@pytest.mark.parametrize(("mistake", "way_out"), MISTAKES)
def test_a_name_of_another_library_is_answered_with_the_way_out(mistake: Callable[[], Any], way_out: str) -> None:
    with pytest.raises(UnknownNameError, match=way_out):
        mistake()


@pytest.mark.parametrize(
    ("begin", "way_out"),
    [
        (lambda: wp.stream(ROWS, eventTime="at"), r"^stream has no argument 'eventTime': give event_time=\.\.\.\.$"),
        (lambda: wp.stream(ROWS, timestamp="at"), r"give event_time='at'"),
        (lambda: wp.stream(ROWS, "at", key_by="user"), r"\.key_by\('user'\)"),
        (lambda: wp.over(ROWS, "at", checkpoint="ck"), r"^over .*result\.start\("),
        (lambda: wp.rolling(ROWS, "at", colour=1), "give one of dataframe, event_time, watermark, heartbeat, name"),
        (lambda: wp.join(stream, stream, how="left"), "^join has no argument 'how'"),
    ],
)
def test_an_argument_that_is_not_there_is_answered_with_the_way_out(begin: Callable[[], Any], way_out: str) -> None:
    with pytest.raises(UnknownArgumentError, match=way_out):
        begin()


def test_a_missing_name_is_no_attribute_for_hasattr_and_copies() -> None:
    assert not hasattr(keyed, "show")
    assert getattr(wp, "nothing_of_that_name", None) is None
    with pytest.raises(AttributeError, match="_repr_html_"):
        _ = keyed._repr_html_


def test_a_name_in_no_list_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(UnknownNameError, match=r"it has .*dicts, .*rows"):
        Session(":memory:").query("SELECT 1").fetchmany(3)


def test_an_attribute_error_inside_of_a_property_stays_what_it_is() -> None:
    class Broken(Guided):
        @property
        def df(self) -> Any:
            return object().nothing

    with pytest.raises(AttributeError, match="'object' object has no attribute 'nothing'"):
        _ = Broken().df


def test_no_word_of_guidance_is_a_name_that_there_is() -> None:
    classes = {each.__name__: each for each in vars(wp).values() if isinstance(each, type)} | {"Runnable": Runnable}
    for owner, words in WORDS.items():
        if owner in classes:
            typed = {word for several in words for word in several.split(" ")}
            assert typed & set(dir(classes[owner])) == set(), owner
            assert all(snake_case(word) == word for word in typed), owner


@pytest.mark.parametrize(
    ("given", "way_out"),
    [
        (pd.DataFrame({"at": []}), r"pandas\.DataFrame: spark\.createDataFrame"),
        (pa.table({"at": []}), r"pyarrow\.Table: spark\.createDataFrame"),
        (np.zeros(3), "numpy"),
        ([{"at": 1}], r"list: spark\.createDataFrame"),
        ("in/departures", r"str: spark\.readStream"),
        (keyed, r"windowpane\.KeyedStream: results of a program are one by \.df"),
        (None, "NoneType"),
    ],
)
@pytest.mark.parametrize("begin", [wp.stream, lambda rows: wp.over(rows, key="id"), lambda rows: wp.rolling(rows, "at")])
def test_what_is_no_dataframe_of_spark_is_refused_where_a_program_begins(begin: Any, given: Any, way_out: str) -> None:
    with pytest.raises(NoDataFrameError, match=way_out):
        begin(given)


@pytest.mark.parametrize("text", ["1 month", "2 months", "1 year", "3 quarters"])
def test_months_and_years_lead_to_windows_of_the_calendar(text: str) -> None:
    with pytest.raises(InvalidDurationError, match=r"no fixed length.*wp\.CalendarWindows\.of\('1 month'\).*'30 days'"):
        wp.TumblingEventTimeWindows.of(text)


@pytest.mark.parametrize(
    ("make", "way_out"),
    [
        (lambda: wp.TumblingEventTimeWindows("1 hour"), r"'1 hour'.*read by TumblingEventTimeWindows\.of\('1 hour'\)"),
        (lambda: wp.TumblingEventTimeWindows(dt.timedelta(hours=1)), r"TumblingEventTimeWindows\.of"),
        (lambda: wp.EventTimeSessionWindows("1 hour"), r"EventTimeSessionWindows\.with_gap\('1 hour'\)"),
        (lambda: wp.CountTrigger.of("5"), r"max_count is a whole number, but '5' was given\.$"),
        (lambda: wp.CountEvictor.of(2.5), r"max_count is a whole number, but 2\.5 was given\.$"),
    ],
)
def test_text_in_place_of_a_number_is_refused_where_a_spec_is_made(make: Callable[[], Any], way_out: str) -> None:
    with pytest.raises(InvalidSpecError, match=way_out):
        make()


def test_a_function_as_key_a_time_as_a_count_of_rows_and_an_aggregate_of_pyspark_are_refused() -> None:
    with pytest.raises(InvalidSpecError, match="key_by takes columns, and was given a function"):
        stream.key_by(lambda row: row["user"])
    with pytest.raises(InvalidFrameError, match=r"rows counts rows.*\.range\('-1 hour', 0\)"):
        wp.avg("x").rows("-1 hour", 0)
    with pytest.raises(InvalidSpecError, match=r"aggregate was given \{'x': 'sum'\}.*n=wp\.count\(\)"):
        windowed.aggregate({"x": "sum"})
    with pytest.raises(InvalidSpecError, match=r"PySpark's: write \.over\(partition_by='user'"):
        wp.row_number().over(SimpleNamespace(partitionBy=None))
    with pytest.raises(InvalidSpecError, match=r"start\('out'\).*start\(main='out'\)"):
        Finished().start("out")
