"""``read_kafka(through="spark")``: Spark brings the messages, with the same columns, watermarks and malformed rows."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import windowpane as wp
from tests.connectors.conftest import Broker, jars
from tests.spark.helpers import SPARK, instant
from windowpane.errors import InvalidSpecError, MissingJarError

pytestmark = pytest.mark.spark

VERSION = "4.0.0" if SPARK < (4, 1) else "4.1.1" if SPARK < (4, 2) else "4.2.0"
"""The connector that goes with this Spark; that of 4.2 goes with later ones, too."""
NEEDED = ("spark-sql-kafka", "spark-token-provider", "kafka-clients", "commons-pool2")


@pytest.mark.slow
def test_without_the_jar_spark_says_which(spark: Any) -> None:
    with pytest.raises(MissingJarError, match=r"packages org\.apache\.spark:spark-sql-kafka-0-10_2\.13:<version>"):
        wp.read_kafka(spark, "orders", servers="localhost:9092", through="spark")
    with pytest.raises(InvalidSpecError, match="Spark tells no consumer group"):
        wp.read_kafka(spark, "orders", servers="localhost:9092", through="spark", group="me")
    with pytest.raises(InvalidSpecError, match="it is 'arrow' or 'spark'"):
        wp.read_kafka(spark, "orders", servers="localhost:9092", through="java")  # type: ignore[arg-type]


@pytest.mark.slow
def test_windows_over_messages_that_spark_reads(broker: Broker, tmp_path: Path) -> None:
    given = jars(f"spark-kafka-{VERSION}", f"org.apache.spark:spark-sql-kafka-0-10_2.13:{VERSION}", beginning=NEEDED)
    topic = broker.topic(2)

    def event(k: str, t: int, v: int) -> bytes:
        return json.dumps({"k": k, "t": instant(t).isoformat(), "v": v}).encode()

    # The second partition is ten minutes behind: with a watermark of each, nothing is late.
    broker.send(topic, event("a", 601, 1), event("a", 605, 2), (b"key", b"no"), event("b", 641, 3), partition=0)
    broker.send(topic, event("a", 1, 4), event("a", 2, 5), event("b", 3, 6), event("b", 30, 7), partition=1)
    program = Path(__file__).with_name("read_by_spark_program.py")
    environment = {**os.environ, "PYTHONPATH": f"{program.parents[2]}:{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, str(program), given, broker.servers, topic, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
    windows, malformed, bounded = map(ast.literal_eval, done.stdout.strip().splitlines()[-3:])
    assert windows == [
        ("a", 0, 10, 2, 9),
        ("a", 600, 610, 2, 3),
        ("b", 0, 10, 1, 6),
        ("b", 30, 40, 1, 7),
        ("b", 640, 650, 1, 3),
    ]
    assert malformed == [(topic, 0, 2, b"key", "no")]
    assert bounded == [("b", 3, 0, 3)]
