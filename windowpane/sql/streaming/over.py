"""OVER windows in materialized views: the OVER engines, fed with the changelog of the plan.

State of an engine is kept as blobs in the session's database. A call that the engines do not have (``array_agg``, ``bit_and``, a
sum of intervals, ...) is recomputed by DuckDB for the partitions that a batch touches.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.engines.over.close import OverCloseEngine, OverCloser
from windowpane.engines.over.program import Emit, OverProgram
from windowpane.engines.program import MAIN
from windowpane.engines.protocol import Clock as EngineClock
from windowpane.engines.protocol import Engine
from windowpane.errors import InvalidSpecError, MistakeError, WindowpaneError, present
from windowpane.hidden_columns import FIRING_WATERMARK, PARTITION, POSITION, TIME
from windowpane.planning.engines import make_engine, with_engine
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.nodes import Node, Over
from windowpane.sql.streaming.deltas import WEIGHT, Delta, Rows, to_weights, with_words
from windowpane.sql.streaming.operators import Blobs, Deltas, OnBlobs, Operator, settled_inputs
from windowpane.windowing.calls import NUMBERING, OFFSET_FUNCTIONS
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec
from windowpane.windowing.over.types import output_schema
from windowpane.windowing.times import MIN


def over_spec(node: Over) -> OverSpec:
    """Return an OVER node as the window that the OVER engines run."""
    order = tuple(OrderColumn(item.column, item.descending, nulls_first=item.nulls_first) for item in node.order)
    calls = []
    for call in node.calls:
        if call.over is None:
            raise MistakeError(f"{call.function} has no counterpart in the OVER engines")
        calls.append(
            OverCall(
                call.over,
                call.arguments,
                None if call.over in NUMBERING | OFFSET_FUNCTIONS else call.frame,
                offset=call.offset,
                ignore_nulls=call.ignore_nulls,
                filter=call.filter,
                distinct=call.distinct,
                parameters=call.parameters,
            )
        )
    return OverSpec(node.partition, order, node.input.key, tuple(calls))


def runs_keyed(node: Over, storage: Storage) -> bool:
    """Whether DuckDB recomputes the partitions of an OVER node: it has a call that the engines do not have."""
    return not node.closes and over_program(node, storage) is None


def over_on_blobs(node: Over, storage: Storage, blobs: Blobs) -> Operator:
    """Return the operator that runs an OVER node on the OVER engines."""
    if node.closes:
        return ClosingOver(node, storage, blobs)
    program = present(over_program(node, storage), "the caller asked")
    return EngineOver(node, storage, blobs, program)


def over_program(node: Over, storage: Storage) -> OverProgram | None:
    """Return the program of a node that does not wait for a close, ``None`` if the engines cannot run it."""
    if not node.input.key or any(call.over is None for call in node.calls):
        return None
    columns, _ = arrow_schema(storage, node)
    if not all(_is_plain(field.type) for field in columns):
        return None
    names = [column.id for column in node.columns[len(node.input.columns) :]]
    try:
        spec = over_spec(node)
        program = OverProgram(spec, columns, output_schema(spec, columns, names))
    except WindowpaneError:
        return None
    return with_engine(program)


def closing_program(node: Over, storage: Storage) -> OverProgram:
    """Return the program of a node whose rows wait for those that complete their frames."""
    spec, (columns, _) = over_spec(node), arrow_schema(storage, node)
    names = [column.id for column in node.columns[len(node.input.columns) :]]
    outputs = output_schema(spec, columns, names)
    return OverProgram(spec, columns, outputs, Emit.CLOSE, append_only=True, engine=OverCloseEngine.name)


def _is_plain(kind: pa.DataType) -> bool:
    """Whether the engines keep values of a type: they have no calendar intervals."""
    return not (pa.types.is_nested(kind) or pa.types.is_interval(kind))


def arrow_schema(storage: Storage, node: Over) -> tuple[pa.Schema, pa.Schema]:
    """Return the Arrow types of the input columns of a node, and of its calls."""
    schema, width = arrow_types(storage, node), len(node.input.columns)
    return pa.schema(list(schema)[:width]), pa.schema(list(schema)[width:])


def arrow_types(storage: Storage, node: Node) -> pa.Schema:
    items = ", ".join(column.item("NULL") for column in node.columns)
    return storage.arrow(f"SELECT {items}").schema


def result_items(node: Over) -> str:
    """Return what selects the columns of a node from an engine's rows: the input's, and the results in the node's types."""
    width = len(node.input.columns)
    results = (each.item(quoted(each.id)) for each in node.columns[width:])
    return ", ".join([*(quoted(each.id) for each in node.columns[:width]), *results])


class EngineOver(OnBlobs):
    """An OVER window that is kept up to date by the engine the planner chooses; all partitions are one bucket."""

    def __init__(self, node: Over, storage: Storage, blobs: Blobs, program: OverProgram) -> None:
        self._node, self._storage, self._program = node, storage, program
        self._blobs = blobs
        self._engine: Engine = make_engine(program)

    def run(self, deltas: Deltas, *, initial: bool) -> Delta | None:
        (batch,) = settled_inputs(self._node, self._storage, deltas)
        if batch is None:
            return None
        changes = with_words(self._storage.arrow(f"SELECT * FROM {batch}"), self._node.input.key)
        if not changes.num_rows:
            return None
        output = self._engine.run(self._blobs, [_with_system_columns(changes)], EngineClock(MIN, 0))
        self._blobs.save()
        tables = [table for number, table in output.tables if number == MAIN and table.num_rows]
        if not tables:
            return None
        merged = to_weights(pa.concat_tables(tables).drop_columns([TIME, FIRING_WATERMARK]))
        with self._storage.reading(merged) as given:
            result = self._storage.temporary(f"SELECT {result_items(self._node)}, {quoted(WEIGHT)} FROM {given}")
        return Delta(result, Rows.INSERTED if pc.min(merged.column(WEIGHT)).as_py() > 0 else Rows.ANY)

    def forget(self) -> None:
        super().forget()
        self._engine = make_engine(self._program)


def _with_system_columns(changes: pa.Table) -> pa.Table:
    count = changes.num_rows
    columns: dict[str, Any] = {
        TIME: pa.nulls(count, pa.int64()),
        PARTITION: pa.array([0] * count, pa.int32()),
        POSITION: pa.array(range(count), pa.int64()),
    }
    for name, values in columns.items():
        changes = changes.append_column(name, values)
    return changes


class ClosingOver(OnBlobs):
    """EMIT ON WINDOW CLOSE: rows that a sort released are emitted once, as soon as rows of their partition complete their frames.

    As in RisingWave only rows complete frames, not the watermark: rows of a partition without new rows wait.
    """

    def __init__(self, node: Over, storage: Storage, blobs: Blobs) -> None:
        """Run ``node`` with state in ``blobs``."""
        self._node, self._storage = node, storage
        self._blobs = blobs
        program = closing_program(node, storage)
        refused = OverCloseEngine.refusal(program)
        if refused is not None:
            raise InvalidSpecError(f"OVER with EMIT ON WINDOW CLOSE: {refused}. Leave out EMIT ON WINDOW CLOSE.")
        self._engine = OverCloseEngine(program)
        self._closer: OverCloser | None = None

    def run(self, deltas: Deltas, *, initial: bool) -> Delta | None:
        if deltas[0] is None:
            return None
        order = ", ".join(quoted(name) for name in (self._node.order[0].column, *self._node.input.key))
        rows = self._storage.arrow(f"SELECT *, CAST(NULL AS BIGINT) AS {quoted(TIME)} FROM {deltas[0]} ORDER BY {order}")
        if not rows.num_rows:
            return None
        self._closer = self._closer or OverCloser(self._engine, self._blobs)
        complete = self._closer.take(rows, MIN)
        self._blobs.save()
        if complete is None or not complete.num_rows:
            return None
        with self._storage.reading(complete.drop_columns([TIME])) as given:
            result = self._storage.temporary(f"SELECT {result_items(self._node)}, 1::INT AS {quoted(WEIGHT)} FROM {given}")
        return Delta(result, Rows.INSERTED)

    def forget(self) -> None:
        super().forget()
        self._closer = None
