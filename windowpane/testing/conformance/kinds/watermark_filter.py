"""Kind ``watermark_filter``: RisingWave's watermark filter, with checkpoints and recovery."""

from __future__ import annotations

from windowpane.operators.watermark_filter import WatermarkFilter
from windowpane.testing.conformance.reading.fields import Json, NotUnderstoodError, require_known
from windowpane.testing.conformance.reading.sql_values import Schema, read_watermark_expression
from windowpane.testing.conformance.reading.vectors import Case
from windowpane.testing.conformance.replay.changelog import Changelog
from windowpane.testing.conformance.replay.steps import replay_steps
from windowpane.testing.conformance.replay.verdicts import Difference, Options

_CASE = {"id", "kind", "rust_test", "schema", "pk", "watermark", "steps"}


def replay(case: Case, options: Options) -> list[Difference]:
    """Run the steps; with ``restart`` the filter is built anew on its watermark after each."""
    require_known(case.body, _CASE, "case")
    require_known(case.get("watermark"), {"column", "expr"}, "watermark")
    return replay_steps(case, _Replay(case), options)


class _Replay:
    def __init__(self, case: Case) -> None:
        self._schema = Schema(case.get("schema"))
        self._column = case.get("watermark")["column"]
        self._expression = read_watermark_expression(case.get("watermark")["expr"])
        self._committed: int | None = None
        self.emitted = Changelog(self._schema, self._schema.names)
        self._rebuild(None)

    def restart(self) -> None:
        self._rebuild(self.filter.watermark)

    def _rebuild(self, watermark: int | None) -> None:
        self.filter = WatermarkFilter(self._column, self._expression, watermark)

    def act(self, step: Json) -> None:
        if set(step) == {"changes"}:
            before = self.filter.watermark
            self.emitted.changes += self.filter.process(self._schema.changes(step["changes"]))
            if self.filter.watermark != before:
                self._emit_watermark()
        elif set(step) == {"barrier"}:
            self._committed = self.filter.watermark
        elif set(step) == {"recover"}:
            self._rebuild(self._committed)
            self._emit_watermark()
        else:
            raise NotUnderstoodError(f"watermark_filter step {sorted(step)} is not understood")

    def _emit_watermark(self) -> None:
        if self.filter.watermark is not None:
            self.emitted.watermarks.append((self._column, self.filter.watermark))
