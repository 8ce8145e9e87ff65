"""Materialized views with OVER windows: statements users come with, their rows, and exactly which rows change."""

from __future__ import annotations

import pytest

from windowpane.errors import StaleViewError, UnsupportedSqlError
from windowpane.kernels.sorting import sort_keys
from windowpane.sql import Session


@pytest.fixture
def session():
    with Session(":memory:") as opened:
        yield opened


def text(session: Session, query: str) -> list[list[str | None]]:
    return session.query(query).text_rows()


def test_difference_to_the_row_before(session: Session) -> None:
    session.run("CREATE TABLE stock_prices (stock_id int, event_time timestamp, price double precision)")
    session.run(
        "CREATE MATERIALIZED VIEW mv AS SELECT stock_id, event_time, price - LAG(price) OVER (PARTITION BY stock_id "
        "ORDER BY event_time) AS price_diff FROM stock_prices;"
    )
    session.run(
        "INSERT INTO stock_prices VALUES (1, '2024-01-01 10:00:00', 10), (1, '2024-01-01 10:02:00', 12.5), "
        "(2, '2024-01-01 10:00:00', 7), (1, '2024-01-01 10:01:00', 11); FLUSH"
    )
    assert text(session, "SELECT * FROM mv ORDER BY stock_id, event_time") == [
        ["1", "2024-01-01 10:00:00", None],
        ["1", "2024-01-01 10:01:00", "1"],
        ["1", "2024-01-01 10:02:00", "1.5"],
        ["2", "2024-01-01 10:00:00", None],
    ]


def test_average_of_the_ten_orders_before(session: Session) -> None:
    session.run("CREATE TABLE orders (user_id int, order_time timestamp, amount int)")
    session.run(
        "CREATE MATERIALIZED VIEW mv AS SELECT user_id, amount, AVG(amount) OVER (PARTITION BY user_id ORDER BY order_time "
        "ROWS BETWEEN 10 PRECEDING AND 1 PRECEDING) AS recent_10_orders_avg_amount FROM orders;"
    )
    rows = ", ".join(f"(1, timestamp '2024-01-01' + interval '1 hour' * {n}, {n})" for n in range(1, 13))
    session.run(f"INSERT INTO orders VALUES {rows}, (2, '2024-01-01', 5); FLUSH")
    assert text(session, "SELECT amount, recent_10_orders_avg_amount FROM mv WHERE user_id = 1 ORDER BY amount") == [
        ["1", None],
        ["2", "1"],
        ["3", "1.5"],
        ["4", "2"],
        ["5", "2.5"],
        ["6", "3"],
        ["7", "3.5"],
        ["8", "4"],
        ["9", "4.5"],
        ["10", "5"],
        ["11", "5.5"],
        ["12", "6.5"],
    ]


WITH_CLOSE = (
    "CREATE MATERIALIZED VIEW mv AS SELECT SUM(x) OVER (PARTITION BY p ORDER BY ts ROWS 1 PRECEDING), "
    "SUM(x) OVER (PARTITION BY p ORDER BY ts ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING), "
    "LEAD(x, 1) OVER (PARTITION BY p ORDER BY ts) FROM t EMIT ON WINDOW CLOSE;"
)


def test_on_window_close_each_row_comes_out_once_when_its_frames_are_complete(session: Session) -> None:
    session.run("CREATE TABLE t (ts timestamp, pk int, x int, p int, WATERMARK FOR ts AS ts - INTERVAL '5 minutes') APPEND ONLY")
    session.run(WITH_CLOSE)
    session.run(
        "INSERT INTO t VALUES ('2024-01-01 10:00', 100, 5, 1), ('2024-01-01 10:02', 101, 3, 1), ('2024-01-01 10:10', 103, 9, 1), "
        "('2024-01-01 10:17', 104, 0, 1); FLUSH"
    )
    assert text(session, "SELECT * FROM mv ORDER BY 1, 2") == [["5", "8", "3"], ["8", "12", "9"]]
    # The watermark stands at 10:12: this row is late and leaves no trace.
    session.run("INSERT INTO t VALUES ('2024-01-01 10:06', 102, 8, 1); FLUSH")
    assert session.changelog("mv").num_rows == 0


def test_on_update_the_changelog_holds_exactly_the_rows_whose_values_changed(session: Session) -> None:
    session.run("CREATE TABLE t (ts timestamp, pk int PRIMARY KEY, x int, p int)")
    session.run(WITH_CLOSE.replace("SELECT SUM", "SELECT pk, SUM", 1).replace(" EMIT ON WINDOW CLOSE", ""))
    session.run(
        "INSERT INTO t VALUES ('2024-01-01 10:00', 100, 5, 1), ('2024-01-01 10:02', 101, 3, 1), ('2024-01-01 10:10', 103, 9, 1), "
        "('2024-01-01 10:17', 104, 0, 1); FLUSH"
    )
    session.run("INSERT INTO t VALUES ('2024-01-01 10:06', 102, 8, 1); FLUSH")
    changes = [(row["_change_type"], *list(row.values())[:-1]) for row in session.changelog("mv").to_pylist()]
    assert sorted(changes, key=lambda change: (change[1], change[0] != "update_preimage")) == [
        ("update_preimage", 101, 8, 12, 9),
        ("update_postimage", 101, 8, 11, 8),
        ("insert", 102, 11, 17, 9),
        ("update_preimage", 103, 12, 9, 0),
        ("update_postimage", 103, 17, 9, 0),
    ]


def test_the_same_without_the_key_in_the_view_changes_the_same_rows(session: Session) -> None:
    session.run("CREATE TABLE t (ts timestamp, pk int PRIMARY KEY, x int, p int)")
    session.run(WITH_CLOSE.replace(" EMIT ON WINDOW CLOSE", ""))
    session.run(
        "INSERT INTO t VALUES ('2024-01-01 10:00', 100, 5, 1), ('2024-01-01 10:02', 101, 3, 1), ('2024-01-01 10:10', 103, 9, 1), "
        "('2024-01-01 10:17', 104, 0, 1); FLUSH"
    )
    session.run("INSERT INTO t VALUES ('2024-01-01 10:06', 102, 8, 1); FLUSH")
    changes = sorted((row["_change_type"], row["sum"], row["sum_1"], row["lead"]) for row in session.changelog("mv").to_pylist())
    assert changes == [
        ("insert", 11, 17, 9),
        ("update_postimage", 8, 11, 8),
        ("update_postimage", 17, 9, 0),
        ("update_preimage", 8, 12, 9),
        ("update_preimage", 12, 9, 0),
    ]


def test_row_number_subquery_keeps_the_first_rows_of_each_partition(session: Session) -> None:
    session.run("CREATE TABLE t (id int PRIMARY KEY, g int, v int)")
    session.run(
        "CREATE MATERIALIZED VIEW best AS SELECT id, g, v FROM "
        "(SELECT *, row_number() OVER (PARTITION BY g ORDER BY v DESC) AS n FROM t) WHERE n <= 2"
    )
    session.run("INSERT INTO t VALUES (1, 1, 10), (2, 1, 30), (3, 1, 20), (4, 2, 5); FLUSH")
    assert text(session, "SELECT id FROM best ORDER BY id") == [["2"], ["3"], ["4"]]
    session.run("DELETE FROM t WHERE id = 2; FLUSH")
    assert {(row["_change_type"], row["id"]) for row in session.changelog("best").to_pylist()} == {("delete", 2), ("insert", 1)}
    plan = session.query(
        "EXPLAIN CREATE MATERIALIZED VIEW b AS SELECT * FROM "
        "(SELECT id, row_number() OVER (PARTITION BY g ORDER BY v) AS n FROM t) WHERE n < 3"
    )
    assert any("TopN: limit 2, offset 0" in line for (line,) in plan.rows())


def test_qualify_is_a_top_n_too(session: Session) -> None:
    session.run("CREATE TABLE t (id int PRIMARY KEY, g int, v int)")
    session.run(
        "CREATE MATERIALIZED VIEW best AS SELECT id FROM t QUALIFY row_number() OVER (PARTITION BY g ORDER BY v DESC) = 1"
    )
    session.run("INSERT INTO t VALUES (1, 1, 10), (2, 1, 30), (3, 2, 20); FLUSH")
    assert text(session, "SELECT * FROM best ORDER BY id") == [["2"], ["3"]]


def test_a_partition_that_no_engine_orders_is_refused_on_window_close() -> None:
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (tags text[], at timestamp, WATERMARK FOR at AS at) APPEND ONLY")
        over = "SELECT at, count(*) OVER (PARTITION BY tags ORDER BY at) AS n FROM t EMIT ON WINDOW CLOSE"
        with pytest.raises(
            UnsupportedSqlError, match=r"'tags' of type character varying\[\] in PARTITION BY with EMIT ON WINDOW CLOSE"
        ):
            session.run(f"CREATE MATERIALIZED VIEW v AS {over}")
        assert session.query("SHOW MATERIALIZED VIEWS").rows() == []


def test_a_very_long_text_in_an_order_is_refused_and_the_next_flush_catches_up(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sort keys of a batch are all as long as the longest: a megabyte among 20,000 rows took 20 GB."""
    session.run("CREATE TABLE t (p int, name text, id int PRIMARY KEY)")
    session.run("CREATE MATERIALIZED VIEW mv AS SELECT id, lag(id) OVER (PARTITION BY p ORDER BY name) AS b FROM t")
    session.run("INSERT INTO t SELECT 1, i::text, i FROM generate_series(1, 100) AS s(i)")
    session.run("INSERT INTO t VALUES (1, repeat('x', 10000), 0)")
    with monkeypatch.context() as smaller:
        smaller.setattr(sort_keys, "MOST_BYTES", 500_000)
        with pytest.raises(StaleViewError, match=r"a text of about 10,0\d\d bytes among 101 rows.*left\(text, 200\)"):
            session.run("FLUSH")
    session.run("FLUSH")
    assert text(session, "SELECT count(b) FROM mv") == [["100"]]


@pytest.mark.filterwarnings("error")
def test_sums_of_doubles_that_are_too_large_are_infinite(session: Session) -> None:
    session.run("CREATE TABLE t (id int PRIMARY KEY, x double precision)")
    calls = "sum(x) OVER (PARTITION BY 1::int ORDER BY id) AS s, sum(x) OVER (PARTITION BY 1::int ORDER BY id ROWS 1 PRECEDING)"
    session.run(f"CREATE MATERIALIZED VIEW mv AS SELECT id, {calls} AS w FROM t")
    session.run("INSERT INTO t VALUES (1, '1e308'), (2, '1e308'); FLUSH")
    assert text(session, "SELECT s, w FROM mv ORDER BY id") == [["1e+308", "1e+308"], ["Infinity", "Infinity"]]
    session.run("DELETE FROM t WHERE id = 2; FLUSH")
    assert text(session, "SELECT s, w FROM mv ORDER BY id") == [["1e+308", "1e+308"]]
