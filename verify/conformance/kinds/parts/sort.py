"""Kind ``sort``: RisingWave's sort buffer in front of an EOWC operator, with checkpoints and recovery."""

from __future__ import annotations

from typing import Any

from verify.conformance.reading.fields import Json, NotUnderstoodError, require_known
from verify.conformance.reading.over_ops import WORDS, raise_it
from verify.conformance.reading.sql_values import Schema, watermark_pair
from verify.conformance.reading.vectors import Case
from verify.conformance.replay.changelog import Changelog
from verify.conformance.replay.recovering import Recovering
from verify.conformance.replay.steps import replay_steps
from verify.conformance.replay.verdicts import Difference, Options
from windowpane.arrays.values import Row
from windowpane.operators.over.on_close import SortBuffer
from windowpane.state.entries import MemoryEntries

_CASE = {"id", "kind", "rust_test", "schema", "pk", "sort_column", "steps", "options"}


def replay(case: Case, options: Options) -> list[Difference]:
    """Run the steps; with ``restart`` the buffer is built anew on its state after each."""
    require_known(case.body, _CASE, "case")
    return replay_steps(case, _Replay(case), options)


class _Replay:
    def __init__(self, case: Case) -> None:
        self._schema = Schema(case.get("schema"))
        self._column = case.get("sort_column")
        self._key = case.get("pk")
        self.emitted = Changelog(self._schema, self._schema.names)
        self.buffer = Recovering(self._build)

    def _build(self, entries: MemoryEntries) -> SortBuffer:
        return SortBuffer(entries, self._identity, self._identity, raise_it)

    def _identity(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in self._key)

    def restart(self) -> None:
        self.buffer.restart()

    def act(self, step: Json) -> None:
        if set(step) == {"changes"}:
            for op, row in self._schema.changes(step["changes"]):
                self.buffer.operator.change(WORDS[op], row[self._column], row)
        elif set(step) == {"watermark"}:
            self._advance(*watermark_pair(step["watermark"], self._schema))
        elif set(step) == {"barrier"}:
            self.buffer.commit()
        elif set(step) == {"recover"}:
            self.buffer.recover()
        else:
            raise NotUnderstoodError(f"sort step {sorted(step)} is not understood")

    def _advance(self, column: str, value: int) -> None:
        """RisingWave's watermark says what is below it is complete; watermarks of other columns are swallowed."""
        if column == self._column:
            self.emitted.changes += [("+", row) for _, row in self.buffer.operator.release(value - 1)]
            self.emitted.watermarks.append((column, value))
