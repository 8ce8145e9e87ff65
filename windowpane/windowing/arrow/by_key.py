"""Functions on Arrow tables as the reference operator runs them: a row, or a key and window, is a table of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.arrays.columns import structs
from windowpane.windowing.arrow.calls import partials_of, results_of, windows_applied
from windowpane.windowing.arrow.functions import ArrowAggregateFunction, ArrowWindowFunction
from windowpane.windowing.functions import AggregateFunction, ProcessContext, ProcessWindowFunction
from windowpane.windowing.windows import TimeWindow


@dataclass(frozen=True)
class ArrowByRow(AggregateFunction):
    """An Arrow aggregate function as one of Flink's: every row is a table of its own. Accumulator: the partial, as a table."""

    function: ArrowAggregateFunction
    rows: pa.Schema
    results: pa.Schema

    def create_accumulator(self) -> pa.Table | None:
        return None

    def add(self, value: Mapping[str, Any], accumulator: pa.Table | None) -> pa.Table:
        row = pa.Table.from_pylist([dict(value)], schema=self.rows)
        return self.merge(accumulator, self._one("partial", row))

    def merge(self, left: pa.Table | None, right: pa.Table | None) -> pa.Table | None:
        if left is None or right is None:
            return left if right is None else right
        return self._one("merge", pa.concat_tables([left, right]))

    def _one(self, step: str, table: pa.Table) -> pa.Table:
        return pa.Table.from_struct_array(partials_of(self.function, step, table, np.zeros(table.num_rows, np.int64), 1))

    def get_result(self, accumulator: pa.Table | None) -> dict[str, Any]:
        """Return the result; NULLs of no rows, which an evictor may leave."""
        if accumulator is None:
            return dict.fromkeys(self.results.names)
        partials = structs(accumulator)
        row: dict[str, Any] = results_of(self.function, partials, self.results).to_pylist()[0]
        return row


@dataclass(frozen=True)
class ArrowByKey(ProcessWindowFunction):
    """An Arrow window function as a process function: every firing is a table of its own.

    Args:
        function: the function.
        rows: the table it is given: keys, window bounds, columns of the input.
        results: the table it returns: keys, window bounds, declared columns.
        keys: number of keys.
    """

    function: ArrowWindowFunction
    rows: pa.Schema
    results: pa.Schema
    keys: int

    def process(self, key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Any]:
        window = context.window
        bounds = (window.start, window.end) if isinstance(window, TimeWindow) else (None, None)
        given = [*((key,) if self.keys == 1 else key or ()), *bounds]
        columns = [pa.array([row[field.name] for row in elements], field.type) for field in list(self.rows)[len(given) :]]
        fixed = zip(given, list(self.rows)[: len(given)], strict=True)
        repeated = [self._repeated(value, field, len(elements)) for value, field in fixed]
        result = windows_applied(self.function, pa.table([*repeated, *columns], schema=self.rows), self.results)
        rows: list[dict[str, Any]] = result.select(self.results.names[len(given) :]).to_pylist()
        return rows

    def _repeated(self, value: Any, field: pa.Field, count: int) -> pa.Array:
        is_bound = self.rows.get_field_index(field.name) >= self.keys
        return pa.array([value] * count, pa.int64()).cast(field.type) if is_bound else pa.array([value] * count, field.type)
