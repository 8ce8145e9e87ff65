"""The main output of OVER windows: blobs of rows and results -> the columns of ``select``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from windowpane.spark.building.expressions import column_of
from windowpane.spark.building.outputs import Output
from windowpane.spark.stages.wire import Wire
from windowpane.windowing.expressions import Expression, Name


@dataclass(frozen=True, eq=False)
class OverOutput(Output):
    """An output whose columns Spark computes from rows and results of calls.

    Args:
        selected: (output name, expression over the columns of ``arrow``).
        event_time: the column whose watermark is passed on, ``None`` if it is not.
        metadata: what says so.
    """

    selected: tuple[tuple[str, Expression], ...] = ()
    event_time: str | None = None
    metadata: Mapping[str, Any] | None = None

    def of(self, rows: Any, wire: Wire) -> Any:
        """Return this output of an operator's rows."""
        read = self.read(rows, wire, self.arrow.names)
        return read.select(*[self._column(name, expression) for name, expression in self.selected])

    @property
    def column_names(self) -> Mapping[str, str]:
        """The columns that users see; none of them may be computed by Spark."""
        return {name: self._read(expression) for name, expression in self.selected}

    @staticmethod
    def _read(expression: Expression) -> str:
        assert isinstance(expression, Name), "a column that Spark computes is not there yet"
        return expression.name

    def _column(self, name: str, expression: Expression) -> Any:
        column = column_of(expression)
        if isinstance(expression, Name) and expression.name == self.event_time:
            return column.alias(name, metadata=dict(self.metadata or {}))
        return column.alias(name)
