"""What looking costs: a query with its page and metrics on beside one without, and a checkpoint of many open sessions.

Usage: ``python -m bench.looking [--rows N] [--batches N] [--runs N]`` for the first, ``python -m bench.looking --sessions N`` for
the second. Queries take turns, each in a process of its own; a batch is one file of ``--rows`` payments into tumbling windows by
card. With the page on it is open in a client that takes its data after each batch, and metrics are scraped every second. The
figure is the median of the seconds of batches, the first left out, in pairs of runs that follow each other; beside it stands the
processor time of the driver's Python in a minute, page, metrics and their clients included, from the second batch on. Of sessions
the figures are seconds of wall and processor and the memory of ``windowpane inspect``, in processes of their own.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.request import urlopen

from bench.each_system import arguments, command
from bench.payments import write_batches

SYSTEMS = ("plain", "looked at")
_SECONDS_A_BATCH, _CARDS = 10, 1_000


def run(system: str, folder: Path) -> None:
    """Run one query over the files, and print the seconds of its batches."""
    import windowpane as wp
    from bench.systems.spark_job import session

    spark, ended = session(), threading.Event()
    served = wp.metrics.serve(spark, port=0) if system == "looked at" else None
    rows = spark.readStream.schema("card string, at timestamp, amount long").option("maxFilesPerTrigger", 1)
    keyed = wp.stream(rows.parquet(str(folder)), event_time="at", watermark="2 seconds").key_by("card")
    results = keyed.window(wp.TumblingEventTimeWindows.of("10 seconds")).aggregate(n=wp.count(), total=wp.sum("amount")).df
    with tempfile.TemporaryDirectory() as work:
        writer = results.writeStream.format("noop").option("checkpointLocation", f"{work}/checkpoint")
        query = writer.trigger(availableNow=True).start()
        page, clients = None, []
        if served is not None:
            while not Path(work, "checkpoint/metadata").exists():
                time.sleep(0.05)
            page = wp.ui(query)
            clients = [
                threading.Thread(target=_take, args=(page.url, ended), daemon=True),
                threading.Thread(target=_scrape, args=(served.port, ended), daemon=True),
            ]
            for client in clients:
                client.start()
        while query.isActive and len(query.recentProgress) < 2:
            query.awaitTermination(1)
        began, used = time.perf_counter(), time.process_time()
        query.awaitTermination()
        used, wall = time.process_time() - used, time.perf_counter() - began
        ended.set()
        took = [each["durationMs"]["triggerExecution"] / 1000 for each in query.recentProgress if each["numInputRows"]]
        if page is not None and served is not None:
            page.close()
            served.close()
    print(json.dumps({"batches": took[1:], "processor": 60 * used / wall}), flush=True)


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


def slowed(folder: Path, runs: int) -> None:
    """Print what looking costs."""
    pairs = []
    for number in range(runs):
        pair, used = {}, {}
        for system in SYSTEMS if number % 2 else SYSTEMS[::-1]:
            done = subprocess.run(command(system, folder), capture_output=True, text=True, check=True)
            said = json.loads(done.stdout.splitlines()[-1])
            pair[system], used[system] = statistics.median(said["batches"]), said["processor"]
        pairs.append(pair)
        print("  ".join(f"{each} {pair[each]:.3f} s, {used[each]:.1f} s a minute" for each in SYSTEMS), flush=True)
    ratios = [pair["looked at"] / pair["plain"] for pair in pairs]
    print(f"slowed by {100 * (statistics.median(ratios) - 1):+.1f} % ({min(ratios):.3f} to {max(ratios):.3f})")


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
    parser = arguments(__doc__, SYSTEMS)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--sessions", type=int, help="look at a checkpoint of so many open sessions instead")
    given = parser.parse_args()
    if given.system is not None and given.folder is not None:
        run(given.system, given.folder)
    elif given.sessions is not None:
        looked_at(given.sessions)
    else:
        with tempfile.TemporaryDirectory() as folder:
            write_batches(Path(folder), given.rows, _CARDS, given.batches, _SECONDS_A_BATCH)
            slowed(Path(folder), given.runs)


if __name__ == "__main__":
    main()
