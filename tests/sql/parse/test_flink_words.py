"""What a user of Flink SQL writes: backquotes, types, computed columns, window_time."""

from __future__ import annotations

import pytest

from windowpane.sql import Session


@pytest.fixture
def session():
    with Session(":memory:") as opened:
        yield opened


def test_a_table_as_flink_declares_it(session: Session) -> None:
    session.run(
        "CREATE TABLE orders (`user` STRING, n TINYINT, price DECIMAL(10, 2), at TIMESTAMP(3), seen TIMESTAMP_LTZ(3), "
        "total AS price * n, arrived AS PROCTIME(), WATERMARK FOR at AS at - INTERVAL '5' SECOND, "
        "PRIMARY KEY (`user`) NOT ENFORCED)"
    )
    session.run("INSERT INTO orders (`user`, n, price) VALUES ('a', 3, 2.5)")
    assert session.query("SELECT `user`, total, arrived <= now() FROM orders").text_rows() == [["a", "7.5", "t"]]


def test_windows_on_windows_by_window_time(session: Session) -> None:
    """The tables and rows are those of Flink's page on window aggregation, "Cascading Window Aggregation"."""
    session.run(
        "CREATE TABLE bid (bidtime timestamp, price int, supplier_id text, WATERMARK FOR bidtime AS bidtime) APPEND ONLY;"
        "CREATE VIEW window1 AS SELECT window_time AS rowtime, sum(price) AS partial_price "
        "FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(bidtime), INTERVAL '5' MINUTES)) "
        "GROUP BY supplier_id, window_start, window_end, window_time;"
        "CREATE MATERIALIZED VIEW totals AS SELECT window_start, window_end, sum(partial_price) AS total_price "
        "FROM TABLE(TUMBLE(TABLE window1, DESCRIPTOR(rowtime), INTERVAL '10' MINUTES)) "
        "GROUP BY window_start, window_end EMIT ON WINDOW CLOSE;"
        "INSERT INTO bid VALUES ('2020-04-15 08:05', 4, 'supplier1'), ('2020-04-15 08:07', 2, 'supplier1'), "
        "('2020-04-15 08:09', 5, 'supplier2'), ('2020-04-15 08:11', 3, 'supplier2'), ('2020-04-15 08:13', 1, 'supplier1'), "
        "('2020-04-15 08:17', 6, 'supplier2'); FLUSH"
    )
    first = ["2020-04-15 08:00:00", "2020-04-15 08:10:00", "11"]
    assert session.query("SELECT * FROM totals").text_rows() == [first]
    session.run("INSERT INTO bid VALUES ('2020-04-15 08:20', 1, 'supplier1'); FLUSH")
    second = ["2020-04-15 08:10:00", "2020-04-15 08:20:00", "10"]
    assert session.query("SELECT * FROM totals ORDER BY window_start").text_rows() == [first, second]


def test_window_time_is_a_millisecond_before_the_end_and_behind_the_bounds_in_the_star(session: Session) -> None:
    """As in the results on Flink's page on windowing table functions."""
    session.run("CREATE TABLE t (at timestamp); INSERT INTO t VALUES ('2020-04-15 08:05')")
    call = "TABLE(TUMBLE(TABLE t, DESCRIPTOR(at), INTERVAL '10' MINUTES))"
    assert session.query(f"SELECT w.window_time FROM {call} AS w").text_rows() == [["2020-04-15 08:09:59.999"]]
    assert session.query(f"SELECT * FROM {call}").names == ("at", "window_start", "window_end", "window_time")
    assert session.query("SELECT * FROM tumble(t, at, INTERVAL '10 minutes')").names == ("at", "window_start", "window_end")


def test_the_last_row_of_each_window_with_its_window_time(session: Session) -> None:
    """The query, some of its rows and the result are those of Flink's WindowDeduplicateITCase.testTumbleWindowKeepLastRow."""
    session.run(
        "CREATE TABLE t1 (ts STRING, `int` INT, name STRING, rowtime AS TO_TIMESTAMP(ts), "
        "WATERMARK FOR rowtime AS rowtime - INTERVAL '1' SECOND);"
        "CREATE MATERIALIZED VIEW last AS SELECT `int`, name, window_start, window_end, window_time FROM ("
        "SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, name ORDER BY rowtime DESC) AS rownum "
        "FROM TABLE(TUMBLE(TABLE t1, DESCRIPTOR(rowtime), INTERVAL '5' SECOND))) WHERE rownum <= 1;"
        "INSERT INTO t1 VALUES ('2020-10-10 00:00:01', 1, 'a'), ('2020-10-10 00:00:04', 5, 'a'), "
        "('2020-10-10 00:00:07', 3, 'b'), ('2020-10-10 00:00:06', 6, 'b'), ('2020-10-10 00:00:32', 7, NULL); FLUSH"
    )
    assert session.query("SELECT * FROM last ORDER BY window_start").text_rows() == [
        ["5", "a", "2020-10-10 00:00:00", "2020-10-10 00:00:05", "2020-10-10 00:00:04.999"],
        ["3", "b", "2020-10-10 00:00:05", "2020-10-10 00:00:10", "2020-10-10 00:00:09.999"],
        ["7", None, "2020-10-10 00:00:30", "2020-10-10 00:00:35", "2020-10-10 00:00:34.999"],
    ]


@pytest.mark.parametrize("side", ["INNER", "LEFT", "RIGHT", "FULL"])
def test_a_join_by_equal_or_both_null_is_one_by_a_key(session: Session, side: str) -> None:
    """The condition is that of Flink's JoinITCase.test...WithNullCond, which Flink takes as IS NOT DISTINCT FROM, too."""
    session.run(
        "CREATE TABLE l (a int, v text); CREATE TABLE r (a int, w text);"
        f"CREATE MATERIALIZED VIEW j AS SELECT v, w FROM l {side} JOIN r ON l.a = r.a OR (l.a IS NULL AND r.a IS NULL);"
        "INSERT INTO l VALUES (1, 'l1'), (NULL, 'l0'), (2, 'l2'); INSERT INTO r VALUES (1, 'r1'), (NULL, 'r0'), (3, 'r3'); FLUSH"
    )
    padded = {"LEFT": [["l2", None]], "RIGHT": [[None, "r3"]], "FULL": [["l2", None], [None, "r3"]]}
    rows = session.query("SELECT * FROM j").text_rows()
    assert sorted(rows, key=str) == sorted([["l0", "r0"], ["l1", "r1"], *padded.get(side, [])], key=str)


def test_equal_or_null_in_a_condition_that_is_negated_keeps_its_null(session: Session) -> None:
    """1 = NULL OR (false) is NULL, so NOT of it holds for no row; IS DISTINCT FROM would hold."""
    session.run("CREATE TABLE t (a int, b int); INSERT INTO t VALUES (1, NULL), (1, 2), (NULL, NULL)")
    query = "SELECT a, b FROM t WHERE NOT (a = b OR (a IS NULL AND b IS NULL))"
    assert session.query(query).text_rows() == [["1", "2"]]
