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


def test_window_time_is_a_millisecond_before_the_end_and_no_part_of_the_star(session: Session) -> None:
    session.run("CREATE TABLE t (at timestamp); INSERT INTO t VALUES ('2020-04-15 08:05')")
    call = "TABLE(TUMBLE(TABLE t, DESCRIPTOR(at), INTERVAL '10' MINUTES))"
    assert session.query(f"SELECT w.window_time FROM {call} AS w").text_rows() == [["2020-04-15 08:09:59.999"]]
    assert len(session.query(f"SELECT * FROM {call}").names) == 3
