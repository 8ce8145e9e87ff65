"""``python -m tests.sql.killed_program STORE URL ROWS``: numbered rows, one flush at a time, until it is done or killed."""

from __future__ import annotations

import sys
from pathlib import Path

from windowpane.sql import Session

SET_UP = """
CREATE TABLE IF NOT EXISTS t (n int PRIMARY KEY, g int, v int);
CREATE MATERIALIZED VIEW IF NOT EXISTS running AS
    SELECT n, g, sum(v) OVER (PARTITION BY g ORDER BY n ROWS 2 PRECEDING) AS s FROM t;
CREATE MATERIALIZED VIEW IF NOT EXISTS best AS
    SELECT g, n, s FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY s DESC, n) AS place FROM running) WHERE place <= 3;
CREATE MATERIALIZED VIEW IF NOT EXISTS totals AS SELECT g, count(*) AS c, sum(s) AS total FROM running GROUP BY g;
"""


def row(number: int) -> str:
    return f"({number}, {number % 3}, {number * 7919 % 101})"


def main(store: str, url: str, rows: int) -> None:
    sink = str(Path(store).with_suffix(".sink.duckdb"))
    with Session(store) as session:
        session.run(SET_UP)
        session.run(f"CREATE SINK IF NOT EXISTS d FROM totals WITH (connector = 'duckdb', path = '{sink}', table = 'totals')")
        if url:
            session.run(f"CREATE SINK IF NOT EXISTS p FROM best WITH (connector = 'postgres', url = '{url}', table = 'best')")
        while (done := session.query("SELECT count(*) FROM t").rows()[0][0]) < rows:
            session.run(f"INSERT INTO t VALUES {', '.join(row(number) for number in range(done, min(done + 3, rows)))}; FLUSH")
            print(done, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
