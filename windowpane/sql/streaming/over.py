"""OVER windows in materialized views: the OVER operators, fed with the changelog of the plan.

State of an engine is kept as blobs in the session's database. A call that the OVER engines do not have (``array_agg``,
``bit_and``, a sum of intervals, ...) is recomputed by DuckDB for the partitions that a batch touches.
"""

from __future__ import annotations

import pyarrow as pa

from windowpane.operators.over_on_close import OverOnClose
from windowpane.sql.expr import quoted
from windowpane.sql.nodes import Over
from windowpane.sql.storage import DuckBlobs, Storage
from windowpane.sql.streaming.clock import Watermarks
from windowpane.sql.streaming.deltas import WEIGHT
from windowpane.sql.streaming.operators import Deltas, Keyed, Operator
from windowpane.state.keyed import KeyedState
from windowpane.state.sorted_pages import SortedPages
from windowpane.windowing.over_spec import OrderColumn, OverCall, OverSpec


def over_spec(node: Over) -> OverSpec:
    """Return an OVER node as the window that the OVER engines run.

    Raises:
        InvalidSpecError: they have no such window.
    """
    order = tuple(OrderColumn(item.column, item.descending, nulls_first=item.nulls_first) for item in node.order)
    calls = []
    for call in node.calls:
        assert call.over is not None, f"{call.function} has no counterpart in the OVER engines"
        calls.append(
            OverCall(
                call.over,
                call.arguments,
                call.frame if call.over not in ("row_number", "rank", "dense_rank", "lag", "lead") else None,
                offset=call.offset,
                ignore_nulls=call.ignore_nulls,
                filter=call.filter,
                distinct=call.distinct,
                parameters=call.parameters,
            )
        )
    return OverSpec(node.partition, order, node.input.key, tuple(calls))


def engines_have(node: Over) -> bool:
    """Whether the OVER engines have every call of a node."""
    return bool(node.input.key) and all(call.over is not None for call in node.calls)


def over_operator(node: Over, storage: Storage, owner: str, clock: Watermarks) -> Operator:
    """Return the operator that runs an OVER node."""
    if node.closes:
        return ClosingOver(node, storage, owner)
    return Keyed(node, storage, owner, clock)


def arrow_schema(storage: Storage, node: Over) -> tuple[pa.Schema, pa.Schema]:
    """Return the Arrow types of the input columns of a node, and of its calls."""
    items = ", ".join(f"CAST(NULL AS {column.type.duckdb}) AS {quoted(column.id)}" for column in node.columns)
    schema = storage.arrow(f"SELECT {items}").schema
    width = len(node.input.columns)
    return pa.schema(list(schema)[:width]), pa.schema(list(schema)[width:])


class ClosingOver:
    """EMIT ON WINDOW CLOSE: rows that a sort released come out once, as soon as rows of their partition complete their frames.

    As in RisingWave only rows complete frames, not the watermark: rows of a partition that goes quiet wait.
    """

    def __init__(self, node: Over, storage: Storage, owner: str) -> None:
        """Run ``node`` with state under ``owner``."""
        self._node, self._storage = node, storage
        self._blobs = DuckBlobs(storage, owner)
        self._columns, self._outputs = arrow_schema(storage, node)
        self._operator: tuple[OverOnClose, KeyedState, SortedPages] | None = None

    def _opened(self) -> tuple[OverOnClose, KeyedState, SortedPages]:
        if self._operator is None:
            pages = SortedPages(self._blobs, "s")
            state = KeyedState(pages)
            self._operator = OverOnClose(over_spec(self._node), self._columns, self._outputs, state), state, pages
        return self._operator

    def run(self, deltas: Deltas, *, initial: bool) -> str | None:
        """Take released rows in, and return those that are complete."""
        if deltas[0] is None:
            return None
        operator, state, pages = self._opened()
        order = ", ".join(quoted(name) for name in (self._node.order[0].column, *self._node.input.key))
        rows = self._storage.arrow(f"SELECT * EXCLUDE ({quoted(WEIGHT)}) FROM {deltas[0]} ORDER BY {order}").to_pylist()
        emitted = operator.process(rows)
        state.flush()
        pages.flush()
        self._blobs.save()
        if not emitted:
            return None
        table = pa.Table.from_pylist(emitted, schema=pa.schema([*self._columns, *self._outputs]))
        return self._storage.temporary_from(table.append_column(WEIGHT, pa.array([1] * len(emitted), pa.int32())))

    def forget(self) -> None:
        """Read the state again from the database."""
        self._operator = None
        self._blobs.forget()

    def drop(self) -> None:
        """Remove the state."""
        self._blobs.drop()
