"""What looking costs: a query with its page and metrics on beside one without, and a checkpoint of many open sessions.

Usage: ``python -m bench.looking [--rows N] [--batches N] [--block N]`` for the first, ``python -m bench.looking --sessions N``
for the second. One query sums payments by card, a file of ``--rows`` each batch; for ``--block`` batches its page is open in a
client that takes its data after each batch, and metrics are scraped every second, then for as many nobody looks, and so on. The
first two blocks warm up, and the first batch of each block is left out. The figures are the medians of blocks of either kind,
and how each that was looked at lies to the mean of the two around it: of the seconds of a batch, and of the processor seconds
of a batch that this process and all that it starts take, page, metrics and their clients included. Of sessions the figures are
seconds of wall and processor and the memory of ``windowpane inspect``, in processes of their own.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

from bench.payments import write_batches
from bench.process_tree import ProcessTree

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECONDS_A_BATCH, _CARDS = 10, 1_000


def run(folder: Path, block: int) -> None:
    """Run the query over the files, looked at in every second block of batches, and print what that cost."""
    import windowpane as wp
    from bench.systems.spark_job import session

    spark = session()
    rows = spark.readStream.schema("card string, at timestamp, amount long").option("maxFilesPerTrigger", 1)
    keyed = wp.stream(rows.parquet(str(folder)), event_time="at", watermark="2 seconds").key_by("card")
    results = keyed.window(wp.TumblingEventTimeWindows.of("10 seconds")).aggregate(n=wp.count(), total=wp.sum("amount")).df
    with tempfile.TemporaryDirectory() as work:
        writer = results.writeStream.format("noop").option("checkpointLocation", f"{work}/checkpoint")
        query = writer.trigger(availableNow=True).start()
        while not _committed(Path(work)):
            time.sleep(0.05)
        page, tree = wp.ui(query), ProcessTree(os.getpid())
        blocks: list[tuple[int, int, float]] = []
        while query.isActive:
            with _looking(spark, page.url) if len(blocks) % 2 else nullcontext():
                first, began = _committed(Path(work)), tree.looked()
                while query.isActive and _committed(Path(work)) < first + block:
                    time.sleep(0.02)
                last = _committed(Path(work))
                blocks.append((first + 1, last, (tree.looked() - began) / (last - first or 1)))
        page.close()
        took = {each["batchId"]: each["durationMs"]["triggerExecution"] / 1000 for each in query.recentProgress}
    blocks = blocks[2:-1]
    _compare("seconds", [statistics.median(took[batch] for batch in range(first, last)) for first, last, _ in blocks])
    _compare("processor seconds", [processor for _, _, processor in blocks])


def _compare(name: str, blocks: list[float]) -> None:
    ratios = [blocks[at] / statistics.mean((blocks[at - 1], blocks[at + 1])) for at in range(1, len(blocks) - 1, 2)]
    plain, looked = statistics.median(blocks[::2]), statistics.median(blocks[1::2])
    slowed = f"{100 * (statistics.median(ratios) - 1):+.1f} % ({', '.join(f'{each:.3f}' for each in ratios)})"
    print(f"{name} of a batch: {plain:.3f}, looked at {looked:.3f}; {slowed}")


@contextmanager
def _looking(spark: SparkSession, url: str) -> Iterator[None]:
    import windowpane as wp

    ended, served = threading.Event(), wp.metrics.serve(spark, port=0)
    clients = [threading.Thread(target=_take, args=(url, ended)), threading.Thread(target=_scrape, args=(served.port, ended))]
    for client in clients:
        client.start()
    try:
        yield
    finally:
        ended.set()
        for client in clients:
            client.join()
        served.close()


def _committed(work: Path) -> int:
    """Return how many batches have been committed."""
    return 1 + max((int(each.name) for each in work.glob("checkpoint/commits/*") if each.name.isdigit()), default=-1)


def _take(url: str, ended: threading.Event) -> None:
    """Take the data of the page whenever a batch has ended, as the page does."""
    with urlopen(f"{url}events") as events:
        while not ended.is_set() and (line := events.readline()):
            if line.startswith(b"data"):
                with urlopen(f"{url}data") as data:
                    data.read()


def _scrape(port: int, ended: threading.Event) -> None:
    while not ended.wait(1):
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            answer.read()


def looked_at(sessions: int) -> None:
    """Print how long a checkpoint of open sessions takes to look at."""
    import windowpane as wp
    from bench.systems.spark_job import session

    with tempfile.TemporaryDirectory() as work:
        source, checkpoint = Path(work) / "input", Path(work) / "checkpoint"
        source.mkdir()
        spark = session()
        keys = spark.range(sessions).selectExpr("concat('card-', lpad(id, 10, '0')) AS card", "timestamp'2024-01-01' AS at", "id")
        keys.repartition(8).write.mode("append").parquet(str(source))
        rows = spark.readStream.schema(keys.schema).option("maxFilesPerTrigger", 2).parquet(str(source))
        keyed = wp.stream(rows, event_time="at", watermark="1 hour").key_by("card")
        results = keyed.window(wp.EventTimeSessionWindows.with_gap("1 hour")).aggregate(n=wp.count(), total=wp.sum("id")).df
        writer = results.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()
        spark.stop()
        print(f"{'--help: a start alone':30}", _look(["--help"]), flush=True)
        for look in (["query"], ["watermarks"], ["state"], ["windows"], ["keys"], ["--key", f"card-{sessions // 2:010}"], []):
            print(f"{' '.join(look) or 'all tables':30}", _look([str(checkpoint), *look]), flush=True)


def _look(given: list[str]) -> str:
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "windowpane", "inspect", *given], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    if status:
        raise SystemExit(f"windowpane inspect {' '.join(given)} failed")
    return f"{wall:6.2f} s, processor {used.ru_utime + used.ru_stime:5.2f} s, {used.ru_maxrss / 1024:5.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, default=90)
    parser.add_argument("--block", type=int, default=6)
    parser.add_argument("--sessions", type=int, help="look at a checkpoint of so many open sessions instead")
    given = parser.parse_args()
    if given.sessions is not None:
        looked_at(given.sessions)
        return
    with tempfile.TemporaryDirectory() as folder:
        write_batches(Path(folder), given.rows, _CARDS, given.batches, _SECONDS_A_BATCH)
        run(Path(folder), given.block)


if __name__ == "__main__":
    main()
