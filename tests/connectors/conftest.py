"""A real Kafka, started once a run; skipped by name where there is no Maven to bring it, but not where it is required."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
SCRIPT = SCRIPTS / "kafka.sh"
REQUIRED = "WINDOWPANE_REQUIRE_KAFKA"
"""The variable of the environment under which tests fail where they would be skipped."""

_numbers = itertools.count()


@dataclass
class Broker:
    servers: str
    folder: Path
    port: int
    topics: list[str] = field(default_factory=list)

    def topic(self, partitions: int = 2, **settings: str) -> str:
        """Make a topic, and return its name."""
        from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

        name = f"topic-{os.getpid()}-{next(_numbers)}"
        admin = AdminClient({"bootstrap.servers": self.servers})
        admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result()
        return name

    def send(self, topic: str, *messages: Any, partition: int | None = None, **settings: Any) -> None:
        """Send values, or pairs of key and value."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 5, **settings})
        for message in messages:
            key, value = message if isinstance(message, tuple) else (None, message)
            producer.produce(topic, value, key, partition=-1 if partition is None else partition)
        producer.flush(30)

    def read(self, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
        """Return partition, key and value of all that is committed, in the order of each partition."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "tests",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )
        partitions = sorted(consumer.list_topics(topic).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
        found, ended, deadline = list[Any](), set[int](), time.monotonic() + 30
        while len(ended) < len(partitions) and time.monotonic() < deadline:
            messages: list[Any] = consumer.consume(1_000, 1.0)
            for message in messages:
                if message.error():
                    ended.add(message.partition())
                else:
                    found.append((message.partition(), message.key(), message.value()))
        consumer.close()
        return sorted(found, key=lambda each: each[0])

    def start(self) -> None:
        subprocess.run(["bash", SCRIPT, self.folder, str(self.port)], check=True, stdout=subprocess.DEVNULL)

    def stop(self) -> None:
        pid = int((self.folder / "pid").read_text())
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + 15
        while is_open(self.port) and time.monotonic() < deadline:
            time.sleep(0.1)
        if is_open(self.port):
            os.kill(pid, signal.SIGKILL)


def is_open(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def free_port(around: Sequence[int] = range(29_400, 39_400, 2)) -> int:
    start = os.getpid() * 2 % len(around)
    return next(port for port in (*around[start:], *around[:start]) if not (is_open(port) or is_open(port + 1)))


def absent() -> str | None:
    """Return why there can be no Kafka here, ``None`` where there can."""
    cached = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "windowpane"
    if shutil.which("mvn") is None and not [*cached.glob("kafka-*")]:
        return "no Maven (mvn) to bring Kafka: apt-get install maven"
    return None


def jars(name: str, *artifacts: str, beginning: Sequence[str]) -> str:
    """Return the jars of artifacts of Maven, and of those that they need the ones that Spark lacks, as ``spark.jars`` takes them.

    Args:
        name: of the folder in the user's cache.
        artifacts: ``group:artifact:version``.
        beginning: what the names of the jars begin with.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "windowpane" / name
    if not folder.exists() and shutil.which("mvn") is None:
        (pytest.fail if os.environ.get(REQUIRED) else pytest.skip)(f"no Maven (mvn) to bring {name}: apt-get install maven")
    subprocess.run(["bash", SCRIPTS / "jars.sh", folder, *artifacts], check=True, stdout=subprocess.DEVNULL)
    return ",".join(str(each) for each in sorted(folder.glob("*.jar")) if each.name.startswith(tuple(beginning)))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    reason = absent()
    if reason is not None:
        (pytest.fail if os.environ.get(REQUIRED) else pytest.skip)(reason)
    port = free_port()
    started = Broker(f"127.0.0.1:{port}", tmp_path_factory.mktemp("kafka"), port)
    started.start()
    yield started
    started.stop()


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """An object store that speaks S3, with the bucket ``tables``."""
    pytest.importorskip("moto")
    boto3 = pytest.importorskip("boto3")

    server, port = _object_store()
    address = f"http://127.0.0.1:{port}"
    store = boto3.client(
        "s3", endpoint_url=address, aws_access_key_id="me", aws_secret_access_key="hunter2", region_name="us-east-1"
    )
    store.create_bucket(Bucket="tables")
    yield address
    server.terminate()
    server.wait()


def _object_store() -> tuple[subprocess.Popen[bytes], int]:
    """Start an object store, and return its process and port: it begins anew on another one if its port is taken meanwhile.

    It has a process of its own: deltalake holds the lock of Python's interpreter while it writes. Beside other tests it may take
    more than a minute to start.
    """
    server, port, deadline = None, 0, time.monotonic() + 240
    while time.monotonic() < deadline:
        if server is None or server.poll() is not None:
            port = free_port()
            command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
            server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        elif is_open(port):
            return server, port
        time.sleep(0.1)
    pytest.fail("the object store of the tests did not start")


@pytest.fixture
def bucket(endpoint: str, tmp_path: Path) -> Callable[[str], str]:
    """Return what makes an address below a folder of the test's own, with all that reaching it needs."""
    given = f"endpoint_override={endpoint}&region=us-east-1"
    return lambda path: f"s3://me:hunter2@tables/{tmp_path.name}/{path}?{given}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say in the last lines that tests were skipped for want of Kafka."""
    skipped = [report for report in terminalreporter.stats.get("skipped", ()) if (absent() or "?") in str(report.longrepr)]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} tests of connectors were skipped: {absent()}")
