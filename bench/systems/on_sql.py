"""windowpane's SQL without Spark: a view made over the first file's rows, then a flush for each further file.

Files come of the tables that the view reads. Times are processor time, of all threads; those of flushes include reading the
files, that of the view does not: its tables have the first rows before. The rows of the view are compared with DuckDB's at the
end.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import duckdb

from bench.programs import Task
from bench.sql_views import VIEWS, View, loaded, write_rows
from bench.systems.task_folder import read_task, write_figures
from windowpane.sql import Session

_ORDERS = "id bigint, name varchar, ts timestamp, price numeric(12, 2)"


def main() -> None:
    task: Task = read_task()
    view, work = VIEWS[task.program.view], Path(task.work)
    pairs = write_rows(task.files, task.file_rows, task.keys, work)
    with Session(store=str(work / "store.duckdb")) as session:
        for statement in _declared(view, work):
            session.run(statement)
        taken = _arrive(pairs[0], work, view)
        ingest = _seconds(session, "FLUSH")
        times = [_seconds(session, f"CREATE MATERIALIZED VIEW result AS {view.sql}")]
        for pair in pairs[1:]:
            _arrive(pair, work, view)
            times.append(_seconds(session, "FLUSH"))
        _check(session, view, pairs)
    first = task.file_rows[0]
    write_figures(task, batches_s=times, batch_s=times[0], rows_per_s=first / times[0], ingest_rows_per_s=taken / ingest)


def _declared(view: View, work: Path) -> list[str]:
    """Return the tables, each of which reads the files of a folder."""
    for name in ("orders", "payments", "customers"):
        (work / name).mkdir()
    shutil.copy(work / "customers.parquet", work / "customers")
    stays = ", WATERMARK FOR ts AS ts - INTERVAL '3 seconds') APPEND ONLY" if view.append_only else ")"
    tables = {"orders": f"{_ORDERS}{stays}", "payments": "id bigint, paid numeric(12, 2))"}
    tables["customers"] = "name varchar PRIMARY KEY, city varchar)"
    return [f"CREATE TABLE {name} ({text} WITH (connector = 'parquet', path = '{work / name}')" for name, text in tables.items()]


def _arrive(pair: tuple[Path, Path], work: Path, view: View) -> int:
    """Let files of the tables that a view reads come, and return how many rows they have."""
    rows = 0
    for path, name in zip(pair, ("orders", "payments"), strict=True):
        if name in view.tables:
            shutil.copy(path, work / name)
            rows += int(duckdb.sql(f"SELECT count(*) FROM '{path}'").fetchall()[0][0])
    return rows


def _seconds(session: Session, statement: str) -> float:
    begun = time.process_time()
    session.run(statement)
    return time.process_time() - begun


def _check(session: Session, view: View, pairs: list[tuple[Path, Path]]) -> None:
    """Compare the view with DuckDB's answer.

    Raises:
        ValueError: they differ.
    """
    columns = ", ".join(session.columns("result"))
    found = session.query(f"SELECT {columns} FROM result").table
    with duckdb.connect() as connection:
        loaded(connection, pairs)
        connection.register("found", found)
        expected = f"SELECT {columns} FROM ({view.in_duckdb})"
        for one, other in (("FROM found", expected), (expected, "FROM found")):
            rows = connection.sql(f"({one}) EXCEPT ALL ({other}) LIMIT 1").fetchall()
            if rows:
                raise ValueError(f"the view and DuckDB differ in {rows[0]}")


if __name__ == "__main__":
    main()
