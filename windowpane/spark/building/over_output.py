"""The main output of OVER windows: blobs of rows and results -> the columns of ``select``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from windowpane.errors import MistakeError
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
        read = self.read(rows, wire, self.arrow.names)
        return read.select(*[self._column(name, expression) for name, expression in self.selected])

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.selected)

    @property
    def emitted(self) -> Mapping[str, str]:
        """The columns that users see, each by its name, with the name that it has in ``arrow``."""
        names = {name: expression.name for name, expression in self.selected if isinstance(expression, Name)}
        if len(names) < len(self.selected):
            raise MistakeError("rows that leave an operator as blobs have no column that Spark computes")
        return names

    def _column(self, name: str, expression: Expression) -> Any:
        column = column_of(expression)
        if isinstance(expression, Name) and expression.name == self.event_time:
            return column.alias(name, metadata=dict(self.metadata or {}))
        return column.alias(name)
