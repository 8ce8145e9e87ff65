"""Kind ``hop_window``: RisingWave's hop window table function, as ``HOP`` of a SQL session makes them.

The function has no state: the rows of a chunk are put through ``HOP``, and each keeps its kind of change, halves
of updates as deletes and inserts. A watermark is that of the bounds of the first window that holds it.
"""

from __future__ import annotations

from typing import Any

from verify.conformance.reading.fields import NotUnderstoodError, require_known
from verify.conformance.reading.sql_values import Schema, read_duration, watermark_pair
from verify.conformance.reading.vectors import Case
from verify.conformance.replay.changelog import EXPECT, Changelog
from verify.conformance.replay.sql_rows import insert, shown_rows
from verify.conformance.replay.verdicts import Difference, Options
from windowpane.arrays.values import Row
from windowpane.sql import Session

_CASE = {"id", "kind", "rust_test", "schema", "pk", "hop", "out_columns", "steps"}
_AS_SINGLE = {"+": "+", "-": "-", "U+": "+", "U-": "-"}
_SEQ = "seq_of_row"


def replay(case: Case, options: Options) -> list[Difference]:
    """Run the steps; the function keeps nothing, so a restart has nothing to show."""
    require_known(case.body, _CASE, "case")
    hop = _Hop(case)
    emitted = Changelog(hop.schema, case.get("out_columns"))
    differences = []
    for number, step in enumerate(case.get("steps")):
        if step.keys() & EXPECT:
            differences += emitted.compare(step, f"step {number}")
        elif set(step) == {"changes"}:
            emitted.changes += hop.process(step["changes"])
        elif set(step) == {"watermark"}:
            emitted.watermarks += hop.watermark(*watermark_pair(step["watermark"], hop.schema), step["watermark"])
        elif not set(step) <= {"barrier", "recover"}:
            raise NotUnderstoodError(f"hop_window step {sorted(step)} is not understood")
    return differences


class _Hop:
    def __init__(self, case: Case) -> None:
        fields = case.get("hop")
        require_known(fields, {"time_column", "slide", "size", "offset"}, "hop")
        self.schema = Schema(case.get("schema"))
        self._columns: list[list[str]] = case.get("schema")
        self._out: list[str] = case.get("out_columns")
        self._time = fields["time_column"]
        spans = [read_duration(fields.get(name, 0)) for name in ("slide", "size", "offset")]
        self._spans = ", ".join(f"INTERVAL '{micros} microseconds'" for micros in spans)

    def process(self, changes: list[Any]) -> list[tuple[str, Row]]:
        """Return the changes that are emitted."""
        rows = self._exploded([cells for _, cells in changes])
        return [(_AS_SINGLE[changes[row.pop(_SEQ)][0]], row) for row in rows]

    def watermark(self, column: str, value: Any, given: Any) -> list[tuple[str, Any]]:
        """Return what a watermark on an input column says about output columns."""
        if column != self._time:
            return [(column, value)] if column in self._out else []
        text = given["value"] if isinstance(given, dict) else given[1]
        cells = [text if name == column else None for name, _ in self._columns]
        bounds = self._exploded([cells], ["window_start", "window_end"])
        first = min(bounds, key=lambda row: row["window_start"])
        return [(name, first[name]) for name in ("window_start", "window_end") if name in self._out]

    def _exploded(self, rows: list[list[Any]], out: list[str] | None = None) -> list[dict[str, Any]]:
        columns = [[_SEQ, "int"], *self._columns]
        out = self._out if out is None else out
        session = Session(None, ":memory:")
        try:
            session.run(f"CREATE TABLE t ({', '.join(f'{name} {kind}' for name, kind in columns)})")
            session.run(insert("t", [[number, *cells] for number, cells in enumerate(rows)]))
            chosen = [_SEQ, *(name for name in out if name != _SEQ)]
            return shown_rows(session.query(f"SELECT {', '.join(chosen)} FROM HOP(t, {self._time}, {self._spans})"))
        finally:
            session.close()
