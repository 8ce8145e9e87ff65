"""Run the queries of ``test_kafka_killed`` one after another, each until it has taken all that there is; killed by the test."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import windowpane as wp
from tests.brief_jvm import brief_settings
from tests.connectors.test_tables import catalog_in

SCHEMA = "id long, k string, t timestamp, v long"
AT_THE_END = {"availableNow": True}


def windows(events: Any) -> Any:
    """Return sums of ten seconds."""
    keyed = wp.stream(events).key_by("k").window(wp.TumblingEventTimeWindows.of("10 seconds"))
    return keyed.side_output_late_data("late").aggregate(n=wp.count(), total=wp.sum("v"))


def running(events: Any) -> Any:
    """Return of each row the sum of it and the two before it, as a changelog: a row that comes late changes three."""
    over = wp.over(events, key="id").partition_by("k").order_by("t", "id")
    return over.select("id", "k", total=wp.sum("v").rows(-2, 0)).emit_on_update()


def main() -> None:
    servers, topic, out, folder, most = sys.argv[1:]
    work = Path(folder)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2,4]").config(map=brief_settings(folder)).getOrCreate()
    events = wp.read_kafka(
        spark, topic, servers=servers, value=wp.json(SCHEMA), event_time="t", delay="20 seconds", max_rows_per_batch=int(most)
    )
    sinks = {"main": wp.sinks.kafka(out, servers=servers, key="k"), "late": wp.sinks.iceberg("db.late", catalog=catalog_in(work))}
    windows(events).start(**sinks, checkpoint=f"{folder}/windows", trigger=AT_THE_END).awaitTermination()
    sink = wp.sinks.delta(f"{folder}/running", key="id")
    running(events).start(main=sink, checkpoint=f"{folder}/over", trigger=AT_THE_END).awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
