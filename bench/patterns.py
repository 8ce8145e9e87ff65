"""Row patterns, end to end: a stream of CSV files, each a batch, in windowpane; the same in Flink SQL; all rows in DuckDB.

Usage: ``python -m bench.patterns [--rows N] [--batches N] [--keys N] [--only NAME]``. Cases: ``A B+ C``, a price that falls and
rises, a funnel, failed logins, and absence; beside absence a tumbling window over the same rows. Flink SQL has no absence, and
RocksDB state here; DuckDB 2.0 has no MATCH_RECOGNIZE: it finds ``A B+ C`` by a regular expression over the kinds of each key, and
absence by an anti join. Flink leaves the standard where a loop could give a row back, so its numbers of matches are its own.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

from bench.batches import FIRST_FILE, put_in_place, seconds_of_batches, steady
from bench.each_system import arguments, run_each
from bench.environments import FLINK, Unavailable

SYSTEMS = ("windowpane", "flink", "duckdb")
MINUTE = 60_000_000
CASES = {
    "A B+ C": ("A B+ C", {"A": "a", "B": "b", "C": "c"}, 10),
    "V": ("S D+ U+", {}, 10),
    "funnel": ("A -> B -> C", {"A": "a", "B": "b", "C": "c"}, 60),
    "logins": ("B{3,} A", {"A": "a", "B": "b"}, 10),
    "absence": ("A -> !B", {"A": "a", "B": "b"}, 10),
}
"""By name: the pattern, the kind that each variable takes, and the minutes of its bound."""

_IN_FLINK = {"funnel": "A X*? B Y*? C"}
_SCHEMA = "k long, at long, kind string, price long"


def write_batches(folder: Path, rows: int, batches: int, keys: int) -> None:
    """Write a file a batch: ten minutes of event time, rows in order, four kinds, prices that walk."""
    draw = np.random.default_rng(11)
    for number in range(batches):
        times = FIRST_FILE * 1_000_000 + number * 10 * MINUTE + np.sort(draw.integers(0, 10 * MINUTE, rows))
        kinds = np.array(list("abcd"))[draw.integers(0, 4, rows)]
        table = pa.table({"k": draw.integers(0, keys, rows), "at": times, "kind": kinds, "price": draw.integers(0, 100, rows)})
        path = folder / f"{number:03}.csv"
        csv.write_csv(table, path, csv.WriteOptions(include_header=False))
        put_in_place(path, number)


def run(system: str, folder: Path, rows: int, only: str | None) -> None:
    """Run one system over the files, and print its figures."""
    for name in [only] if only else [*CASES, "tumbling"]:
        found = {"windowpane": _in_windowpane, "flink": _in_flink, "duckdb": _in_duckdb}[system](name, folder, rows)
        if found is not None:
            print(f"{system:10}  {name:8}  {found}", flush=True)


def _in_windowpane(name: str, folder: Path, rows: int) -> str:
    from pyspark.sql import functions as F

    from bench.systems.spark_job import session

    lines = session().readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).csv(str(folder))
    events = lines.withColumn("at", F.timestamp_micros("at"))
    with tempfile.TemporaryDirectory() as work:
        observed = _matched(name, events).observe("found", F.count(F.lit(1)).alias("n"))
        query = observed.writeStream.format("noop").option("checkpointLocation", work).trigger(availableNow=True).start()
        query.awaitTermination()
        median = steady(seconds_of_batches(query.recentProgress))
        count = sum(each.observedMetrics["found"].n for each in query.recentProgress if "found" in each.observedMetrics)
    return f"{median:6.2f} s a batch  {rows / median / 1e6:5.2f} M rows/s  {count:>10,} results"


def _matched(name: str, events: Any) -> Any:
    import windowpane as wp

    stream = wp.stream(events, event_time="at", watermark="1 second").key_by("k")
    if name == "tumbling":
        return stream.window(wp.TumblingEventTimeWindows.of("10 minutes")).aggregate(n=wp.count(), m=wp.max("price")).df
    text, kinds, minutes = CASES[name]
    define: dict[str, Any] = {variable: wp.col("kind") == kind for variable, kind in kinds.items()}
    if name == "V":
        define = {"D": wp.col("price") < wp.lag("price"), "U": wp.col("price") > wp.lag("price")}
    return stream.match(text, **define).within(f"{minutes} minutes").select(since=wp.first("at"), until=wp.match_time()).df


def _in_flink(name: str, folder: Path, rows: int) -> str | None:
    if name in ("absence", "tumbling"):
        return None
    try:
        python = FLINK.python()
    except Unavailable as reason:
        return f"not run: {reason}"
    text, kinds, minutes = CASES[name]
    task = {
        "folder": folder.as_uri(),
        "pattern": _IN_FLINK.get(name, text),
        "define": {variable: f"{variable}.kind = '{kind}'" for variable, kind in kinds.items()},
        "minutes": minutes,
    }
    if name == "V":
        task["define"] = {
            "D": "(LAST(D.price, 1) IS NULL AND D.price < S.price) OR D.price < LAST(D.price, 1)",
            "U": "(LAST(U.price, 1) IS NULL AND U.price > LAST(D.price)) OR U.price > LAST(U.price, 1)",
        }
        task["pattern"] = "S D+ U+ X"
    program = Path(__file__).parent / "systems" / "on_flink_patterns.py"
    done = subprocess.run([python, str(program), json.dumps(task)], capture_output=True, text=True, timeout=900)
    if done.returncode:
        return f"not run: {done.stderr.strip().splitlines()[-1]}"
    seconds, total = float(done.stdout.split()[-1]), rows * len(list(folder.glob("*.csv")))
    return f"{seconds:6.1f} s the whole job  {total / seconds / 1e6:5.3f} M rows/s"


def _in_duckdb(name: str, folder: Path, rows: int) -> str | None:
    import duckdb

    queries = {
        "A B+ C": "SELECT sum(len(regexp_extract_all(kinds, 'ab+c'))) "
        "FROM (SELECT k, string_agg(kind, '' ORDER BY ts) AS kinds FROM e GROUP BY k)",
        "absence": f"SELECT count(*) FROM e AS p ANTI JOIN (SELECT * FROM e WHERE kind = 'b') AS q ON p.k = q.k AND q.ts > p.ts "
        f"AND q.ts < p.ts + {10 * MINUTE} WHERE p.kind = 'a'",
    }
    if name not in queries:
        return None
    with duckdb.connect() as connection:
        columns = "{'k': 'BIGINT', 'ts': 'BIGINT', 'kind': 'VARCHAR', 'price': 'BIGINT'}"
        connection.execute(f"CREATE TABLE e AS FROM read_csv('{folder}/*.csv', header = false, columns = {columns})")
        begun = time.monotonic()
        (count,) = connection.execute(queries[name]).fetchall()[0]
        seconds = time.monotonic() - begun
    total = rows * len(list(folder.glob("*.csv")))
    return f"{seconds:6.2f} s all rows  {total / seconds / 1e6:5.2f} M rows/s  {count:>10,} results, rows in memory"


def main() -> None:
    parser = arguments(__doc__, SYSTEMS)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--only", choices=[*CASES, "tumbling"])
    given = parser.parse_args()

    def write(folder: Path) -> None:
        write_batches(folder, given.rows, given.batches, given.keys)

    run_each(given, SYSTEMS, write, lambda system, folder: run(system, folder, given.rows, given.only))


if __name__ == "__main__":
    main()
