"""GAP_FILL equals a model of its rules through random changes, in SELECT, in views and on window close; the rest is refused."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from windowpane.errors import InvalidValueError, SqlError
from windowpane.sql import Session

MINUTE = timedelta(minutes=1)
START = datetime(2024, 1, 1)
CALL = "GAP_FILL(t, at, INTERVAL '1 minute', LOCF(a), INTERPOLATE(b), INTERPOLATE(f), KEEPNULL(s), PARTITION_BY(k))"
QUERY = f"SELECT k, at, a, b, f, s, id FROM {CALL}"

Row = tuple[Any, ...]


def model(rows: list[Row]) -> list[Row]:
    """Return what RisingWave's rules make of rows of (k, at, a, b, f, s, id)."""
    found: list[Row] = []
    for key in {row[0] for row in rows}:
        series = sorted((row for row in rows if row[0] == key and row[1] is not None), key=lambda row: (row[1], row[6]))
        found += [row for row in rows if row[0] == key and row[1] is None]
        found += series[:1]
        for last, row in pairwise(series):
            moments = list[datetime]()
            while last[1] + MINUTE * (len(moments) + 1) < row[1]:
                moments.append(last[1] + MINUTE * (len(moments) + 1))
            steps, value = len(moments) + 1, last[4]
            for number, moment in enumerate(moments, 1):
                whole = None if None in (last[3], row[3]) else last[3] + number * ((row[3] - last[3]) // steps)
                value = None if None in (value, row[4]) else value + (row[4] - last[4]) / steps
                found.append((key, moment, last[2], whole, value, None, None))
            found.append(row)
    return found


def sorted_rows(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: tuple((cell is not None, cell) for cell in row))


def random_row(rng: random.Random, number: int) -> Row:
    at = None if rng.random() < 0.05 else START + timedelta(seconds=rng.choice([30, 60, 60]) * rng.randrange(20))
    return (
        rng.choice([None, 1, 2]),
        at,
        rng.choice([None, 1, 2]),
        rng.choice([None, 0, 7, -13, 2147483647, -2147483648]),
        rng.choice([None, 0.1, -2.5, 1e17, 3.0]),
        rng.choice([None, "x"]),
        number,
    )


def literal(value: object) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, datetime | str) else repr(value)


def inserted(row: Row) -> str:
    return f"INSERT INTO t (k, at, a, b, f, s, id) VALUES ({', '.join(map(literal, row))})"


@pytest.mark.slow_but("0")
@pytest.mark.parametrize("seed", range(8))
def test_it_equals_the_model_through_random_changes(seed: int, tmp_path: Path) -> None:
    rng, store = random.Random(seed), str(tmp_path / "views.duckdb")
    there: dict[int, Row] = {}
    session = Session(store)
    session.run("CREATE TABLE t (id int PRIMARY KEY, k int, at timestamp, a int, b int, f double precision, s varchar)")
    session.run(f"CREATE MATERIALIZED VIEW v AS {QUERY}; CREATE MATERIALIZED VIEW n AS SELECT k, count(*) AS c FROM v GROUP BY k")
    for number in range(20):
        change = rng.random()
        if there and change < 0.25:
            deleted = rng.choice(list(there))
            del there[deleted]
            session.run(f"DELETE FROM t WHERE id = {deleted}")
        elif there and change < 0.35:
            changed = rng.choice(list(there))
            there[changed] = (*there[changed][:2], 9, *there[changed][3:])
            session.run(f"UPDATE t SET a = 9 WHERE id = {changed}")
        else:
            there[number] = random_row(rng, number)
            session.run(inserted(there[number]))
        if rng.random() < 0.4:
            session.run("FLUSH")
            expected = sorted_rows(model(list(there.values())))
            assert sorted_rows(session.query("SELECT * FROM v").rows()) == expected
            assert sorted_rows(session.query(QUERY).rows()) == expected
            assert sum(c for _, c in session.query("SELECT * FROM n").rows()) == len(expected)
        if number == 10:
            session.close()
            session = Session(store)
    session.close()


def test_on_window_close_each_row_comes_out_once() -> None:
    rng = random.Random(5)
    rows = [random_row(rng, number) for number in range(60)]
    rows = [(*row[:1], START + timedelta(seconds=20 * number + rng.randrange(60)), *row[2:]) for number, row in enumerate(rows)]
    out: list[Row] = []
    with Session(":memory:") as session:
        session.run(
            "CREATE TABLE t (id int, k int, at timestamp, a int, b int, f double precision, s varchar, "
            "WATERMARK FOR at AS at - INTERVAL '2 minutes') APPEND ONLY"
        )
        session.run(f"CREATE MATERIALIZED VIEW v AS {QUERY} EMIT ON WINDOW CLOSE")
        for first in range(0, len(rows), 7):
            session.run("; ".join(map(inserted, rows[first : first + 7])) + "; FLUSH")
            changes = session.changelog("v")
            assert set(changes["_change_type"].to_pylist()) <= {"insert"}
            out += [tuple(row.values()) for row in changes.drop_columns(["_change_type"]).to_pylist()]
        session.run("INSERT INTO t (id, at, k) VALUES (99, '2030-01-01', 3); FLUSH")
        changes = session.changelog("v").drop_columns(["_change_type"])
        out += [tuple(row.values()) for row in changes.to_pylist()]
    assert sorted_rows(out) == sorted_rows(model(rows))


def test_a_gap_of_too_many_rows_is_refused_and_stays_open_in_a_view() -> None:
    with Session(":memory:") as session:
        session.run(
            "CREATE TABLE t (at timestamp, v int); CREATE MATERIALIZED VIEW w AS SELECT * FROM GAP_FILL(t, at, '1 second')"
        )
        session.run(
            "INSERT INTO t VALUES ('1970-01-01', 1), ('2024-01-01', 2), ('2024-01-01 00:00:02', 3), ('infinity', 4); FLUSH"
        )
        with pytest.raises(InvalidValueError, match="needs more than 10000000 rows of gap_fill"):
            session.query("SELECT * FROM GAP_FILL(t, at, INTERVAL '1 second')")
        assert session.query("SELECT count(*), count(v) FROM w").rows() == [(5, 4)]
        assert "10000000 rows" in session.query("SHOW ERRORS").rows()[0][3]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("t, at", "takes a table, a time and an interval"),
        ("t, v, INTERVAL '1 minute'", "goes by a timestamp, not by integer"),
        ("t, at, INTERVAL '0'", "greater than zero"),
        ("t, at, INTERVAL '2 minutes' - INTERVAL '3 minutes'", "greater than zero"),
        ("t, at, 5", "interval"),
        ("t, at, INTERVAL '1 minute', FIRST(v)", r"does not take 'FIRST\(v\)'"),
        ("t, at, INTERVAL '1 minute', v", "does not take 'v'"),
        ("t, at, INTERVAL '1 minute', LOCF(v, s)", "does not take"),
        ("t, at, INTERVAL '1 minute', LOCF(v + 1)", "takes columns"),
        ("t, at, INTERVAL '1 minute', LOCF(at)", "beside the time"),
        ("t, at, INTERVAL '1 minute', PARTITION_BY(at)", "beside the time"),
        ("t, at, INTERVAL '1 minute', LOCF(v), PARTITION_BY(v)", "beside the time and those of PARTITION_BY"),
        ("t, at, INTERVAL '1 minute', INTERPOLATE(s)", "interpolate takes numbers, not character varying"),
        ("t, at, INTERVAL '1 minute', LOCF(x)", "no column 'x'"),
    ],
)
def test_what_it_does_not_take_is_refused(arguments: str, words: str) -> None:
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (at timestamp, v int, s varchar)")
        with pytest.raises(SqlError, match=words):
            session.query(f"SELECT * FROM GAP_FILL({arguments})")
