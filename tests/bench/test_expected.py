"""The answers that benchmarks are checked against agree with DuckDB's."""

import duckdb
import pyarrow as pa
import pytest

from bench.bids import Feed, Part
from bench.expected import Answer, answer, last_watermark
from bench.programs import Program

ROWS = 20_000
CHECK = "count(*), sum((k * 1000003 + (e // 1000) * 7919 + n * 104729 + s * 31 + m) % 2147483647)"
WINDOWS = """
    SELECT k, e, count(*) AS n, sum(price) AS s, max(price) AS m
    FROM (SELECT k, price, unnest([(u // $slide + 1 + i) * $slide for i in range($slices)]) AS e FROM bids) GROUP BY k, e
"""
SESSIONS = """
    SELECT k, max(u) + $slide AS e, count(*) AS n, sum(price) AS s, max(price) AS m
    FROM (SELECT *, sum(starts) OVER (PARTITION BY k ORDER BY u) AS session FROM (
        SELECT *, coalesce(u - lag(u) OVER (PARTITION BY k ORDER BY u) > $slide, true)::INT AS starts FROM bids))
    GROUP BY k, session
"""
OVER = """
    SELECT k, u AS e, 0 AS n, sum(price) OVER w AS s, max(price) OVER w AS m FROM bids
    WINDOW w AS (PARTITION BY k ORDER BY u ROWS BETWEEN 10 PRECEDING AND CURRENT ROW)
"""
LAG = "SELECT k, u AS e, 0 AS n, price AS s, coalesce(lag(price) OVER (PARTITION BY k ORDER BY u), 0) AS m FROM bids"


def oracle(results: str, parts: tuple[Part, ...], slide: int = 0, slices: int = 0, closed: str = "") -> Answer:
    bids = pa.concat_tables([rows.table() for part in parts for rows in part.batches()])
    bids = bids.append_column("u", bids["ts"].cast(pa.int64()))
    with duckdb.connect() as connection:
        connection.register("bids", bids)
        given = {name: value for name, value in (("slide", slide), ("slices", slices)) if f"${name}" in results}
        row = connection.execute(f"SELECT {CHECK} FROM ({results}) {closed}", given).fetchone()
    assert row is not None
    return Answer(row[0], int(row[1]))


@pytest.mark.parametrize(
    ("program", "keys", "results", "slices"),
    [
        (Program("tumbling", 1), 3_000, WINDOWS, 1),
        (Program("sliding", 6, 1), 3_000, WINDOWS, 6),
        (Program("session", 1), 100_000, SESSIONS, 0),
    ],
)
def test_windows(program: Program, keys: int, results: str, slices: int) -> None:
    parts = (Part(Feed(keys, ROWS * 10), 0, 2),)
    closed = f"WHERE e <= {last_watermark(parts, program) * 1000}"
    found = answer(program, parts)
    assert found == oracle(results, parts, 1_000_000, slices, closed)
    assert found.rows > 1_000


@pytest.mark.parametrize(("program", "results"), [(Program("over", preceding=10), OVER), (Program("lag"), LAG)])
@pytest.mark.parametrize(("layout", "keys"), [("turns", 1_000), ("sequence", 20)])
def test_calls_over_rows(program: Program, results: str, layout: str, keys: int) -> None:
    parts = (Part(Feed(keys, ROWS, layout), 0, 2),)
    assert answer(program, parts) == oracle(results, parts)


def test_rows_between_others_share_no_time_with_them() -> None:
    parts = (Part(Feed(1, 10 * ROWS, "sequence"), 0, 1), Part(Feed(1, 1_000, "between"), 200, 9))
    times = [time for part in parts for rows in part.batches() for time in rows.times.tolist()]
    assert len(set(times)) == len(times) == 10 * ROWS + 9_000
