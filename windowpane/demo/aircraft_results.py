"""What the second program wrote, read back with DuckDB: the net of a changelog is the table it describes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

from windowpane.arrays.values import Value
from windowpane.errors import present

_FINAL = """
    CREATE TABLE final AS
    SELECT * EXCLUDE _change_type FROM changes WHERE _change_type IN ('insert', 'update_postimage')
    QUALIFY row_number() OVER (PARTITION BY scheduled, carrier, flight ORDER BY batch DESC) = 1
"""
_TOP = """
    SELECT tailnum, carrier || ' ' || flight, strftime(make_timestamp(epoch_us(scheduled)), '%a %d %b, %H:%M'), dest,
        arr_delay::INT, handed_on::INT
    FROM final WHERE arr_delay + handed_on IS NOT NULL
    ORDER BY least(arr_delay, handed_on) DESC, scheduled, carrier, flight LIMIT $top
"""
_STORY = """
    SELECT batch::INT, _change_type, carrier || ' ' || flight, strftime(make_timestamp(epoch_us(scheduled)), '%a %d %b, %H:%M'),
        dep_delay::INT, inherited::INT, handed_on::INT
    FROM changes WHERE tailnum = $tailnum AND abs(epoch_us(scheduled) - $around) < 1.5 * 86400e6
    ORDER BY batch, scheduled, carrier, flight, _change_type DESC LIMIT $lines
"""
_AROUND = """
    SELECT tailnum, epoch_us(scheduled) FROM final WHERE arr_delay + handed_on IS NOT NULL
    ORDER BY least(arr_delay, handed_on) DESC, scheduled, carrier, flight LIMIT 1
"""


@dataclass(frozen=True)
class Handover:
    """A flight that arrived late and whose aircraft departed late next; delays in minutes."""

    aircraft: str
    flight: str
    scheduled: str
    destination: str
    arrived: int
    departed_next: int


@dataclass(frozen=True)
class Change:
    """One row of the changelog."""

    batch: int
    change: str
    flight: str
    scheduled: str
    delay: int | None
    inherited: int | None
    handed_on: int | None


@dataclass(frozen=True)
class AircraftSummary:
    """The changelog in numbers and pieces.

    Args:
        counts: rows by change type.
        flights: how many flights the table has in the end.
        handovers: the largest delays that were handed on.
        story: the changelog of the aircraft of the first of them, around that day.
    """

    counts: dict[str, int]
    flights: int
    handovers: list[Handover]
    story: list[Change]


def summarize(changes: Path, top: int = 5, lines: int = 12) -> AircraftSummary:
    """Read the changelog below ``changes``."""
    with duckdb.connect() as db:
        db.execute(f"CREATE VIEW changes AS FROM read_parquet('{changes}/*/*/*.parquet', hive_partitioning = true)")
        db.execute(_FINAL)
        counts = dict(db.execute("SELECT _change_type, count(*) FROM changes GROUP BY ALL").fetchall())
        (flights,) = _row(db, "SELECT count(*) FROM final")
        handovers = [Handover(*row) for row in db.execute(_TOP, {"top": top}).fetchall()]
        tailnum, around = _row(db, _AROUND)
        story = db.execute(_STORY, {"tailnum": tailnum, "around": around, "lines": lines}).fetchall()
    return AircraftSummary(counts, flights, handovers, [Change(*row) for row in story])


def _row(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[Value, ...]:
    row = present(connection.execute(query).fetchone(), "the demo has flights")
    return row
