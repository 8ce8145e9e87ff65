"""Kind ``watermark_filter``: which rows the watermark of a SQL table lets in, with checkpoints and recovery.

A chunk is one INSERT, a checkpoint a FLUSH; a recovery opens the store again. SQL shows the rows that the table took, not the
watermark itself, so ``expect_watermark`` is left out: what it says is seen by the rows of the next chunk.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from typing import Any

from verify.conformance.reading.fields import Json, NotUnderstoodError, require_known
from verify.conformance.reading.sql_values import Schema
from verify.conformance.reading.vectors import Case
from verify.conformance.replay.changelog import EXPECT, Changelog
from verify.conformance.replay.sql_rows import insert, shown_rows
from verify.conformance.replay.verdicts import Difference, Options
from windowpane.arrays.values import Row
from windowpane.sql import Session

_CASE = {"id", "kind", "rust_test", "schema", "pk", "watermark", "steps"}


def replay(case: Case, options: Options) -> list[Difference]:
    """Run the steps; with ``restart`` the session is opened anew on its store after each."""
    require_known(case.body, _CASE, "case")
    require_known(case.get("watermark"), {"column", "expr"}, "watermark")
    folder = tempfile.mkdtemp(prefix="windowpane-conformance-")
    table = _Table(case, f"{folder}/views.duckdb")
    differences: list[Difference] = []
    try:
        for number, step in enumerate(case.get("steps")):
            differences += table.step(step, f"step {number}")
            if options.restart:
                table.reopen()
    finally:
        table.close()
        shutil.rmtree(folder, ignore_errors=True)
    return differences


class _Table:
    def __init__(self, case: Case, store: str) -> None:
        columns: list[list[str]] = case.get("schema")
        watermark = case.get("watermark")
        self._store = store
        self._session = Session(None, store)
        self._emitted = Changelog(Schema(columns), [name for name, _ in columns])
        self._held: Sequence[Row] = []
        declared = ", ".join(f"{name} {kind}" for name, kind in columns)
        clause = f"WATERMARK FOR {watermark['column']} AS {watermark['expr']}"
        self._session.run(f"CREATE TABLE t ({declared}, {clause}) APPEND ONLY")

    def step(self, step: Json, where: str) -> list[Difference]:
        """Take a step and return what differs."""
        if step.keys() & EXPECT:
            return self._emitted.compare({name: part for name, part in step.items() if "watermark" not in name}, where)
        if set(step) == {"changes"}:
            self._insert(step["changes"])
        elif set(step) == {"recover"}:
            self.reopen()
        elif set(step) != {"barrier"}:
            raise NotUnderstoodError(f"watermark_filter step {sorted(step)} is not understood")
        return []

    def _insert(self, changes: list[Any]) -> None:
        if any(op != "+" for op, _ in changes):
            raise NotUnderstoodError("a table with a watermark takes rows, and no changes of them")
        self._session.run(insert("t", [cells for _, cells in changes]))
        self._session.run("FLUSH")
        rows = shown_rows(self._session.query("SELECT * FROM t"))
        fresh = [row for row in rows if row not in self._held]
        self._emitted.changes += [("+", row) for row in fresh]
        self._held = rows

    def reopen(self) -> None:
        """Open the session again on its store."""
        self._session.close()
        self._session = Session(None, self._store)

    def close(self) -> None:
        """Close the session."""
        self._session.close()
