"""CREATE OR REPLACE MATERIALIZED VIEW and ALTER MATERIALIZED VIEW ... AS: rows are those of the new view made fresh."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from tests.examples import seeds
from tests.sql.watched_keys import Watch
from windowpane.errors import SqlNameError, SqlRunError, SqlSyntaxError, StaleViewError, UnsupportedSqlError
from windowpane.sql import Session

_TABLES = """
CREATE TABLE t (at timestamp, k int, v int, WATERMARK FOR at AS at - INTERVAL '1 minute') APPEND ONLY;
CREATE TABLE u (k int PRIMARY KEY, name text);
INSERT INTO u VALUES (1, 'one'), (2, 'two');
INSERT INTO t VALUES ('2024-01-01 10:00', 1, 5), ('2024-01-01 10:20', 2, 7), ('2024-01-01 10:40', 1, 11);
"""
_MORE = """
INSERT INTO t VALUES ('2024-01-01 10:50', 1, 2), ('2024-01-01 11:10', 2, 3), ('2024-01-01 12:30', 3, 4);
UPDATE u SET name = 'eins' WHERE k = 1; FLUSH;
"""
_OLD = "SELECT k, sum(v) AS s FROM t GROUP BY k"
_QUERIES = {
    "the same": _OLD,
    "renamed": "SELECT k AS key, sum(v) AS total FROM t GROUP BY k",
    "moved": "SELECT sum(v) AS s, k FROM t GROUP BY k",
    "computed": "SELECT k, sum(v) * 2 AS s FROM t GROUP BY k",
    "a column less": "SELECT sum(v) AS s FROM t GROUP BY k",
    "a column more": "SELECT k, sum(v) AS s, count(*) AS n, avg(v) AS a FROM t GROUP BY k",
    "a condition": "SELECT k, sum(v) AS s FROM t WHERE v > 4 GROUP BY k",
    "having": "SELECT k, sum(v) AS s FROM t GROUP BY k HAVING sum(v) > 10",
    "another key": "SELECT v % 2 AS k, sum(v) AS s FROM t GROUP BY v % 2",
    "a join": "SELECT u.k, name, v FROM t JOIN u ON t.k = u.k",
    "windows": "SELECT k, window_start, sum(v) AS s FROM TUMBLE(t, at, INTERVAL '1 hour') GROUP BY k, window_start",
    "on close": "SELECT k, window_start, sum(v) AS s FROM TUMBLE(t, at, INTERVAL '1 hour') GROUP BY k, window_start "
    "EMIT ON WINDOW CLOSE",
    "over": "SELECT k, at, sum(v) OVER (PARTITION BY k ORDER BY at) AS s FROM t",
    "a filter of rows": "SELECT k, at, v FROM t WHERE v < 6",
}
_READERS = (
    "CREATE MATERIALIZED VIEW top AS SELECT max(s) AS m FROM v;"
    "CREATE MATERIALIZED VIEW everything AS SELECT * FROM v;"
    "CREATE VIEW plain AS SELECT v.* FROM v WHERE v.s IS NOT NULL;"
    "CREATE MATERIALIZED VIEW behind AS SELECT count(*) AS n FROM plain;"
)
_NAMES = ("top", "everything", "behind")


def _rows(session: Session, *names: str) -> dict[str, list[str]]:
    return {name: sorted(map(str, session.query(f"SELECT * FROM {name}").rows())) for name in names}


def _fresh(query: str, readers: str, names: tuple[str, ...]) -> list[dict[str, list[str]]]:
    """Return the rows of views made anew, before and after further rows."""
    with Session(":memory:") as session:
        session.run(f"{_TABLES} FLUSH; CREATE MATERIALIZED VIEW v AS {query}; {readers}")
        before = _rows(session, "v", *names)
        session.run(_MORE)
        return [before, _rows(session, "v", *names)]


@pytest.mark.slow_but("the same", "on close-windows", "on close-over")
@pytest.mark.slow_but_one_in(3)
@pytest.mark.parametrize("what", _QUERIES)
@pytest.mark.parametrize("first", ["the same", "on close"])
def test_rows_are_those_of_the_new_view_made_fresh(tmp_path: Path, what: str, first: str) -> None:
    query, store = _QUERIES[what], str(tmp_path / "views.duckdb")
    expected = _fresh(query, "", ())
    with Session(store) as session:
        session.run(f"{_TABLES} CREATE MATERIALIZED VIEW v AS {_QUERIES[first]}")
        session.run(f"ALTER MATERIALIZED VIEW v AS {query}")
        assert _rows(session, "v") == expected[0]
    with Session(store) as session:
        session.run(_MORE)
        assert _rows(session, "v") == expected[1]


@pytest.mark.slow_but("the same", "over-having", "over-windows")
@pytest.mark.slow_but_one_in(4)
@pytest.mark.parametrize("what", [what for what, query in _QUERIES.items() if " s" in query])
@pytest.mark.parametrize("first", ["the same", "over"])
def test_views_that_read_it_have_the_rows_of_those_made_fresh(what: str, first: str) -> None:
    query = _QUERIES[what]
    readers = _READERS if what != "renamed" else _READERS.replace("max(s)", "max(total)")
    if what == "renamed":
        query = "SELECT k, sum(v) AS s, sum(v) AS total FROM t GROUP BY k"
        readers = _READERS
    expected = _fresh(query, readers, _NAMES)
    with Session(":memory:") as session:
        session.run(f"{_TABLES} CREATE MATERIALIZED VIEW v AS {_QUERIES[first]}; {readers}")
        session.run(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {query}")
        assert _rows(session, "v", *_NAMES) == expected[0]
        session.run(_MORE)
        assert _rows(session, "v", *_NAMES) == expected[1]


_SUMS = "SELECT k, sum(v) AS s, count(*) AS n FROM t GROUP BY k"
_HOURS = "SELECT k, window_start, sum(v) AS s, max(v) AS m FROM TUMBLE(t, at, INTERVAL '1 hour') GROUP BY k, window_start"
_OVER_TEN = f"{_SUMS} HAVING sum(v) > 10"
_GOES_ON = {
    "a column computed of others": (_SUMS, "SELECT k, sum(v) * 2 + count(*) AS s FROM t GROUP BY k", True),
    "columns change their names": ("SELECT k, v, at FROM t", "SELECT v AS k, k AS v, at FROM t", True),
    "a constant": (_SUMS, "SELECT k, sum(v) AS s, 1 AS one FROM t GROUP BY k", True),
    "a condition of rows": ("SELECT k, v AS s FROM t", "SELECT k, v AS s FROM t WHERE v > 5", True),
    "one less of rows": ("SELECT k, v AS s FROM t WHERE v > 5", "SELECT k, v AS s FROM t", False),
    "having": (_SUMS, _OVER_TEN, True),
    "having of what is not there": (_SUMS, f"{_SUMS} HAVING max(v) > 5", False),
    "a lesser one": (_OVER_TEN, f"{_SUMS} HAVING sum(v) > 5", True),
    "no more having": (_OVER_TEN, _SUMS, True),
    "a call less": (_SUMS, "SELECT k, count(*) AS s FROM t GROUP BY k", True),
    "calls moved": (_SUMS, "SELECT k, count(*) AS n, sum(v) AS s FROM t GROUP BY k", True),
    "a call that was hidden": (f"{_SUMS} HAVING max(v) > 5", "SELECT k, sum(v) AS s, max(v) AS m FROM t GROUP BY k", True),
    "a number of rows": ("SELECT k, sum(v) AS s FROM t GROUP BY k", _SUMS, True),
    "an average of a sum": (
        "SELECT k, sum(v) AS s, count(v) AS n FROM t GROUP BY k",
        "SELECT k, avg(v) AS s FROM t GROUP BY k",
        True,
    ),
    "a sum of an average": (
        "SELECT k, avg(v) AS s FROM t GROUP BY k",
        "SELECT k, avg(v) AS s, sum(v) AS t FROM t GROUP BY k",
        True,
    ),
    "another call": (_SUMS, "SELECT k, sum(v) AS s, min(v) AS m FROM t GROUP BY k", False),
    "a call of other rows": (_SUMS, "SELECT k, sum(v) FILTER (WHERE v > 5) AS s, count(*) AS n FROM t GROUP BY k", False),
    "another argument": (_SUMS, "SELECT k, sum(v + 1) AS s, count(*) AS n FROM t GROUP BY k", False),
    "another key": (_SUMS, "SELECT k + 1 AS k, sum(v) AS s, count(*) AS n FROM t GROUP BY k + 1", False),
    "where": (_SUMS, _SUMS.replace("FROM t", "FROM t WHERE v > 5"), False),
    "what fails on a row": (_SUMS, "SELECT k, 10 / (sum(v) - 7) AS s FROM t GROUP BY k", False),
    "what fails on none": (_SUMS, "SELECT k, 10 / sum(v) AS s FROM t GROUP BY k", True),
    "distinct values": (_SUMS, "SELECT k, sum(v) AS s, count(DISTINCT v) AS n FROM t GROUP BY k", False),
    "one without distinct values": ("SELECT k, sum(v) AS s, count(DISTINCT v) AS n FROM t GROUP BY k", _SUMS, False),
    "windows with a call less": (_HOURS, _HOURS.replace(", max(v) AS m", ""), True),
    "windows with having": (_HOURS, f"{_HOURS} HAVING sum(v) > 6", True),
    "windows without one": (f"{_HOURS} HAVING sum(v) > 6", _HOURS, False),  # groups of before the watermark are freed
    "windows of another size": (_HOURS, _HOURS.replace("'1 hour'", "'2 hours'"), False),
    "windows on close": (_HOURS, f"{_HOURS} EMIT ON WINDOW CLOSE", False),
    "one group": ("SELECT sum(v) AS s, count(*) AS n FROM t", "SELECT count(*) AS n, sum(v) + 1 AS s FROM t", False),
    "columns of one group": ("SELECT sum(v) AS s, count(*) AS n FROM t", "SELECT sum(v) + 1 AS s, count(*) AS n FROM t", True),
    "a join": (
        "SELECT t.at, name, v AS s FROM t JOIN u ON t.k = u.k",
        "SELECT t.at, name, v AS s FROM t JOIN u ON t.k = u.k WHERE name || v > 'one2'",
        False,  # the condition comes to stand below the join
    ),
    "over": (
        "SELECT k, at, v, sum(v) OVER (PARTITION BY k ORDER BY at) AS s FROM t",
        "SELECT k, at, sum(v) OVER (PARTITION BY k ORDER BY at) - v AS s FROM t",
        True,
    ),
}
"""(the old query, the new one, whether the view goes on)"""


@pytest.mark.slow_but_one_in(4)
@pytest.mark.parametrize("what", _GOES_ON)
def test_a_view_goes_on_where_its_rows_and_state_are_those_of_one_made_fresh(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (old, new, goes_on), store = _GOES_ON[what], str(tmp_path / "views.duckdb")
    # Of the same type, without a watermark, and no rows that stay.
    is_read = "GROUP" in old and " AS s" in old and " AS s" in new and "avg" not in new and "1 hour" not in old
    readers = "CREATE MATERIALIZED VIEW top AS SELECT max(s) AS m FROM v" if is_read else ""
    names = ("top",) if readers else ()
    expected = _fresh(new, readers, names)
    with Session(store) as session:
        session.run(f"{_TABLES} CREATE MATERIALIZED VIEW v AS {old};")
        session.run(readers or "FLUSH")
        assert f"v {'goes on' if goes_on else 'is built'}" in "\n".join(
            _explained(session, f"ALTER MATERIALIZED VIEW v AS {new}")
        )
        with monkeypatch.context() as patched:
            if goes_on:
                patched.setattr("windowpane.sql.upkeep.embedded_runner.EmbeddedRunner.create", None)  # nothing is made anew
            session.run(f"ALTER MATERIALIZED VIEW v AS {new}")
        assert _rows(session, "v", *names) == expected[0]
    with Session(store) as session:
        session.run(_MORE)
        assert _rows(session, "v", *names) == expected[1]


_CALLS = ("sum(v)", "count(*)", "count(v)", "avg(v)", "min(v)", "max(k)", "sum(v + k)", "sum(v) FILTER (WHERE v > 4)")
_CONDITIONS = ("sum(v) > 7", "count(*) > 1", "max(k) < 3", "sum(v) % 2 = 1")


def _random_query(draw: random.Random, source: str) -> str:
    calls = [draw.choice([call, call, f"{call} * 2 + count(*)"]) for call in draw.sample(_CALLS, draw.randint(1, 3))]
    items = [*(f"{call} AS c{number}" for number, call in enumerate(calls)), "k"]
    draw.shuffle(items)
    having = " AND ".join(draw.sample(_CONDITIONS, draw.choice([0, 0, 1, 2])))
    groups = "k, window_start" if source.startswith("TUMBLE") else "k"
    return f"SELECT {', '.join(items)} FROM {source} GROUP BY {groups}{f' HAVING {having}' * bool(having)}"


@pytest.mark.parametrize("seed", seeds(10))
def test_views_of_random_groups_become_each_other(seed: int) -> None:
    draw = random.Random(seed)
    source = draw.choice(["t", "p", "TUMBLE(t, at, INTERVAL '1 hour')", "TUMBLE(p, at, INTERVAL '1 hour')"])
    queries = [_random_query(draw, source) for _ in range(5)]
    reader = "CREATE MATERIALIZED VIEW top AS SELECT count(*) AS n, sum(k) AS k FROM v"
    rows = "('2024-01-01 10:00', 1, 5), ('2024-01-01 10:20', 2, 7), ('2024-01-01 10:40', 1, 11)"
    tables = f"{_TABLES}; CREATE TABLE p (at timestamp, k int, v int PRIMARY KEY); INSERT INTO p VALUES {rows}"
    more = f"{_MORE} DELETE FROM p WHERE v IN (5, 7); INSERT INTO p VALUES ('2024-01-01 10:05', 2, 9), ('2024-01-01 11:50', 1, 2)"
    with Session(":memory:") as session:
        session.run(f"{tables}; FLUSH; CREATE MATERIALIZED VIEW v AS {queries[0]}; {reader}")
        for number, query in enumerate(queries[1:], 1):
            session.run(f"ALTER MATERIALIZED VIEW v AS {query}")
            if number == 3:
                session.run(f"{more}; FLUSH")
            with Session(":memory:") as fresh:
                fresh.run(f"{tables}; FLUSH; CREATE MATERIALIZED VIEW v AS {query}; {reader}; {f'{more}; FLUSH' * (number >= 3)}")
                assert _rows(session, "v", "top") == _rows(fresh, "v", "top"), (queries[number - 1], query)


def test_another_pattern_is_another_view() -> None:
    """The two plans differ in the conditions of the pattern alone."""
    rising, falling = (
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY at MEASURES a.v AS x, b.v AS y PATTERN (a b) "
        f"DEFINE b AS b.v {sign} a.v) EMIT ON WINDOW CLOSE"
        for sign in "><"
    )
    expected = _fresh(falling, "", ())
    with Session(":memory:") as session:
        session.run(f"{_TABLES} FLUSH; CREATE MATERIALIZED VIEW v AS {rising}")
        assert "built beside" in " ".join(_explained(session, f"ALTER MATERIALIZED VIEW v AS {falling}"))
        session.run(f"ALTER MATERIALIZED VIEW v AS {falling}")
        assert _rows(session, "v") == expected[0]
        session.run(_MORE)
        assert _rows(session, "v") == expected[1] != {"v": []}


def _explained(session: Session, statement: str) -> list[str]:
    return [str(row[0]) for row in session.query(f"EXPLAIN {statement}").rows()]


def test_state_goes_on_where_columns_are_renamed_moved_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with Session(":memory:") as session:
        session.run(f"{_TABLES} CREATE MATERIALIZED VIEW v AS SELECT k, sum(v) AS s, count(*) AS n FROM t GROUP BY k")
        statement = "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT sum(v) AS total, k AS key, count(*) AS n FROM t GROUP BY k"
        assert _explained(session, statement)[:5] == [
            "changes: safe",
            "v",
            "  columns: was k integer, s bigint, n bigint, is total bigint, key integer, n bigint",
            "    safe: its rows are stored, and are rewritten",
            "v goes on with its state",
        ]
        monkeypatch.setattr("windowpane.sql.upkeep.embedded_runner.EmbeddedRunner.create", None)  # nothing is made anew
        session.run(statement)
        assert session.query("SELECT * FROM v ORDER BY key").rows() == [(16, 1, 2), (7, 2, 1)]
        session.run(_MORE)
        assert session.query("SELECT * FROM v ORDER BY key").rows() == [(18, 1, 3), (10, 2, 2), (4, 3, 1)]
        assert "changes: same" in _explained(session, statement)
        session.run(f"SET streaming_expr_strict_mode = true; {statement}")
        assert session._catalog.view("v").strict


def test_explain_says_part_by_part_what_differs_and_who_is_built() -> None:
    with Session(":memory:") as session:
        session.run(f"{_TABLES} CREATE MATERIALIZED VIEW v AS {_OLD}; {_READERS}")
        lines = _explained(session, f"ALTER MATERIALIZED VIEW v AS {_QUERIES['a condition']}")
        assert lines[:9] == [
            "changes: refused",
            "v",
            "  where: was absent, is v > 4",
            "    refused: its state cannot be read by the new program",
            "v is built beside the old one, from t; they swap when it has caught up",
            "  top, which reads it, goes on",
            "  everything, which reads it, goes on",
            "  plain, which reads it, goes on",
            "  behind, which reads it, goes on",
        ]
        assert session.query("SELECT * FROM v ORDER BY k").rows() == [(1, 16), (2, 7)]
        lines = _explained(session, f"CREATE OR REPLACE MATERIALIZED VIEW v AS {_QUERIES['a column more']}")
        assert "  call count: was absent, is CAST(count(*) AS BIGINT)" in lines
        assert "  everything, which reads it, is built, too" in lines
        assert _explained(session, f"CREATE OR REPLACE MATERIALIZED VIEW new AS {_OLD}")[0].startswith("Project")


def test_what_cannot_be_replaced_is_refused_by_name() -> None:
    with Session(":memory:") as session:
        session.run(f"{_TABLES} CREATE MATERIALIZED VIEW v AS {_OLD}; {_READERS}")
        session.run("CREATE SINK out FROM v WITH (connector = 'blackhole'); CREATE INDEX i ON v (s)")
        expected = _rows(session, "v", *_NAMES)
        for statement, error, words in (
            ("ALTER MATERIALIZED VIEW none AS SELECT 1 AS x", SqlNameError, "no materialized view 'none'"),
            ("CREATE OR REPLACE MATERIALIZED VIEW t AS SELECT 1 AS x", SqlNameError, "it is a table"),
            ("ALTER MATERIALIZED VIEW v AS SELECT s AS k, m AS s FROM v, top", SqlNameError, "would read itself"),
            ("ALTER MATERIALIZED VIEW v AS SELECT m AS s FROM top", SqlNameError, "through 'top'"),
            (
                "ALTER MATERIALIZED VIEW v AS SELECT k FROM t",
                UnsupportedSqlError,
                "'top', .*'out', a sink of.*'i', an index",
            ),
            ("CREATE OR REPLACE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 1 AS x", SqlSyntaxError, "leave out IF NOT EXISTS"),
            ("CREATE OR REPLACE VIEW plain AS SELECT 1 AS x", UnsupportedSqlError, "CREATE OR REPLACE VIEW"),
            ("ALTER MATERIALIZED VIEW v AS SELECT missing FROM t", SqlNameError, "missing"),
        ):
            with pytest.raises(error, match=words):
                session.run(statement)
        assert _rows(session, "v", *_NAMES) == expected
        session.run(_MORE)
        assert session.query("SHOW MATERIALIZED VIEWS").rows() == [("v",), ("top",), ("everything",), ("behind",)]


def test_a_sink_gets_what_differs(tmp_path: Path) -> None:
    target, store = tmp_path / "out.duckdb", str(tmp_path / "views.duckdb")
    options = f"connector = 'duckdb', path = '{target}', table = "
    with Session(store) as session:
        session.run(f"{_TABLES} CREATE MATERIALIZED VIEW v AS {_OLD}; CREATE SINK a FROM v WITH ({options}'a')")
        session.run(f"CREATE SINK b AS SELECT sum(s) AS total FROM v WITH ({options}'b')")
        session.run(f"ALTER MATERIALIZED VIEW v AS {_QUERIES['a condition']}; INSERT INTO t VALUES ('2024-01-01 10:50', 3, 9)")
        words = [(row["_change_type"], row["s"]) for row in session.changelog("v").to_pylist()]
        assert words == []  # 16 and 7 are above 4 each
        session.run("ALTER MATERIALIZED VIEW v AS SELECT k, sum(v) AS s FROM t WHERE v > 6 GROUP BY k")
        words = [(row["_change_type"], row["s"]) for row in session.changelog("v").to_pylist()]
        assert words == [("update_preimage", 16), ("update_postimage", 11)]
    with duckdb.connect(str(target)) as out:
        assert out.sql("SELECT k, s FROM a ORDER BY k").fetchall() == [(1, 11), (2, 7), (3, 9)]
        assert out.sql("SELECT total FROM b").fetchall() == [(27,)]
    with Session(store) as session:
        session.run("INSERT INTO t VALUES ('2024-01-01 10:51', 3, 10); FLUSH")
    with duckdb.connect(str(target)) as out:
        assert out.sql("SELECT total FROM b").fetchall() == [(37,)]


@pytest.mark.parametrize("made", ["sum(v)", "max(v)", "min(v) + 1"])
def test_a_sink_follows_from_one_call_of_numeric_to_another(tmp_path: Path, made: str) -> None:
    target, call = tmp_path / "out.duckdb", "SELECT k, {} AS x FROM n GROUP BY k"
    with Session(":memory:") as session:
        session.run("CREATE TABLE n (id int PRIMARY KEY, k int, v numeric)")
        session.run("INSERT INTO n VALUES (1, 1, 2.5), (2, 1, 3), (3, 2, 4)")
        session.run(f"CREATE MATERIALIZED VIEW v AS {call.format('sum(v)')}")
        session.run(f"CREATE SINK o FROM v WITH (connector = 'duckdb', path = '{target}', table = 'o'); FLUSH")
        session.run(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {call.format(made)}")
        session.run("INSERT INTO n VALUES (4, 1, 7), (5, 3, 1); FLUSH")
    expected = {"sum(v)": ["12.5", "4", "1"], "max(v)": ["7", "4", "1"], "min(v) + 1": ["3.5", "5", "2"]}[made]
    with duckdb.connect(str(target)) as out:
        assert out.sql("SELECT k, x FROM o ORDER BY k").fetchall() == [(k + 1, Decimal(x)) for k, x in enumerate(expected)]


def test_a_view_whose_late_rows_a_sink_has_is_not_replaced() -> None:
    with Session(":memory:") as session:
        session.run(f"SET late_rows = 'open_windows'; {_TABLES} CREATE MATERIALIZED VIEW v AS {_QUERIES['windows']}")
        session.run("CREATE SINK late FROM LATE ROWS OF v WITH (connector = 'blackhole')")
        with pytest.raises(UnsupportedSqlError, match=r"'sink late'.*late rows of a view.*DROP them first"):
            session.run(f"ALTER MATERIALIZED VIEW v AS {_QUERIES['on close']}")
        session.run(f"DROP SINK late; ALTER MATERIALIZED VIEW v AS {_QUERIES['on close']}")
        assert session.query("SELECT count(*) FROM v").rows() == [(0,)]


def test_a_view_goes_behind_what_it_reads_now_and_its_text_is_a_create(tmp_path: Path, every_key_is_unique: Watch) -> None:
    store = str(tmp_path / "views.duckdb")
    with Session(store) as session:
        session.run(f"{_TABLES} CREATE MATERIALIZED VIEW v AS {_OLD}; {_READERS}; CREATE MATERIALIZED VIEW later AS {_OLD}")
        session.run("ALTER MATERIALIZED VIEW v AS SELECT k, s + 1 AS s FROM later")
    with Session(store) as session:
        session.run(_MORE)
        assert _rows(session, "v", "top") == {"v": ["(1, 19)", "(2, 11)", "(3, 5)"], "top": ["(19,)"]}
        shown = str(session.query("SHOW CREATE MATERIALIZED VIEW v").rows())
        assert "CREATE MATERIALIZED VIEW v AS SELECT k, s + 1 AS s FROM later" in shown
        session.run("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT 1 AS k, 2 AS s; ALTER MATERIALIZED VIEW v RENAME TO w")
        every_key_is_unique.renamed("v", "w")
        assert session.query("SELECT * FROM w").rows() == [(1, 2)]


def test_a_new_view_that_fails_leaves_the_old_one() -> None:
    with Session(":memory:") as session:
        session.run(f"{_TABLES} CREATE MATERIALIZED VIEW v AS {_OLD}; {_READERS}; SET streaming_expr_strict_mode = true")
        expected = _rows(session, "v", *_NAMES)
        with pytest.raises(SqlRunError, match="zero"):
            session.run("ALTER MATERIALIZED VIEW v AS SELECT k, sum(1 / (v - 5)) AS s FROM t GROUP BY k")
        assert _rows(session, "v", *_NAMES) == expected
        session.run("SET streaming_expr_strict_mode = false")
        session.run("ALTER MATERIALIZED VIEW v AS SELECT k, sum(1 / (v - 5)) AS s FROM t GROUP BY k")
        assert session.query("SELECT count(*) FROM v WHERE s IS NULL OR s = 0").rows() == [(2,)]
        assert session.query("SHOW ERRORS").rows()[0][0] == "v"


def test_a_view_with_rows_that_failed_does_not_go_on_as_a_strict_one() -> None:
    """One made fresh would fail on them."""
    query = "SELECT k, 1 / (v - 5) AS s FROM t"
    with Session(":memory:") as session:
        session.run(f"{_TABLES} CREATE MATERIALIZED VIEW v AS {query}; SET streaming_expr_strict_mode = true")
        with pytest.raises(SqlRunError, match="zero"):
            session.run(f"ALTER MATERIALIZED VIEW v AS {query}")
        session.run(f"ALTER MATERIALIZED VIEW v AS {query} WHERE v > 5")
        assert sorted(session.query("SELECT k FROM v").rows()) == [(1,), (2,)]


def test_a_view_is_not_replaced_while_one_that_reads_it_is_behind() -> None:
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (k int PRIMARY KEY, v int); CREATE MATERIALIZED VIEW v AS SELECT k, v FROM t")
        session.run("SET streaming_expr_strict_mode = true; CREATE MATERIALIZED VIEW r AS SELECT k, 1 / v AS x FROM v")
        with pytest.raises(StaleViewError):
            session.run("INSERT INTO t VALUES (1, 0); FLUSH")
        with pytest.raises(UnsupportedSqlError, match="'r', which reads it, is behind"):
            session.run("ALTER MATERIALIZED VIEW v AS SELECT k, v + 1 AS v FROM t")
        session.run("DROP MATERIALIZED VIEW r; ALTER MATERIALIZED VIEW v AS SELECT k, v + 1 AS v FROM t")
        assert session.query("SELECT v FROM v").rows() == [(1,)]


_KILLED = """
import os, signal, sys
from windowpane.sql import Session
from windowpane.sql.catalog.definitions import Definitions
from windowpane.sql.catalog.replacing import Replacing

def dies(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

owner = {"redefine": Definitions, "swap": Replacing}[sys.argv[2]]
setattr(owner, sys.argv[2], dies)
with Session(sys.argv[1]) as session:
    session.run("ALTER MATERIALIZED VIEW v AS SELECT k, count(*) AS s, 1 AS one FROM t GROUP BY k")
"""


@pytest.mark.parametrize("where", ["swap", "redefine"])
def test_a_kill_before_or_in_the_swap_leaves_the_old_views(tmp_path: Path, where: str) -> None:
    store = str(tmp_path / "views.duckdb")
    with Session(store) as session:
        session.run(f"{_TABLES} CREATE MATERIALIZED VIEW v AS {_OLD}; {_READERS}")
        expected = _rows(session, "v", *_NAMES)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    died = subprocess.run([sys.executable, "-c", _KILLED, store, where], env=environment, check=False)
    assert died.returncode == -signal.SIGKILL
    with Session(store) as session:
        assert _rows(session, "v", *_NAMES) == expected
        session.run(_MORE)
        assert _rows(session, "v", "top") == {"v": ["(1, 18)", "(2, 10)", "(3, 4)"], "top": ["(18,)"]}
        session.run("ALTER MATERIALIZED VIEW v AS SELECT k, count(*) AS s, 1 AS one FROM t GROUP BY k")
        assert _rows(session, "v") == {"v": ["(1, 3, 1)", "(2, 2, 1)", "(3, 1, 1)"]}
    with duckdb.connect(store) as kept:
        left = "SELECT count(*) FROM information_schema.tables WHERE starts_with(table_name, 'replacement of')"
        assert kept.sql(left).fetchall() == [(0,)]


def test_a_refusal_says_in_which_digits_a_number_differs(tmp_path: Path) -> None:
    with Session(store=str(tmp_path / "views.duckdb")) as session:
        session.run("CREATE TABLE prices (sym text, price numeric)")
        session.run("CREATE MATERIALIZED VIEW v AS SELECT sym, sum(price) AS p FROM prices GROUP BY sym")
        session.run(f"CREATE SINK s FROM v WITH (connector = 'duckdb', path = '{tmp_path / 'out.duckdb'}', table = 'v')")
        with pytest.raises(UnsupportedSqlError, match=r"p numeric\(38, 10\) by sym, which would have .*p numeric\(38, 28\)"):
            session.run("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT sym, avg(price) AS p FROM prices GROUP BY sym")
