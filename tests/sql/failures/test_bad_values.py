"""A value that an expression of a view fails on is NULL there, listed, and stops nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from windowpane.errors import (
    InvalidTextError,
    InvalidValueError,
    MalformedRowError,
    OutOfRangeError,
    SqlTypeError,
    StaleViewError,
)
from windowpane.sql import Session


@pytest.fixture
def session() -> Iterator[Session]:
    with Session(":memory:") as opened:
        opened.run("CREATE TABLE raw (id int PRIMARY KEY, x text)")
        yield opened


def _texts(session: Session, query: str) -> list[list[str | None]]:
    return session.query(query).text_rows()


def _errors(session: Session) -> list[list[str | None]]:
    return [row[:5] for row in _texts(session, "SHOW ERRORS")]


# RisingWave: e2e_test/streaming/non_strict_mode.slt has these facts.
@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT x::int AS v FROM raw", [["4"], [None], [None]]),
        ("SELECT coalesce(x::int, 0) AS v FROM raw", [["0"], ["0"], ["4"]]),
        ("SELECT x::int IS NULL AS v FROM raw", [["f"], ["t"], ["t"]]),
        ("SELECT id AS v FROM raw WHERE x::int > 0", [["2"]]),
        ("SELECT id AS v FROM raw WHERE NOT (x::int > 0)", []),
        ("SELECT id AS v FROM raw WHERE x::int > 0 OR id = 1", [["1"], ["2"]]),
        ("SELECT CASE WHEN id = 1 THEN 7 ELSE x::int END AS v FROM raw", [["4"], ["7"], [None]]),
        ("SELECT sum(x::int) AS v FROM raw", [["4"]]),
        ("SELECT count(*) AS v FROM raw GROUP BY x::int", [["1"], ["2"]]),
        ("SELECT max(x::int) OVER (PARTITION BY 1::int) AS v FROM raw", [["4"], ["4"], ["4"]]),
        ("SELECT l.id AS v FROM raw l JOIN raw r ON l.x::int = r.x::int", [["2"]]),
        ("SELECT l.id AS v FROM raw l JOIN raw r ON l.id = r.id AND l.x::int + r.x::int > 0", [["2"]]),
        ("SELECT l.id AS v FROM raw l LEFT JOIN raw r ON l.id = r.id AND r.x::int > 0 WHERE r.id IS NULL", [["1"], ["3"]]),
        ("SELECT x::int AS v FROM raw UNION ALL SELECT id FROM raw WHERE id = 1", [["1"], ["4"], [None], [None]]),
        ("SELECT jsonb_agg(x::int ORDER BY id)::text AS v FROM raw", [["[null, 4, null]"]]),
    ],
)
def test_an_expression_that_fails_is_null_by_itself(session: Session, query: str, rows: list[list[str | None]]) -> None:
    session.run(f"CREATE MATERIALIZED VIEW mv AS {query}")
    session.run("INSERT INTO raw VALUES (1, 'two'), (2, '4'), (3, NULL); FLUSH")
    assert _texts(session, "SELECT v FROM mv ORDER BY v") == rows
    session.run("DELETE FROM raw WHERE id = 1; FLUSH; INSERT INTO raw VALUES (1, 'two'); FLUSH")
    assert _texts(session, "SELECT v FROM mv ORDER BY v") == rows
    session.run("DELETE FROM raw; FLUSH")
    assert _texts(session, "SELECT v FROM mv WHERE v IS NOT NULL") == []
    session.run(
        "INSERT INTO raw VALUES (1, 'two'), (2, '4'), (3, NULL); CREATE MATERIALIZED VIEW late AS SELECT v FROM mv; FLUSH"
    )
    session.run(f"CREATE MATERIALIZED VIEW whole AS {query}")
    assert _texts(session, "SELECT v FROM whole ORDER BY v") == rows == _texts(session, "SELECT v FROM mv ORDER BY v")


def test_what_failed_is_listed_once_with_its_count(session: Session) -> None:
    session.run("CREATE MATERIALIZED VIEW mv AS SELECT x::int AS n, 10 / id AS q FROM raw")
    session.run("INSERT INTO raw VALUES (0, 'two'), (1, 'two'), (2, '3'); FLUSH; INSERT INTO raw VALUES (3, 'two'); FLUSH")
    assert _errors(session) == [
        ["mv", "10 / id", "0", "division by zero.", "1"],
        ["mv", "CAST(x AS INTEGER)", "two", 'invalid input syntax for type integer: "two".', "3"],
    ]
    session.run("DELETE FROM raw; FLUSH")
    assert [row[4] for row in _errors(session)] == ["1", "3"]
    session.run("DROP MATERIALIZED VIEW mv")
    assert _errors(session) == []


def test_a_branch_that_is_not_taken_does_not_fail(session: Session) -> None:
    branch = "CASE WHEN id <> 0 THEN 10 / id ELSE -1 END AS q, coalesce(nullif(id, 1), x::int) AS c"
    session.run(f"CREATE MATERIALIZED VIEW mv AS SELECT {branch}, x::int AS n FROM raw")
    session.run("INSERT INTO raw VALUES (0, 'two'), (1, '4'); FLUSH")
    assert _texts(session, "SELECT q, c, n FROM mv ORDER BY q") == [["-1", "0", None], ["10", "4", "4"]]
    assert [row[1:3] + row[4:] for row in _errors(session)] == [["CAST(x AS INTEGER)", "two", "1"]]


def test_a_bad_value_that_reaches_many_views_does_not_repeat_the_flush_for_each(session: Session) -> None:
    runs = 0
    for number in range(6):
        session.run(f"CREATE MATERIALIZED VIEW v{number} AS SELECT x::int + {number} AS n FROM raw")
    session.run("CREATE SINK copies AS SELECT x::int AS n FROM raw WITH (connector = 'blackhole')")
    flush = session._runner.flush

    def counted(writer) -> None:
        nonlocal runs
        runs += 1
        flush(writer)

    session._runner.flush = counted  # type: ignore[method-assign]
    session.run("INSERT INTO raw VALUES (1, 'two'), (2, '2'); FLUSH")
    assert runs == 3
    for number in range(6):
        assert _texts(session, f"SELECT n FROM v{number} ORDER BY n") == [[str(number + 2)], [None]]
    assert [row[0] for row in _errors(session)] == ["sink copies", *(f"v{number}" for number in range(6))]


def test_values_beyond_a_hundred_are_counted_together(session: Session) -> None:
    session.run("CREATE MATERIALIZED VIEW mv AS SELECT x::int AS n FROM raw")
    session.run("INSERT INTO raw SELECT n, 'v' || n FROM generate_series(1, 150) AS t(n); FLUSH")
    listed = _errors(session)
    assert len(listed) == 101
    assert [row[4] for row in listed if row[2] is None] == ["50"]


def test_a_strict_view_stops_alone_and_catches_up(tmp_path: Path) -> None:
    store = str(tmp_path / "store.duckdb")
    with Session(store) as session:
        session.run("CREATE TABLE t (id int PRIMARY KEY, x text); CREATE MATERIALIZED VIEW lenient AS SELECT x::int AS n FROM t")
        session.run("SET streaming_expr_strict_mode = true; CREATE MATERIALIZED VIEW strict AS SELECT id, x::int AS n FROM t")
        session.run("CREATE MATERIALIZED VIEW above AS SELECT count(*) AS c FROM strict")
        session.run("CREATE SINK copies FROM strict WITH (connector = 'blackhole')")
        session.run("INSERT INTO t VALUES (1, '1'); FLUSH")
        with pytest.raises(StaleViewError, match=r'(?s)strict: invalid input syntax for type integer: "two"') as caught:
            session.run("INSERT INTO t VALUES (2, 'two'), (3, '3'); FLUSH")
        assert list(caught.value.failures) == ["strict"]
        assert _texts(session, "SELECT n FROM lenient ORDER BY n") == [["1"], ["3"], [None]]
        assert _texts(session, "SELECT n FROM strict") == [["1"]]
        assert _texts(session, "SELECT c FROM above") == [["1"]]
        assert [row[:3] for row in _errors(session)] == [
            ["lenient", "CAST(x AS INTEGER)", "two"],
            ["strict", "(the whole view)", None],
        ]
    with Session(store) as session:
        with pytest.raises(StaleViewError):
            session.run("INSERT INTO t VALUES (4, '4'); FLUSH")
        assert _texts(session, "SELECT n FROM strict") == [["1"]]
        session.run("DELETE FROM t WHERE id = 2; FLUSH")
        assert _texts(session, "SELECT n FROM strict ORDER BY n") == [["1"], ["3"], ["4"]]
        assert _texts(session, "SELECT c FROM above") == [["3"]]
        assert [row[0] for row in _errors(session)] == ["lenient"]
        session.run("INSERT INTO t VALUES (5, '5'); FLUSH; DELETE FROM t WHERE id = 1; FLUSH")
        assert _texts(session, "SELECT n FROM strict ORDER BY n") == [["3"], ["4"], ["5"]]


def test_a_stale_view_can_be_dropped(session: Session) -> None:
    session.run("SET streaming_expr_strict_mode = true; CREATE MATERIALIZED VIEW strict AS SELECT x::int AS n FROM raw")
    with pytest.raises(StaleViewError):
        session.run("INSERT INTO raw VALUES (1, 'two'); FLUSH")
    session.run("DROP MATERIALIZED VIEW strict; FLUSH")
    assert _errors(session) == []
    with pytest.raises(InvalidTextError):
        session.run("CREATE MATERIALIZED VIEW strict AS SELECT x::int AS n FROM raw")
    assert _texts(session, "SHOW MATERIALIZED VIEWS") == []


def test_an_aggregate_out_of_range_stops_its_view_alone(session: Session) -> None:
    session.run("CREATE TABLE big (k int, v numeric(38, 0)); CREATE MATERIALIZED VIEW counts AS SELECT count(*) AS n FROM big")
    session.run("CREATE MATERIALIZED VIEW sums AS SELECT k, sum(v) AS s FROM big GROUP BY k")
    nines = "9" * 38
    session.run("INSERT INTO big VALUES (1, 1); FLUSH")
    with pytest.raises(StaleViewError, match="sums: "):
        session.run(f"INSERT INTO big VALUES (1, {nines}), (2, {nines}), (2, {nines}), (2, 5); FLUSH")
    assert _texts(session, "SELECT n FROM counts") == [["5"]]
    assert _texts(session, "SELECT * FROM sums") == [["1", "1"]]
    session.run(f"DELETE FROM big WHERE v = {nines}; FLUSH")
    assert _texts(session, "SELECT * FROM sums ORDER BY k") == [["1", "1"], ["2", "5"]]


def test_a_statement_still_fails_with_a_bad_value(session: Session) -> None:
    session.run("CREATE TABLE made (x text, n int AS x::int); INSERT INTO made VALUES ('1')")
    with pytest.raises(InvalidTextError):
        session.run("INSERT INTO made VALUES ('2'), ('two')")
    with pytest.raises(OutOfRangeError):
        session.run("SELECT 2147483647 + n FROM made")
    assert _texts(session, "SELECT n FROM made") == [["1"]]


def test_a_failing_view_leaves_no_lenient_session_behind(session: Session) -> None:
    session.run("CREATE MATERIALIZED VIEW mv AS SELECT 1 / id AS q FROM raw; INSERT INTO raw VALUES (0, 'a'); FLUSH")
    with pytest.raises(ZeroDivisionError):
        session.run("SELECT 1 / id FROM raw")
    assert _texts(session, "SELECT q FROM mv") == [[None]]


def test_an_insert_that_flushes_is_kept_when_a_view_cannot_follow(session: Session) -> None:
    session.run("SET streaming_expr_strict_mode = true; CREATE MATERIALIZED VIEW strict AS SELECT x::int AS n FROM raw")
    session.run("SET rw_implicit_flush = true")
    with pytest.raises(StaleViewError):
        session.run("INSERT INTO raw VALUES (1, 'two')")
    assert _texts(session, "SELECT * FROM raw") == [["1", "two"]]
    session.run("DELETE FROM raw")
    assert _texts(session, "SELECT * FROM strict") == []


def test_what_a_flush_changed_is_told_of_views_that_caught_up(session: Session) -> None:
    session.run("SET streaming_expr_strict_mode = true; CREATE MATERIALIZED VIEW strict AS SELECT id, x::int AS n FROM raw")
    with pytest.raises(StaleViewError):
        session.run("INSERT INTO raw VALUES (1, 'two'), (2, '2'); FLUSH")
    assert session.changelog("strict").num_rows == 0
    session.run("DELETE FROM raw WHERE id = 1; FLUSH")
    assert session.changelog("strict").to_pylist() == [{"id": 2, "n": 2, "_change_type": "insert"}]


def test_a_file_that_cannot_be_read_holds_nothing_else_up(tmp_path: Path) -> None:
    files, others = tmp_path / "files", tmp_path / "others"
    files.mkdir()
    others.mkdir()
    with Session(":memory:") as session:
        session.run(f"CREATE SOURCE s (k int) WITH (connector = 'csv', path = '{files}', malformed = 'fail')")
        session.run(f"CREATE SOURCE o (k int) WITH (connector = 'csv', path = '{others}')")
        session.run("CREATE MATERIALIZED VIEW sums AS SELECT sum(k) AS v FROM s")
        session.run("CREATE MATERIALIZED VIEW other_sums AS SELECT sum(k) AS v FROM o")
        (files / "a.csv").write_text("k\n1\nx\n")
        (files / "b.csv").write_text("k\n2\n")
        (others / "c.csv").write_text("k\n3\n")
        for _ in range(2):
            with pytest.raises(MalformedRowError, match=r"a\.csv, line 3, column 'k': 'x': invalid input syntax"):
                session.run("FLUSH")
            assert _texts(session, "SELECT * FROM sums") == [["2"]]
            assert _texts(session, "SELECT * FROM other_sums") == [["3"]]
        (files / "a.csv").write_text("k\n1\n5\n")
        session.run("FLUSH")
        assert _texts(session, "SELECT * FROM sums") == [["8"]]


def test_a_parquet_sink_of_intervals_is_refused_when_it_is_made(session: Session, tmp_path: Path) -> None:
    session.run("CREATE TABLE spans (i interval)")
    with pytest.raises(SqlTypeError, match="column 'i' is an interval, which Parquet has no type for"):
        session.run(f"CREATE SINK s FROM spans WITH (connector = 'parquet', path = '{tmp_path}')")
    session.run("FLUSH")


def test_a_pattern_that_is_none_is_named(session: Session) -> None:
    with pytest.raises(InvalidValueError, match=r"invalid regular expression: missing \): \("):
        session.query("SELECT 'a' ~ '('")


# Python's time deltas end at 999999999 days, and DuckDB's intervals at 2147483647 months and as many days.
@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT INTERVAL '2147483647 days' AS v FROM m WHERE iv IS NOT NULL", [["2147483647 days"], ["2147483647 days"]]),
        ("SELECT ARRAY[INTERVAL '2147483647 days', iv] AS v FROM m WHERE iv = '1 day'", [['{"2147483647 days","1 day"}']]),
        ("SELECT iv + INTERVAL '2147483647 days' AS v FROM m", [["1 mon 2147483647 days"], [None], [None]]),
        ("SELECT timestampadd(MONTH, 2147483647, at) AS v FROM m", [["infinity"], [None], [None]]),
        ("SELECT iv * 1.5 - INTERVAL '-2147483648 months' AS v FROM m", [[None], [None], [None]]),
        ("SELECT at + INTERVAL '178000000 years' AS v FROM m", [["infinity"], [None], [None]]),
        ("SELECT avg(INTERVAL '-2147483648 months') AS v FROM m WHERE iv = '1 day'", [["-178956970 years -8 mons"]]),
    ],
)
def test_intervals_that_python_has_no_value_for(session: Session, query: str, rows: list[list[str | None]]) -> None:
    session.run("CREATE TABLE m (at timestamp, iv interval)")
    session.run("INSERT INTO m VALUES ('2024-01-01 10:00', '1 day'), ('infinity', '1 month'), (NULL, NULL)")
    session.run(f"CREATE MATERIALIZED VIEW mv AS {query}; FLUSH")
    assert _texts(session, "SELECT v FROM mv ORDER BY v") == rows


def test_long_texts_are_refused_one_by_one(session: Session) -> None:
    session.run("CREATE MATERIALIZED VIEW mv AS SELECT id, repeat(x, id) AS r, lpad(x, id, '*') AS l FROM raw")
    session.run("INSERT INTO raw VALUES (2, 'ab'), (2147483647, 'c'), (2147483646, ''), (2147483645, NULL); FLUSH")
    assert _texts(session, "SELECT * FROM mv ORDER BY id") == [
        ["2", "abab", "ab"],
        ["2147483645", None, None],
        ["2147483646", "", None],
        ["2147483647", None, None],
    ]
    errors = [(row[1], row[2]) for row in _errors(session)]
    assert sorted(errors) == [
        ("lpad(x, id, '*')", "x = , id = 2147483646"),
        ("lpad(x, id, '*')", "x = c, id = 2147483647"),
        ("repeat(x, id)", "x = c, id = 2147483647"),
    ]


def test_a_source_that_is_made_anew_reads_its_files_anew(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "a.csv").write_text("k\n1\n2\n")
    made = f"CREATE SOURCE s (k int) WITH (connector = 'csv', path = '{files}')"
    view = "CREATE MATERIALIZED VIEW sums AS SELECT sum(k) AS v FROM s"
    store = str(tmp_path / "store.db")
    with Session(store) as session:
        session.run(f"{made}; {view}; FLUSH; DROP SOURCE s CASCADE; {made}; {view}; FLUSH; FLUSH")
        assert _texts(session, "SELECT * FROM sums") == [["3"]]
        session.run("DROP SOURCE s CASCADE")
    with Session(store) as session:
        session.run(f"{made}; {view}; FLUSH")
        assert _texts(session, "SELECT * FROM sums") == [["3"]]
    with Session(store) as session:
        session.run("FLUSH")
        assert _texts(session, "SELECT * FROM sums") == [["3"]]


def test_a_time_whose_windows_end_beyond_64_bits_is_listed_once() -> None:
    """A time so near the end of 64 bits begins three windows, none of which ends before that."""
    last = "294247-01-10 04:00:54.775806"
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (id int PRIMARY KEY, at timestamp)")
        hop = "HOP(t, at, INTERVAL '1 minute', INTERVAL '3 minutes')"
        session.run(f"CREATE MATERIALIZED VIEW mv AS SELECT id, window_start, window_end FROM {hop}")
        session.run(f"INSERT INTO t VALUES (1, TIMESTAMP '{last}'), (2, TIMESTAMP '2024-01-01 10:00'); FLUSH")
        rows = _texts(session, "SELECT id, window_start, window_end FROM mv ORDER BY id, window_start")
        assert rows == [
            ["1", "294247-01-10 03:58:00", None],
            ["1", "294247-01-10 03:59:00", None],
            ["1", "294247-01-10 04:00:00", None],
            *(["2", f"2024-01-01 {start}:00", f"2024-01-01 {end}:00"] for start, end in (("09:58", "10:01"), ("09:59", "10:02"))),
            ["2", "2024-01-01 10:00:00", "2024-01-01 10:03:00"],
        ]
        ((view, _, value, _, count),) = _errors(session)
        assert (view, value, count) == ("mv", last, "1")
