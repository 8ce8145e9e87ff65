"""The command: ``python -m bench``."""

from __future__ import annotations

import time
from typing import Annotated

import typer
from rich.console import Console

from bench import chart, pages, report, results
from bench.cases import all_cases
from bench.rounds import OUT, clean_up, run_case
from bench.standings import standings

_ONCE_AFTER = 0.6
_ONLY = "Run the cases whose name and keys contain this: 'of 1 M 1000 keys'; or one of several: 'users,shapes'."
app = typer.Typer(add_completion=False)
console = Console(width=None if Console().is_terminal else 200)


@app.command()
def bench(
    runs: Annotated[int, typer.Option(help="How often each system runs a case; medians count. Slow peers run less.")] = 3,
    only: Annotated[list[str], typer.Option(help=_ONLY)] = [],  # noqa: B006
    system: Annotated[list[str], typer.Option(help="Run only these systems, as --list names them.")] = [],  # noqa: B006
    minutes: Annotated[float, typer.Option(help="Time to aim at: once most of it is used, every system runs once.")] = 35,
    record: Annotated[bool, typer.Option(help="Publish each case as it ends, beside those published before.")] = False,
    quick: Annotated[bool, typer.Option(help="Few rows, to try the suite; figures mean nothing then.")] = False,
    list_cases: Annotated[bool, typer.Option("--list", help="Show the cases and end.")] = False,
) -> None:
    """Run the benchmarks: windowpane beside its peers, on the same rows.

    A full run writes bench/results.json, the pictures and the tables of docs/performance.md and docs/performance/. With --record
    each case is written there as it ends, and other cases stay. Any other run writes out/bench/results.json.
    """
    cases = [case.scaled(quick) for case in all_cases() if case.is_among(only)]
    if list_cases:
        for case in cases:
            console.print(f"{case.name} | {case.keys:,} | {', '.join(c.system.title for c in case.contenders)}", highlight=False)
        return
    runs_of = [case.with_systems(system) if system else case for case in cases]
    if not any(case.contenders for case in runs_of):
        raise typer.BadParameter("no case has such a name and such a system; --list shows them all")
    begun, figures = time.monotonic(), list[results.Figure]()
    for number, kept in enumerate(runs_of, start=1):
        console.print(f"[bold]{number} of {len(cases)}: {kept.name}, {kept.keys:,} keys {kept.emit}", highlight=False)
        times = runs if time.monotonic() - begun < _ONCE_AFTER * minutes * 60 else 1
        figures += run_case(kept, times, lambda text: console.print(f"  {text}", highlight=False))
        if record and not quick:
            _publish(results.merged(results.read_kept(), figures))
    clean_up()
    found = results.Results(results.machine(), tuple(figures))
    reached = standings(found, cases)
    report.show(found, reached, console)
    if only or system or quick:
        results.write(found, OUT / "results.json")
    elif not record:
        _publish(found)
    console.print(f"done in {(time.monotonic() - begun) / 60:.1f} minutes")


def _publish(found: results.Results) -> None:
    """Write results, chart and pages; each figure says when it was measured."""
    found = results.dated(found)
    results.write(found)
    chart.draw(found)
    pages.write_pages(found, standings(found, all_cases()))


if __name__ == "__main__":
    app()
