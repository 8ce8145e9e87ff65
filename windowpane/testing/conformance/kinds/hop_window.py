"""Kind ``hop_window``: RisingWave's hop window table function, with changes and watermarks."""

from __future__ import annotations

from windowpane.operators.hop_window import HopWindow
from windowpane.testing.conformance.reading.fields import NotUnderstoodError, require_known
from windowpane.testing.conformance.reading.sql_values import Schema, read_duration, watermark_pair
from windowpane.testing.conformance.reading.vectors import Case
from windowpane.testing.conformance.replay.changelog import EXPECT, Changelog
from windowpane.testing.conformance.replay.verdicts import Difference, Options

_CASE = {"id", "kind", "rust_test", "schema", "pk", "hop", "out_columns", "steps"}


def replay(case: Case, options: Options) -> list[Difference]:
    """Run the steps; the operator keeps nothing, so a restart has nothing to show."""
    require_known(case.body, _CASE, "case")
    schema = Schema(case.get("schema"))
    hop = _hop(case)
    emitted = Changelog(schema, case.get("out_columns"))
    differences = []
    for number, step in enumerate(case.get("steps")):
        if step.keys() & EXPECT:
            differences += emitted.compare(step, f"step {number}")
        elif set(step) == {"changes"}:
            emitted.changes += hop.process(schema.changes(step["changes"]))
        elif set(step) == {"watermark"}:
            emitted.watermarks += hop.watermark(*watermark_pair(step["watermark"], schema))
        elif not set(step) <= {"barrier", "recover"}:
            raise NotUnderstoodError(f"hop_window step {sorted(step)} is not understood")
    return differences


def _hop(case: Case) -> HopWindow:
    fields = case.get("hop")
    require_known(fields, {"time_column", "slide", "size", "offset"}, "hop")
    slide, size, offset = (read_duration(fields.get(name, 0)) for name in ("slide", "size", "offset"))
    return HopWindow.of(fields["time_column"], slide, size, offset, case.get("out_columns"))
