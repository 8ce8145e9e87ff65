"""MATCH_RECOGNIZE in SQL: clauses, values and columns by hand, views that are opened anew, and what is refused."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from tests.sql.in_process import spread_session
from windowpane.errors import (
    MissingEventTimeError,
    NeverClosesError,
    SkipTargetError,
    SqlNameError,
    SqlSyntaxError,
    SqlTypeError,
    UnboundedStateError,
    UnsupportedSqlError,
)
from windowpane.sql import Session

__all__ = ["spread_session"]

PRICES = """
CREATE TABLE prices (sym varchar, at timestamp, price int, WATERMARK FOR at AS at - INTERVAL '1 second') APPEND ONLY;
INSERT INTO prices VALUES
  ('X', '2024-01-01 08:00', 5), ('X', '2024-01-01 08:01', 4), ('X', '2024-01-01 08:02', 3),
  ('X', '2024-01-01 08:03', 6), ('X', '2024-01-01 08:04', 7), ('X', '2024-01-01 08:05', 1), ('Y', '2024-01-01 08:05', NULL)
"""
V = """
PATTERN (st down+ up+) WITHIN INTERVAL '1 hour'
DEFINE down AS price < PREV(price), up AS price > PREV(price)
"""
LOG = """
CREATE TABLE log (order_id varchar, at timestamp, kind varchar, amount int, WATERMARK FOR at AS at) APPEND ONLY;
INSERT INTO log VALUES
  ('a', '2024-01-01 08:00', 'order', 5), ('b', '2024-01-01 08:01', 'order', 7), ('a', '2024-01-01 08:10', 'payment', 5),
  ('b', '2024-01-01 08:11', NULL, NULL), ('c', '2024-01-01 08:20', 'order', 9), ('c', '2024-01-01 08:55', 'payment', 9)
"""
ABSENCE = """
SELECT * FROM log MATCH_RECOGNIZE (PARTITION BY order_id ORDER BY at
  MEASURES FIRST(ord.at) AS placed_at, FIRST(ord.amount) AS amount, MATCH_ROWTIME() AS sure
  PATTERN (ord -> !paid) WITHIN INTERVAL '30 minutes' DEFINE ord AS kind = 'order', paid AS kind = 'payment')
"""


def minute(number: int) -> dt.datetime:
    return dt.datetime(2024, 1, 1, 8, number)


@pytest.fixture
def session() -> Iterator[Session]:
    with Session(":memory:") as opened:
        yield opened


def test_one_row_a_match_has_keys_and_measures(session: Session) -> None:
    session.run(PRICES)
    found = session.query(
        "SELECT * FROM prices MATCH_RECOGNIZE (PARTITION BY sym ORDER BY at MEASURES LAST(down.price) AS low, "
        f"LAST(up.price) AS high, FIRST(st.at) AS since, COUNT(*) AS n {V})"
    )
    assert found.names == ("sym", "low", "high", "since", "n")
    assert found.rows() == [("X", 3, 7, minute(0), 5)]


def test_all_rows_have_keys_order_measures_and_the_rest(session: Session) -> None:
    session.run(PRICES)
    found = session.query(
        "SELECT * FROM prices AS p MATCH_RECOGNIZE (PARTITION BY sym ORDER BY at MEASURES CLASSIFIER() AS part, "
        f"MATCH_NUMBER() AS number, SUM(price) AS running, FINAL SUM(up.price) - SUM(price) AS rest ALL ROWS PER MATCH {V}) AS m "
        "ORDER BY m.at"
    )
    assert found.names == ("sym", "at", "part", "number", "running", "rest", "price")
    assert found.rows() == [
        ("X", minute(0), "st", 1, 5, 8, 5),
        ("X", minute(1), "down", 1, 9, 4, 4),
        ("X", minute(2), "down", 1, 12, 1, 3),
        ("X", minute(3), "up", 1, 18, -5, 6),
        ("X", minute(4), "up", 1, 25, -12, 7),
    ]


def test_what_does_not_come_is_found_in_both_spellings(session: Session) -> None:
    session.run(LOG)
    standard = ABSENCE.replace("ord -> !paid", "ord nopay* $").replace(
        "paid AS kind = 'payment'", "nopay AS kind IS DISTINCT FROM 'payment'"
    )
    assert sorted(session.query(ABSENCE).rows()) == [
        ("b", minute(1), 7, dt.datetime(2024, 1, 1, 8, 30, 59, 999999)),
        (
            "c",
            minute(20),
            9,
            dt.datetime(2024, 1, 1, 8, 49, 59, 999999),
        ),
    ]
    assert sorted(row[:3] for row in session.query(standard).rows()) == [("b", minute(1), 7), ("c", minute(20), 9)]


def test_a_view_emits_absence_as_the_watermark_passes_its_bound_and_is_opened_anew(tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")
    with Session(store) as session:
        session.run(f"{LOG}; CREATE MATERIALIZED VIEW unpaid AS {ABSENCE} EMIT ON WINDOW CLOSE")
        assert sorted(row[0] for row in session.query("SELECT * FROM unpaid").rows()) == ["b", "c"]
        session.run("INSERT INTO log VALUES ('d', '2024-01-01 09:00', 'order', 1), ('e', '2024-01-01 09:01', 'order', 2); FLUSH")
    with Session(store) as session:
        session.run(
            "INSERT INTO log VALUES ('e', '2024-01-01 09:29', 'payment', 2), ('f', '2024-01-01 09:29:59', NULL, NULL); FLUSH"
        )
        assert len(session.query("SELECT * FROM unpaid")) == 2
        session.run("INSERT INTO log VALUES ('f', '2024-01-01 09:30', NULL, NULL); FLUSH")
        assert sorted(row[0] for row in session.query("SELECT * FROM unpaid").rows()) == ["b", "c", "d"]


def test_rows_without_a_time_are_in_no_match_of_a_view(session: Session) -> None:
    """A table takes them as long as it has no watermark; they are never final, as everywhere on window close."""
    session.run(LOG.partition("INSERT")[0].rstrip().rstrip(";"))
    session.run(f"CREATE MATERIALIZED VIEW before AS {ABSENCE} EMIT ON WINDOW CLOSE")
    session.run("INSERT INTO log VALUES ('x', NULL, 'order', 1); FLUSH")
    session.run("INSERT INTO log VALUES ('a', '2024-01-01 08:00', 'order', 5), ('a', NULL, 'payment', 5); FLUSH")
    session.run("INSERT INTO log VALUES ('b', '2024-01-01 09:00', NULL, NULL); FLUSH")
    session.run(f"CREATE MATERIALIZED VIEW after AS {ABSENCE} EMIT ON WINDOW CLOSE")
    for view in ("before", "after"):
        assert [row[:3] for row in session.query(f"SELECT * FROM {view}").rows()] == [("a", minute(0), 5)]


def test_who_gave_up_is_a_timeout(session: Session) -> None:
    session.run(LOG)
    found = session.query(
        "SELECT * FROM log MATCH_RECOGNIZE (PARTITION BY order_id ORDER BY at MEASURES FIRST(o.amount) AS placed, "
        "LAST(p.amount) AS paid ONE ROW PER MATCH SHOW TIMEOUT MATCHES PATTERN (o -> p) WITHIN INTERVAL '30' MINUTE "
        "DEFINE o AS kind = 'order', p AS kind = 'payment')"
    )
    assert found.names == ("order_id", "placed", "paid", "timed_out")
    assert sorted(found.rows()) == [("a", 5, 5, False), ("b", 7, None, True), ("c", 9, None, True)]


def test_names_without_quotes_fold_and_those_in_quotes_do_not(session: Session) -> None:
    session.run(PRICES)
    found = session.query(
        'SELECT part FROM prices MATCH_RECOGNIZE (ORDER BY at MEASURES CLASSIFIER("Down") AS part PATTERN (ST "Down") '
        'DEFINE "Down" AS "Down".price < St.price) AS m'
    )
    assert found.rows() == [("Down",), ("Down",)]


CONDITIONS = {
    "b.price - a.price >= 3": [(3, 6)],
    "b.price / a.price = 2": [(3, 6)],
    "price % PREV(price) = 3": [(4, 3)],
    "AVG(price) = 3.5": [(4, 3)],
    "SUM(price) BETWEEN 9 AND 12": [(5, 4), (3, 6)],
    "COUNT(*) FILTER (WHERE price > 3) = 1": [(4, 3), (7, 1)],
    "COALESCE(NEXT(price), 0) = 0": [(7, 1)],
    "abs(PREV(price) - 5) = 2": [(3, 6), (7, 1)],
    "abs(PREV(price)) IN (price + 1, price - 1)": [(5, 4), (6, 7)],
    "NOT (PREV(price, 2) IS NULL OR price > PREV(price))": [(4, 3), (7, 1)],
    "at - a.at < INTERVAL '1 minute' OR PREV(at) + INTERVAL '1 minute' > at": [],
    "b.price IS DISTINCT FROM FIRST(a.price) - 1 AND a.price IS NOT DISTINCT FROM 3": [(3, 6)],
    "a.price::numeric * 2 = b.price": [(3, 6)],
    "CLASSIFIER() = 'b' AND price = 6": [(3, 6)],
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_of_the_match_so_far(session: Session, condition: str) -> None:
    session.run(PRICES)
    found = session.query(
        "SELECT p, q FROM prices MATCH_RECOGNIZE (PARTITION BY sym ORDER BY at MEASURES a.price AS p, b.price AS q "
        f"PATTERN (a b) DEFINE b AS {condition})"
    )
    assert sorted(found.rows()) == sorted(CONDITIONS[condition])


@pytest.mark.parametrize("sign", ["+", "-", "*", "/"])
def test_numbers_of_32_bits_of_several_rows_are_computed_with_32(session: Session, sign: str) -> None:
    session.run("CREATE TABLE r (at int, v real); INSERT INTO r VALUES (1, 0.7), (2, 3.3)")
    expected = {"+": "4", "-": "2.6", "*": "2.31", "/": "4.714286"}[sign]  # of PostgreSQL: SELECT 3.3::real / 0.7::real
    found = session.query(
        f"SELECT * FROM r MATCH_RECOGNIZE (ORDER BY at MEASURES b.v {sign} a.v AS found PATTERN (a b) "
        f"DEFINE b AS b.v {sign} a.v = {expected}::real)"
    )
    assert found.rows() == [(float(np.float32(expected)),)]


def test_any_order_of_bounded_rows(session: Session) -> None:
    session.run(PRICES)
    found = session.query(
        "SELECT * FROM prices MATCH_RECOGNIZE (ORDER BY price DESC NULLS LAST, at MEASURES a.price AS p, b.price AS q "
        "PATTERN (a b) DEFINE b AS b.price < a.price - 1)"
    )
    assert found.rows() == [(3, 1)]


@pytest.mark.parametrize("order", ["", "ORDER BY at DESC", "ORDER BY rate"])
def test_rows_without_an_ascending_time_whose_first_column_is_no_whole_number(session: Session, order: str) -> None:
    """Texts and fractions in front; of doubles NaN is the largest, and the least of 2.5, -0.0 and NaN has no sign."""
    session.run("CREATE TABLE e (sym varchar, rate double precision, at timestamp)")
    session.run("INSERT INTO e VALUES ('X', 2.5, '2024-01-01'), ('X', -0.0, '2024-01-02'), ('X', 'NaN', '2024-01-03')")
    asked = f"{order} MEASURES MAX(a.rate) AS most, MIN(a.rate) AS least PATTERN (a+) DEFINE a AS MAX(a.rate) > -1)"
    (row,) = session.query(f"SELECT * FROM e MATCH_RECOGNIZE (PARTITION BY sym {asked}").rows()
    assert list(map(str, row)) == ["X", "nan", "0.0"]
    (row,) = session.query(f"SELECT * FROM (SELECT rate, at FROM e) AS f MATCH_RECOGNIZE ({asked}").rows()
    assert list(map(str, row)) == ["nan", "0.0"]


CHAINS = {
    "groups of windows below": (
        "SELECT since, total FROM (SELECT k, window_start, window_end, sum(v) AS total FROM TUMBLE(e, at, INTERVAL '1 minute') "
        "GROUP BY k, window_start, window_end) AS w MATCH_RECOGNIZE (PARTITION BY k ORDER BY window_end MEASURES "
        "FIRST(a.window_start) AS since, LAST(b.total) AS total PATTERN (a b) WITHIN INTERVAL '5 minutes' "
        "DEFINE b AS total > a.total)",
        [(minute(2), 6), (minute(5), 3), (minute(8), 8)],
    ),
    "OVER below": (
        "SELECT mt, v FROM (SELECT *, lag(v) OVER (PARTITION BY k ORDER BY at) AS before FROM e) AS x "
        "MATCH_RECOGNIZE (PARTITION BY k ORDER BY at MEASURES MATCH_ROWTIME() AS mt, b.v AS v "
        "PATTERN (a b) WITHIN INTERVAL '5 minutes' DEFINE b AS v > before)",
        [(minute(3), 6), (minute(6), 3), (minute(9), 8)],
    ),
    "a join below": (
        "SELECT mt, v FROM (SELECT e.k, e.at, e.v, f.w FROM e JOIN f ON e.k = f.k AND "
        "e.at BETWEEN f.at - INTERVAL '1 minute' AND f.at + INTERVAL '1 minute') AS j "
        "MATCH_RECOGNIZE (PARTITION BY k ORDER BY at MEASURES MATCH_ROWTIME() AS mt, b.v AS v "
        "PATTERN (a b) WITHIN INTERVAL '5 minutes' DEFINE b AS v > a.v)",
        [(minute(3), 6), (minute(6), 3)],
    ),
    "deduplication below": (
        "SELECT mt, v FROM (SELECT k, at, v, window_start FROM (SELECT *, row_number() OVER (PARTITION BY k, window_start "
        "ORDER BY at) AS nr FROM TUMBLE(e, at, INTERVAL '2 minutes')) AS n WHERE nr = 1) AS j "
        "MATCH_RECOGNIZE (PARTITION BY k ORDER BY "
        "window_start MEASURES b.at AS mt, b.v AS v PATTERN (a b) WITHIN INTERVAL '5 minutes' DEFINE b AS v > a.v)",
        [(minute(4), 7), (minute(10), 9)],
    ),
    "windows above": (
        "SELECT window_start, n FROM (SELECT window_start, count(*) AS n FROM TUMBLE((SELECT * FROM {found}), mt, "
        "INTERVAL '5 minutes') GROUP BY window_start) AS w",
        [(minute(0), 1), (minute(5), 2)],
    ),
    "OVER above": (
        "SELECT mt, count(*) OVER (PARTITION BY k ORDER BY mt) AS nth FROM {found}",
        [(minute(3), 1), (minute(6), 2), (minute(9), 3)],
    ),
    "a join above": (
        "SELECT mt, f.w FROM {found} JOIN f ON m.k = f.k AND f.at BETWEEN m.mt - INTERVAL '30 seconds' AND m.mt",
        [(minute(6), 2)],
    ),
    "deduplication above": ("SELECT DISTINCT k, window_end FROM TUMBLE((SELECT * FROM {found}), mt, INTERVAL '5 minutes')", [
        ("X", minute(5)), ("X", minute(10)),
    ]),
}  # fmt: skip
FOUND = (
    "e MATCH_RECOGNIZE (PARTITION BY k ORDER BY at MEASURES MATCH_ROWTIME() AS mt, b.v AS v PATTERN (a b) "
    "WITHIN INTERVAL '5 minutes' DEFINE b AS v > a.v) AS m"
)
STREAMS = """
CREATE TABLE e (k varchar, at timestamp, v int, WATERMARK FOR at AS at) APPEND ONLY;
CREATE TABLE f (k varchar, at timestamp, w int, WATERMARK FOR at AS at) APPEND ONLY;
"""
VALUES = [5, 4, 3, 6, 7, 1, 3, 2, 1, 8, 9, 1]


@pytest.mark.slow_but(*(f"{chain}-session" for chain in CHAINS), "groups of windows below", "a join above")
@pytest.mark.slow_but_one_in(2)
@pytest.mark.parametrize("where", ["session", "spread_session"])
@pytest.mark.parametrize("chain", CHAINS)
def test_in_chains(chain: str, where: str, request: pytest.FixtureRequest) -> None:
    session: Session = request.getfixturevalue(where)
    query, expected = CHAINS[chain]
    session.run(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {query.format(found=FOUND)} EMIT ON WINDOW CLOSE")
    for number, value in enumerate(VALUES):
        session.run(f"INSERT INTO e VALUES ('X', '2024-01-01 08:{number:02}', {value}); FLUSH")
    session.run(
        "INSERT INTO f VALUES ('X', '2024-01-01 08:02:20', 1), ('X', '2024-01-01 08:06', 2), ('Y', '2024-01-01 12:00', 3)"
    )
    session.run("INSERT INTO e VALUES ('Y', '2024-01-01 12:00', 1); FLUSH")
    assert sorted(session.query("SELECT * FROM v").rows()) == expected


REFUSED = {
    "SELECT * FROM prices MATCH_RECOGNIZE (ORDER BY at PATTERN (a b))": (SqlSyntaxError, "MEASURES is missing"),
    "SELECT * FROM prices MATCH_RECOGNIZE (ORDER BY at MEASURES 1 AS x PATTERN (a -> b?))": (SqlSyntaxError, "78: PATTERN"),
    "SELECT * FROM prices MATCH_RECOGNIZE (ORDER BY at MEASURES 1 AS x PATTERN (a) DEFINE b AS TRUE)": (SqlNameError, "DEFINE b"),
    "SELECT * FROM prices MATCH_RECOGNIZE (ORDER BY at MEASURES c.x AS x PATTERN (a))": (SqlNameError, "no column 'c.x'"),
    "SELECT * FROM prices MATCH_RECOGNIZE (ORDER BY at MEASURES 1 AS x PATTERN (a) SUBSET a = (a))": (SqlNameError, "SUBSET a"),
    "SELECT * FROM prices MATCH_RECOGNIZE (ORDER BY at MEASURES 1 AS x AFTER MATCH SKIP TO c PATTERN (a))": (
        SqlNameError, "TO c",
    ),
    "SELECT * FROM prices MATCH_RECOGNIZE (ORDER BY at MEASURES 1 AS x PATTERN (a) DEFINE a AS price)": (SqlTypeError, "boolean"),
    "SELECT * FROM prices MATCH_RECOGNIZE (ORDER BY price MEASURES 1 AS x PATTERN (a) WITHIN INTERVAL '1 hour')": (
        SqlTypeError, "column 82: WITHIN needs a timestamp",
    ),
    "SELECT * FROM prices MATCH_RECOGNIZE (ORDER BY at MEASURES 1 AS x PATTERN (a) WITHIN INTERVAL '1 month')": (
        SqlTypeError, "column 79: WITHIN takes an interval without months",
    ),
    "SELECT * FROM prices MATCH_RECOGNIZE (ORDER BY at MEASURES 1 AS x ONE ROW PER MATCH SHOW TIMEOUT MATCHES PATTERN (a))": (
        UnsupportedSqlError, "without WITHIN",
    ),
    "SELECT * FROM prices MATCH_RECOGNIZE (ORDER BY at MEASURES 1 AS x ALL ROWS PER MATCH WITH UNMATCHED ROWS "
    "PATTERN ({- a -} b))": (
        UnsupportedSqlError, "UNMATCHED ROWS",
    ),
    "SELECT * FROM prices MATCH_RECOGNIZE (ORDER BY at MEASURES 1 AS x PATTERN (a b) DEFINE b AS length(a.sym || b.sym) > 2)": (
        UnsupportedSqlError, "in DEFINE",
    ),
    "SELECT * FROM prices MATCH_RECOGNIZE (ORDER BY at MEASURES SUM(a.price + b.price) AS x PATTERN (a b))": (
        SqlTypeError, "different variables",
    ),
    "CREATE MATERIALIZED VIEW v AS SELECT * FROM prices MATCH_RECOGNIZE (ORDER BY at MEASURES 1 AS x PATTERN (a b))": (
        UnsupportedSqlError, "emits on update",
    ),
    "CREATE MATERIALIZED VIEW v AS SELECT * FROM plain MATCH_RECOGNIZE (ORDER BY at MEASURES 1 AS x PATTERN (a b)) "
    "EMIT ON WINDOW CLOSE": (UnsupportedSqlError, "without a watermark"),
    "CREATE MATERIALIZED VIEW v AS SELECT * FROM prices MATCH_RECOGNIZE (ORDER BY price MEASURES 1 AS x PATTERN (a b)) "
    "EMIT ON WINDOW CLOSE": (UnsupportedSqlError, "without a watermark"),
    "CREATE MATERIALIZED VIEW v AS SELECT * FROM prices MATCH_RECOGNIZE (ORDER BY at MEASURES 1 AS x PATTERN (a -> !b)) "
    "EMIT ON WINDOW CLOSE": (NeverClosesError, "WITHIN"),
    "CREATE MATERIALIZED VIEW v AS SELECT * FROM prices MATCH_RECOGNIZE (ORDER BY at MEASURES 1 AS x PATTERN (a -> b)) "
    "EMIT ON WINDOW CLOSE": (UnboundedStateError, "a -> b"),
    "SELECT * FROM prices MATCH_RECOGNIZE (ORDER BY at MEASURES 1 AS x AFTER MATCH SKIP TO LAST b PATTERN (a b?))": (
        SkipTargetError, "'b'",
    ),
    "SELECT * FROM plain MATCH_RECOGNIZE (ORDER BY at MEASURES 1 AS x PATTERN (a) WITHIN INTERVAL '1 hour')": (
        MissingEventTimeError, "WITHIN",
    ),
    "SELECT * FROM prices MATCH_RECOGNIZE (ORDER BY at MEASURES FINAL price AS x PATTERN (a))": (SqlSyntaxError, ""),
}  # fmt: skip


@pytest.mark.parametrize("statement", REFUSED)
def test_refusals_say_where_and_what_instead(session: Session, statement: str) -> None:
    session.run(f"{PRICES}; CREATE TABLE plain (at timestamp, v int); INSERT INTO plain VALUES (NULL, 1)")
    error, words = REFUSED[statement]
    with pytest.raises(error) as refused:
        session.run(statement)
    assert words in str(refused.value)


@pytest.mark.spark
def test_a_view_on_spark_finds_what_one_without_it_finds(spark: SparkSession) -> None:
    statements = [
        f"{LOG}; CREATE MATERIALIZED VIEW unpaid AS {ABSENCE} EMIT ON WINDOW CLOSE",
        "INSERT INTO log VALUES ('d', '2024-01-01 09:00', 'order', 1), ('e', '2024-01-01 09:01', 'order', 2); FLUSH",
        "INSERT INTO log VALUES ('e', '2024-01-01 09:29', 'payment', 2), ('f', '2024-01-01 09:31', NULL, NULL); FLUSH",
    ]
    found = []
    for opened in (Session(spark), Session(":memory:")):
        with opened as session:
            for statement in statements:
                session.run(statement)
            found.append(sorted(session.query("SELECT * FROM unpaid").rows()))
            assert "Match" in str(session.query("EXPLAIN CREATE MATERIALIZED VIEW again AS " + ABSENCE + " EMIT ON WINDOW CLOSE"))
    assert found[0] == found[1]
    assert [row[0] for row in found[0]] == ["b", "c", "d"]
