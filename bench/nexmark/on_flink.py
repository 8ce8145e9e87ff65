"""One query in Flink's SQL, from CSV, whose results go nowhere: ``on_flink INPUT WORK QUERY``.

Settings are those of the harness of Nexmark: RocksDB, a checkpoint each ten seconds, mini-batches.
"""

from __future__ import annotations

from pyflink.table import EnvironmentSettings, TableDescriptor, TableEnvironment

from bench.nexmark.arguments import given
from bench.nexmark.queries import DELAY_SECONDS, QUERIES
from bench.nexmark.tables import columns
from bench.systems.task_folder import leave_figures

_SETTINGS = {
    "parallelism.default": "2",
    "state.backend.type": "rocksdb",
    "execution.checkpointing.incremental": "true",
    "execution.checkpointing.interval": "10 s",
    "execution.checkpointing.mode": "EXACTLY_ONCE",
    "pipeline.object-reuse": "true",
    "table.local-time-zone": "UTC",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2 s",
    "table.exec.mini-batch.size": "50000",
    "table.exec.source.idle-timeout": "1 s",
    "table.optimizer.distinct-agg.split.enabled": "true",
    "taskmanager.memory.process.size": "6g",
}


def main() -> None:
    folder, work, name = given()
    query = QUERIES[name]
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for setting, value in {**_SETTINGS, "execution.checkpointing.dir": (work / "checkpoints").as_uri()}.items():
        environment.get_config().set(setting, value)
    for entity in query.reads:
        environment.execute_sql(
            f"CREATE TABLE {entity} ({columns(entity, text='string', time='timestamp(3)')}, "
            f"WATERMARK FOR date_time AS date_time - INTERVAL '{DELAY_SECONDS}' SECOND) "
            f"WITH ('connector' = 'filesystem', 'path' = '{(folder / 'csv' / entity).as_uri()}', 'format' = 'csv')"
        )
    results = environment.sql_query(query.flink or query.sql)
    results.execute_insert(TableDescriptor.for_connector("blackhole").build()).wait()
    leave_figures(work)


if __name__ == "__main__":
    main()
