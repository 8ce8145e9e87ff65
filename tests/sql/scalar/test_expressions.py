"""Expressions: types and text output are PostgreSQL's (numbers without trailing zeros, as RisingWave prints them)."""

from __future__ import annotations

import pytest

from windowpane.errors import SqlNameError, SqlRunError, SqlTypeError, UnsupportedSqlError, UnsupportedValueError
from windowpane.sql import Session
from windowpane.sql.values.intervals import read_span
from windowpane.windowing.intervals import Interval


@pytest.fixture(scope="module")
def session():
    with Session(":memory:") as opened:
        yield opened


@pytest.mark.parametrize(
    ("expression", "kind", "text"),
    [
        ("7 / 2", "integer", "3"),
        ("-7 / 2", "integer", "-3"),
        ("7.0 / 2", "numeric", "3.5"),
        ("10 / 3.0", "numeric", "3.3333333333333333333333333333"),
        ("7 % -3", "integer", "1"),
        ("2 ^ 3", "double precision", "8"),
        ("5::bigint * 2", "bigint", "10"),
        ("1::smallint + 1", "integer", "2"),
        ("0.1 + 0.2", "numeric", "0.3"),
        ("0.1::double precision + 0.2", "double precision", "0.30000000000000004"),
        ("1e20::double precision", "double precision", "1e+20"),
        ("1.5::real", "real", "1.5"),
        ("round(2.5)", "numeric", "3"),
        ("round(2.567, 2)", "numeric", "2.57"),
        ("1.7::int", "integer", "2"),
        ("true AND NULL", "boolean", None),
        ("1 IS DISTINCT FROM NULL", "boolean", "t"),
        ("'a' || 1", "character varying", "a1"),
        ("'abc' LIKE 'a%'", "boolean", "t"),
        ("'abc' NOT LIKE 'a%'", "boolean", "f"),
        ("'abc' NOT ILIKE 'B%'", "boolean", "t"),
        ("'a_c' LIKE 'a!_c' ESCAPE '!'", "boolean", "t"),
        ("'abc' ~ '^a' AND 'abc' !~ '^b'", "boolean", "t"),
        ("1 BETWEEN SYMMETRIC 2 AND 0", "boolean", "t"),
        ("3 = ANY (ARRAY[1, 2])", "boolean", "f"),
        ("3 = ANY (ARRAY[1, NULL])", "boolean", None),
        ("(1, 2) IN ((1, 2), (3, 4))", "boolean", "t"),
        ("(1, NULL) = (2, 3)", "boolean", "f"),
        ("'{1,2}'::int[]", "integer[]", "{1,2}"),
        ("(ARRAY[1, 2, 3])[2:3]", "integer[]", "{2,3}"),
        ("array_to_string(array_append(ARRAY[1, NULL], 2), '-')", "character varying", "1-2"),
        ("array_remove(ARRAY[1, 2, 1], 1)", "integer[]", "{2}"),
        ("cardinality(ARRAY[]::int[])", "integer", "0"),
        ("'{\"a\": {\"b\": [10, 20]}}'::jsonb -> 'a' -> 'b' -> 1", "jsonb", "20"),
        ("'{\"a\": \"x\"}'::jsonb ->> 'a'", "character varying", "x"),
        ("overlay('abcdef' PLACING 'XX' FROM 2 FOR 3)", "character varying", "aXXef"),
        ("lpad('a', 3) || e'\\t' || 'b'\n'c'", "character varying", "  a\tbc"),
        (r"'\xdeadBEEF'::bytea", "bytea", r"\xdeadbeef"),
        (r"'\xdead'::bytea::text || 'abc'::bytea::text", "character varying", r"\xdead\x616263"),
        ("1e15::double precision", "double precision", "1000000000000000"),
        ("coalesce(NULL, 3)", "integer", "3"),
        ("CASE 2 WHEN 1 THEN 'one' ELSE 'more' END", "character varying", "more"),
        ("greatest(1, 2.5)", "numeric", "2.5"),
        ("ARRAY[1, 2, NULL]", "integer[]", "{1,2,NULL}"),
        ("(ARRAY[4, 5])[2]", "integer", "5"),
        ("substring('windows' FROM 2 FOR 3)", "character varying", "ind"),
        ("split_part('a,b', ',', 2)", "character varying", "b"),
        ("date '2024-03-31' - date '2024-01-01'", "integer", "90"),
        ("date '2024-01-01' + 3", "date", "2024-01-04"),
        ("date '2024-01-31' + interval '1 month'", "timestamp without time zone", "2024-02-29 00:00:00"),
        ("timestamp '2024-01-02' - timestamp '2024-01-01 10:00'", "interval", "14:00:00"),
        ("timestamp '2024-01-01 10:00' + '90 seconds'", "timestamp without time zone", "2024-01-01 10:01:30"),
        ("interval '1 year 2 months 3 days 04:05:06.5'", "interval", "1 year 2 mons 3 days 04:05:06.5"),
        ("interval '30' minute * 3", "interval", "01:30:00"),
        ("timestamptz '2024-01-01 00:00:00+02:00'", "timestamp with time zone", "2023-12-31 22:00:00+00:00"),
        ("timestamptz '2024-01-01 00:00:00+00' AT TIME ZONE 'Asia/Tokyo'", "timestamp without time zone", "2024-01-01 09:00:00"),
        ("date_trunc('month', timestamp '2024-03-31 10:00')", "timestamp without time zone", "2024-03-01 00:00:00"),
        ("extract(epoch FROM timestamp '1970-01-01 00:00:01.5')", "numeric", "1.5"),
        (
            "date_bin('15 minutes', timestamp '2020-02-11 15:44:17', '2001-01-01')",
            "timestamp without time zone",
            "2020-02-11 15:30:00",
        ),
        (
            "tumble_start(timestamp '2024-01-01 10:07', interval '15 minutes')",
            "timestamp without time zone",
            "2024-01-01 10:00:00",
        ),
        ("time '10:00:00.5'", "time without time zone", "10:00:00.5"),
    ],
)
def test_an_expression(session: Session, expression: str, kind: str, text: str | None) -> None:
    result = session.query(f"SELECT {expression}")
    assert (str(result.types[0]), result.text_rows()) == (kind, [[text]])


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        ("sum(i)", "bigint", "6"),
        ("sum(b)", "numeric", "6"),
        ("sum(f)", "double precision", "1.5"),
        ("avg(i)", "numeric", "2"),
        ("avg(i + i * i)", "numeric", "6.6666666666666666666666666667"),
        ("avg(f)", "double precision", "0.5"),
        ("count(*)", "bigint", "4"),
        ("count(i)", "bigint", "3"),
        ("count(DISTINCT f)", "bigint", "1"),
        ("sum(i) FILTER (WHERE i > 1)", "bigint", "5"),
        ("string_agg(i::text, '-' ORDER BY i DESC)", "character varying", "3-2-1"),
        ("array_agg(i ORDER BY i)", "integer[]", "{1,2,3,NULL}"),
        ("bool_and(i > 1)", "boolean", "f"),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY i)", "double precision", "2"),
        ("sum(d)", "interval", "3 days 06:00:00"),
        ("avg(d)", "interval", "1 day 02:00:00"),
    ],
)
def test_an_aggregate(session: Session, call: str, kind: str, text: str) -> None:
    rows = (
        "(1, 1, 0.5, interval '1 day'), (2, 2, 0.5, interval '2 days'), (3, 3, 0.5, interval '6 hours'), (NULL, NULL, NULL, NULL)"
    )
    typed = f"SELECT i, b::bigint AS b, f::float8 AS f, d FROM (VALUES {rows}) AS v(i, b, f, d)"
    result = session.query(f"SELECT {call} FROM ({typed}) AS t")
    assert (str(result.types[0]), result.text_rows()) == (kind, [[text]])


@pytest.mark.parametrize(
    ("statement", "error", "place", "words"),
    [
        ("SELECT 1 +\n  nope", SqlNameError, (2, 3), "no column 'nope'"),
        (r"SELECT '\xd'::bytea", SqlTypeError, (1, 8), "two hexadecimal digits"),
        ("SELECT 1 WHERE 1 > ALL (SELECT 1)", UnsupportedSqlError, (1, 32), "NOT EXISTS"),
        ("SELECT foo(1)", SqlNameError, (1, 8), "no function 'foo'"),
        ("SELECT * FROM nowhere", SqlNameError, (1, 15), "no table or view 'nowhere'"),
        ("SELECT 'a' || 1 + true", SqlTypeError, (1, 15), "does not exist"),
        ("SELECT sum('x'::text)", SqlTypeError, (1, 8), "takes a number"),
        ("SELECT sum(1) OVER nowin", SqlNameError, (1, 20), "no window 'nowin'"),
        ("SELECT 1 WHERE row_number() OVER (ORDER BY 1) = 1", UnsupportedSqlError, (1, 16), "subquery"),
        ("SELECT sum(1) OVER (ORDER BY 1 ROWS -1 PRECEDING)", SqlTypeError, (1, 8), "below zero"),
        ("SELECT sum(1) OVER (ORDER BY 'a'::text RANGE 1 PRECEDING)", SqlTypeError, (1, 46), "no distance"),
        ("SELECT a FROM (SELECT 1 AS a, 2 AS b) AS t GROUP BY b", SqlNameError, (1, 8), "neither in GROUP BY"),
        ("ALTER TABLE t ADD COLUMN a int", UnsupportedSqlError, (1, 15), "ALTER"),
        ("CREATE TABLE t (a nosuchtype)", UnsupportedSqlError, (1, 29), "nosuchtype"),
    ],
)
def test_a_refusal_names_its_place_and_the_way_out(
    session: Session, statement: str, error: type[Exception], place: tuple[int, int], words: str
) -> None:
    with pytest.raises(error, match=words) as refused:
        session.run(statement)
    assert (getattr(refused.value, "line"), getattr(refused.value, "column")) == place  # noqa: B009 - of SqlError


def test_a_division_by_zero_is_an_error_in_a_query(session: Session) -> None:
    with pytest.raises(SqlRunError, match="division by zero"):
        session.run("SELECT 1 / 0")


def test_the_shortest_interval_is_text_and_no_result(session: Session) -> None:
    """PostgreSQL's has 64 bits of microseconds, Arrow's 64 bits of nanoseconds."""
    (result,) = session.run("SELECT '-2562047788:00:54.775808'::interval::text AS x")
    assert result.columns[0].to_pylist() == ["-2562047788:00:54.775808"]
    with pytest.raises(UnsupportedValueError, match="its hours are more than"):
        session.run("SELECT '-2562047788:00:54.775808'::interval")


@pytest.mark.parametrize(
    ("text", "unit", "interval"),
    [
        ("1 day 02:00:00", "", Interval(days=1, micros=7_200_000_000)),
        ("30", "minute", Interval(micros=1_800_000_000)),
        ("5", "", Interval(micros=5_000_000)),
        ("1.5 days", "", Interval(days=1, micros=43_200_000_000)),
        ("-1 mon", "", Interval(months=-1)),
        ("P1Y2M3DT4H5M6S", "", Interval(14, 3, 14_706_000_000)),
        ("-00:00:01.5", "", Interval(micros=-1_500_000)),
    ],
)
def test_intervals_as_text(text: str, unit: str, interval: Interval) -> None:
    assert read_span(text, unit) == interval


@pytest.mark.parametrize("text", ["", "tomorrow", "1 fortnight", "P"])
def test_what_is_no_interval(text: str) -> None:
    with pytest.raises(ValueError, match=r"not an interval|not a unit"):
        read_span(text)
