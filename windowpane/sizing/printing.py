"""What ``windowpane size`` prints."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict

from rich import box
from rich.console import Console
from rich.table import Table

from windowpane.inspect.printing import bytes_text
from windowpane.sizing import Estimate, Interval, costs


def as_json(found: Estimate) -> str:
    return json.dumps({**asdict(found), "measured": costs()["measured"]})


def print_estimate(console: Console, found: Estimate) -> None:
    """Print an estimate: the figures with their intervals, what to set, and what of it was never measured."""
    load, table = found.load, Table(box=box.SIMPLE_HEAD)
    for name in ("", "likely", "from", "to"):
        table.add_column(name, justify="left" if not name else "right")
    table.add_row("a batch takes", *_figures(found.seconds, "{:,.2f} s".format))
    table.add_row("state", *_figures(found.state_bytes, bytes_text))
    console.print(table)
    console.print(
        f"{_many(load.cores, 'core')} in {_many(load.executors, 'executor')}, spark.sql.shuffle.partitions={load.buckets:,}: "
        f"a batch of {load.rows:,.0f} rows each {load.batch:g} s keeps them busy for {found.busy:.0%} of the time."
    )
    if found.beyond:
        passed = [f"{name} {getattr(load, name):,.0f} (measured up to {limit:,})" for name, limit in found.beyond.items()]
        console.print(
            f"Extrapolated, so no more than a beginning: {', '.join(passed)}. Measure a part of the load before you rely on it."
        )
    console.print(f"Reckoned from measurements of {costs()['measured']}; nine of ten lay between from and to.")


def _figures(interval: Interval, written: Callable[[float], str]) -> list[str]:
    return [written(each) for each in (interval.likely, interval.low, interval.high)]


def _many(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
