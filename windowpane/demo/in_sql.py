"""Part six of the demo: the same flights in SQL, on the embedded engine.

The watermark of 18 hours is longer than any flight of 2013 was late, except for three.
"""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console

from windowpane.sql import Session
from windowpane.sql.shell.printing import print_result

SCRIPT = """
CREATE SOURCE flights (
    origin text, carrier text, flight bigint, tailnum text, scheduled timestamp, departed timestamp, dep_delay bigint,
    WATERMARK FOR scheduled AS scheduled - INTERVAL '18 hours'
) WITH (connector = 'parquet', path = '{folder}');

CREATE MATERIALIZED VIEW hourly AS
    SELECT origin, carrier, window_start, count(*) AS flights, avg(dep_delay) AS delay
    FROM tumble(flights, scheduled, INTERVAL '1 hour')
    WHERE origin IS NOT NULL
    GROUP BY origin, carrier, window_start
    EMIT ON WINDOW CLOSE;

CREATE MATERIALIZED VIEW worst_hours AS
    SELECT origin, carrier, window_start, flights, round(delay, 1) AS delay
    FROM hourly
    WHERE flights >= 5
    QUALIFY row_number() OVER (PARTITION BY origin ORDER BY delay DESC NULLS LAST) <= 3;

CREATE MATERIALIZED VIEW stranded AS
    SELECT * FROM (SELECT * FROM flights WHERE tailnum IS NOT NULL) AS planned MATCH_RECOGNIZE (
        PARTITION BY tailnum ORDER BY scheduled, carrier, flight
        MEASURES LAST(stuck.scheduled) AS planned, LAST(stuck.departed) AS departed
        AFTER MATCH SKIP TO NEXT ROW
        PATTERN (flown stuck) WITHIN INTERVAL '12 hours'
        DEFINE flown AS departed IS NOT NULL,
               stuck AS departed IS NULL OR departed > scheduled + INTERVAL '2 hours'
    ) EMIT ON WINDOW CLOSE;

FLUSH;
"""
STRANDED = """
SELECT tailnum, count(*) AS times, count(*) FILTER (WHERE departed IS NULL) AS never, max(departed - planned) AS longest
FROM stranded GROUP BY tailnum ORDER BY times DESC, tailnum LIMIT 3
"""
QUESTION = "SELECT * FROM worst_hours ORDER BY origin, delay DESC"


def show(console: Console, folder: Path) -> None:
    """Run the script over the replayed files and print the three worst hours of each airport."""
    started = time.perf_counter()
    with Session(":memory:") as session:
        session.run(SCRIPT.format(folder=folder))
        seconds = time.perf_counter() - started
        hours = session.query("SELECT count(*) FROM hourly").rows()[0][0]
        console.rule("[bold]Part six: SQL")
        console.print(
            f"The same files, in SQL on the embedded engine: {hours:,} hours of carriers closed in {seconds:.1f} s. "
            "The three worst hours of each airport, with five departures or more:"
        )
        print_result(session.query(QUESTION), console)
        times = session.query("SELECT count(*) FROM stranded").rows()[0][0]
        console.print(
            f"{times:,} times an aircraft landed and did not depart again within two hours of its plan: MATCH_RECOGNIZE. "
            "Those that were stranded most often:"
        )
        print_result(session.query(STRANDED), console)
