"""Views on the nodes of SQL that read their sources themselves: they hold what the embedded engine has."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.examples import first
from tests.sql.in_process import NO_SPARK, Queries, run_in_process
from tests.sql.on_spark.test_streamed_views import forget_last_commits, held
from windowpane.errors import StaleViewError, UnexpectedError, WindowpaneError
from windowpane.sql import Session
from windowpane.sql.on_spark.pending_changes import PendingChanges
from windowpane.sql.on_spark.spark_runner import SparkRunner

COLUMNS = {"sym": pa.string(), "bid": pa.float64(), "size": pa.int64(), "at": pa.timestamp("us")}
SOURCES = {
    "trades": ("sym text, bid double precision, size bigint, at timestamp", "at - INTERVAL '2 minutes'"),
    "quotes": ("sym text, bid double precision, size bigint, at timestamp", "at - INTERVAL '1 minute'"),
}
VIEWS = {
    "by_sym": "SELECT sym, count(*) AS n, sum(size) AS s, max(bid) AS b, count(DISTINCT size) AS d FROM trades GROUP BY sym",
    "whole": "SELECT count(*) AS n, min(at) AS first FROM trades WHERE size > 1000",
    "largest": "SELECT sym, size, bid FROM trades QUALIFY row_number() OVER (PARTITION BY sym ORDER BY size DESC, bid, at) <= 2",
    "moves": """SELECT sym, at, size, size - lag(size) OVER w AS d, rank() OVER (PARTITION BY sym ORDER BY size) AS r
        FROM trades WHERE at IS NOT NULL AND size IS NOT NULL WINDOW w AS (PARTITION BY sym ORDER BY at, size, bid)""",
    "coming": """SELECT sym, at, lead(at) OVER w AS next, sum(size) OVER (PARTITION BY sym ORDER BY at
        RANGE BETWEEN INTERVAL '1 minute' PRECEDING AND INTERVAL '30 seconds' FOLLOWING) AS near
        FROM trades WINDOW w AS (PARTITION BY sym ORDER BY at) EMIT ON WINDOW CLOSE""",
    "near": """SELECT t.sym, t.at, q.at AS quoted, t.size + q.size AS total FROM trades AS t JOIN quotes AS q
        ON t.sym = q.sym AND q.at BETWEEN t.at - INTERVAL '40 seconds' AND t.at""",
    "every": """SELECT t.sym, t.at, q.at AS quoted FROM trades AS t FULL JOIN quotes AS q
        ON t.sym = q.sym AND t.size = q.size AND t.bid = q.bid""",
    "each": "SELECT sym, size, at FROM trades WHERE size > 1 UNION ALL SELECT sym, -size, at FROM quotes WHERE size > 2",
    "halves": """SELECT window_end, max(n) AS most, count(*) AS c FROM tumble((SELECT sym, window_start AS at, count(*) AS n
        FROM tumble(trades, at, INTERVAL '1 minute') WHERE at IS NOT NULL GROUP BY sym, window_start), at, INTERVAL '1 hour')
        GROUP BY window_end""",
    "closed": """SELECT window_end, sum(x) AS x, array_agg(size ORDER BY size, bid) AS sizes FROM
        (SELECT *, bid / 2 AS x FROM tumble(trades, at, INTERVAL '1 minute') WHERE bid < 1)
        GROUP BY window_end EMIT ON WINDOW CLOSE""",
    "both": """SELECT t.window_end, t.n, q.m FROM
        (SELECT window_end, count(*) AS n FROM tumble(trades, at, INTERVAL '1 minute') GROUP BY window_end) AS t JOIN
        (SELECT window_end, sum(bid) AS m FROM tumble(quotes, at, INTERVAL '1 minute') WHERE bid < 1 GROUP BY window_end) AS q
        ON t.window_end = q.window_end EMIT ON WINDOW CLOSE""",
    "named": "SELECT t.sym, n.name, count(*) AS c FROM trades AS t JOIN names AS n ON t.sym = n.sym GROUP BY t.sym, n.name",
    "totals": "SELECT sum(n) AS n, count(*) AS c FROM by_sym",
    "either": "SELECT sym FROM trades WHERE size = 7 UNION SELECT sym FROM quotes WHERE size = 1 UNION SELECT 'x'",
    "minutes": """SELECT window_end AS at, sym, count(DISTINCT size) AS n FROM tumble(trades, at, INTERVAL '1 minute')
        GROUP BY window_end, sym EMIT ON WINDOW CLOSE""",
    "hours": """SELECT window_end, sum(n) AS n FROM tumble(minutes, at, INTERVAL '5 minutes')
        GROUP BY window_end EMIT ON WINDOW CLOSE""",
    "beside": """SELECT m.at, m.sym, m.n, q.size FROM minutes AS m JOIN quotes AS q ON m.sym = q.sym AND m.at = q.at
        EMIT ON WINDOW CLOSE""",
    "again": """SELECT m.at, m.sym, m.n, t.size FROM minutes AS m JOIN trades AS t ON m.sym = t.sym AND m.at = t.at
        EMIT ON WINDOW CLOSE""",
    "pairs": "SELECT a.sym, a.at, b.bid FROM trades AS a JOIN trades AS b ON a.sym = b.sym AND a.size = b.size AND a.at < b.at",
    "above": "SELECT sym, size, at FROM trades AS t WHERE size > (SELECT avg(size) FROM trades AS o WHERE o.sym = t.sym)",
    "known": "SELECT sym, bid FROM quotes WHERE size IN (SELECT size FROM quotes WHERE bid < 0 AND sym <> 'a')",
    "words": "SELECT sym, array_agg(size ORDER BY size, bid) AS sizes FROM trades WHERE size BETWEEN 1 AND 3 GROUP BY sym",
}
FEW, ON_SPARK = ("by_sym", "near", "named"), ("by_sym", "coming", "near", "named", "totals", "above")


def write(folder: Path, number: int, choices: random.Random, rows: int = 50) -> None:
    """Write a file of random rows, some late or without a time."""
    folder.mkdir(exist_ok=True)
    start = datetime(2024, 1, 1, 10) + timedelta(minutes=4 * number)
    columns = [
        [choices.choice([None, "a", "b", "c", ""]) for _ in range(rows)],
        [choices.choice([None, 0.5, -2.25, 1e300]) for _ in range(rows)],
        [choices.choice([None, *range(8)]) for _ in range(rows)],
        [
            choices.choice([None] + [start + timedelta(seconds=choices.randrange(-200, 260)) for _ in range(9)])
            for _ in range(rows)
        ],
    ]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, COLUMNS.values(), strict=True)]
    pq.write_table(pa.table(arrays, names=list(COLUMNS)), folder / f"{number:04}.parquet")


def made(spark: Any, folder: Path, views: dict[str, str], *stores: str) -> Session:
    session = Session(spark, *stores)
    if not session.relations():
        for name, (columns, mark) in SOURCES.items():
            (folder / name).mkdir(parents=True, exist_ok=True)
            options = f"connector = 'parquet', path = '{folder / name}'" + (", maxFilesPerTrigger = '1'" * (spark is not None))
            session.run(f"CREATE SOURCE {name} ({columns}, WATERMARK FOR at AS {mark}) WITH ({options})")
        session.run("CREATE TABLE names (sym text PRIMARY KEY, name text); INSERT INTO names VALUES ('a', 'alpha'), ('', 'none')")
        for name, query in views.items():
            session.run(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    return session


def watermarks(session: Session) -> dict[str, list[str | None]]:
    return {str(name): row for name, *row in session.query("SHOW WATERMARKS").text_rows()}


@contextmanager
def in_process() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        run_in_process(patched)
        yield


@pytest.mark.slow_but("0")
@pytest.mark.parametrize("seed", range(3))
def test_every_kind_of_view_holds_what_the_embedded_engine_has(seed: int, tmp_path: Path) -> None:
    print("seed", seed)
    choices = random.Random(seed)
    drawn = {*choices.sample(sorted(VIEWS), first(3) or 7), "near", "minutes", "by_sym", "again", "above"}
    views = {name: query for name, query in VIEWS.items() if name in drawn}
    changes = [
        "",
        "UPDATE names SET name = 'omega' WHERE sym = 'a'; INSERT INTO names VALUES ('c', 'gamma')",
        "DELETE FROM names WHERE sym = ''",
        "INSERT INTO names VALUES ('b', 'beta')",
    ]
    with in_process(), made(NO_SPARK, tmp_path, views) as spread, made(None, tmp_path, views) as embedded:
        for number, change in enumerate(changes):
            for name in SOURCES:
                if choices.random() < 0.8:
                    write(tmp_path / name, number, choices)
            for session in (spread, embedded):
                session.run(change)
            assert held(spread, views) == held(embedded, views)
        shown, expected = watermarks(spread), watermarks(embedded)
        assert shown["trades in near"] == shown["trades in minutes"] == expected["trades"]
        assert shown["quotes in near"] == expected["quotes"]
        assert spread._storage.value("SELECT count(*) FROM main.quotes") == 0
        assert (
            spread._storage.value("SELECT count(*) FROM main.trades") > 0
        )  # for the view "again", which has its watermark twice


def test_changes_that_come_while_a_change_set_is_on_its_way_are_in_the_next_one(tmp_path: Path, monkeypatch) -> None:
    choices = random.Random(3)
    views = {"by_sym": VIEWS["by_sym"], "totals": VIEWS["totals"]}
    with in_process(), made(NO_SPARK, tmp_path, views) as session, made(None, tmp_path, views) as embedded:
        write(tmp_path / "trades", 0, choices)
        session.run("FLUSH")
        runner = session._runner
        assert isinstance(runner, SparkRunner)
        for number in (1, 2):
            write(tmp_path / "trades", number, choices)
            runner._queries.finish("by_sym")  # a batch between two flushes
            with monkeypatch.context() as patched:
                patched.setattr(PendingChanges, "sent", crashing)  # the change set lies in the inbox by then
                runner._is_due = True
                with pytest.raises(RuntimeError, match="crash"):
                    runner.deliver()
        runner._is_due = True
        runner.deliver()
        session.run("FLUSH")
        assert held(session, views) == held(embedded, views)


def crashing(*_: object) -> None:
    raise RuntimeError("crash")


def test_a_view_does_not_close_before_the_view_that_it_reads_has_taken_its_change_set(monkeypatch) -> None:
    with in_process(), Session(NO_SPARK) as session:
        session.run("CREATE TABLE t (k int, at timestamp, WATERMARK FOR at AS at) APPEND ONLY")
        session.run("CREATE MATERIALIZED VIEW v AS SELECT k, at FROM t")
        minutes = "tumble(v, at, INTERVAL '1 minute') GROUP BY window_end EMIT ON WINDOW CLOSE"
        session.run(f"CREATE MATERIALIZED VIEW w AS SELECT window_end, count(*) AS n FROM {minutes}")
        session.run("INSERT INTO t VALUES (1, '2024-01-01 10:00:10'); FLUSH")
        finish = Queries.finish

        def failing(self, name: str, **given: bool) -> None:
            crashing() if name == "v" else finish(self, name, **given)

        with monkeypatch.context() as patched:
            patched.setattr(Queries, "finish", failing)
            with pytest.raises(UnexpectedError, match="crash"):
                session.run("INSERT INTO t VALUES (2, '2024-01-01 10:00:30'), (3, '2024-01-01 10:05:00'); FLUSH")
        assert session.query("SELECT * FROM w").text_rows() == []
        session.run("FLUSH")
        assert session.query("SELECT * FROM w").text_rows() == [["2024-01-01 10:01:00", "2"]]


@pytest.mark.parametrize("mended", [True, False])
def test_a_view_that_failed_without_spark_takes_what_it_missed(tmp_path: Path, mended: bool) -> None:
    store, totals = str(tmp_path / "views.duckdb"), "SELECT count(*) AS c, sum(n) AS s FROM strict"
    with Session(store) as session:
        session.run("CREATE TABLE t (id int PRIMARY KEY, x text); SET streaming_expr_strict_mode = true")
        session.run("CREATE MATERIALIZED VIEW strict AS SELECT id, x::int AS n FROM t")
        session.run("INSERT INTO t VALUES (1, '10'); FLUSH")
        with pytest.raises(StaleViewError):
            session.run("INSERT INTO t VALUES (2, 'two'), (3, '30'); FLUSH")
    with in_process(), Session(NO_SPARK, store) as session:
        mend = "DELETE FROM t WHERE id = 2; " if mended else ""
        session.run(f"{mend}INSERT INTO t VALUES (4, '40')")
        if not mended:
            with pytest.raises(WindowpaneError, match="two"):
                session.run("FLUSH")
            assert session.query("SELECT n FROM strict").rows() == [(10,)]
            session.run("DROP MATERIALIZED VIEW strict; FLUSH")
            return
        session.run(f"CREATE MATERIALIZED VIEW above AS {totals}; FLUSH")
        assert session.query("SELECT n FROM strict ORDER BY n").rows() == [(10,), (30,), (40,)]
        session.run("INSERT INTO t VALUES (5, '50'); DELETE FROM t WHERE id = 1; FLUSH")
        assert session.query("SELECT * FROM above").text_rows() == [["3", "120"]]
        assert session.query("SHOW ERRORS").rows() == []


@pytest.mark.spark
@pytest.mark.parametrize("names", [FEW, pytest.param(ON_SPARK, marks=pytest.mark.slow)], ids=len)
def test_such_views_hold_what_the_embedded_engine_has_on_spark_over_a_restart(
    spark, tmp_path: Path, names: tuple[str, ...]
) -> None:

    views = {name: VIEWS[name] for name in names}
    choices, store = random.Random(7), str(tmp_path / "views.duckdb")
    for number in range(2):
        for name in SOURCES:
            write(tmp_path / name, number, choices)
    with made(spark, tmp_path, views, store) as session:
        before = held(session, views)
        plan = [row[0] for row in session.query("EXPLAIN CREATE MATERIALIZED VIEW x AS " + VIEWS["named"]).rows()]
        assert plan[0] == (
            "One streaming query on Spark from source 'trades', whose rows are not stored; changes of 'names' come in change sets"
        )
    with made(None, tmp_path, views) as session:
        assert held(session, views) == before
        assert all(before.values())
    forget_last_commits(Path(f"{store}.streams"))
    for number in range(2, 4):
        for name in SOURCES:
            write(tmp_path / name, number, choices)
    change = "UPDATE names SET name = 'omega' WHERE sym = 'a'; INSERT INTO names VALUES ('c', 'gamma')"
    with made(spark, tmp_path, views, store) as session:
        session.run(change)
        after, shown = held(session, views), watermarks(session)
    with made(None, tmp_path, views) as session:
        session.run(change)
        assert held(session, views) == after
        expected = watermarks(session)
        assert shown["trades in by_sym"] == shown["trades in near"] == expected["trades"]
        assert shown["quotes in near"] == expected["quotes"]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("names", [("by_sym",), FEW], ids=len)
def test_such_views_are_tables_of_a_postgres_store(spark, tmp_path: Path, postgres_url, names: tuple[str, ...]) -> None:
    from windowpane.stores import open_store

    choices, state, server = random.Random(8), str(tmp_path / "state.duckdb"), open_store(postgres_url)
    views = {name: VIEWS[name] for name in names}
    columns = {"by_sym": "sym, n, s, b, d", "near": "sym, at, quoted, total", "named": "sym, name, c"}

    def more(number: int) -> None:
        for name in SOURCES:
            write(tmp_path / name, number, choices)

    def check() -> None:
        with made(None, tmp_path, views) as session:
            session.run("FLUSH")
            for name in names:
                listed = columns[name]
                expected = sorted(session.query(f"SELECT {listed} FROM {name}").rows(), key=repr)
                assert expected
                assert sorted(server.read(f"SELECT {listed} FROM {name}"), key=repr) == expected

    more(0)
    with made(spark, tmp_path, views, postgres_url, state) as session:
        more(1)
        session.run("FLUSH")
        check()
    forget_last_commits(Path(f"{state}.streams"))
    more(2)
    with made(spark, tmp_path, views, postgres_url, state) as session:
        session.run("FLUSH")
        check()
    server.close()
