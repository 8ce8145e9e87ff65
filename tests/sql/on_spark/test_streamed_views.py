"""Views that are one streaming query, from the source to the result: they hold what the embedded engine has."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windowpane.errors import UnexpectedError, UnsupportedSqlError
from windowpane.sql import Session
from windowpane.sql.on_spark.pending_changes import PendingChanges
from windowpane.stores import PostgresStore, Store, open_store

pytestmark = pytest.mark.spark

TYPES = {
    "k": pa.int32(),
    "name": pa.string(),
    "v": pa.int32(),
    "big": pa.int64(),
    "price": pa.decimal128(10, 2),
    "at": pa.timestamp("us"),
}
COLUMNS = "k int, name text, v int, big bigint, price numeric(10, 2), at timestamp"
SOURCE = f"CREATE SOURCE trades ({COLUMNS}, WATERMARK FOR at AS at - INTERVAL '2 minutes') WITH ({{options}})"
VIEWS = {
    "minutes": """SELECT k, upper(name) AS u, window_start, window_end, count(*) AS n, count(v) AS nv, sum(v) AS s, sum(big) AS b,
        avg(v) AS a, avg(price) AS p, sum(price) FILTER (WHERE v > 2) AS f, min(name) AS first, max(price) AS top, max(at) AS last
        FROM tumble(trades, at, INTERVAL '1 minute') WHERE v IS NULL OR v <> 3
        GROUP BY k, upper(name), window_start, window_end HAVING count(*) > 1 EMIT ON WINDOW CLOSE""",
    "totals": """SELECT window_start AS since, count(*) AS n, avg(price) AS p, sum(e) AS e
        FROM hop((SELECT at, price, 12 / v AS e FROM trades), at, INTERVAL '1 minute', INTERVAL '3 minutes', INTERVAL '10 s')
        WHERE e > 2 GROUP BY window_start EMIT ON WINDOW CLOSE""",
    "changing": """SELECT k, lower(name) AS u, window_end, count(*) AS n, sum(v) AS s, avg(price) AS p, max(at) AS last
        FROM cumulate(trades, at, INTERVAL '1 minute', INTERVAL '4 minutes')
        GROUP BY k, lower(name), window_start, window_end HAVING sum(v) < 4""",
    "busy": """SELECT window_start, count(*) AS n, min(price) AS low FROM tumble(trades, at, INTERVAL '2 minutes')
        WHERE v > 0 AND at IS NOT NULL GROUP BY window_start""",
    "visits": """SELECT k, name, window_start, window_end, count(*) AS n, sum(big) AS b, avg(price) AS p, min(at) AS first
        FROM session((SELECT * FROM trades WHERE v < 2) PARTITION BY name, k, DESCRIPTOR(at), INTERVAL '1 minute')
        GROUP BY k, name, window_start, window_end EMIT ON WINDOW CLOSE""",
    "growing": """SELECT upper(name) AS u, window_start, count(v) AS n, max(at) AS last
        FROM session((SELECT * FROM trades WHERE v > 0) PARTITION BY name, DESCRIPTOR(at), INTERVAL '59.9995 seconds')
        GROUP BY name, window_start HAVING count(*) > 1""",
    "steps": """SELECT k, name, at, v - lag(v) OVER w AS d, row_number() OVER w AS n, rank() OVER w AS r, price,
        sum(big / 8) OVER w AS s, avg(price) OVER (PARTITION BY k, upper(name) ORDER BY at ROWS 3 PRECEDING) AS p
        FROM trades WHERE v IS NULL OR v <> 3 WINDOW w AS (PARTITION BY k, upper(name) ORDER BY at) EMIT ON WINDOW CLOSE""",
}

Row = tuple[int | None, str | None, int | None, int | None, Decimal | None, datetime | None]


def minute(at: float, micros: int = 0) -> datetime:
    return datetime(2024, 1, 1, 10) + timedelta(minutes=at, microseconds=micros)


def write(folder: Path, number: int, rows: list[Row]) -> None:
    """Write a file of rows; files are read in the order of their numbers, and of their age."""
    folder.mkdir(exist_ok=True)
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), TYPES.values(), strict=True)]
    pq.write_table(pa.table(columns, names=list(TYPES)), folder / f"{number:04}.parquet")


def random_rows(random: random.Random, since: float) -> list[Row]:
    """Return rows of five minutes, some late or without a time, many at the same millisecond."""
    return [
        (
            random.choice([None, 1, 2, 3]),
            random.choice([None, "a", "A", "b", ""]),
            random.choice([None, 0, 1, 2, 3, -4]),
            random.choice([None, 2**62, -(2**62), 1]),
            random.choice([None, Decimal("0.10"), Decimal("-7.25"), Decimal("99999999.99")]),
            random.choice([None] + [minute(since + random.randrange(-3, 5), random.randrange(2000)) for _ in range(9)]),
        )
        for _ in range(60)
    ]


def made(spark, folder: Path, views: tuple[str, ...], store: str = ":memory:") -> Session:
    session = Session(spark, store)
    if not session.relations():
        options = f"connector = 'parquet', path = '{folder}'" + (", maxFilesPerTrigger = '1'" if spark is not None else "")
        session.run(SOURCE.format(options=options))
        for name in views:
            session.run(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")
    return session


def held(session: Session, views: Iterable[str]) -> dict[str, list[list[str | None]]]:
    session.run("FLUSH")
    return {name: sorted(session.query(f"SELECT * FROM {name}").text_rows(), key=repr) for name in views}


@pytest.mark.parametrize("views", [("minutes", "changing", "steps"), pytest.param(tuple(VIEWS), marks=pytest.mark.slow)], ids=len)
def test_views_hold_what_the_embedded_engine_has_over_restarts_and_a_batch_that_is_run_again(
    spark, tmp_path: Path, views: tuple[str, ...]
) -> None:
    choices, folder, store = random.Random(19), tmp_path / "in", str(tmp_path / "views.duckdb")
    write(folder, 1, random_rows(choices, 0))
    write(folder, 2, random_rows(choices, 4))
    with made(spark, folder, views, store) as session:
        before = held(session, views)
        with pytest.raises(
            UnsupportedSqlError, match="reading source 'trades' on Spark is not supported: its rows are not stored"
        ):
            session.query("SELECT count(*) FROM trades")
        rows = session.query("EXPLAIN CREATE MATERIALIZED VIEW x AS " + VIEWS["minutes"]).rows()
        assert rows[0] == ("One streaming query on Spark from source 'trades'; its rows are not stored",)
        session._storage.run("CHECKPOINT")
    with made(None, folder, views) as session:
        assert held(session, views) == before
        assert all(before.values())
    forget_last_commits(Path(f"{store}.streams"))
    write(folder, 3, random_rows(choices, 6))
    write(folder, 4, random_rows(choices, 12))
    with made(spark, folder, views, store) as session:
        after, late = held(session, views), [row[1:] for row in session.query("SHOW WATERMARKS").text_rows()]
        assert session._storage.value("SELECT count(*) FROM main.trades") == 0
    with made(None, folder, views) as session:
        assert held(session, views) == after
        ((_, *expected),) = session.query("SHOW WATERMARKS").text_rows()
        assert late == [expected] * len(views)
        assert expected[1] not in (None, "0")


@pytest.mark.slow
def test_days_of_a_zone_are_those_of_the_embedded_engine(spark, tmp_path: Path) -> None:
    choices, zone = random.Random(6), "timezone => 'Europe/Berlin'"
    views = {
        "days": f"tumble(trips, at, INTERVAL '1 day', {zone})",
        "so_far": f"cumulate(trips, at, INTERVAL '5 hours', INTERVAL '1 day', {zone})",
        "weeks": f"hop(trips, at, INTERVAL '1 day', INTERVAL '7 days', {zone})",
    }
    closes = {"days": "EMIT ON WINDOW CLOSE", "so_far": "EMIT ON WINDOW CLOSE", "weeks": ""}
    (tmp_path / "in").mkdir()
    for number in range(3):  # the clocks change on 2024-03-31
        since = datetime(2024, 3, 29 + number, tzinfo=UTC)
        times = [since + timedelta(minutes=choices.randrange(0, 3000)) for _ in range(40)]
        table = pa.table({"k": [choices.choice("ab") for _ in times], "at": pa.array(times, pa.timestamp("us", "UTC"))})
        path = tmp_path / "in" / f"{number}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))  # Spark reads them in this order
    found = []
    for of in (spark, None):
        with Session(of) as session:
            options = f"connector = 'parquet', path = '{tmp_path / 'in'}'" + (", maxFilesPerTrigger = '1'" if of else "")
            watermark = "WATERMARK FOR at AS at - INTERVAL '1 day'"
            session.run(f"CREATE SOURCE trips (k text, at timestamptz, {watermark}) WITH ({options})")
            for name, windows in views.items():
                query = f"SELECT k, window_start, window_end, count(*) AS n FROM {windows} WHERE at IS NOT NULL"
                query += f" GROUP BY k, window_start, window_end {closes[name]}"
                session.run(f"CREATE MATERIALIZED VIEW {name} AS {query}")
                plan = session.query(f"EXPLAIN CREATE MATERIALIZED VIEW x AS {query}").rows()
                assert ("One streaming query" in plan[0][0]) is (of is not None)
            session.run("FLUSH")
            found.append({name: sorted(session.query(f"SELECT * FROM {name}").text_rows()) for name in views})
    assert found[0] == found[1]
    assert all(found[0].values())


@pytest.mark.slow
def test_a_source_is_stored_once_a_view_needs_its_rows_and_views_read_streamed_ones(spark, tmp_path: Path) -> None:
    write(tmp_path / "in", 1, [(1, "a", 1, 1, Decimal(1), minute(0)), (1, "b", 2, 1, Decimal(2), minute(1.5))])
    write(tmp_path / "in", 2, [(2, "c", 4, 1, Decimal(1), minute(9))])
    beside = "SELECT DISTINCT t.name FROM trades AS t LEFT JOIN minutes AS m ON t.at = m.window_end"
    with Session(spark) as session:
        session.run(SOURCE.format(options=f"connector = 'parquet', path = '{tmp_path / 'in'}'"))
        session.run(
            "CREATE MATERIALIZED VIEW minutes AS SELECT k, window_end, count(*) AS n "
            "FROM cumulate(trades, at, INTERVAL '1 minute', INTERVAL '3 minutes') GROUP BY k, window_end EMIT ON WINDOW CLOSE"
        )
        session.run("CREATE MATERIALIZED VIEW by_key AS SELECT k, sum(n) AS n FROM minutes GROUP BY k; FLUSH")
        assert session.query("SELECT * FROM by_key").rows() == [(1, 1 + 2 + 2)]
        session.run(f"CREATE MATERIALIZED VIEW names AS {beside}")
        assert sorted(session.query("SELECT * FROM names").rows()) == [("a",), ("b",), ("c",)]
        write(tmp_path / "in", 3, [(3, "d", 4, 1, Decimal(1), minute(20)), (2, "late", 4, 1, Decimal(1), minute(6.5))])
        session.run("FLUSH")
        assert sorted(session.query("SELECT name FROM trades").rows()) == [("a",), ("b",), ("c",), ("d",)]
        shown = sorted(tuple(row) for row in session.query("SHOW WATERMARKS").text_rows())
        assert shown == [("trades", "2024-01-01 10:18:00", "1"), ("trades in minutes", "2024-01-01 10:18:00", "1")]
        session.run("DROP MATERIALIZED VIEW names; DROP MATERIALIZED VIEW by_key; DROP MATERIALIZED VIEW minutes")
        assert [row[0] for row in session.query("SHOW WATERMARKS").rows()] == ["trades"]


@contextmanager
def largest_result(spark, size: str) -> Iterator[None]:
    """Let Spark refuse tasks that send the driver more than ``size`` together."""
    conf, name = spark.sparkContext._jsc.sc().conf(), "spark.driver.maxResultSize"
    before = conf.get(name, "1g")
    conf.set(name, size)
    try:
        yield
    finally:
        conf.set(name, before)


@pytest.mark.slow
def test_changes_of_a_batch_reach_the_store_by_files_and_not_as_results_of_tasks(spark, tmp_path: Path) -> None:
    names = [f"{number:06} {hashlib.sha256(str(number).encode()).hexdigest()}" for number in range(30_000)]
    write(tmp_path / "in", 1, [(1, name, 1, 1, Decimal(1), minute(0)) for name in names])
    write(tmp_path / "in", 2, [(1, "z", 1, 1, Decimal(1), minute(9))])
    options = f"connector = 'parquet', path = '{tmp_path / 'in'}', maxFilesPerTrigger = '1'"
    store = tmp_path / "views.duckdb"
    with largest_result(spark, "1m"), Session(spark, str(store)) as session:
        session.run(SOURCE.format(options=options))
        session.run(
            "CREATE MATERIALIZED VIEW names AS SELECT name, window_start, count(*) AS n "
            "FROM tumble(trades, at, INTERVAL '1 minute') GROUP BY name, window_start EMIT ON WINDOW CLOSE"
        )
        session.run("CREATE MATERIALIZED VIEW longest AS SELECT max(name) AS name, count(*) AS n FROM names; FLUSH")
        assert sorted(session.query("SELECT name, n FROM names").rows()) == [(name, 1) for name in names]
        assert session.query("SELECT * FROM longest").rows() == [(names[-1], 30_000)]
    assert not list(Path(f"{store}.streams").glob("*/changes/*/part-*"))


MINUTES = """CREATE MATERIALIZED VIEW minutes AS SELECT k, name, window_end, count(*) AS n, avg(v) AS a
    FROM tumble(trades, at, INTERVAL '1 minute') GROUP BY k, name, window_end EMIT ON WINDOW CLOSE"""


STEPS = """CREATE MATERIALIZED VIEW steps AS SELECT k, at, v - lag(v) OVER (PARTITION BY k, name ORDER BY at) AS d
    FROM trades EMIT ON WINDOW CLOSE"""


def crashing(*_: object) -> None:
    raise RuntimeError("crash")


def forget_last_commits(streams: Path) -> None:
    """Let Spark run the last batch of each query again."""
    for commits in streams.glob("*/checkpoint/commits"):
        last = max((file for file in commits.iterdir() if file.name.isdigit()), key=lambda file: int(file.name))
        last.unlink()
        (commits / f".{last.name}.crc").unlink(missing_ok=True)


def change(store: Store, statement: str) -> None:
    assert isinstance(store, PostgresStore)
    with store.transaction():
        store.run(statement)


@pytest.mark.slow
def test_a_table_of_a_postgres_store_has_each_row_once_over_crashes_and_restarts(
    spark, tmp_path: Path, postgres_url, monkeypatch
) -> None:
    choices, folder, state, server = random.Random(4), tmp_path / "in", tmp_path / "state.duckdb", open_store(postgres_url)

    def opened(of=spark) -> Session:
        session = Session() if of is None else Session(of, postgres_url, str(state))
        if not session.relations():
            options = f"connector = 'parquet', path = '{folder}'" + ("" if of is None else ", maxFilesPerTrigger = '1'")
            session.run(SOURCE.format(options=options))
            session.run(MINUTES)
            session.run(STEPS)
        return session

    def more(number: int) -> None:
        write(folder, number, random_rows(choices, 4 * number))

    def check() -> None:
        with opened(None) as session:
            session.run("FLUSH")
            expected, steps = (sorted(session.query(f"SELECT * FROM {of}").rows(), key=repr) for of in ("minutes", "steps"))
        assert expected
        assert sorted(server.read("SELECT k, name, window_end, n, a FROM minutes"), key=repr) == expected
        assert steps
        assert sorted(server.read("SELECT k, at, d FROM steps"), key=repr) == steps

    folder.mkdir()
    more(0)
    with opened() as session:
        more(1)
        more(2)
        session.run("FLUSH")
        check()
        assert session.query("SELECT count(*), sum(n) FROM minutes").rows() == server.read("SELECT count(*), sum(n) FROM minutes")
        more(3)
        with monkeypatch.context() as patched:
            patched.setattr(PendingChanges, "took_directly", crashing)
            with pytest.raises(UnexpectedError, match="crash"):
                session.run("FLUSH")
        session.run("FLUSH")
        check()
    forget_last_commits(Path(f"{state}.streams"))
    more(4)
    with opened() as session:
        session.run("FLUSH")
        check()
        change(server, "DROP TABLE minutes")
    with opened() as session:
        check()
        session.run("CREATE MATERIALIZED VIEW by_key AS SELECT k, sum(n) AS n FROM minutes GROUP BY k")
        session.run(f"CREATE SINK s FROM minutes WITH (connector = 'duckdb', path = '{tmp_path / 's.duckdb'}', table = 's')")
        more(5)
        session.run("FLUSH")
        check()
        totals = server.read("SELECT k, sum(n)::bigint FROM minutes GROUP BY k ORDER BY k")
        assert session.query("SELECT k, n::bigint FROM by_key ORDER BY k").rows() == totals
        change(server, "DROP TABLE minutes")
    with opened():
        check()
    sink = open_store(str(tmp_path / "s.duckdb"))
    assert sink.read("SELECT k, sum(n)::bigint FROM s GROUP BY k ORDER BY k") == totals
    sink.close()
    server.close()
