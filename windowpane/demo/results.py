"""What the demo wrote, read back with DuckDB: an hour's final result is the one with its highest firing number."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

from windowpane.arrays.values import Value
from windowpane.errors import present

MIN_FLIGHTS = 10
"""Hours with fewer flights are not ranked: their mean would be the delay of a single flight."""

_FINAL = """
    CREATE VIEW final AS
    SELECT * FROM results QUALIFY row_number() OVER (PARTITION BY origin, window_start ORDER BY firing DESC) = 1
"""
_WORST = """
    SELECT origin, strftime(make_timestamp(epoch_us(window_start)), '%a %d %b, %H:00'), flights, cancelled, mean_delay, p90_delay
    FROM final WHERE flights >= $least ORDER BY mean_delay DESC, origin, window_start LIMIT $top
"""


@dataclass(frozen=True)
class WorstHour:
    """The final result of one hour at one airport; delays in minutes."""

    origin: str
    hour: str
    flights: int
    cancelled: int
    mean_delay: float
    p90_delay: float


@dataclass(frozen=True)
class Summary:
    """The results of a run.

    Args:
        timings: how many results were early, on time and refined.
        hours: how many hours there were, over all airports.
        flights: how many flights their final results count.
        cancelled: how many cancelled flights they count.
        dropped: how many flights were late and dropped.
        worst: the hours with the highest mean delay, worst first.
    """

    timings: dict[str, int]
    hours: int
    flights: int
    cancelled: int
    dropped: int
    worst: list[WorstHour]


def summarize(main: Path, late: Path, top: int = 10) -> Summary:
    """Read the results below ``main`` and the late flights below ``late``, a folder that is absent if there were none."""
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW results AS SELECT * FROM read_parquet('{main}/*/*/*.parquet')")
        connection.execute(_FINAL)
        timings = dict(connection.execute("SELECT timing, count(*) FROM results GROUP BY timing").fetchall())
        hours, flights, cancelled = _row(connection, "SELECT count(*), sum(flights), sum(cancelled) FROM final")
        dropped = (
            _row(connection, f"SELECT count(*) FROM read_parquet('{late}/*/*/*.parquet') WHERE dropped")[0]
            if late.exists()
            else 0
        )
        worst = connection.execute(_WORST, {"least": MIN_FLIGHTS, "top": top}).fetchall()
    return Summary(timings, hours, int(flights), int(cancelled), dropped, [WorstHour(*hour) for hour in worst])


def _row(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[Value, ...]:
    row = present(connection.execute(query).fetchone(), "an aggregate without groups has one row")
    return row
