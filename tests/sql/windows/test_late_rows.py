"""Rows below the watermark of their table: dropped there, or taken by every window that was open; a flush never decides.

Expected counts are computed from the rows by the rule itself, chunk by chunk, without SQL.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windowpane.errors import SqlNameError, SqlTypeError, UnsupportedSqlError
from windowpane.sql import Session

Row = tuple[int, int]
"""Its key, and its second."""

DELAY, SIZE, SLIDE, GAP = 120, 600, 300, 300
TABLE = "CREATE TABLE t (k int, at timestamp, WATERMARK FOR at AS at - INTERVAL '2 minutes') APPEND ONLY"
COUNTS = {
    "tumble": "SELECT k, window_start, count(*) AS n FROM TUMBLE(t, at, INTERVAL '10 minutes') GROUP BY k, window_start",
    "hop": (
        "SELECT k, window_start, count(*) AS n FROM HOP(t, at, INTERVAL '5 minutes', INTERVAL '10 minutes') "
        "GROUP BY k, window_start"
    ),
    "of_a_subquery": (
        "SELECT k, window_start, count(*) AS n FROM TUMBLE((SELECT at, k FROM t WHERE k > 0), at, INTERVAL '10 minutes') "
        "GROUP BY k, window_start"
    ),
    "older_form": (
        "SELECT k, TUMBLE_START(at, INTERVAL '10' MINUTE) AS window_start, count(*) AS n FROM t "
        "GROUP BY k, TUMBLE(at, INTERVAL '10' MINUTE)"
    ),
    "session": (
        "SELECT k, window_start, count(*) AS n FROM SESSION(t PARTITION BY (k), DESCRIPTOR(at), INTERVAL '5 minutes') "
        "GROUP BY k, window_start, window_end"
    ),
    "no_windows": "SELECT k, date_trunc('day', min(at)) AS window_start, count(*) AS n FROM t GROUP BY k",
}


def chunks_of(seed: int) -> list[list[Row]]:
    draw = random.Random(seed)
    rows = [(draw.randint(1, 2), max(0, second * 20 - draw.randint(0, 600))) for second in range(120)]
    return [rows[first : first + 8] for first in range(0, len(rows), 8)]


def starts(kind: str, second: int) -> list[int]:
    if kind == "hop":
        first = second - second % SLIDE
        return [start for start in (first - SLIDE, first) if start + SIZE > second]
    return [second - second % SIZE]


def expected(kind: str, rule: str, chunks: Sequence[Sequence[Row]]) -> dict[tuple[int, int], int]:
    """Return the number of rows of each key and window."""
    found, mark, kept = Counter[tuple[int, int]](), None, list[Row]()
    for chunk in chunks:
        for key, second in chunk:
            if kind == "no_windows" or rule == "watermark":
                taken = mark is None or second >= mark
            else:
                taken = mark is None or second + GAP >= mark
            if kind == "session":
                kept += [(key, second)] if taken else []
            elif kind == "no_windows" or rule == "watermark":
                found.update((key, 0 if kind == "no_windows" else start) for start in starts(kind, second) if taken)
            else:
                found.update((key, start) for start in starts(kind, second) if mark is None or start + SIZE > mark)
        mark = max(second - DELAY for _, second in chunk) if mark is None else max(mark, *(s - DELAY for _, s in chunk))
    return dict(found) if kind != "session" else sessions(kept)


def sessions(rows: Sequence[Row]) -> dict[tuple[int, int], int]:
    found = Counter[tuple[int, int]]()
    for key in {key for key, _ in rows}:
        seconds = sorted(second for each, second in rows if each == key)
        start = seconds[0]
        found[key, start] += 1
        for one, other in pairwise(seconds):
            start = start if other - one <= GAP else other
            found[key, start] += 1
    return dict(found)


def inserted(session: Session, chunk: Sequence[Row]) -> None:
    rows = ", ".join(f"({key}, timestamp '2024-01-01' + interval '1 second' * {second})" for key, second in chunk)
    session.run(f"INSERT INTO t VALUES {rows}")


def counted(session: Session, query: str) -> dict[tuple[int, int], int]:
    rows = session.query(f"SELECT k, extract(epoch FROM window_start - timestamp '2024-01-01')::int, n FROM ({query})").rows()
    return {(key, start): number for key, start, number in rows}


@pytest.fixture(params=["watermark", "open_windows"])
def rule(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.slow_but("open_windows-0.4-session", "watermark-0.4-session")
@pytest.mark.parametrize("kind", COUNTS)
@pytest.mark.parametrize("flush", [0.0, 0.4])
def test_a_view_has_the_rows_of_the_rule_wherever_a_flush_falls(kind: str, rule: str, flush: float) -> None:
    chunks, draw = chunks_of(7), random.Random(flush)
    with Session() as session:
        session.run(f"SET late_rows = '{rule}'; {TABLE}; CREATE MATERIALIZED VIEW m AS {COUNTS[kind]}")
        for chunk in chunks:
            inserted(session, chunk)
            if draw.random() < flush:
                session.run("FLUSH")
        session.run(f"FLUSH; CREATE MATERIALIZED VIEW made_later AS {COUNTS[kind]}")
        found = counted(session, "SELECT * FROM m")
        assert found == expected(kind, rule, chunks)
        assert counted(session, COUNTS[kind]) == found
        assert counted(session, "SELECT * FROM made_later") == found


def test_the_rules_differ_on_these_rows() -> None:
    chunks = chunks_of(7)
    dropped, judged = (sum(expected("tumble", rule, chunks).values()) for rule in ("watermark", "open_windows"))

    assert 0 < dropped < judged < sum(map(len, chunks))


def test_each_window_is_emitted_once_when_it_has_closed(rule: str) -> None:
    chunks = [*chunks_of(11), [(9, 100_000)]]
    with Session() as session:
        session.run(f"SET late_rows = '{rule}'; {TABLE}")
        for kind in ("tumble", "hop", "session"):
            session.run(f"CREATE MATERIALIZED VIEW {kind}_closed AS {closing(kind)} EMIT ON WINDOW CLOSE")
        for chunk in chunks:
            inserted(session, chunk)
            session.run("FLUSH")
        for kind in ("tumble", "hop", "session"):
            wanted = {at: number for at, number in expected(kind, rule, chunks).items() if at[0] != 9}
            assert counted(session, f"SELECT * FROM {kind}_closed WHERE k <> 9") == wanted


def closing(kind: str) -> str:
    return (
        COUNTS[kind]
        .replace("k, window_start, count", "k, window_start, window_end, count")
        .replace("GROUP BY k, window_start, window_end", "GROUP BY k, window_start")
        .replace("GROUP BY k, window_start", "GROUP BY k, window_start, window_end")
    )


def test_a_table_keeps_the_rule_it_was_made_with(tmp_path: Path) -> None:
    path, chunks = str(tmp_path / "store.duckdb"), chunks_of(3)
    with Session(path) as session:
        session.run(f"SET late_rows = 'open_windows'; {TABLE}; CREATE MATERIALIZED VIEW m AS {COUNTS['tumble']}")
        inserted(session, chunks[0])
    for first in range(1, len(chunks), 5):
        with Session(path) as session:
            for chunk in chunks[first : first + 5]:
                inserted(session, chunk)
                session.run("FLUSH")
    with Session(path) as session:
        assert counted(session, "SELECT * FROM m") == expected("tumble", "open_windows", chunks)
        assert session.query("SHOW late_rows").text_rows() == [["watermark"]]


def test_the_number_of_rows_below_the_watermark_is_shown_under_both_rules(rule: str) -> None:
    chunks = chunks_of(7)
    with Session() as session:
        session.run(f"SET late_rows = '{rule}'; {TABLE}")
        for chunk in chunks:
            inserted(session, chunk)
        taken = sum(expected("no_windows", rule, chunks).values())
        assert session.query("SHOW WATERMARKS").text_rows()[0][-1] == str(sum(map(len, chunks)) - taken)
        assert session.query("SELECT count(*) FROM t").rows() == [(taken,)]


Late = tuple[int, int, list[int], bool, int, int]
"""Key, second, the starts of the windows that had closed, whether none was left, the watermark, how far behind it the row is."""


def missed(kind: str, chunks: Sequence[Sequence[Row]]) -> list[Late]:
    """Return the rows that are late."""
    found, mark = list[Late](), None
    for chunk in chunks:
        for key, second in chunk:
            if mark is None:
                continue
            windows = [] if kind == "no_windows" else [second] if kind == "session" else starts(kind, second)
            size = GAP if kind == "session" else SIZE
            closed = [start for start in windows if start + size <= mark]
            # An open window of a session ends at the watermark, too: of two rows with the gap between them one session is made.
            closed = [start for start in closed if kind != "session" or start + GAP < mark]
            if closed or (kind == "no_windows" and second < mark):
                found.append((key, second, closed, len(closed) == len(windows), mark, mark - second))
        mark = max(second - DELAY for _, second in chunk) if mark is None else max(mark, *(s - DELAY for _, s in chunk))
    return sorted(found)


def sent_late(folder: Path) -> list[Late]:
    """Return what a sink of late rows has written, in the form of ``missed``."""
    rows = [row for file in sorted(folder.glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    assert {row["_change_type"] for row in rows} == {"insert"}
    of_day = datetime(2024, 1, 1)
    return sorted(
        (
            row["k"],
            int((row["at"].replace(tzinfo=None) - of_day).total_seconds()),
            [int((datetime.fromisoformat(each["start"]) - of_day).total_seconds()) for each in json.loads(row["windows_missed"])],
            row["dropped"],
            int((row["watermark"].replace(tzinfo=None) - of_day).total_seconds()),
            row["late_by"] // 1_000_000,
        )
        for row in rows
    )


@pytest.mark.slow_but("session")
@pytest.mark.parametrize("kind", COUNTS)
def test_a_sink_has_the_rows_that_a_view_is_too_late_for_and_the_windows_they_missed(kind: str, tmp_path: Path) -> None:
    chunks, store = chunks_of(7), str(tmp_path / "store.db")
    late = f"CREATE SINK late FROM LATE ROWS OF m WITH (connector = 'parquet', path = '{tmp_path}/late')"
    with Session(store) as session:
        session.run(f"SET late_rows = 'open_windows'; {TABLE}; CREATE MATERIALIZED VIEW m AS {COUNTS[kind]}; {late}")
        for chunk in chunks[:8]:
            inserted(session, chunk)
        session.run("FLUSH")
        with pytest.raises(UnsupportedSqlError, match="'late' reads 'm'"):
            session.run("DROP MATERIALIZED VIEW m")
    with Session(store) as session:
        for chunk in chunks[8:]:
            inserted(session, chunk)
            session.run("FLUSH")
        found = sent_late(tmp_path / "late")
        assert found == missed(kind, chunks)
        assert {row[3] for row in found} == {kind != "hop"}
        session.run("ALTER MATERIALIZED VIEW m RENAME TO counts; DROP SINK late; DROP MATERIALIZED VIEW counts")


def test_late_rows_of_what_keeps_none_are_refused() -> None:
    sink = "CREATE SINK late FROM LATE ROWS OF {} WITH (connector = 'blackhole')"
    with Session() as session:
        session.run(f"{TABLE}; CREATE MATERIALIZED VIEW m AS {COUNTS['tumble']}")
        for name in ("t", "m"):
            with pytest.raises(UnsupportedSqlError, match=rf"LATE ROWS OF {name}, which keeps none.*SET late_rows"):
                session.run(sink.format(name))
        with pytest.raises(SqlNameError, match="no table or view 'other'"):
            session.run(sink.format("other"))
        both = COUNTS["tumble"].replace("count(*) AS n", "count(*) AS n").replace("t, at", "u, at")
        session.run(f"SET late_rows = 'open_windows'; {TABLE.replace('TABLE t', 'TABLE u')}")
        session.run(f"CREATE MATERIALIZED VIEW two AS ({both}) UNION ALL ({both})")
        with pytest.raises(UnsupportedSqlError, match="judges them in 2 places"):
            session.run(sink.format("two"))
        session.run(sink.format("u"))


def test_another_word_is_refused() -> None:
    with Session() as session, pytest.raises(SqlTypeError, match=r"'never' is not known\. Write 'watermark'"):
        session.run("SET late_rows = 'never'")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rows").mkdir()
    return tmp_path / "rows"


def write_file(folder: Path, number: int, chunk: Sequence[Row]) -> None:
    micros = [1_704_067_200_000_000 + second * 1_000_000 for _, second in chunk]
    table = pa.table({"k": pa.array([key for key, _ in chunk], pa.int32()), "at": pa.array(micros, pa.timestamp("us"))})
    pq.write_table(table, folder / f"{number:03}.parquet")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("rule", ["open_windows"])
def test_views_on_spark_have_the_same_rows(spark, folder: Path, rule: str) -> None:
    chunks = [[row for chunk in chunks_of(7)[first : first + 4] for row in chunk] for first in range(0, 12, 4)]
    chunks.append([(1, 60), (2, 1_850), (1, 1_900)])
    source = TABLE.replace("CREATE TABLE t", "CREATE SOURCE s").removesuffix(" APPEND ONLY")
    write_file(folder, 999, [])
    with Session(spark) as session:
        session.run(f"SET late_rows = '{rule}'; {TABLE}; {source} WITH (connector = 'parquet', path = '{folder}')")
        for kind in ("tumble", "session"):
            session.run(f"CREATE MATERIALIZED VIEW {kind}_t AS {COUNTS[kind]}")
            of_source = COUNTS[kind].replace("(t,", "(s,").replace("(t ", "(s ")
            session.run(f"CREATE MATERIALIZED VIEW {kind}_s AS {of_source}")
            late = f"CREATE SINK late_{kind} FROM LATE ROWS OF {kind}_s WITH (connector = 'parquet', path = '{{}}')"
            session.run(late.format(folder.parent / f"late_{kind}"))
        for number, chunk in enumerate(chunks):
            inserted(session, chunk)
            write_file(folder, number, chunk)
            session.run("FLUSH")
        for kind in ("tumble", "session"):
            wanted = expected(kind, rule, chunks)
            assert counted(session, f"SELECT * FROM {kind}_t") == wanted
            assert counted(session, f"SELECT * FROM {kind}_s") == wanted
            assert sent_late(folder.parent / f"late_{kind}") == missed(kind, chunks) != []
