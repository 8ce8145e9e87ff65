"""Flink's older form of windows, ``GROUP BY TUMBLE(...)``: the same groups as of the window table functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from windowpane.errors import SqlError
from windowpane.sql import Session

HALF, HOUR, GAP = "INTERVAL '30' MINUTE", "INTERVAL '1' HOUR", "INTERVAL '10' MINUTE"
TABLE = "CREATE TABLE t (id int, at timestamp, who text, v int, WATERMARK FOR at AS at - INTERVAL '5' MINUTE) APPEND ONLY"

PAIRS = {
    "tumble": (
        f"SELECT who, TUMBLE_START(at, {HOUR}) AS s, TUMBLE_END(at, {HOUR}) AS e, TUMBLE_ROWTIME(at, {HOUR}) AS r, sum(v) AS v "
        f"FROM t WHERE v > 0 GROUP BY TUMBLE(at, {HOUR}), who HAVING count(*) < 9",
        "SELECT who, window_start AS s, window_end AS e, window_time AS r, sum(v) AS v "
        f"FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(at), {HOUR})) WHERE v > 0 GROUP BY window_start, window_end, window_time, who",
    ),
    "hop": (
        f"SELECT HOP_START(at, {HALF}, {HOUR}) AS s, HOP_END(at, {HALF}, {HOUR}) AS e, count(*) AS n FROM t "
        f"GROUP BY HOP(at, {HALF}, {HOUR})",
        f"SELECT window_start AS s, window_end AS e, count(*) AS n FROM TABLE(HOP(TABLE t, DESCRIPTOR(at), {HALF}, {HOUR})) "
        "GROUP BY window_start, window_end",
    ),
    "session": (
        f"SELECT upper(who) AS who, SESSION_START(at, {GAP}) AS s, SESSION_END(at, {GAP}) AS e, count(*) AS n FROM t "
        f"GROUP BY SESSION(at, {GAP}), upper(who)",
        "SELECT who, window_start AS s, window_end AS e, count(*) AS n FROM TABLE(SESSION(TABLE big PARTITION BY who, "
        f"DESCRIPTOR(at), {GAP})) GROUP BY window_start, window_end, who",
    ),
    "session_of_all": (
        f"SELECT SESSION_START(at, {GAP}) AS s, max(v) AS v FROM t GROUP BY SESSION(at, {GAP})",
        f"SELECT window_start AS s, max(v) AS v FROM TABLE(SESSION(TABLE t, DESCRIPTOR(at), {GAP})) "
        "GROUP BY window_start, window_end",
    ),
}
ROWS = (
    "(1, '2024-01-01 00:10', 'a', 1), (2, '2024-01-01 00:14', 'b', 2), (3, '2024-01-01 00:20', 'A', 3)",
    "(4, '2024-01-01 00:25', 'b', 4), (5, '2024-01-01 00:35', 'a', 0), (6, '2024-01-01 02:00', 'a', 5)",
    "(7, '2024-01-01 01:00', 'late', 1), (8, '2024-01-01 03:30', 'b', 6)",
)


@pytest.mark.slow_but_one_in(3)
@pytest.mark.parametrize("closes", ["", " EMIT ON WINDOW CLOSE"])
@pytest.mark.parametrize("name", PAIRS)
def test_both_forms_give_the_same(name: str, closes: str, tmp_path: Path) -> None:
    path = str(tmp_path / "windows.duckdb")
    with Session(path) as session:
        session.run(f"{TABLE}; CREATE VIEW big AS SELECT at, upper(who) AS who FROM t")
        for view, query in zip(("older", "newer"), PAIRS[name], strict=True):
            session.run(f"CREATE MATERIALIZED VIEW {view} AS {query}{closes}")
        session.run(f"INSERT INTO t VALUES {ROWS[0]}; FLUSH")
    with Session(path) as session:
        for rows in ROWS[1:]:
            session.run(f"INSERT INTO t VALUES {rows}; FLUSH")
            older, newer = (sorted(session.query(f"SELECT * FROM {view}").rows()) for view in ("older", "newer"))
            assert older == newer
            if not closes:
                assert sorted(session.query(PAIRS[name][0]).rows()) == older
    assert older


def test_a_session_comes_out_when_the_watermark_is_behind_its_gap() -> None:
    """A row exactly one gap after the last still belongs to it, so the watermark must have passed the end, not met it."""
    with Session() as session:
        session.run(f"{TABLE}; CREATE MATERIALIZED VIEW w AS {PAIRS['session_of_all'][0]} EMIT ON WINDOW CLOSE")
        session.run("INSERT INTO t VALUES (1, '2024-01-01 00:10', 'a', 1), (2, '2024-01-01 00:25', 'a', 2); FLUSH")
        assert session.query("SELECT v FROM w").rows() == []
        session.run("INSERT INTO t VALUES (3, '2024-01-01 00:20', 'a', 7), (4, '2024-01-01 00:40', 'a', 2); FLUSH")
        assert session.query("SELECT v FROM w").rows() == []
        session.run("INSERT INTO t VALUES (5, '2024-01-01 00:35', 'a', 1), (6, '2024-01-01 01:00', 'a', 1); FLUSH")
        assert session.query("SELECT s::text, v FROM w").rows() == [("2024-01-01 00:10:00", 7)]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT count(*) FROM t GROUP BY TUMBLE(at)", "TUMBLE\\(time, size\\)"),
        (f"SELECT HOP_START(at, {HALF}, {HALF}) FROM t GROUP BY HOP(at, {HALF}, {HOUR})", "another window than HOP"),
        (f"SELECT TUMBLE_PROCTIME(at, {HOUR}) FROM t GROUP BY TUMBLE(at, {HOUR})", "TUMBLE_PROCTIME"),
        (f"SELECT 1 FROM t GROUP BY TUMBLE(at, {HOUR}), SESSION(at, {GAP})", "a second window"),
        (f"SELECT at FROM t GROUP BY TUMBLE(at, {HOUR})", "neither in GROUP BY"),
        (f"SELECT * FROM t WHERE TUMBLE(at, {HOUR}) IS NULL", "no function 'tumble'"),
    ],
)
def test_windows_that_make_no_groups_are_refused(query: str, words: str) -> None:
    with Session() as session:
        session.run(TABLE)
        with pytest.raises(SqlError, match=words):
            session.query(query)
