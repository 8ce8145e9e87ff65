"""Report: the figures and the standings as tables in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from bench.results import Figure, Results
from bench.standings import Standing
from bench.systems import TITLES


def show(results: Results, standings: Sequence[Standing], console: Console) -> None:
    """Print everything."""
    console.print(_figures(results))
    console.print(_standings(standings))


def _figures(results: Results) -> Table:
    table = Table("case", "keys", "system", title="windowpane beside its peers")
    for name in ("rows", "runs", "rows/s", "batch", "whole job", "peak memory", "state"):
        table.add_column(name, justify="right")
    before = None
    for figure in results.figures:
        if before is not None and before != (figure.case, figure.keys):
            table.add_section()
        before = (figure.case, figure.keys)
        table.add_row(figure.case, f"{figure.keys:,}", TITLES[figure.system], *cells(figure))
    return table


def cells(figure: Figure) -> list[str]:
    """Return a figure's measurements as text: rows, runs, rows/s, batch, whole job, peak memory, state."""
    if figure.reason:
        return [figure.reason, *[""] * 6]
    values = [(figure.rows_per_s, "{:,.0f}"), (figure.batch_s, "{:.2f} s"), (figure.whole_job_s, "{:.1f} s")]
    values += [(figure.peak_mb, "{:,.0f} MB"), (figure.state_mb, "{:,.1f} MB")]
    texts = ["" if value is None else form.format(value) for value, form in values]
    return [f"{figure.rows:,}", str(figure.runs), *texts]


def _standings(standings: Sequence[Standing]) -> Table:
    table = Table("case", "keys", "against", "goal", "reached", "in Arrow", "", title="Goals")
    for each in standings:
        colour = "yellow" if each.verdict == "not met" else "green"
        against = TITLES.get(each.against, each.against)
        reached = (each.reached, each.in_arrow, f"[{colour}]{each.verdict}")
        table.add_row(each.case, f"{each.keys:,}", against, each.goal, *reached)
    return table
