"""Messages of Kafka into windows: windowpane, without a jar and through Spark's connector, beside Spark's own way.

Usage: ``python -m bench.kafka [--messages N] [--keys N] [--runs N] [--system NAME]``. It starts a broker (``scripts/kafka.sh``),
sends JSON objects of a user, a price and a time over six partitions, and counts and adds them up by user in windows of ten
seconds, each system in a process of its own over the same topic. ``spark`` is the connector's bytes, ``from_json`` and native
windows, with ``spark-sql-kafka`` from Maven's folder or by ``spark.jars.packages``. A run takes eight batches; the
figures are medians of messages a second: of the whole query, and of its last four batches, when the JVM is warm.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.each_system import arguments, command

SYSTEMS = ("spark", "windowpane", "through spark")
PARTITIONS, BATCHES, TOPIC = 6, 8, "bids"
SCHEMA = "user string, price long, at timestamp"
_VERSION, _CONNECTOR = "4.2.0", "org.apache.spark:spark-sql-kafka-0-10_2.13"
_JARS = (
    f"org/apache/spark/spark-sql-kafka-0-10_2.13/{_VERSION}/*.jar",
    f"org/apache/spark/spark-token-provider-kafka-0-10_2.13/{_VERSION}/*.jar",
    "org/apache/kafka/kafka-clients/3.9.*/*.jar",
    "org/apache/commons/commons-pool2/*/*.jar",
)


def send(servers: str, messages: int, keys: int) -> None:
    """Make the topic and fill it; a thousand messages have one second of event time."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})  # kept until the topic is there: the client ends its requests with itself
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result()
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000})
    for number in range(messages):
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1_700_000_000 + number // 1_000))
        value = f'{{"user":"user {number * 7919 % keys}","price":{number % 1_000},"at":"{at}.{number % 1_000:03}Z"}}'
        producer.produce(TOPIC, value, partition=number % PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0.01)
    producer.flush()


def rows(spark: Any, system: str, servers: str, most: int) -> Any:
    """Return the results of a system."""
    from pyspark.sql import functions as F

    import windowpane as wp

    if system == "spark":
        read = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", TOPIC)
        read = read.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", most)
        read = read.option("kafka.isolation.level", "read_committed").load()
        parsed = read.select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("v")).select("v.*")
        windows = parsed.withWatermark("at", "2 seconds").groupBy("user", F.window("at", "10 seconds"))
        return windows.agg(F.count(F.lit(1)).alias("n"), F.sum("price").alias("total"))
    through: Any = "spark" if system == "through spark" else "arrow"
    read = wp.read_kafka(
        spark, TOPIC, servers=servers, value=wp.json(SCHEMA), event_time="at", delay="2 seconds", max_rows_per_batch=most,
        through=through,
    )  # fmt: skip
    keyed = wp.stream(read).key_by("user").window(wp.TumblingEventTimeWindows.of("10 seconds"))
    return keyed.aggregate(n=wp.count(), total=wp.sum("price")).df


def run(system: str, folder: Path) -> None:
    """Run one query, and print its figures; ``folder`` says where the broker is and how many messages it has."""
    from bench.systems.spark_job import session

    told = json.loads((folder / "topic").read_text())
    found = [[*(Path.home() / ".m2" / "repository").glob(each)] for each in _JARS]
    jars = {"spark.jars": ",".join(str(each[0]) for each in found)} if all(found) else {}
    spark = session(jars or {"spark.jars.packages": f"{_CONNECTOR}:{_VERSION}"})
    with tempfile.TemporaryDirectory() as work:
        results = rows(spark, system, told["servers"], told["messages"] // BATCHES)
        writer = results.writeStream.format("noop").option("checkpointLocation", f"{work}/checkpoint")
        began = time.monotonic()
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        whole = told["messages"] / (time.monotonic() - began)
        last = [each for each in query.recentProgress if each["numInputRows"] > 0][BATCHES // 2 : BATCHES]
    seconds = sum(each["batchDuration"] for each in last) / 1_000
    print(json.dumps({"whole": whole, "warm": told["messages"] / BATCHES * len(last) / seconds}), flush=True)


def main() -> None:
    parser = arguments(__doc__, SYSTEMS)
    parser.add_argument("--messages", type=int, default=4_000_000)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--port", type=int, default=29_392)
    given = parser.parse_args()
    if given.system is not None and given.folder is not None:
        run(given.system, given.folder)
        return
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        broker = folder / "kafka"
        subprocess.run(["bash", "scripts/kafka.sh", broker, str(given.port)], check=True, stdout=subprocess.DEVNULL)
        try:
            servers = f"127.0.0.1:{given.port}"
            (folder / "topic").write_text(json.dumps({"servers": servers, "messages": given.messages}))
            send(servers, given.messages, given.keys)
            systems = SYSTEMS if given.system is None else (given.system,)
            figures: dict[str, list[dict[str, float]]] = {system: [] for system in systems}
            for _ in range(given.runs):
                for system in systems:
                    done = subprocess.run(command(system, folder), check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                    figures[system].append(json.loads(done.stdout.splitlines()[-1]))
        finally:
            subprocess.run(["kill", (broker / "pid").read_text().strip()], check=False)
    for system, measured in figures.items():
        whole, warm = (statistics.median(each[name] for each in measured) for name in ("whole", "warm"))
        print(f"{system:14} whole {whole:12,.0f}  warm {warm:12,.0f} messages/s", file=sys.stdout, flush=True)


if __name__ == "__main__":
    main()
