"""``python -m tests.sql.connect_program ADDRESS FOLDER``: sessions on Spark Connect; prints the results as a line of JSON."""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windowpane.errors import WindowpaneError
from windowpane.sql import Session

BEGIN = datetime(2024, 1, 1)
DEFINED = """
CREATE SOURCE ticks (sym text, at timestamp, v bigint, WATERMARK FOR at AS at - INTERVAL '10 seconds')
    WITH (connector = 'parquet', path = '{folder}/in');
CREATE MATERIALIZED VIEW minutes AS SELECT sym, window_start, count(*) AS n, sum(v) AS s
    FROM tumble(ticks, at, INTERVAL '1 minute') GROUP BY sym, window_start EMIT ON WINDOW CLOSE;
CREATE TABLE weights (sym text PRIMARY KEY, w int);
CREATE MATERIALIZED VIEW weighted AS SELECT m.sym, m.s * t.w AS x FROM minutes AS m JOIN weights AS t ON m.sym = t.sym;
CREATE MATERIALIZED VIEW totals AS SELECT sym, sum(x) AS x FROM weighted GROUP BY sym;
"""
REFUSED = {
    "stored": "CREATE TABLE filled (timestamp timestamp) WITH (connector = 'rate')",
    "a sink that follows a source": "CREATE SINK out FROM ticks WITH (connector = 'blackhole')",
    "fails": "SET streaming_expr_strict_mode = true; CREATE TABLE texts (v text); INSERT INTO texts VALUES ('one'); "
    "CREATE MATERIALIZED VIEW numbers AS SELECT CAST(v AS int) AS n FROM texts",
}


def arrive(folder: Path, number: int, *rows: tuple[str, int, int]) -> None:
    """Let a file appear with rows of a name, a second and a value."""
    names, seconds, values = zip(*rows, strict=True)
    times = pa.array([BEGIN + timedelta(seconds=second) for second in seconds], pa.timestamp("us"))
    (folder / "in").mkdir(exist_ok=True)
    draft = folder / f"{number}.draft"
    pq.write_table(pa.table({"sym": list(names), "at": times, "v": pa.array(values, pa.int64())}), draft)
    os.utime(draft, (number, number))
    draft.rename(folder / "in" / f"{number}.parquet")


def held(session: Session) -> dict[str, Any]:
    """Return what views hold, and the watermark."""
    views = {name: sorted(session.query(f"SELECT * FROM {name}").text_rows()) for name in ("minutes", "totals")}
    return {**views, "watermarks": session.query("SHOW WATERMARKS").text_rows()}


def refusal(session: Session, text: str) -> str:
    """Return why statements are refused."""
    try:
        session.run(text)
    except WindowpaneError as error:
        return str(error)
    return "nothing"


def main(address: str, folder: Path) -> dict[str, Any]:
    """Run sessions one after another on a store in a folder."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote(address).getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    store = str(folder / "views.duckdb")
    said: dict[str, Any] = {}
    arrive(folder, 1, ("a", 1, 1), ("b", 5, 2), ("a", 30, 4))
    with Session(spark, store) as session:
        session.run(DEFINED.format(folder=folder))
        session.run("INSERT INTO weights VALUES ('a', 1), ('b', 2)")
        arrive(folder, 2, ("a", 61, 8), ("a", 121, 16))
        session.run("FLUSH")
        said["first"] = held(session)
    arrive(folder, 3, ("b", 122, 32), ("a", 210, 64), ("c", 0, 128))
    with Session(spark, store) as session:
        session.run("UPDATE weights SET w = 10 WHERE sym = 'b'; FLUSH")
        said["again"] = held(session)
        changed = session.changelog("totals").to_pylist()
        said["changed"] = sorted([row["sym"], str(row["x"]), row["_change_type"]] for row in changed)
        said["refused"] = {name: refusal(session, text) for name, text in REFUSED.items()}
        session.run(
            "SET streaming_expr_strict_mode = false; CREATE SOURCE clock (timestamp timestamp, value bigint) "
            "WITH (connector = 'rate', rowsPerSecond = '1000'); "
            "CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n, min(value) AS first FROM clock"
        )
        before = session.query("SELECT n FROM counted").rows()[0][0]
        for _ in range(20):  # rows come once a second, and a flush waits for a moment without any
            session.run("FLUSH")
            ((after, first),) = session.query("SELECT n, first FROM counted").rows()
            if after > before:
                break
            time.sleep(0.2)
        said["endless"] = [after > before, first]
        session.run("DROP MATERIALIZED VIEW counted; FLUSH")
    return said


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))
