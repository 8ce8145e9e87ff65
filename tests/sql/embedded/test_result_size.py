"""The result of a query has a bound; what is larger is read in parts, as it is computed."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from windowpane.cli import app
from windowpane.errors import (
    DivisionByZeroError,
    InvalidValueError,
    OutOfMemoryError,
    OutOfRangeError,
    ResultSizeError,
    SqlRunError,
    SqlTypeError,
    WindowpaneError,
)
from windowpane.sql import Session
from windowpane.sql.parse.byte_sizes import read_size
from windowpane.sql.shell.printing import Printer

ENDLESS = "SELECT a, b FROM generate_series(1, 1000000) AS x(a), generate_series(1, 1000000) AS y(b)"
"""A billion times a thousand rows."""


def test_a_result_above_the_bound_is_an_error_that_says_the_ways_out() -> None:
    with Session(":memory:") as session:
        session.run("SET max_result_size = '1MB'")
        with pytest.raises(ResultSizeError, match=r"1,048,576 bytes.*Session.stream.*LIMIT.*SET max_result_size") as caught:
            session.query(ENDLESS)
        assert caught.value.most == 2**20
        assert 100_000 < caught.value.rows < 140_000  # of two integers a row
        assert isinstance(caught.value, OutOfMemoryError)
        assert session.query("SELECT 1 AS one").rows() == [(1,)]


def test_the_bound_counts_bytes_not_rows() -> None:
    with Session(":memory:") as session:
        session.run("SET max_result_size = '64kB'")
        with pytest.raises(ResultSizeError):
            session.query("SELECT repeat('x', 70000)")
        assert len(session.query("SELECT generate_series(1, 10000)")) == 10_000


def test_zero_is_no_bound_and_a_higher_one_lets_more_through() -> None:
    with Session(":memory:") as session:
        for size in ("0", "'1 MB'", "1048576"):
            session.run(f"SET max_result_size = {size}")
            assert len(session.query("SELECT generate_series(1, 30000)")) == 30_000


@pytest.mark.parametrize("size", ["much", "-1", "", "1 XB", "1GB2"])
def test_what_is_no_size_is_refused(size: str) -> None:
    with Session(":memory:") as session, pytest.raises(SqlTypeError, match="is no size"):
        session.run(f"SET max_result_size = '{size}'")


def test_sizes_are_read() -> None:
    assert [read_size(text) for text in ("0", "12", "1kB", "1.5 MB", "2gb", "1 TB")] == [0, 12, 2**10, 3 * 2**19, 2**31, 2**40]


def test_a_changelog_has_the_bound_too() -> None:
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (a int); CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
        session.run("INSERT INTO t SELECT generate_series(1, 100000); FLUSH; SET max_result_size = '100kB'")
        with pytest.raises(ResultSizeError):
            session.changelog("v")
        session.run("SET max_result_size = 0")
        assert session.changelog("v").num_rows == 100_000


def test_parts_are_read_no_further_than_they_are_asked_for() -> None:
    with Session(":memory:") as session:
        session.run("SET max_result_size = '1kB'")
        parts = session.stream(ENDLESS, rows=5000)
        assert [(len(part), part.first, part.more) for part in islice(parts, 3)] == [
            (5000 // 2048 * 2048, n, True) for n in (0, 4096, 8192)
        ]
        parts.close()
        assert session.query("SELECT 1 AS one").rows() == [(1,)]


@pytest.mark.parametrize(("rows", "there"), [(1, 3), (2, 3), (3, 3), (4, 3), (3000, 10_000), (4096, 4096), (7, 0)])
def test_the_parts_are_the_result(rows: int, there: int) -> None:
    query = f"SELECT n, n % 7 AS m FROM generate_series(1, {there}) AS g(n) ORDER BY m, n"
    with Session(":memory:") as session:
        whole, parts = session.query(query), list(session.stream(query, rows))
    assert [row for part in parts for row in part.rows()] == whole.rows()
    assert [key for part in parts for key in part.order_keys()] == whole.order_keys()
    assert all(len(part) <= rows and part.names == whole.names and part.types == whole.types for part in parts)
    assert [part.more for part in parts] == [True] * (len(parts) - 1) + [False]


def test_a_stream_shows_what_there_was_and_others_run_beside_it() -> None:
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (a int); INSERT INTO t SELECT generate_series(1, 10000)")
        parts = session.stream("SELECT count(*) OVER () AS c, a FROM t", rows=2048)
        first = next(parts)
        session.run("DELETE FROM t; FLUSH")
        assert len(first) + sum(map(len, parts)) == 10_000
        assert session.query("SELECT count(*) FROM t").rows() == [(0,)]


def test_a_stream_has_the_session_s_clock_zone_and_functions() -> None:
    with Session(":memory:", clock=lambda: datetime(2024, 1, 1, 12, tzinfo=UTC)) as session:
        session.run("SET TIME ZONE 'Asia/Tokyo'")
        query = "SELECT now(), timestamptz '2024-07-01 00:00', repeat('x', 2), 2::numeric / 3, initcap('a b'), '1 mon'::interval"
        (part,) = session.stream(query)
        assert part.text_rows() == session.query(query).text_rows()
        assert part.text_rows()[0][:2] == ["2024-01-01 21:00:00+09:00", "2024-07-01 00:00:00+09:00"]


def test_a_failure_in_the_middle_comes_after_the_parts_before_it() -> None:
    with Session(":memory:") as session:
        parts = session.stream("SELECT 1 / (900000 - n) AS z FROM generate_series(1, 1000000) AS g(n)", rows=1000)
        assert len(next(parts)) == 1000
        with pytest.raises(DivisionByZeroError):
            list(parts)
        assert session.query("SELECT 1 AS one").rows() == [(1,)]


def test_other_statements_of_a_script_come_as_they_are() -> None:
    with Session(":memory:") as session:
        script = "CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2); SELECT a FROM t ORDER BY a; SELECT b FROM t"
        results = session.stream(script, rows=1)
        assert [next(results).tag for _ in range(4)] == ["CREATE_TABLE", "INSERT 0 2", "SELECT 1", "SELECT 1"]
        with pytest.raises(WindowpaneError, match="no column 'b'"):
            next(results)


def test_closing_the_session_closes_what_still_reads_it(tmp_path: Path) -> None:
    store = str(tmp_path / "views.duckdb")
    session = Session(store)
    parts = session.stream(ENDLESS, rows=10)
    next(parts)
    session.close()
    with pytest.raises(SqlRunError, match="closed before all rows"):
        next(parts)
    with Session(store) as again:
        assert again.query("SELECT 1 AS one").rows() == [(1,)]


TOO_MUCH = [
    "SELECT sum(length(lpad(n::text, 50000000, 'ab'))) FROM generate_series(1, 100) AS g(n)",
    "SELECT sum(length(rpad(n::text, 50000000, 'ab'))) FROM generate_series(1, 100) AS g(n)",
    "SELECT sum(length(repeat(n::text, 40000000))) FROM generate_series(1, 100) AS g(n)",
    "SELECT sum(length(replace(repeat(n::text, 100000), n::text, repeat('ab', 1000)))) FROM generate_series(1, 2000) AS g(n)",
    "SELECT generate_series(-2147483648, d - date '2024-01-01') FROM t",
    "SELECT generate_series(a, 9223372036854775807) FROM t",
    "SELECT generate_series(9223372036854775807, a, -2) FROM t",
    "SELECT generate_series(d::timestamp, timestamp '9000-01-01', interval '1 second') FROM t",
    "SELECT generate_series(timestamp '9000-01-01', d::timestamp, interval '-1 second') FROM t",
]


@pytest.mark.slow_ids("query3")
@pytest.mark.parametrize("query", TOO_MUCH)
def test_rows_that_are_computed_together_have_a_bound(query: str) -> None:
    """DuckDB counts neither their texts nor their lists, so 2,048 of a reasonable size can fill the memory."""
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (a bigint, d date); INSERT INTO t VALUES (1, '2024-01-01'), (2, '2024-01-02'), (NULL, NULL)")
        with pytest.raises(OutOfRangeError, match=r"requested length too large: \d+ bytes for the \d+ rows"):
            session.query(query)


@pytest.mark.parametrize(
    "series", ["generate_series(1, 100000000, 5)", "generate_series('2024-01-01', timestamp '2025-01-01', '1 s')"]
)
def test_a_series_between_constants_has_the_bound_and_no_view_leaves_its_rows_out(series: str) -> None:
    """A value of a list takes 64 bytes and more until it is a row."""
    for query in (f"SELECT count(*) FROM {series} AS s(n)", f"CREATE MATERIALIZED VIEW v AS SELECT n FROM {series} AS s(n)"):
        with Session(":memory:") as session, pytest.raises(OutOfRangeError, match=r"without a step, needs no room"):
            session.run(query)
    with Session(":memory:") as session:
        assert session.query("SELECT count(*) FROM generate_series(1, 100000000) AS s(n)").rows() == [(100_000_000,)]


def test_long_values_that_find_room_are_made() -> None:
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (a bigint); INSERT INTO t VALUES (1), (2), (NULL)")
        lengths = "length(lpad(a::text, 2000000, 'ab')), length(repeat(a::text, 1000000))"
        lengths += ", length(replace('abc', 'b', repeat('x', 600000)))"
        assert session.query(f"SELECT {lengths} FROM t ORDER BY a").rows() == [
            (2_000_000, 1_000_000, 600_002),
            (2_000_000, 1_000_000, 600_002),
            (None, None, 600_002),
        ]
        series = "SELECT count(*), max(n) FROM (SELECT generate_series(a, 100000) AS n FROM t) AS q"
        assert session.query(series).rows() == [(199_999, 100_000)]
        assert session.query("SELECT generate_series(a, -9223372036854775808) FROM t").rows() == []


def test_a_series_with_constant_bounds_needs_no_memory() -> None:
    with Session(":memory:") as session:
        session._storage.run("SET memory_limit = '100MB'")
        assert session.query("SELECT count(*), max(n) FROM generate_series(1, 30000000) AS g(n)").rows() == [(30_000_000,) * 2]
        assert session.query("SELECT count(*) FROM (SELECT generate_series(1, 30000000)) AS q").rows() == [(30_000_000,)]
        assert next(session.stream("SELECT generate_series(-4611686018427387904, -10)", 2)).rows()[1] == (1 - 2**62,)
        with pytest.raises(InvalidValueError, match="a series of more than"):
            session.query("SELECT generate_series(-9223372036854775808, 9223372036854775807)")


def test_the_parts_of_a_result_are_printed_as_one_table() -> None:
    console = Console(file=io.StringIO(), width=40)
    printer = Printer(console)
    with Session(":memory:") as session:
        for part in session.stream("SELECT n, 'abc' AS word FROM generate_series(98, 101) AS g(n) ORDER BY n", rows=2):
            printer.print(part)
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert [line.split() for line in lines if line.strip() and "─" not in line] == [
        ["n", "word"],
        ["98", "abc"],
        ["99", "abc"],
        ["100", "abc"],
        ["101", "abc"],
        ["(4", "rows)"],
    ]


def test_the_command_line_streams(tmp_path: Path) -> None:
    script = tmp_path / "many.sql"
    script.write_text("SET max_result_size = '1kB'; SELECT generate_series(1, 25000) AS n;")
    shown = CliRunner().invoke(app, ["sql", "--json", str(script)])
    assert shown.exit_code == 0
    _, *parts = map(json.loads, shown.stdout.splitlines())
    assert [row for part in parts for row in part["rows"]] == [[str(n)] for n in range(1, 25_001)]
    assert [part["more"] for part in parts] == [True, True, False]
    assert [part["first"] for part in parts] == [0, *(sum(len(each["rows"]) for each in parts[:n]) for n in (1, 2))]
