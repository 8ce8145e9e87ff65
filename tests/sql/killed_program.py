"""``python -m tests.sql.killed_program STATE URL ROWS OPTION...``: numbered rows, one flush at a time, until done or killed.

Options: ``spark``, and ``served``, with which the PostgreSQL server is the store, too.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from windowpane.sql import Session

SET_UP = """
CREATE TABLE IF NOT EXISTS t (n int PRIMARY KEY, g int, v int);
CREATE MATERIALIZED VIEW IF NOT EXISTS running AS
    SELECT n, g, sum(v) OVER (PARTITION BY g ORDER BY n ROWS 2 PRECEDING) AS s FROM t;
CREATE MATERIALIZED VIEW IF NOT EXISTS sums AS SELECT g, count(*) AS c, sum(v) AS s, max(n) AS last FROM t GROUP BY g;
CREATE MATERIALIZED VIEW IF NOT EXISTS best AS
    SELECT g, n, s FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY s DESC, n) AS place FROM running) WHERE place <= 3;
CREATE MATERIALIZED VIEW IF NOT EXISTS totals AS SELECT g, count(*) AS c, sum(s) AS total FROM running GROUP BY g;
"""


def row(number: int) -> str:
    return f"({number}, {number % 3}, {number * 7919 % 101})"


def main(state: str, url: str, rows: int, spark: Any = None, *, is_served: bool = False) -> None:
    sink = str(Path(state).with_suffix(".sink.duckdb"))
    with Session(spark, url, state) if is_served else Session(spark, state) as session:
        session.run(SET_UP)
        session.run(f"CREATE SINK IF NOT EXISTS d FROM totals WITH (connector = 'duckdb', path = '{sink}', table = 'totals')")
        if url:
            session.run(
                f"CREATE SINK IF NOT EXISTS p FROM best WITH (connector = 'postgres', url = '{url}', table = 'best_sink')"
            )
        while (done := session.query("SELECT count(*) FROM t").rows()[0][0]) < rows:
            session.run(f"INSERT INTO t VALUES {', '.join(row(number) for number in range(done, min(done + 3, rows)))}; FLUSH")
            print(done, flush=True)
        session.run("FLUSH")  # the kill may have come between the last rows and theirs


if __name__ == "__main__":
    spark = None
    if "spark" in sys.argv[4:]:
        from windowpane.sql.on_spark.queries import local_spark

        spark = local_spark()
        spark.conf.set("spark.sql.shuffle.partitions", "2")
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), spark, is_served="served" in sys.argv[4:])
