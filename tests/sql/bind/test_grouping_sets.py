"""GROUPING SETS, ROLLUP and CUBE, kept up to date and asked."""

from __future__ import annotations

import pytest

from tests.sql.against_duckdb import check
from windowpane.errors import SqlNameError
from windowpane.sql import Session

TABLES = ("CREATE TABLE t (id int PRIMARY KEY, a int, b int, v int)",)
ROUNDS = (
    ("INSERT INTO t VALUES (1, 1, 1, 10), (2, 1, 2, 20), (3, 2, 1, NULL), (4, NULL, 1, 5)",),
    ("DELETE FROM t WHERE id = 2", "UPDATE t SET a = 2 WHERE id = 1", "INSERT INTO t VALUES (5, NULL, NULL, 7)"),
)
QUERIES = [
    "SELECT a, b, sum(v) AS s, GROUPING(a, b) AS g FROM t GROUP BY GROUPING SETS ((a, b), a, ())",
    "SELECT a, b, count(*) AS n FROM t GROUP BY ROLLUP (a, b)",
    "SELECT a, b, max(v) AS m, GROUPING(b) AS g FROM t GROUP BY CUBE (a, b) HAVING count(*) > 1",
    "SELECT a + 1 AS x, b, sum(a) AS s FROM t GROUP BY b, GROUPING SETS ((a + 1), ())",
    "SELECT a, b, count(v) AS n FROM t GROUP BY ROLLUP (a), ROLLUP (b)",
    "SELECT a, count(*) AS n FROM t GROUP BY GROUPING SETS (a, a)",
]


def test_grouping_sets() -> None:
    check(QUERIES, TABLES, ROUNDS)


def test_grouping_takes_columns_of_group_by() -> None:
    with Session(":memory:") as session:
        session.run(TABLES[0])
        with pytest.raises(SqlNameError, match="line 1, column 11: GROUPING takes columns of GROUP BY"):
            session.run("SELECT a, GROUPING(b) FROM t GROUP BY ROLLUP (a)")


def test_grouping_sets_of_windows_as_flink_documents_them() -> None:
    """The rows are those of Flink's page on window aggregation; the last window is closed by a row behind it."""
    with Session(":memory:") as session:
        session.run(
            "CREATE TABLE bid (bidtime timestamp, price numeric(10, 2), supplier_id text, WATERMARK FOR bidtime AS bidtime) "
            "APPEND ONLY;"
            "CREATE MATERIALIZED VIEW totals AS SELECT window_start, supplier_id, sum(price) AS price "
            "FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(bidtime), INTERVAL '10' MINUTES)) "
            "GROUP BY window_start, window_end, GROUPING SETS ((supplier_id), ()) EMIT ON WINDOW CLOSE;"
            "INSERT INTO bid VALUES ('2020-04-15 08:05', 4, 'supplier1'), ('2020-04-15 08:07', 2, 'supplier1'), "
            "('2020-04-15 08:09', 5, 'supplier2'), ('2020-04-15 08:11', 3, 'supplier2'), ('2020-04-15 08:13', 1, 'supplier1'), "
            "('2020-04-15 08:17', 6, 'supplier2'), ('2020-04-15 08:30', 1, 'supplier2'); FLUSH"
        )
        rows = session.query("SELECT substring(window_start::text FROM 12 FOR 5), supplier_id, price FROM totals").text_rows()
        assert sorted(rows, key=str) == [
            ["08:00", "supplier1", "6"],
            ["08:00", "supplier2", "5"],
            ["08:00", None, "11"],
            ["08:10", "supplier1", "1"],
            ["08:10", "supplier2", "9"],
            ["08:10", None, "10"],
        ]
