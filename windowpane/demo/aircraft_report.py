"""What the second part of the demo shows."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from windowpane.arrays.values import JsonValue
from windowpane.demo.aircraft_results import AircraftSummary
from windowpane.demo.flights import Replay


def introduce(console: Console, replay: Replay) -> None:
    console.print(
        f"\n[bold]{replay.flights - replay.cancelled:,} of these flights again, by aircraft[/bold]: OVER (PARTITION BY tailnum "
        "ORDER BY scheduled).\nEach flight gets the delay with which its aircraft arrived before (lag), and the one with which "
        "it departs next (lead).\nThe latter is known later, so results are emitted on update, as a changelog."
    )


def describe(counted: list[dict[str, JsonValue]], flights: int) -> str:
    return f"{flights:,} flights · {sum(each['firings'] for each in counted):,} changes"


def conclude(console: Console, summary: AircraftSummary, changes: Path) -> None:
    console.print(_story(summary), _handovers(summary))
    counts = ", ".join(f"{count:,} {word}" for word, count in sorted(summary.counts.items()))
    console.print(f"Changelog of {summary.flights:,} flights: {counts}.\nParquet: [bold]{changes}[/bold]")


def _story(summary: AircraftSummary) -> Table:
    aircraft = summary.handovers[0].aircraft
    table = Table(title=f"The changelog of {aircraft} around its worst day")
    for name in ("batch", "_change_type", "flight", "scheduled"):
        table.add_column(name)
    for name in ("delay", "inherited", "handed on"):
        table.add_column(name, justify="right")
    for change in summary.story:
        delays = (change.delay, change.inherited, change.handed_on)
        minutes = ["NULL" if delay is None else f"{delay} min" for delay in delays]
        table.add_row(str(change.batch), change.change, change.flight, change.scheduled, *minutes)
    return table


def _handovers(summary: AircraftSummary) -> Table:
    table = Table(title="The largest delays handed on")
    for name in ("aircraft", "flight", "scheduled", "to"):
        table.add_column(name)
    for name in ("arrived late by", "departed next late by"):
        table.add_column(name, justify="right")
    for each in summary.handovers:
        delays = (f"{each.arrived} min", f"{each.departed_next} min")
        table.add_row(each.aircraft, each.flight, each.scheduled, each.destination, *delays)
    return table
