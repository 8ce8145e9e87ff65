"""What the demo shows: how the stream gets on while it runs, and tables at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

import windowpane as wp
from windowpane.arrays.values import JsonValue, Value
from windowpane.demo import program
from windowpane.demo.flights import Replay
from windowpane.demo.results import MIN_FLIGHTS, Summary

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

_POLL_SECONDS: Value = 0.5  # PySpark takes fractions, and says that it does not
_EPOCH = "1970-01-01"  # what Spark reports while there is no watermark


def introduce(console: Console, replay: Replay, log: Path) -> None:
    console.print(
        f"[bold]{replay.flights:,} flights from New York[/bold], in the order in which they departed, as a stream of "
        f"{replay.files - 1} micro-batches.\n"
        "Hourly windows per airport by scheduled departure (local time), early results each 15 minutes of event time.\n"
        f"The watermark follows {program.WATERMARK} behind. Delayed flights refine their hour for {program.ALLOWED_LATENESS} "
        "more; then they are late and dropped.\n"
        f"{replay.cancelled:,} flights were cancelled. They arrive at their scheduled time, count as cancelled, and have no "
        "delay.\n"
        f"Log of Spark: {log}"
    )


Describe = Callable[[list[dict[str, JsonValue]], int], str]
"""Says how far a query is, by the counters of its batches and the number of flights read."""


def describe(counted: list[dict[str, JsonValue]], flights: int) -> str:
    firings, late = (sum(each[name] for each in counted) for name in ("firings", "late_dropped"))
    return f"{flights:,} flights · {firings:,} firings · {late} late"


def watch(console: Console, query: StreamingQuery, replay: Replay, describe: Describe = describe) -> None:
    """Show the progress of ``query`` until it ends.

    Raises:
        StreamingQueryException: the query failed.
    """
    columns = (
        TextColumn("micro-batch"),
        MofNCompleteColumn(),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("Spark starts", total=replay.files)
        while not query.awaitTermination(_POLL_SECONDS):
            _show(progress, task, query.recentProgress, replay, describe)
        _show(progress, task, query.recentProgress, replay, describe)


def _show(
    progress: Progress, task: TaskID, batches: Sequence[StreamingQueryProgress], replay: Replay, describe: Describe
) -> None:
    read = [batch for batch in batches if batch["numInputRows"]]
    if not read:
        return
    counters = [dict(counted) for counted in map(wp.progress, batches) if counted]
    flights = min(sum(batch["numInputRows"] for batch in read), replay.flights)
    progress.update(task, completed=len(read), description=_watermark(read[-1]) + describe(counters, flights))


def _watermark(batch: StreamingQueryProgress) -> str:
    watermark = (batch["eventTime"] or {}).get("watermark")
    if watermark is None:
        return ""
    return "no watermark yet · " if watermark.startswith(_EPOCH) else f"watermark {watermark[:16].replace('T', ' ')} · "


def conclude(console: Console, summary: Summary, out: Path) -> None:
    console.print(_worst_hours(summary), _timings(summary))
    console.print(
        f"In the final results of {summary.hours:,} hours: {summary.flights:,} flights, {summary.cancelled:,} cancelled. "
        f"Late and dropped: [bold]{summary.dropped:,}[/bold] flights.\n"
        f"Results, Parquet: [bold]{out / 'main'}[/bold] (the final one of an hour has the highest firing)\n"
        f"Late flights, Parquet: [bold]{out / 'late'}[/bold]\n"
        f"Checkpoint: {out / 'checkpoint'}"
    )


def _worst_hours(summary: Summary) -> Table:
    table = Table(title=f"The worst hours by mean delay, of those with {MIN_FLIGHTS} flights or more")
    table.add_column("airport")
    table.add_column("hour of scheduled departure, 2013")
    for name in ("flights", "cancelled", "mean delay", "90 % within"):
        table.add_column(name, justify="right")
    for hour in summary.worst:
        delays = (f"{hour.mean_delay:.1f} min", f"{hour.p90_delay:.1f} min")
        table.add_row(hour.origin, hour.hour, str(hour.flights), str(hour.cancelled), *delays)
    return table


def _timings(summary: Summary) -> Table:
    meanings = {
        program.EARLY: "while the hour was still filling",
        program.ON_TIME: "when the watermark had passed the hour's end",
        program.REFINED: "when delayed flights departed after that",
    }
    table = Table(title="Results")
    table.add_column("timing")
    table.add_column("how many", justify="right")
    table.add_column("emitted")
    for timing, meaning in meanings.items():
        table.add_row(timing, f"{summary.timings.get(timing, 0):,}", meaning)
    return table
