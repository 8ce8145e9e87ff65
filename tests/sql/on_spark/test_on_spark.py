"""Sessions with Spark: views are streaming queries, and hold what a session without Spark holds."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from windowpane.errors import SqlRunError, StoreVersionError, UnexpectedError, UnsupportedStoreError
from windowpane.sql import Session
from windowpane.sql.catalog.entries import ViewInfo
from windowpane.sql.nodes import Filter
from windowpane.sql.on_spark import spark_runner, view_batches
from windowpane.sql.on_spark.batch_writing import LogWriter
from windowpane.sql.on_spark.view_batches import ViewBatches
from windowpane.stores import open_store

pytestmark = pytest.mark.spark

PRICES = """
CREATE TABLE stock_prices (stock_id int, event_time timestamp, price numeric);
CREATE MATERIALIZED VIEW mv AS SELECT stock_id, event_time, price - LAG(price) OVER (PARTITION BY stock_id ORDER BY event_time) AS price_diff FROM stock_prices;
INSERT INTO stock_prices VALUES (1, '2024-01-01 10:00', 5), (1, '2024-01-01 10:05', 7.5), (2, '2024-01-01 10:00', 1);
FLUSH;
INSERT INTO stock_prices VALUES (1, '2024-01-01 10:02', 6);
FLUSH;
"""  # noqa: E501
"""The first statement of the documentation of RisingWave's OVER windows, and a row that comes between two."""

ORDERS = """
CREATE TABLE orders (user_id int, order_time timestamp, amount int);
CREATE MATERIALIZED VIEW mv AS SELECT user_id, amount, AVG(amount) OVER (PARTITION BY user_id ORDER BY order_time ROWS BETWEEN 10 PRECEDING AND 1 PRECEDING) AS recent_10_orders_avg_amount FROM orders;
"""  # noqa: E501

CLOSING = """
CREATE TABLE t (ts timestamp, pk int, x int, p int, WATERMARK FOR ts AS ts - INTERVAL '5 minutes') APPEND ONLY;
CREATE MATERIALIZED VIEW mv AS SELECT SUM(x) OVER (PARTITION BY p ORDER BY ts ROWS 1 PRECEDING), SUM(x) OVER (PARTITION BY p ORDER BY ts ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING), LEAD(x, 1) OVER (PARTITION BY p ORDER BY ts) FROM t EMIT ON WINDOW CLOSE;
INSERT INTO t VALUES ('2024-01-01 10:00', 100, 5, 1), ('2024-01-01 10:02', 101, 3, 1), ('2024-01-01 10:10', 103, 9, 1), ('2024-01-01 10:17', 104, 0, 1);
FLUSH;
"""  # noqa: E501

CHANGING = """
CREATE TABLE t (ts timestamp, pk int PRIMARY KEY, x int, p int);
CREATE MATERIALIZED VIEW mv AS SELECT SUM(x) OVER (PARTITION BY p ORDER BY ts ROWS 1 PRECEDING), SUM(x) OVER (PARTITION BY p ORDER BY ts ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING), LEAD(x, 1) OVER (PARTITION BY p ORDER BY ts) FROM t;
INSERT INTO t VALUES ('2024-01-01 10:00', 100, 5, 1), ('2024-01-01 10:02', 101, 3, 1), ('2024-01-01 10:10', 103, 9, 1), ('2024-01-01 10:17', 104, 0, 1);
FLUSH;
"""  # noqa: E501

NESTED = """
CREATE TABLE orders (id int PRIMARY KEY, customer text, amount int);
CREATE MATERIALIZED VIEW totals AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer;
CREATE MATERIALIZED VIEW best AS SELECT customer, total FROM totals QUALIFY row_number() OVER (ORDER BY total DESC) <= 2;
INSERT INTO orders VALUES (1, 'a', 5), (2, 'b', 9), (3, 'c', 7); FLUSH;
UPDATE orders SET amount = 1 WHERE id = 2; DELETE FROM orders WHERE id = 3; FLUSH;
"""


@pytest.mark.slow
def test_a_difference_to_the_row_before_changes_for_the_row_after_a_late_one(spark) -> None:
    with Session(spark) as session:
        session.run(PRICES)
        rows = session.query("SELECT price_diff FROM mv ORDER BY stock_id, event_time").text_rows()
        changes = session.changelog("mv").select(["_change_type", "price_diff"]).to_pylist()
    assert rows == [[None], ["1"], ["1.5"], [None]]
    assert sorted((change["_change_type"], float(change["price_diff"])) for change in changes) == [
        ("insert", 1.0),
        ("update_postimage", 1.5),
        ("update_preimage", 2.5),
    ]


@pytest.mark.slow
def test_the_average_of_the_ten_orders_before(spark) -> None:
    with Session(spark) as session:
        orders = ", ".join(f"(1, timestamp '2024-01-01' + interval '1 hour' * {hour}, {hour})" for hour in range(1, 13))
        session.run(f"{ORDERS} INSERT INTO orders VALUES {orders}, (2, '2024-01-01', 5); FLUSH")
        rows = session.query("SELECT * FROM mv ORDER BY user_id, amount").text_rows()
    averages = [None, "1", "1.5", "2", "2.5", "3", "3.5", "4", "4.5", "5", "5.5", "6.5"]  # the 12th order no longer sees the 1st
    assert rows == [*(["1", str(n), mean] for n, mean in enumerate(averages, start=1)), ["2", "5", None]]


def test_the_changelog_holds_exactly_the_rows_whose_values_changed(spark) -> None:
    with Session(spark) as session:
        session.run(CHANGING)
        assert set(session.query("SELECT * FROM mv").rows()) == {(5, 8, 3), (8, 12, 9), (12, 9, 0), (9, 0, None)}
        session.run("INSERT INTO t VALUES ('2024-01-01 10:06', 102, 8, 1); FLUSH")
        changes = session.changelog("mv").to_pylist()
    assert sorted((row["_change_type"], row["sum"], row["sum_1"], row["lead"]) for row in changes) == [
        ("insert", 11, 17, 9),  # 102
        ("update_postimage", 8, 11, 8),  # 101
        ("update_postimage", 17, 9, 0),  # 103
        ("update_preimage", 8, 12, 9),
        ("update_preimage", 12, 9, 0),
    ]


@pytest.mark.slow
def test_rows_come_out_once_when_the_window_closes(spark) -> None:
    with Session(spark) as session:
        session.run(CLOSING)
        # 10:17 less five minutes: three rows are below the watermark, the third one waits for the row behind it.
        assert sorted(session.query("SELECT * FROM mv").rows()) == [(5, 8, 3), (8, 12, 9)]


@pytest.mark.slow
def test_a_view_on_a_view_goes_on_after_a_restart(spark, tmp_path: Path) -> None:
    store = str(tmp_path / "views.duckdb")
    with Session(spark, store=store) as session:
        session.run(NESTED)
        assert sorted(session.query("SELECT * FROM best").rows()) == [("a", 5), ("b", 1)]
    with Session(spark, store=store) as session:
        session.run("INSERT INTO orders VALUES (4, 'b', 8); FLUSH")
        assert sorted(session.query("SELECT * FROM best").rows()) == [("a", 5), ("b", 9)]
        kinds = [change["_change_type"] for change in session.changelog("totals").to_pylist()]
        assert kinds == ["update_preimage", "update_postimage"]


TOGETHER = """
CREATE MATERIALIZED VIEW texts AS SELECT v FROM t; CREATE VIEW long AS SELECT v FROM texts WHERE length(v) > 3;
CREATE MATERIALIZED VIEW numbers AS SELECT CAST(v AS int) AS n FROM texts;
CREATE MATERIALIZED VIEW most AS SELECT max(n) AS n FROM numbers
"""


@pytest.mark.slow
def test_views_that_are_made_together_start_together_and_none_behind_one_that_fails_is_made(spark, monkeypatch) -> None:
    started, start = list[list[str]](), ViewBatches.start

    def noted(self: ViewBatches, view: ViewInfo) -> None:
        start(self, view)
        started.append(sorted(query.name for query in spark.streams.active))

    monkeypatch.setattr(ViewBatches, "start", noted)
    with Session(spark) as session:
        session.run("SET streaming_expr_strict_mode = true; CREATE TABLE t (v text); INSERT INTO t VALUES ('1'), ('one')")
        with pytest.raises(SqlRunError, match='"one"'):
            session.run(TOGETHER)
        assert session.query("SHOW MATERIALIZED VIEWS").rows() == [("texts",)]
        assert session.relations() == ["t", "texts", "long"]
        session.run("DROP VIEW long; DROP MATERIALIZED VIEW texts; DELETE FROM t WHERE v = 'one'; INSERT INTO t VALUES ('2')")
        started.clear()
        tags = [each.tag for each in session.run(f"{TOGETHER}; CREATE MATERIALIZED VIEW all_texts AS SELECT v FROM t")]
        assert tags.count("CREATE_MATERIALIZED_VIEW") == 4
        assert len(started[1]) == len(started[0]) + 1  # the first two, which read the table, run side by side
        assert session.query("SELECT n FROM most").rows() == [(2,)]
        assert sorted(session.query("SELECT v FROM all_texts").rows()) == [("1",), ("2",)]


HALVES: dict[str, tuple[type, str]] = {
    "its tasks write": (LogWriter, "run"),
    "it is taken into the store": (ViewBatches, "take"),
}


@pytest.mark.slow_but("its")
@pytest.mark.parametrize("half", HALVES)
def test_a_batch_that_is_repeated_after_a_crash_counts_once(spark, tmp_path: Path, monkeypatch, half: str) -> None:
    owner, name = HALVES[half]
    store, run, crashes = str(tmp_path / "views.duckdb"), getattr(owner, name), ["after", "before"]

    def crashing(self, *given) -> None:
        is_main = threading.current_thread() is threading.main_thread()
        if name == "take" and crashes and not is_main:
            raise RuntimeError("behind the batch, where FLUSH does the same")
        number = self.log.last() + 1 if isinstance(self, LogWriter) else self._pending.stream("mv").batch + 1
        when = crashes.pop() if crashes and is_main == (name == "take") and number > 0 else None
        if when == "before":
            raise RuntimeError("crash before")
        run(self, *given)
        if when == "after":
            raise RuntimeError("crash after")

    monkeypatch.setattr(owner, name, crashing)
    with Session(spark, store=store) as session:
        session.run("CREATE TABLE t (k int, v int)")
        session.run("CREATE MATERIALIZED VIEW mv AS SELECT k, sum(v) AS s FROM t GROUP BY k")
        with pytest.raises(UnexpectedError, match="before"):
            session.run("INSERT INTO t VALUES (1, 2), (2, 3); FLUSH")
    with pytest.raises(UnexpectedError, match="after"):
        Session(spark, store=store)
    with Session(spark, store=store) as session:
        assert sorted(session.query("SELECT * FROM mv").rows()) == [(1, 2), (2, 3)]
        session.run("INSERT INTO t VALUES (1, 4); FLUSH")
        assert sorted(session.query("SELECT * FROM mv").rows()) == [(1, 6), (2, 3)]


@pytest.mark.slow
def test_tasks_share_large_change_sets_over_a_restart(spark, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(view_batches, "PART_ROWS", 7)
    monkeypatch.setattr(spark_runner, "LARGE_CHANGE_SET", replace(spark_runner.LARGE_CHANGE_SET, usual=2_000))
    store, take, crashes = str(tmp_path / "views.duckdb"), ViewBatches.take, ["crash"]

    def crashing(self, name: str) -> None:
        take(self, name)
        if crashes and threading.current_thread() is threading.main_thread():
            raise RuntimeError(crashes.pop())

    totals = "SELECT k, count(*) AS n, sum(v) AS s FROM t GROUP BY k"
    with Session(spark, store=store) as session:
        session.run("CREATE TABLE t (k int, v int); INSERT INTO t SELECT n % 3, n FROM generate_series(1, 300) AS s(n); FLUSH")
        monkeypatch.setattr(ViewBatches, "take", crashing)
        with pytest.raises(UnexpectedError, match="crash"):
            session.run(f"CREATE MATERIALIZED VIEW totals AS {totals}")
        session.run(f"CREATE MATERIALIZED VIEW totals AS {totals}")
        assert session.query("SELECT * FROM totals ORDER BY k").rows() == session.query(f"{totals} ORDER BY k").rows()
        crashes.append("crash")
        with pytest.raises(UnexpectedError, match="crash"):
            session.run("UPDATE t SET v = v + 1 WHERE v % 2 = 0; FLUSH")
    with Session(spark, store=store) as session:
        assert session.query("SELECT * FROM totals ORDER BY k").rows() == session.query(f"{totals} ORDER BY k").rows()
        session.run("INSERT INTO t VALUES (1, 1000); FLUSH; DELETE FROM t WHERE v > 100; FLUSH")
        assert session.query("SELECT * FROM totals ORDER BY k").rows() == session.query(f"{totals} ORDER BY k").rows()


@pytest.mark.slow
def test_a_view_that_fails_does_not_hold_up_the_others_nor_the_next_session(spark, tmp_path: Path, caplog) -> None:
    store = str(tmp_path / "views.duckdb")
    with Session(spark, store=store) as session:
        session.run("SET streaming_expr_strict_mode = true; CREATE TABLE t (v text)")
        session.run("CREATE MATERIALIZED VIEW numbers AS SELECT CAST(v AS int) AS n FROM t")
        session.run(
            "CREATE MATERIALIZED VIEW texts AS SELECT v FROM t; CREATE MATERIALIZED VIEW last AS SELECT max(v) FROM texts"
        )
        with pytest.raises(SqlRunError, match='"one"'):
            session.run("INSERT INTO t VALUES ('1'), ('one'); FLUSH")
        assert session.query("SELECT * FROM last").rows() == [("one",)]
    with Session(spark, store=store) as session:
        assert "the view 'numbers' is behind" in caplog.text
        assert session.query("SELECT * FROM last").rows() == [("one",)]
        with pytest.raises(SqlRunError, match='"one"'):
            session.run("FLUSH")
        session.run("DROP MATERIALIZED VIEW numbers; INSERT INTO t VALUES ('two'); FLUSH")
        assert session.query("SELECT * FROM last").rows() == [("two",)]


@pytest.mark.slow
def test_a_bad_value_is_null_in_a_view(spark) -> None:
    with Session(spark) as session:
        session.run("CREATE TABLE t (v text)")
        session.run("CREATE MATERIALIZED VIEW mv AS SELECT v::int % 2 AS odd, sum(10 / v::int) AS s FROM t GROUP BY v::int % 2")
        session.run("INSERT INTO t VALUES ('5'), ('0'), ('one'), ('two'); FLUSH")
        rows = [("0", None), ("1", "2"), (None, None)]
        assert session.query("SELECT * FROM mv ORDER BY odd").text_rows() == [list(row) for row in rows]
        session.run("DELETE FROM t WHERE v = 'one'; INSERT INTO t VALUES ('2'); FLUSH")
        assert session.query("SELECT * FROM mv ORDER BY odd").text_rows() == [["0", "5"], ["1", "2"], [None, None]]
        session.run("DELETE FROM t WHERE v = 'two'; FLUSH")
        assert session.query("SELECT * FROM mv ORDER BY odd").text_rows() == [["0", "5"], ["1", "2"]]


def test_state_of_another_plan_is_refused(spark, tmp_path: Path, monkeypatch) -> None:
    store = str(tmp_path / "views.duckdb")
    with Session(spark, store=store) as session:
        session.run("CREATE TABLE t (v int); CREATE MATERIALIZED VIEW mv AS SELECT v + 1 AS w FROM t WHERE v > 0")
    with pytest.raises(UnsupportedStoreError, match="mv"):
        Session(store=store)
    monkeypatch.setattr(Filter, "label", "Sieve")
    with pytest.raises(StoreVersionError, match=r"(?s)the plan of 'mv'.*Filter.*Sieve"):
        Session(spark, store=store)


def test_explain_says_where_a_view_runs(spark) -> None:
    query = "SELECT customer, sum(amount) FROM orders WHERE amount > 0 GROUP BY customer"
    with Session(spark) as session:
        session.run("CREATE TABLE orders (id int PRIMARY KEY, customer text, amount int)")
        plan = [row[0] for row in session.query(f"EXPLAIN CREATE MATERIALIZED VIEW v AS {query}").rows()]
        assert plan[:2] == ["Spread over Spark in 1 stage on buckets of keys", "  stage 1, Aggregate: by customer"]
        session.run(f"CREATE MATERIALIZED VIEW v AS {query}")
        session.run("INSERT INTO orders VALUES (1, 'a', 5), (2, 'a', 6); FLUSH")
        assert session.query("SELECT * FROM v").rows() == [("a", 11)]
        plan = [row[0] for row in session.query("EXPLAIN ANALYZE MATERIALIZED VIEW v").rows()]
        kept = "[folded; keeps a partial result of each group, until its rows are deleted]"
        assert kept in [line.strip() for line in plan]
        assert re.fullmatch(r"cost of batch \d+: \d+ rows read, \d+\.\d\d s, of these addBatch .*", plan[-2])
        assert re.fullmatch(
            r"  stage 1, Aggregate: .* s on all tasks, [1-9]\d* blobs written; state: [1-9]\d* blobs, [\d,]+ bytes in memory",
            plan[-1],
        )


def test_a_sink_brings_changes_to_postgresql(spark, postgres_url: str) -> None:
    with Session(spark) as session:
        session.run("CREATE TABLE t (k int, v int); INSERT INTO t VALUES (1, 1), (2, 2)")
        sink = f"connector = 'postgres', url = '{postgres_url}', table = 'sums'"
        session.run(f"CREATE SINK s AS SELECT k, sum(v) AS total FROM t GROUP BY k WITH ({sink})")
        session.run("INSERT INTO t VALUES (1, 10), (3, 3); DELETE FROM t WHERE k = 2; FLUSH")
    store = open_store(postgres_url)
    assert sorted(store.read("SELECT k, total FROM sums")) == [(1, 11), (3, 3)]
    store.close()


def test_what_only_a_sink_reads_of_a_source_is_not_stored(spark, tmp_path: Path) -> None:
    store, queries = (
        str(tmp_path / "store.duckdb"),
        {
            "cheap": "SELECT k, price * 2 AS twice FROM {bids} WHERE price < 5",
            "minutes": "SELECT window_start, count(*) AS n FROM tumble({bids}, at, INTERVAL '1 minute') GROUP BY window_start "
            "EMIT ON WINDOW CLOSE",
            "sums": "SELECT k, sum(price) AS total FROM {bids} GROUP BY k",
        },
    )
    (tmp_path / "in").mkdir()

    def arrive(number: int) -> None:
        rows = f"range({number} * 100, ({number} + 1) * 100) AS r(i)"
        values = "SELECT (i % 7)::int AS k, (i % 10)::int AS price, TIMESTAMP '2024-01-01' + i * INTERVAL '3 seconds' AS at"
        duckdb.execute(f"COPY ({values} FROM {rows}) TO '{tmp_path}/in/{number}.parquet'")

    for number in range(3):
        arrive(number)
        with Session(spark, store=store) as session:
            if number == 0:
                options = f"connector = 'parquet', path = '{tmp_path / 'in'}'"
                columns = "k int, price int, at timestamp, WATERMARK FOR at AS at"
                session.run(f"CREATE SOURCE bids ({columns}) WITH ({options})")
                for name, query in queries.items():
                    sink = f"connector = 'parquet', path = '{tmp_path / name}'"
                    session.run(f"CREATE SINK {name} AS {query.format(bids='bids')} WITH ({sink})")
            session.run("FLUSH")
    found, rows = f"'{tmp_path}/{{}}/*.parquet'", f"'{tmp_path}/in/*.parquet'"
    cheap = duckdb.execute(f"SELECT k, twice, _change_type FROM {found.format('cheap')}").fetchall()
    assert sorted(cheap) == duckdb.execute(f"SELECT k, price * 2, 'insert' FROM {rows} WHERE price < 5 ORDER BY ALL").fetchall()
    minutes = duckdb.execute(f"SELECT window_start, n FROM {found.format('minutes')} ORDER BY 1").fetchall()
    by_minute = f"SELECT date_trunc('minute', b.at) AS minute, count(*) FROM {rows} AS b GROUP BY 1"
    last = f"SELECT max(b.at) FROM {rows} AS b"
    assert minutes == duckdb.execute(f"{by_minute} HAVING minute + INTERVAL '1 minute' <= ({last}) ORDER BY 1").fetchall()
    sign = "CASE WHEN _change_type IN ('insert', 'update_postimage') THEN 1 ELSE -1 END"
    sums = duckdb.execute(f"SELECT k, sum(total * {sign})::int FROM {found.format('sums')} GROUP BY k ORDER BY k").fetchall()
    assert sums == duckdb.execute(f"SELECT k, sum(price)::int FROM {rows} GROUP BY k ORDER BY k").fetchall()
    with duckdb.connect(store, read_only=True) as database:
        stored = {name: database.execute(f'SELECT count(*) FROM "query of sink {name}"').fetchall()[0][0] for name in queries}
    assert stored == {"cheap": 0, "minutes": 0, "sums": 7}


def test_connectors_are_sources_of_spark(spark, tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "a.csv").write_text("k,price,at\n1,2.50,2024-01-01 10:00:00\n2,3,2024-01-01 10:01:00\n")
    store = str(tmp_path / "my [first] views.duckdb")
    with Session(spark, store=store) as session:
        session.run(f"CREATE TABLE f (k int, price numeric, at timestamp) WITH (connector = 'csv', path = '{files}')")
        session.run("CREATE MATERIALIZED VIEW total AS SELECT count(*), sum(price) FROM f")
        assert session.query("SELECT * FROM total").text_rows() == [["2", "5.5"]]
        with pytest.raises(SqlRunError, match=r"spark\.jars\.packages.*kafka"):
            session.run(
                "CREATE TABLE q (value bytea) WITH (connector = 'kafka', kafka.bootstrap.servers = 'b:9092', subscribe = 't')"
            )
    (files / "b.csv").write_text("k,price,at\n3,1,2024-01-01 10:02:00\n")
    with Session(spark, store=store) as session:
        session.run("FLUSH")
        assert session.query("SELECT * FROM total").text_rows() == [["3", "6.5"]]
        assert session.query("SELECT price, at FROM f ORDER BY k LIMIT 1").text_rows() == [["2.5", "2024-01-01 10:00:00"]]
