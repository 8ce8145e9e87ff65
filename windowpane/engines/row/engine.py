"""The row engine: functions, triggers and evictors of users on the rows of a batch, taken by key.

The result does not depend on the order among keys. So a function is called for the same elements of a key in the same order as
the reference operator does, but state is read and written once a key and window (``cells``, ``runs``, ``sessions``).

State, order and recovery are those of ``reference``; lists of rows are stored as runs of those that arrived together.
"""

from __future__ import annotations

import pyarrow as pa

from windowpane.engines.program import Program
from windowpane.engines.row.cells import CellOperator
from windowpane.engines.row.contents import ColumnsOfNowInRuns
from windowpane.engines.row.elements import elements_of
from windowpane.engines.row.grouped import GroupedOperator
from windowpane.engines.row.reference import ElementsEngine, WindowBatch
from windowpane.engines.row.runs import RunOperator
from windowpane.engines.row.sessions import SessionOperator
from windowpane.errors import present
from windowpane.hidden_columns import TIME
from windowpane.sizes import Size
from windowpane.windowing.spec import WindowSpec

FEWEST_ROWS = Size("rows worth taking by key", 64, (1, 3))
"""Fewer are taken one by one."""


def operator_class(spec: WindowSpec) -> type[GroupedOperator] | None:
    """Return the operator that takes the rows of a computation the quickest way, ``None`` if none does."""
    kinds: tuple[type[GroupedOperator], ...] = (CellOperator, SessionOperator, RunOperator)
    return next((kind for kind in kinds if kind.covers(spec)), None)


class _Batch(WindowBatch):
    columns_of_now = ColumnsOfNowInRuns
    _operator: GroupedOperator

    def _make_operator(self) -> GroupedOperator:
        kind = present(operator_class(self.program.spec), "the planner asked")
        return kind(self.program.spec, self._state, self._timers, self._collector)

    def _process(self, rows: pa.Table, seen: pa.Table, start: int) -> None:
        if rows.num_rows < FEWEST_ROWS.value or (rows[TIME].null_count and self.program.spec.assigner.is_event_time):
            super()._process(rows, seen, start)
            return
        with self._collector.in_row_order():
            self._operator.take(elements_of(rows, self.program.key_columns, seen, start))


class RowEngine(ElementsEngine):
    name = "row"
    reason = "functions, triggers and evictors in Python take the rows of a batch by key"
    tells_refusals = True
    batch = _Batch

    @classmethod
    def refusal(cls, program: Program) -> str | None:
        if program.key_delay is not None:
            return "each key has a watermark of its own"
        return None if operator_class(program.spec) is not None else "the windows, or how they fire, need rows one by one"
