"""Which views are one streaming query on Spark, and the reason for those that are not."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from tests.sql.in_process import Exchange
from windowpane.sql import Session
from windowpane.sql.on_spark import source_rows
from windowpane.sql.on_spark.programs.groups import StreamedGroups
from windowpane.sql.on_spark.programs.groups_below import streamed
from windowpane.sql.on_spark.programs.over import StreamedOver
from windowpane.sql.on_spark.programs.plan import StreamedPlan
from windowpane.sql.on_spark.programs.query import ToOperatorRows
from windowpane.sql.on_spark.source_rows import SourceRows
from windowpane.windowing.assigners.calendar import CalendarWindows
from windowpane.windowing.assigners.session import EventTimeSessionWindows
from windowpane.windowing.assigners.sliding import CumulateEventTimeWindows, SlidingEventTimeWindows
from windowpane.windowing.assigners.tumbling import TumblingEventTimeWindows

WITH = "WITH (connector = 'parquet', path = '*.none')"
COLUMNS = "k int, name text, v int, big bigint, x double, price numeric(10, 2), open numeric, at timestamp, other timestamp"
MINUTE = 60_000_000


SESSION = "session({} PARTITION BY k, DESCRIPTOR(at), INTERVAL '{}')"
CLOSING = "session(TABLE s PARTITION BY k, DESCRIPTOR(at), INTERVAL '1 s', CLOSE WHEN v = 0)"


LAST = "SELECT k, at, {} OVER (PARTITION BY {} ORDER BY at) AS l FROM s EMIT ON WINDOW CLOSE"


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session() as made:
        made.run(f"CREATE SOURCE s ({COLUMNS}, WATERMARK FOR at AS at - INTERVAL '5 seconds') {WITH}")
        made.run(f"CREATE TABLE t ({COLUMNS}, WATERMARK FOR at AS at - INTERVAL '5 seconds') APPEND ONLY {WITH}")
        made.run(f"CREATE SOURCE months ({COLUMNS}, WATERMARK FOR at AS at - INTERVAL '1 month') {WITH}")
        made.run(f"CREATE SOURCE early (k int PRIMARY KEY, at timestamp, WATERMARK FOR at AS at) {WITH}")
        yield made


def planned(session: Session, query: str) -> StreamedPlan | str:
    session.run(f"CREATE MATERIALIZED VIEW tried AS {query}")
    try:
        catalog = session._catalog
        return streamed(catalog.views()[0].node, {table.relation.name: table for table in catalog.tables()})
    finally:
        session.run("DROP MATERIALIZED VIEW tried")


def groups(what: str, relation: str = "tumble(s, at, INTERVAL '1 minute')", by: str = "k, window_start") -> str:
    return f"SELECT {by}, {what} FROM {relation} GROUP BY {by} EMIT ON WINDOW CLOSE"


def test_groups_of_tumbling_windows_are_a_window_program(session: Session) -> None:
    found = planned(session, groups("count(*) AS n, sum(v) FILTER (WHERE v > 1) AS s, avg(big) AS a, max(name) AS m"))
    assert isinstance(found, StreamedGroups)
    assert found.assigner == TumblingEventTimeWindows(MINUTE)
    assert found.delay == 5_000_000
    assert [column.name for column, _ in found.keys] == ["k"]
    assert [call.function for call in found.calls] == ["count", "sum", "sum", "count", "max"]
    assert [call.spark for call in found.calls] == ["", "bigint", "decimal(19, 0)", "boolean", "string"]
    assert [bound is not None for bound in found.bounds] == [True, False]
    assert found.lines == [
        "One streaming query on Spark from source 's'; its rows are not stored",
        "  rows: DuckDB on the tasks",
        "  groups: window program, engine slices, by k and window, folded before the shuffle",
        "    [keeps partial results of each group, until its window is closed]",
        "  result: DuckDB on the tasks",
    ]


@pytest.mark.parametrize(
    ("argument", "kind"),
    [
        ("big", "decimal(19, 0)"),
        ("price", "decimal(10, 2)"),
        ("price::numeric(6, 1)", "decimal(6, 1)"),
        ("price::numeric(12, 4)", "decimal(12, 4)"),
    ],
)
def test_sums_take_the_digits_of_their_values(session: Session, argument: str, kind: str) -> None:
    query = groups("sum(x) AS s", f"tumble((SELECT at, {argument} AS x FROM s), at, INTERVAL '1 minute')", "window_start")
    found = planned(session, query)
    assert isinstance(found, StreamedGroups)
    assert [call.spark for call in found.calls] == [kind]


def test_groups_that_change_are_a_window_program_that_takes_back(session: Session) -> None:
    query = groups("count(*) AS n").removesuffix(" EMIT ON WINDOW CLOSE")
    found = planned(session, query.replace(" GROUP", " WHERE v > 1 AND at IS NOT NULL GROUP"))
    assert isinstance(found, StreamedGroups)
    assert not found.closes
    of_window = planned(session, f"{query} HAVING window_start IS NOT NULL")
    assert isinstance(of_window, StreamedGroups)
    hop = planned(session, query.replace("tumble(s, at,", "hop(s, at, INTERVAL '10 seconds',"))
    assert isinstance(hop, StreamedGroups)
    assert found.lines[2] == "  groups: window program, engine panes, by k and window, each batch takes back what it changes"


def test_groups_of_months_are_a_window_program(session: Session) -> None:
    found = planned(session, groups("count(*) AS n", "hop(s, at, INTERVAL '1 month', INTERVAL '3 months')", "k, window_end"))
    assert isinstance(found, StreamedGroups)
    assert found.assigner == CalendarWindows.of("3 months", "UTC", slide="1 month")


def test_groups_of_sessions_are_a_window_program(session: Session) -> None:
    kept = SESSION.format("(SELECT * FROM s WHERE v > 2)", "10 microseconds")
    found = planned(session, groups("count(*) AS n", kept, "window_start, k, window_end"))
    assert isinstance(found, StreamedGroups)
    assert found.assigner == EventTimeSessionWindows.with_gap(10)
    assert [column.name for column, _ in found.keys] == ["k"]
    assert found.lines[2] == "  groups: window program, engine sessions, by k and window, folded before the shuffle"
    changing = groups("count(*) AS n", kept).removesuffix(" EMIT ON WINDOW CLOSE")
    assert isinstance(planned(session, changing), StreamedGroups)


def test_calls_that_look_back_are_an_over_program(session: Session) -> None:
    query = "SELECT v, x - lag(x) OVER w AS d, sum(v) OVER w AS s FROM s WHERE v > 1 WINDOW w AS (PARTITION BY k ORDER BY at)"
    found = planned(session, f"{query} EMIT ON WINDOW CLOSE")
    assert isinstance(found, StreamedOver)
    assert found.closes
    assert found.delay == 5_000_000
    assert [call.function for call in found.over.calls] == ["lag", "sum"]
    assert found.lines[2].startswith("  rows: OVER program, lag(")
    assert found.lines[2].endswith(" by k, once a row is final")


def test_groups_of_hopping_windows_and_of_none_but_windows(session: Session) -> None:
    hop = "hop(s, at, INTERVAL '1 minute', INTERVAL '3 minutes', INTERVAL '10 seconds')"
    found = planned(session, groups("count(*) AS n", hop, "window_end"))
    assert isinstance(found, StreamedGroups)
    assert found.assigner == SlidingEventTimeWindows(3 * MINUTE, MINUTE, MINUTE // 6)
    assert found.keys == ()
    assert [bound is not None for bound in found.bounds] == [False, True]


def test_groups_of_cumulating_windows_close_by_their_end(session: Session) -> None:
    found = planned(session, groups("count(*) AS n", "cumulate(s, at, INTERVAL '1 minute', INTERVAL '1 hour')", "window_end"))
    assert isinstance(found, StreamedGroups)
    assert found.assigner == CumulateEventTimeWindows(60 * MINUTE, MINUTE)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (groups("count(*) AS n").removesuffix(" EMIT ON WINDOW CLOSE"), "WHERE at IS NOT NULL leaves them out"),
        (
            groups("count(*) AS n", "tumble(s, at, INTERVAL '1 minute') WHERE v > 1 OR at IS NOT NULL").removesuffix(
                " EMIT ON WINDOW CLOSE"
            ),
            "WHERE at IS NOT NULL leaves them out",
        ),
        (groups("sum(x) AS n"), "of floats depends on the order of rows"),
        (groups("avg(x) AS n"), "of floats depends on the order of rows"),
        (groups("max(x) AS n"), "do not compare double precision as SQL does"),
        (groups("sum(open) AS n"), "may need more than 38 digits"),
        (groups("count(DISTINCT v) AS n"), "have no call with the result of"),
        (groups("array_agg(v) AS n"), "have no call with the result of"),
        (groups("count(*) AS n", by="x, window_start"), "GROUP BY 'x': the window engines do not compare"),
        (groups("count(*) AS n", by="at, k"), "neither window_start nor window_end"),
        (groups("max(window_end) AS n"), "reads window_start or window_end"),
        (groups("count(*) AS n", "tumble(t, at, INTERVAL '1 minute')"), "'t' is a table, whose rows are stored"),
        (groups("count(*) AS n", "tumble(months, at, INTERVAL '1 minute')"), "AS that column less an interval"),
        (groups("count(*) AS n", "tumble(early, at, INTERVAL '1 minute')", "window_start"), "has a primary key"),
        (groups("count(*) AS n", "cumulate(s, at, INTERVAL '1 minute', INTERVAL '1 hour')"), "share their start"),
        (groups("count(*) AS n", SESSION.format("TABLE s", "1 month"), "k, window_end"), "SESSION by at, gap 1 mon"),
        (groups("count(*) AS n", CLOSING, "k, window_end"), "CLOSE WHEN stay with SQL"),
        (groups("count(*) AS n", SESSION.format("TABLE s", "1 s") + " WHERE v > 2", "k, window_end"), "left out behind SESSION"),
        (groups("count(*) AS n", SESSION.format("TABLE s", "1 s"), "k, v, window_end"), "has other columns than SESSION has"),
        (groups("count(*) AS n", SESSION.format("TABLE s", "1 s"), "window_end"), "has other columns than SESSION has"),
        (LAST.format("lead(v)", "k"), "lead"),
        (LAST.format("sum(v)", "x"), "PARTITION BY 'x'"),
        (LAST.format("lag(v)", "k").removesuffix(" EMIT ON WINDOW CLOSE"), "OVER without EMIT ON WINDOW CLOSE"),
    ],
)
def test_what_is_no_streaming_query_says_why(session: Session, query: str, reason: str) -> None:
    found = planned(session, query)
    assert isinstance(found, str)
    assert reason in found


MADE = "tumble((SELECT name AS n1, upper(name) AS n2, at FROM s), at, INTERVAL '1 minute')"
UNCHANGED = {
    "a group": groups("count(*) AS n, max(name) AS m", by="name, window_start"),
    "a group of rows that a filter keeps": groups(
        "count(*) AS n", "tumble(s, at, INTERVAL '1 minute') WHERE v > 3", "name, window_start"
    ),
    "a text that is made, beside one that is not": groups("count(*) AS n", MADE, "n1, n2, window_start"),
    "rows": LAST.format("lag(name)", "k").replace("SELECT k,", "SELECT k, name, lower(name) AS low,"),
}


@pytest.mark.parametrize("query", UNCHANGED.values(), ids=list(UNCHANGED))
@pytest.mark.parametrize("has_missing_times", [False, True])
@pytest.mark.parametrize("watermark", [None, 10])
def test_texts_that_go_past_duckdb_arrive_with_their_rows(
    session: Session, monkeypatch, query: str, has_missing_times: bool, watermark: int | None
) -> None:
    plan = planned(session, query)
    assert isinstance(plan, StreamedPlan)
    assert "name" in plan.unchanged.values()
    draw = random.Random(11)
    rows: list[dict[str, Any]] = [
        {
            "k": draw.randrange(3),
            "name": draw.choice([None, "", "a", "Bé", "c" * 40]),
            "v": draw.randrange(4, 8) if number < 20 else draw.randrange(8),
            "at": None if has_missing_times and not draw.randrange(9) else datetime(1970, 1, 1, 0, 0, draw.randrange(5, 60)),
        }
        for number in range(60)
    ]
    schema = pa.schema([("k", pa.int32()), ("name", pa.string()), ("v", pa.int32()), ("at", pa.timestamp("us"))])
    monkeypatch.setattr(source_rows, "_CHUNK", 20)
    (source,) = (table for table in session._catalog.tables() if table.relation.name == "s")

    def arriving(plan: StreamedPlan) -> list[list[dict[str, object]]]:
        exchange = Exchange(None)
        exchange.publish(source_rows.Progress({} if watermark is None else {"s": watermark * 1_000_000}).text())
        batches = iter(pa.Table.from_pylist(rows, schema).to_batches(max_chunksize=20))
        tables = ToOperatorRows(plan, SourceRows(source, exchange))(batches)
        return [table.select(sorted(table.column_names)).to_pylist() for table in tables]

    found = arriving(plan)
    assert found == arriving(replace(plan, unchanged={}))
    kept = [row for row in rows if row["at"] is not None and (watermark is None or row["at"].second >= watermark)]
    kept = [row for row in kept if row["v"] > 3 or "v > 3" not in query]
    (name,) = (each.name for each in plan.carried if plan.unchanged.get(each.value.column) == "name")
    assert [row[name] for table in found[:-1] for row in table] == [row["name"] for row in kept]
