"""CREATE OR REPLACE MATERIALIZED VIEW and ALTER ... AS on Spark: rows are those of the new view made fresh, without Spark."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sql.catalog import test_replacing as embedded
from tests.sql.in_process import NO_SPARK, run_in_process
from tests.sql.on_spark.test_streamed_views import SOURCE, random_rows, write
from windowpane.errors import UnsupportedSqlError
from windowpane.sql import Session
from windowpane.sql.catalog.definitions import Definitions
from windowpane.sql.catalog.replacing import Replacing
from windowpane.sql.on_spark.pending_changes import PendingChanges

_TABLES = "CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 2), (2, 3), (3, 4)"
_MORE = "INSERT INTO t VALUES (1, 9), (4, 1); FLUSH"
_OLD = {
    "hours": """SELECT k, window_start, count(*) AS n, sum(v) AS s FROM tumble(trades, at, INTERVAL '1 minute')
        GROUP BY k, window_start EMIT ON WINDOW CLOSE""",
    "sums": "SELECT t.k, sum(n) AS n FROM t JOIN hours ON t.k = hours.k GROUP BY t.k",
    "top": "SELECT max(n) AS most FROM sums",
    "all_sums": "SELECT * FROM sums",
}
_NEW = {
    "hours": """SELECT k, window_start, sum(v) AS s, count(*) AS n FROM tumble(trades, at, INTERVAL '1 minute')
        GROUP BY k, window_start EMIT ON WINDOW CLOSE""",
    "sums": "SELECT t.k, sum(n) AS n, min(t.v) AS least FROM t JOIN hours ON t.k = hours.k WHERE s > 1 GROUP BY t.k",
}


def _made(session: Session, folder: Path, views: dict[str, str], limits: str) -> None:
    options = f"connector = 'parquet', path = '{folder}'{limits}"
    session.run(f"{SOURCE.format(options=options)}; {_TABLES}")
    for name, query in views.items():
        session.run(f"CREATE MATERIALIZED VIEW {name} AS {query}")


def _rows(session: Session) -> dict[str, list[list[str | None]]]:
    found = {name: session.query(f"SELECT * FROM {name}") for name in _OLD}
    return {name: sorted(each.text_rows(), key=repr) for name, each in found.items()}


def _folders(session: Session) -> dict[str, str]:
    pending = PendingChanges(session._storage)
    return {name: pending.stream(name).folder for name in _OLD}


@pytest.mark.slow
@pytest.mark.spark
def test_views_on_spark_are_replaced_while_others_read_them(spark, tmp_path: Path) -> None:
    choices, folder, store = random.Random(5), tmp_path / "in", str(tmp_path / "views.duckdb")
    write(folder, 1, random_rows(choices, 0))
    with Session(spark, store) as session:
        _made(session, folder, _OLD, ", maxFilesPerTrigger = '1'")
        before = _folders(session)
        for name, query in _NEW.items():
            session.run(f"ALTER MATERIALIZED VIEW {name} AS {query}")
        with Session(":memory:") as fresh:
            _made(fresh, folder, {**_OLD, **_NEW}, "")
            assert _rows(session) == _rows(fresh)
        after = _folders(session)
        assert {name for name in _OLD if after[name] == before[name]} == {"top"}
    write(folder, 2, random_rows(choices, 4))
    with Session(spark, store) as session, Session(":memory:") as fresh:
        session.run(_MORE)
        _made(fresh, folder, {**_OLD, **_NEW}, "")
        fresh.run(_MORE)
        assert _rows(session) == _rows(fresh)
        assert session.query("SHOW WATERMARKS").rows()[-1][0] == "trades in hours"


_KILLED = """
import os, signal, sys
from pyspark.sql import SparkSession
from windowpane.sql import Session
from windowpane.sql.catalog.definitions import Definitions
from windowpane.sql.catalog.replacing import Replacing

def dies(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

setattr({"redefine": Definitions, "swap": Replacing, "_deliver": Session}[sys.argv[2]], sys.argv[2], dies)
settings = {"spark.sql.shuffle.partitions": 2, "spark.ui.enabled": False, "spark.sql.session.timeZone": "UTC"}
spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
session = Session(spark, sys.argv[1])
session.run("ALTER MATERIALIZED VIEW v AS SELECT k, count(*) AS s, 1 AS one FROM t GROUP BY k")
"""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(("where", "is_new"), [("swap", False), ("redefine", False), ("_deliver", True)])
def test_a_kill_around_the_swap_leaves_the_old_views_or_the_new_ones(spark, tmp_path: Path, where: str, is_new: bool) -> None:
    store = str(tmp_path / "views.duckdb")
    with Session(spark, store) as session:
        session.run(f"{embedded._TABLES} CREATE MATERIALIZED VIEW v AS {embedded._OLD}")
        session.run("CREATE MATERIALIZED VIEW top AS SELECT max(s) AS m FROM v")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": sys.executable}
    died = subprocess.run([sys.executable, "-c", _KILLED, store, where], env=environment, check=False)
    assert died.returncode == -signal.SIGKILL
    with Session(spark, store) as session:
        new = {"v": ["(1, 2, 1)", "(2, 1, 1)"], "top": ["(2,)"]}
        assert embedded._rows(session, "v", "top") == (new if is_new else {"v": ["(1, 16)", "(2, 7)"], "top": ["(16,)"]})
        session.run("ALTER MATERIALIZED VIEW v AS SELECT k, count(*) AS s, 1 AS one FROM t GROUP BY k")
        session.run(embedded._MORE)
        assert embedded._rows(session, "v", "top") == {"v": ["(1, 3, 1)", "(2, 2, 1)", "(3, 1, 1)"], "top": ["(3,)"]}


@pytest.mark.slow_but("having", "windows")
@pytest.mark.parametrize("what", ["renamed", "computed", "a column more", "a condition", "having", "windows", "on close", "over"])
def test_views_in_stages_have_the_rows_of_those_made_fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    run_in_process(monkeypatch)
    query, store = embedded._QUERIES[what], str(tmp_path / "views.duckdb")
    readers, names = (embedded._READERS, embedded._NAMES) if what != "renamed" else ("", ())
    expected = embedded._fresh(query, readers, names)
    with Session(NO_SPARK, store) as session:
        session.run(f"{embedded._TABLES} CREATE MATERIALIZED VIEW v AS {embedded._OLD}; {readers}")
        before = PendingChanges(session._storage).stream("v").folder
        session.run(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {query}")
        goes_on = PendingChanges(session._storage).stream("v").folder == before
        assert goes_on == (what in ("renamed", "computed", "having"))
        assert embedded._rows(session, "v", *names) == expected[0]
    with Session(NO_SPARK, store) as session:
        session.run(embedded._MORE)
        assert embedded._rows(session, "v", *names) == expected[1]


@pytest.mark.parametrize("step", ["swap", "redefine"])
def test_a_crash_before_the_swap_leaves_the_old_views(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    run_in_process(monkeypatch)
    store, owner = str(tmp_path / "views.duckdb"), {"redefine": Definitions, "swap": Replacing}[step]

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with Session(NO_SPARK, store) as session:
        session.run(f"{embedded._TABLES} CREATE MATERIALIZED VIEW v AS {embedded._OLD}; {embedded._READERS}")
        expected = embedded._rows(session, "v", *embedded._NAMES)
        monkeypatch.setattr(Replacing, "abandon", crash)
        monkeypatch.setattr(owner, step, crash)
        with pytest.raises(KeyboardInterrupt):
            session.run(f"ALTER MATERIALIZED VIEW v AS {embedded._QUERIES['a column more']}")
    monkeypatch.undo()
    run_in_process(monkeypatch)
    with Session(NO_SPARK, store) as session:
        assert embedded._rows(session, "v", *embedded._NAMES) == expected
        assert {name for name in PendingChanges(session._storage).names() if "replacement" in name} == set()
        session.run(f"ALTER MATERIALIZED VIEW v AS {embedded._QUERIES['a column more']}; {embedded._MORE}")
        assert embedded._rows(session, "v") == embedded._fresh(embedded._QUERIES["a column more"], "", ())[1]


def test_a_view_of_a_source_that_begins_with_the_rows_of_now_is_not_built_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    run_in_process(monkeypatch)
    with Session(NO_SPARK) as session:
        session.run("CREATE SOURCE r (timestamp timestamp, value bigint) WITH (connector = 'rate', path = '/tmp/none')")
        session.run("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM r")
        with pytest.raises(UnsupportedSqlError, match="no row that 'r' has sent before"):
            session.run("ALTER MATERIALIZED VIEW v AS SELECT sum(value) AS n FROM r")
        assert session.query("SELECT n FROM v").rows() == [(0,)]
