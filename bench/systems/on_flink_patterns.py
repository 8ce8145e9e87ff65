"""One MATCH_RECOGNIZE in Flink SQL over CSV files, state in RocksDB, results thrown away; prints the seconds of the job."""

from __future__ import annotations

import json
import sys
import time

from pyflink.table import EnvironmentSettings, TableEnvironment


def main() -> None:
    task = json.loads(sys.argv[1])
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in {
        "parallelism.default": "2",
        "state.backend.type": "rocksdb",
        "table.local-time-zone": "UTC",
        "table.exec.source.idle-timeout": "1 s",
        "taskmanager.memory.process.size": "4g",
    }.items():
        tables.get_config().set(name, value)
    tables.execute_sql(f"""CREATE TABLE events (
        k BIGINT, us BIGINT, kind STRING, price BIGINT, ts AS TO_TIMESTAMP_LTZ(us / 1000, 3),
        WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
    ) WITH ('connector' = 'filesystem', 'path' = '{task["folder"]}', 'format' = 'csv')""")
    tables.execute_sql("CREATE TABLE results (k BIGINT, since TIMESTAMP_LTZ(3)) WITH ('connector' = 'blackhole')")
    first = task["pattern"].split()[0].rstrip("+*?{3,}")
    define = ", ".join(f"{name} AS {condition}" for name, condition in task["define"].items())
    begun = time.monotonic()
    tables.execute_sql(f"""INSERT INTO results SELECT k, since FROM events MATCH_RECOGNIZE (
        PARTITION BY k ORDER BY ts MEASURES FIRST({first}.ts) AS since AFTER MATCH SKIP PAST LAST ROW
        PATTERN ({task["pattern"]}) WITHIN INTERVAL '{task["minutes"]}' MINUTE DEFINE {define})""").wait()
    print(time.monotonic() - begun)


if __name__ == "__main__":
    main()
