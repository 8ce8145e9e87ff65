"""Pictures of programs on static rows: rows arrive one by one, so early, late and dropped ones are seen."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest
from pyspark.sql import functions as F

import windowpane as wp
from tests.spark.helpers import table
from windowpane.errors import InvalidSpecError, MissingTimestampError
from windowpane.testing import draw

pytestmark = pytest.mark.spark

SVG = "{http://www.w3.org/2000/svg}"
TEN = wp.TumblingEventTimeWindows.of("10 seconds")
ON_TIME, LATE, EARLY = "#1f9e89", "#c8553d", "#e8a33d"
ROWS = [("a", 1, 1), ("b", 2, 2), ("a", 12, 4), ("a", 3, 8), ("a", 45, 16), ("b", 4, 32)]


def bars(svg: str) -> list[tuple[str, str]]:
    """The firings in order: the color and the text of each."""
    found = re.findall(r'<rect [^>]*rx="4"[^>]*stroke="(#\w+)"/>\n<text [^>]*>([^<]*: [^<]*)</text>', svg)
    return [(color, text) for color, text in found]


def rings(svg: str) -> int:
    return sum(each.get("fill") == "#ffffff" for each in ElementTree.fromstring(svg).iter(f"{SVG}circle"))


def test_firings_on_time_refined_and_rows_that_are_dropped(spark: Any) -> None:
    stream = wp.stream(table(spark, ROWS).coalesce(1), event_time="t").key_by("k").window(TEN).allowed_lateness("30 seconds")
    picture = draw(stream.aggregate(s=wp.sum(F.col("v") * 10)))
    assert bars(picture.svg) == [
        (ON_TIME, "a: s 10"),  # by the row at 12
        (ON_TIME, "b: s 20"),
        (LATE, "a: s 90"),  # by the row at 3
        (ON_TIME, "a: s 40"),  # by the row at 45
        (ON_TIME, "a: s 160"),  # the input ends
    ]
    assert rings(picture.svg) == 1  # the row at 4: its window was kept until 40
    behind = draw(stream.aggregate(s=wp.sum("v")), watermark="1 minute")
    assert sorted(text for _, text in bars(behind.svg)) == ["a: s 16", "a: s 4", "a: s 9", "b: s 34"]
    assert {color for color, _ in bars(behind.svg)} == {ON_TIME}
    assert rings(behind.svg) == 0


def test_early_panes_and_functions(spark: Any) -> None:
    stream = wp.stream(table(spark, ROWS[:2]).coalesce(1), event_time="t").key_by("k").window(TEN)
    early = draw(stream.trigger(wp.EarlyAndFinal(count=1)).apply(lambda key, window, rows: [{"n": len(rows)}], "n int"))
    assert bars(early.svg) == [(EARLY, "a: n 1"), (EARLY, "b: n 1"), (ON_TIME, "a: n 1"), (ON_TIME, "b: n 1")]


def test_what_is_refused(spark: Any) -> None:
    stream = wp.stream(table(spark, ROWS), event_time="t").key_by("k").window(TEN)
    with pytest.raises(InvalidSpecError, match="one window over a DataFrame, got Deduplicated"):
        draw(wp.stream(table(spark, ROWS), event_time="t").key_by("k").deduplicate(within="1 minute"))  # type: ignore[arg-type]
    with pytest.raises(InvalidSpecError, match="one window over a DataFrame"):
        draw(stream.aggregate(n=wp.count()).top(1, by="n"))
    with pytest.raises(InvalidSpecError, match=r"200 rows.*df\.limit"):
        draw(wp.stream(spark.range(201).withColumn("t", F.current_timestamp()), "t").window_all(TEN).aggregate(n=wp.count()))
    no_time = table(spark, ROWS).withColumn("t", F.when(F.col("v") > 1, F.col("t")))
    with pytest.raises(MissingTimestampError, match="key 'a'"):
        draw(wp.stream(no_time, "t").key_by("k").window(TEN).aggregate(n=wp.count()))
    rates = spark.readStream.format("rate").load()
    with pytest.raises(InvalidSpecError, match="static"):
        draw(wp.stream(rates, "timestamp", "1 second").window_all(TEN).aggregate(n=wp.count()))
