"""Numerics: exact, or an error by name. Expected values are PostgreSQL's, and RisingWave's 28 digits of quotients."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windowpane.errors import WindowpaneError
from windowpane.sql import Session

TABLE = "CREATE TABLE t (a numeric, b numeric(5, 2), i int, g bigint, s smallint, x double precision, v text)"
ROWS = (
    "INSERT INTO t VALUES (1.5, 999.99, 2147483647, 9223372036854775807, 32767, 1e300::float8, '1.25'), "
    "(2.5, -1, -2147483648, -9223372036854775808, -32768, 0.1, ' 1e3 ')"
)


@pytest.fixture(scope="module")
def session() -> Session:
    session = Session(store=":memory:")
    session.run(f"{TABLE}; {ROWS}; FLUSH")
    return session


VALUES = {
    "2::numeric / 3": "0.6666666666666666666666666667",
    "0.00000000001::numeric": "0.00000000001",
    "100::numeric / 3": "33.333333333333333333333333333",
    "4193850.0 * 7 / 7 + 4::numeric / 7": "4193850.5714285714285714285714",
    "1e12 / 7": "142857142857.14285714285714286",
    "(1e12 / 7)::numeric(38, 10)": "142857142857.1428571429",
    "1e30 / 100": "10000000000000000000000000000",
    "2::numeric / 3 * 3": "2.0000000000000000000000000001",
    "round(2 / 3.0, 4)": "0.6667",
    "round(-2.5)": "-3",
    "round(1.005, 2)": "1.01",
    "round(1234.5, -2)": "1200",
    "trunc(-1.999, 1)": "-1.9",
    "ceil(-0.5)": "0",
    "round(7) / 2": "3.5",
    "mod(-7.5, 2)": "-1.5",
    "div(-7.5, 2)": "-3",
    "sqrt(2.0)": "1.4142135623730950488016887242",
    "exp(1.0)": "2.7182818284590452353602874714",
    "ln(10.0)": "2.3025850929940456840179914547",
    "log(2.0, 64.0)": "6",
    "power(2.0, 100)": "1267650600228229401496703205376",
    "1.05 ^ 10": "1.62889462677744140625",
    "power(1.5, -2)": "0.4444444444444444444444444444",
    "1e300::double precision": "1e+300",
    "'1e-28'::float8::decimal": "0.0000000000000000000000000001",
    "(2 / 3.0)::text": "0.6666666666666666666666666667",
    "array[1.10, 2 / 3.0]": "{1.1,0.6666666666666666666666666667}",
    "1.005::numeric(5, 2)": "1.01",
    "(-9223372036854775808)::bigint": "-9223372036854775808",
    "99999999999999999999::numeric > 2 / 3.0": "t",
    "99999999999999999999::numeric = 2 / 3.0": "f",
    "99999999999999999999 IN (1, 2 / 3.0)": "f",
    "NULL::numeric / 0": None,
    "123456789012345678901234567.0123456789 + 0": "123456789012345678901234567.0123456789",
}


@pytest.mark.parametrize("expression", VALUES)
def test_a_value(session: Session, expression: str) -> None:
    assert session.query(f"SELECT {expression}").text_rows() == [[VALUES[expression]]]


REFUSED = {
    "SELECT 1e40": "1e40 has more than 38 digits",
    "SELECT 1e400::double precision": "out of range for type double precision",
    "SELECT 'NaN'::numeric": "NaN and infinity are values of double precision only",
    "SELECT 'abc'::numeric": 'invalid input syntax for type numeric: "abc"',
    "SELECT v::numeric FROM (VALUES ('12x')) AS q(v)": 'invalid input syntax for type numeric: "12x"',
    "SELECT 12345.67::numeric(5, 2)": "numeric(5,2) out of range: 12345.67",
    "SELECT i + 1 FROM t": "integer out of range: 2147483647 + 1",
    "SELECT i + 7 > 7 FROM t": "integer out of range: 2147483647 + 7",
    "SELECT 7::smallint = s + 7::smallint FROM t": "smallint out of range: 32767 + 7",
    "SELECT 1 FROM t WHERE g * 2 BETWEEN 2 AND 4": "bigint out of range: 9223372036854775807 * 2",
    "SELECT g * 2 FROM t": "bigint out of range: 9223372036854775807 * 2",
    "SELECT s + s FROM t": "smallint out of range: 32767 + 32767",
    "SELECT g / -1 FROM t": "Overflow in division of -9223372036854775808 / -1",
    "SELECT abs(i) FROM t": "Overflow on abs(-2147483648)",
    "SELECT -i FROM t": "Overflow in negation",
    "SELECT i::smallint FROM t": "smallint out of range: 2147483647",
    "SELECT 9223372036854775808::bigint": "bigint out of range: 9223372036854775808",
    "SELECT x::int FROM t": "integer out of range: 1e+300",
    "SELECT x::numeric FROM t": "numeric out of range: 1e+300",
    "SELECT sum(n) FROM (VALUES (99999999999999999999999999999999999999), (1)) AS q(n)": (
        "Overflow in SUM of numeric: the result does not fit in numeric(38)"
    ),
    "SELECT sum(n) FROM generate_series(1, 3) AS s(k), (VALUES (9223372036854775807)) AS q(n) HAVING sum(n)::bigint > 0": (
        "bigint out of range: 27670116110564327421"
    ),
    "SELECT a * 99999999999999999999 * 99999999999999 FROM t": "Overflow in multiplication of numeric(38)",
    "SELECT (a * 1e12) / 7 FROM t": "214285714285.7142857142857142857142857142 has more than 10 digits before the point",
    "SELECT 1.5 / 0": "division by zero",
    "SELECT 1.5 % 0": "division by zero",
    "SELECT div(1.5, 0)": "division by zero",
    "SELECT sqrt(-1.0)": "cannot take square root of a negative number",
    "SELECT ln(0.0)": "cannot take logarithm of zero",
    "SELECT power(0.0, -1)": "zero raised to a negative power",
    "SELECT power(-8.0, 0.5)": "a negative number raised to a non-integer power",
    "SELECT stddev(DISTINCT a) FROM t": "Take the values of SELECT DISTINCT in a subquery",
    "INSERT INTO t (a) VALUES (0.00000000001)": "0.00000000001 has more than 10 decimal places, and would be rounded",
    "INSERT INTO t (a) VALUES ('0.00000000001')": "0.00000000001 has more than 10 decimal places, and would be rounded",
    "INSERT INTO t (a) SELECT 1 / 3.0": "0.3333333333333333333333333333 has more than 10 decimal places, and would be rounded",
    "INSERT INTO t (b) VALUES (12345.67)": "numeric(5,2) out of range: 12345.67",
    "SELECT 1::numeric(40, 2)": "is not supported",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_what_does_not_fit_is_named(session: Session, statement: str) -> None:
    with pytest.raises(WindowpaneError) as raised:
        session.run(statement)
    assert REFUSED[statement] in str(raised.value)
    for word in ("INT64", "INT32", "UDF", "Conversion Error", "Out of Range Error"):
        assert word not in str(raised.value)


def test_equal_numbers_are_one_whatever_their_places(session: Session) -> None:
    values = "(VALUES (1.0::numeric), (1.00), (1), (2)) AS q(a)"
    assert session.query(f"SELECT a, count(*) FROM {values} GROUP BY a ORDER BY a").text_rows() == [["1", "3"], ["2", "1"]]
    assert session.query(f"SELECT DISTINCT a * 1.50 FROM {values} ORDER BY 1").text_rows() == [["1.5"], ["3"]]
    assert session.query(f"SELECT count(*) FROM {values} JOIN (VALUES (3 / 3.0)) AS r(b) ON a = b").text_rows() == [["3"]]
    assert session.query(f"SELECT max(a / 3), min(a / 3) FROM {values}").rows() == [
        (Decimal("0.6666666666666666666666666667"), Decimal("0.3333333333333333333333333333"))
    ]


def test_variance_of_exact_numbers_is_exact(session: Session) -> None:
    text = "SELECT var_pop(v), round(stddev_samp(v), 16), variance(v) FROM (VALUES (1), (2), (4), (5), (6)) AS q(v)"
    assert session.query(text).text_rows() == [["3.44", "2.0736441353327721", "4.3"]]
    assert session.query("SELECT var_samp(v), var_pop(v) FROM (VALUES (7.25)) AS q(v)").text_rows() == [[None, "0"]]
    assert session.query("SELECT var_pop(i) FROM t").text_rows() == [["4611686016279904256.25"]]


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_the_variance_of_one_double_that_is_not_finite_is_not_a_number_as_in_postgresql(value: str) -> None:
    session = Session(store=":memory:")
    calls = "var_pop(v) AS a, stddev_pop(v) AS b, stddev_pop(DISTINCT v) AS c, var_samp(v) AS d"
    session.run("CREATE TABLE doubles (k int PRIMARY KEY, v double precision)")
    session.run(f"CREATE MATERIALIZED VIEW moments AS SELECT {calls} FROM doubles")
    session.run(f"INSERT INTO doubles VALUES (1, '{value}'), (2, NULL); FLUSH")
    assert session.query(f"SELECT {calls} FROM doubles").text_rows() == [["NaN", "NaN", "NaN", None]]
    assert session.query("SELECT * FROM moments").text_rows() == [["NaN", "NaN", "NaN", None]]
    session.run("INSERT INTO doubles VALUES (3, 1.5); FLUSH")
    assert session.query("SELECT * FROM moments").text_rows() == [["NaN"] * 4]
    session.run("DELETE FROM doubles WHERE k = 1; FLUSH")
    assert session.query("SELECT * FROM moments").text_rows() == [["0", "0", "0", None]]


def test_a_text_is_every_digit_of_it_or_an_error(session: Session) -> None:
    digits = "123456789012345678"
    values = f"(VALUES ('{digits}'), (' +{digits}.5 '), ('-.5'), ('5.'), ('1e3')) AS q(v)"
    rows = session.query(f"SELECT v::numeric FROM {values}").text_rows()
    assert rows == [[digits], [f"{digits}.5"], ["-0.5"], ["5"], ["1000"]]
    for text in (f"{digits}9", f"{digits}901", "9" * 38, "9" * 60, "1e18", "1e60"):
        with pytest.raises(WindowpaneError, match="numeric out of range"):
            session.query(f"SELECT v::numeric FROM (VALUES ('{text}'), ('1')) AS q(v)")
    for text in ("1_0", "0x10", "", "1 2", "1.2.3", "."):
        with pytest.raises(WindowpaneError, match="invalid input syntax for type numeric"):
            session.query(f"SELECT v::numeric FROM (VALUES ('{text}'), ('1')) AS q(v)")


def _taken(folder: Path, connector: str) -> list[list[str | None]]:
    session = Session(store=":memory:")
    session.run(f"CREATE TABLE t (k int, price numeric, fee numeric(5, 2)) WITH (connector = '{connector}', path = '{folder}')")
    session.run("FLUSH")
    return session.query("SELECT * FROM t ORDER BY k").text_rows()


def test_numerics_of_files_keep_their_digits(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("k,price,fee\n1,12345678901234567.8901,1.005\n2,,2\n3,1e3,0.1\n")
    assert _taken(tmp_path, "csv") == [["1", "12345678901234567.8901", "1.01"], ["2", None, "2"], ["3", "1000", "0.1"]]
    file.write_text("k,price,fee\n1,0.00000000001,1\n")
    assert _taken(tmp_path, "csv") == [["1", None, "1"]]
    file.write_text('{"k": 1, "price": 1.1, "fee": 1.005}\n{"k": 2, "price": "2.25", "fee": null}\n')
    assert _taken(tmp_path, "json") == [["1", "1.1", "1.01"], ["2", "2.25", None]]
    prices = pa.array([Decimal("0.1"), Decimal("12345678.125")], pa.decimal128(30, 12))
    pq.write_table(pa.table({"k": [1, 2], "price": prices, "fee": [1.5, 2.25]}), file)
    assert _taken(tmp_path, "parquet") == [["1", "0.1", "1.5"], ["2", "12345678.125", "2.25"]]


CREATED = """
CREATE TABLE ticks (sym text, at int, price numeric, qty numeric, clicks bigint, shown bigint);
CREATE MATERIALIZED VIEW vwap AS SELECT sym, sum(price * qty) / sum(qty) AS vwap, sum(clicks) / sum(shown) AS rate,
    avg(price) AS mean, stddev(price) AS spread FROM ticks GROUP BY sym;
CREATE MATERIALIZED VIEW change AS SELECT sym, at, (price - lag(price) OVER w) / lag(price) OVER w AS change FROM ticks
    WINDOW w AS (PARTITION BY sym ORDER BY at);
CREATE MATERIALIZED VIEW nothing AS SELECT sym, at, price / 0 AS q, price % 0 AS m, div(price, 0) AS d FROM ticks;
"""


def test_views_of_quotients_go_on_through_a_restart(tmp_path) -> None:
    path = str(tmp_path / "views.duckdb")
    with Session(store=path) as session:
        session.run(CREATED)
        session.run("INSERT INTO ticks VALUES ('a', 1, 100, 30000, 20, 100), ('a', 2, 110, 29999, 30, 100); FLUSH")
    with Session(store=path) as session:
        session.run("INSERT INTO ticks VALUES ('a', 3, 99, 1, 0, 0), ('b', 1, 0.01, 3, 1, 3); FLUSH")
        session.run("DELETE FROM ticks WHERE at = 3; FLUSH")
        got = session.query("SELECT vwap, rate, mean, round(spread, 10) FROM vwap WHERE sym = 'a'").text_rows()
        assert got == [["104.99991666527775462924382073", "0.25", "105", "7.0710678119"]]
        assert session.query("SELECT change FROM change WHERE sym = 'a' ORDER BY at").text_rows() == [[None], ["0.1"]]
        assert session.query("SELECT q, m, d FROM nothing").rows() == [(None, None, None)] * 3
        again = (
            "SELECT sym, sum(price * qty) / sum(qty), sum(clicks) / sum(shown), avg(price), stddev(price) FROM ticks GROUP BY sym"
        )
        assert sorted(session.query("SELECT * FROM vwap").text_rows()) == sorted(session.query(again).text_rows())


def test_a_view_has_no_variance_where_a_square_does_not_fit() -> None:
    session = Session(store=":memory:")
    session.run("CREATE TABLE t (k int, a numeric)")
    session.run("CREATE MATERIALIZED VIEW v AS SELECT k, var_pop(a) AS s, stddev_samp(a) AS d FROM t GROUP BY k")
    session.run("INSERT INTO t VALUES (1, 2), (1, 4), (2, 99999999999), (2, 1), (2, 3); FLUSH")
    shown = "SELECT k, s, round(d, 6) FROM v ORDER BY k"
    assert session.query(shown).text_rows() == [["1", "1", "1.414214"], ["2", None, None]]
    session.run("DELETE FROM t WHERE a > 4; FLUSH")
    assert session.query(shown).text_rows() == [["1", "1", "1.414214"], ["2", "1", "1.414214"]]


def test_a_table_made_of_a_query_keeps_its_places(tmp_path) -> None:
    path = str(tmp_path / "made.duckdb")
    with Session(store=path) as session:
        session.run("CREATE TABLE m AS SELECT 1 / 3.0 AS third, 2.5 AS half; INSERT INTO m VALUES (1 / 7.0, 0.25); FLUSH")
    with Session(store=path) as session:
        assert session.query("SELECT * FROM m ORDER BY half DESC").text_rows() == [
            ["0.3333333333333333333333333333", "2.5"],
            ["0.1428571428571428571428571429", "0.25"],
        ]


def _amount(rng: random.Random) -> str:
    return f"{rng.uniform(-1000, 1000):.{rng.randint(0, 6)}f}"


def test_a_folded_sum_is_the_sum_after_any_changes() -> None:
    rng = random.Random(14)
    session = Session(store=":memory:")
    session.run("CREATE TABLE t (k int, a numeric, b numeric(12, 2))")
    session.run(
        "CREATE MATERIALIZED VIEW v AS SELECT k % 3 AS g, sum(a * b) AS s, avg(a) AS m, sum(a) / sum(b) AS q "
        "FROM t GROUP BY k % 3"
    )
    kept: dict[int, tuple[Decimal, Decimal]] = {}
    for number in range(60):
        a, b = _amount(rng), f"{rng.uniform(1, 1000):.2f}"
        session.run(f"INSERT INTO t VALUES ({number}, {a}, {b})")
        kept[number] = Decimal(a), Decimal(b)
        if rng.random() < 0.3:
            deleted = rng.choice(sorted(kept))
            session.run(f"DELETE FROM t WHERE k = {deleted}")
            del kept[deleted]
        if number % 20 == 19:
            session.run("FLUSH")
            for g, s, m, q in session.query("SELECT g, s, m, q FROM v").rows():
                group = [pair for key, pair in kept.items() if key % 3 == g]
                assert s == sum(one * other for one, other in group)
                total = sum(one for one, _ in group)
                assert abs(m * len(group) - total) < Decimal("1e-24")
                assert abs(q * sum(other for _, other in group) - total) < Decimal("1e-22")
