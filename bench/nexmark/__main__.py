"""Nexmark on windowpane's SQL and Python on Spark, beside native Spark and Flink SQL: ``python -m bench.nexmark --help``."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pyarrow as pa
import typer
from rich.console import Console
from rich.table import Table

from bench.environments import FLINK, OWN, Environment, Unavailable
from bench.measured import Spent, watched
from bench.nexmark import events, fluent, native_spark, on_closing, on_fluent, on_sink, on_windowpane
from bench.nexmark.queries import QUERIES
from bench.systems.task_folder import left_figures


class _System(NamedTuple):
    environment: Environment
    queries: Collection[str]
    kept: Callable[[Path], pa.Table] | None = None
    """Gives the rows that the job has kept in its folder, to be compared with DuckDB's; none where they are thrown away."""


_SYSTEMS = {
    "windowpane": _System(OWN, QUERIES, on_windowpane.kept),
    "sink": _System(OWN, QUERIES, on_sink.kept),
    "closing": _System(OWN, on_closing.QUERIES, on_windowpane.kept),
    "fluent": _System(OWN, fluent.PROGRAMS, on_fluent.kept),
    "spark": _System(OWN, native_spark.PROGRAMS),
    "spark_written": _System(OWN, native_spark.PROGRAMS),
    "flink": _System(FLINK, [name for name, query in QUERIES.items() if query.runs_on_flink]),
}
app = typer.Typer(add_completion=False)
console = Console(width=None if Console().is_terminal else 160)


@app.command()
def nexmark(
    query: Annotated[list[str], typer.Option(help="Run only these, q5 or q18.")] = [],  # noqa: B006
    system: Annotated[
        list[str],
        typer.Option(
            help="Run only these: windowpane (SQL), sink (files), closing (on window close), fluent, spark, spark_written, flink."
        ),
    ] = [],  # noqa: B006
    number: Annotated[int, typer.Option("--events", help="How many events.")] = 2_000_000,
    files: Annotated[int, typer.Option(help="In how many files of an entity they arrive; Spark takes one a batch.")] = 20,
    disorder: Annotated[int, typer.Option(help="Within so many events, the order of arrival is not that of time.")] = 10_000,
    timeout: Annotated[float, typer.Option(help="Seconds that a run may take.")] = 600,
    folder: Annotated[
        Path | None, typer.Option(help="Where events are written once, for later runs too; else a temporary one.")
    ] = None,
) -> None:
    """Run the queries, each on each system in a process of its own.

    Results of windowpane are compared with DuckDB's answer from all events; a time is shown only where all rows are the
    same. A system is left out where it has no such query. SQL keeps its results in its store, ``sink``,
    ``fluent`` and ``spark_written`` keep them as Parquet files; native Spark and Flink throw them away.
    """
    systems = system or list(_SYSTEMS)
    table = Table(title=f"Nexmark, {number:,} events in {files} files, disorder {disorder:,}")
    for heading in ("query", "system", "whole job", "processor time", "peak memory", "batch", "rows"):
        table.add_column(heading, justify="left" if heading in ("query", "system") else "right")
    with tempfile.TemporaryDirectory() as temporary:
        csv = "flink" in systems
        events_in = (folder or Path(temporary)).absolute() / f"{number}-{files}-{disorder}{'-csv' if csv else ''}"
        if not events_in.exists():
            begun = events_in.with_suffix(".begun")  # what a run has left that was stopped is written anew
            events.write(begun, number, files, disorder, csv=csv)
            begun.rename(events_in)
        for name in query or QUERIES:
            for each in systems:
                row = _row(each, name, events_in, timeout)
                console.print(*row, sep="  ", highlight=False)
                table.add_row(*row)
    console.print(table)


def _row(name: str, query: str, folder: Path, timeout: float) -> tuple[str, ...]:
    system = _SYSTEMS[name]
    if query not in system.queries:
        return query, name, "no such query"
    with tempfile.TemporaryDirectory() as work:
        try:
            command = [system.environment.python(), "-m", f"bench.nexmark.on_{name}", str(folder), work, query]
            spent = watched(command, Path(work) / "log.txt", timeout)
        except Unavailable as error:
            return query, name, str(error)
        figures = left_figures(Path(work))
        if system.kept is not None:  # compared behind the job, whose time it is not
            found = system.kept(Path(work))
            if wrong := on_windowpane.differing(folder, QUERIES[query], found):
                return query, name, f"{wrong:,} rows differ from DuckDB's"
            figures["rows"] = len(found)
    return query, name, *_shown(spent, figures)


def _shown(spent: Spent, figures: dict[str, Any]) -> tuple[str, ...]:
    batch = f"{figures['batch_s']:.2f} s" if "batch_s" in figures else ""
    rows = f"{figures['rows']:,}" if "rows" in figures else ""
    return f"{spent.whole_job_s:.1f} s", f"{spent.cpu_s:.0f} s", f"{spent.peak_mb:,.0f} MB", batch, rows


if __name__ == "__main__":
    app()
