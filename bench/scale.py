"""What a batch costs and what state takes, by rows, keys, windows, buckets and executors: ``windowpane size`` reckons with it.

Usage: ``python -m bench.scale [--write]``. Keys are texts like users' (37 characters). Each point is a query over files that
were written before, several batches long; each master is a process of its own, which runs each program once before it counts.
With ``--write`` the fitted costs go into ``windowpane/sizing/costs.json``. The machine should do nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from bench.batches import seconds_of_batches, steady
from bench.payments import write_batches
from windowpane.sizing import KINDS, Load, work_of

_FEED = 20
"""Seconds of event time of a file; all windows here are minutes long, so every batch goes on with keys that are there."""
_BATCHES, _COSTS = 5, Path(__file__).parents[1] / "windowpane" / "sizing" / "costs.json"
_MASTERS = {"local[1]": (1, 1), "local[2]": (2, 1), "local-cluster[2,1,2048]": (2, 2), "local-cluster[4,1,1024]": (2, 4)}
"""Each master's cores, as far as this machine of two has them, and executors."""
_POINTS = (
    (10_000, 1_000, 2),
    (10_000, 1_000, 16),
    (1_500_000, 1_000, 2),
    (200_000, 100_000, 4),
    (600_000, 200_000, 2),
)
"""Rows of a batch, keys, buckets."""


@dataclass(frozen=True)
class Measured:
    """What a query took: seconds of a batch, bytes of state."""

    master: str
    load: Load
    seconds: float
    state_bytes: int


def _results(kind: str, rows: Any) -> Any:
    import windowpane as wp

    if kind == "over":
        over = wp.over(rows, event_time="at", watermark="5 seconds", key="id").partition_by("card").order_by("at")
        return over.select("card", "at", before=wp.lag("amount")).emit_on_window_close()
    windows = {
        "tumbling": wp.TumblingEventTimeWindows.of("60 seconds"),
        "sliding": wp.SlidingEventTimeWindows.of("60 seconds", "10 seconds"),
        "session": wp.EventTimeSessionWindows.with_gap("60 seconds"),
    }
    keyed = wp.stream(rows, event_time="at", watermark="5 seconds").key_by("card")
    return keyed.window(windows[kind]).aggregate(n=wp.count(), total=wp.sum("amount"), top=wp.max("amount"))


def _measured(spark: Any, master: str, load: Load, files: Path) -> Measured:
    """Run one query to its end."""
    import windowpane as wp

    spark.conf.set("spark.sql.shuffle.partitions", str(load.buckets))
    with tempfile.TemporaryDirectory() as work:
        source = spark.readStream.schema("card string, at timestamp, amount long, id long").option("maxFilesPerTrigger", 2)
        results = _results(load.kind, source.parquet(str(files)))
        writer = results.df.writeStream.format("noop").option("checkpointLocation", f"{work}/checkpoint")
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        seconds = steady(seconds_of_batches(query.recentProgress))
        state = wp.inspect(f"{work}/checkpoint").state
        return Measured(master, load, seconds, sum(state["bytes"].to_pylist()))


def run(master: str, folder: Path) -> None:
    """Measure all points of one master, and print each as a line of JSON."""
    from bench.systems.spark_job import session

    cores, executors = _MASTERS[master]
    spark = session({"spark.master": master, "spark.python.daemon.module": "windowpane.spark.daemon"})
    for kind in KINDS:
        warm = Load(kind, 200_000, 100_000, cores, executors, 4)
        _measured(spark, master, warm, _files(folder, warm))
    for kind in KINDS:
        for rows, keys, buckets in _POINTS:
            load = Load(kind, rows, keys, cores, executors, buckets)
            print(json.dumps(asdict(_measured(spark, master, load, _files(folder, load)))), flush=True)
    spark.stop()


def _files(folder: Path, load: Load) -> Path:
    """Return the folder with the files of a load: two a batch, so that both cores read."""
    files = folder / f"{load.rows}-{load.keys}"
    if not files.exists():
        files.mkdir()
        write_batches(files, int(load.rows) // 2, int(load.keys), 2 * _BATCHES, _FEED)
    return files


def fitted(measured: list[Measured]) -> dict[str, Any]:
    """Return each kind's costs: those that are never negative and lie nearest in relation, and how far measurements lie apart."""
    kinds = {}
    for kind in KINDS:
        own = [each for each in measured if each.load.kind == kind]
        work = [work_of(each.load) for each in own]
        seconds = _not_negative([each.seconds for each in work], [each.seconds for each in own])
        state = _not_negative([each.state for each in work], [float(each.state_bytes) for each in own])
        kinds[kind] = {"seconds": seconds[0], "seconds_spread": seconds[1], "state": state[0], "state_spread": state[1]}
    return kinds


def _not_negative(parts: list[dict[str, float]], whole: list[float]) -> tuple[dict[str, float], list[float]]:
    """Solve for costs of parts by least squares of relative errors, leaving out what would cost less than nothing."""
    names = list(parts[0])
    while True:
        matrix = np.array([[each[name] / total for name in names] for each, total in zip(parts, whole, strict=True)])
        costs = np.linalg.lstsq(matrix, np.ones(len(whole)), rcond=None)[0]
        if (costs >= 0).all():
            break
        names.pop(int(np.argmin(costs * np.abs(matrix).mean(axis=0))))
    off = np.array(1) / (matrix @ costs)
    return dict(zip(names, costs.tolist(), strict=True)), [float(np.quantile(off, 0.05)), float(np.quantile(off, 0.95))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--master", choices=_MASTERS)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--write", action="store_true", help="keep the costs in the package")
    given = parser.parse_args()
    if given.master is not None and given.folder is not None:
        run(given.master, given.folder)
        return
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for master in _MASTERS:
            command = [sys.executable, "-m", "bench.scale", "--master", master, "--folder", folder]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
                assert process.stdout is not None
                for line in process.stdout:
                    print(line, end="", flush=True)
                    lines.append(line)
            if process.returncode:
                raise SystemExit(f"{master} failed; run it alone: {' '.join(command)}")
    read = [json.loads(line) for line in lines]
    measured = [Measured(**{**each, "load": Load(**each["load"])}) for each in read]
    loads, names = [each.load for each in measured], ("rows", "keys", "cores", "executors", "buckets")
    limits = {name: max(getattr(each, name) for each in loads) for name in names}
    costs = {"measured": f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores", "up_to": limits, "kinds": fitted(measured)}
    print(json.dumps(costs, indent=1))
    if given.write:
        _COSTS.write_text(json.dumps(costs, indent=1) + "\n")


if __name__ == "__main__":
    main()
