"""The outcome of a statement."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from windowpane.guidance import Guided
from windowpane.sql.expressions.expr import Expr, output_text, quoted
from windowpane.sql.expressions.types import INTERVAL, SqlType
from windowpane.sql.failures.trying import scratch
from windowpane.sql.values import zone as time_zone
from windowpane.sql.values.far_instants import cells
from windowpane.sql.values.zone import UTC


@dataclass(frozen=True)
class Result(Guided):
    """The outcome of a statement: its tag, and rows if it returns any.

    Args:
        tag: as PostgreSQL reports it: ``SELECT 3``, ``INSERT 0 2``, ``CREATE_TABLE``.
        names: names of the columns, in order; two may have the same name.
        types: their types.
        columns: the rows; its columns are named by position.
        has_rows: whether the statement returns rows, perhaps none.
        ordering: how many columns of ``columns``, behind those of the result, hold the values the rows are ordered by.
        notice: what a user should know although the statement succeeded, "" for nothing.
        zone: the time zone that instants are printed in.
        first: how many rows of the statement precede these, where they are read in parts.
        more: whether another part follows.
    """

    tag: str
    names: tuple[str, ...] = ()
    types: tuple[SqlType, ...] = ()
    columns: pa.Table = field(default_factory=lambda: pa.table({}))
    has_rows: bool = False
    ordering: int = 0
    notice: str = ""
    zone: str = UTC
    first: int = 0
    more: bool = False

    @property
    def table(self) -> pa.Table:
        """The rows as an Arrow table, its columns named as they were selected; libraries that read Arrow take a result itself.

        Example:
            >>> import polars as pl
            >>> pl.DataFrame(session.query("SELECT 1 AS n"))
        """
        shown = self.columns.select(list(range(len(self.names))))
        return shown.rename_columns(list(self.names))

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table, see ``table``."""
        return self.table

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        return self.table.to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the rows over by Arrow's C stream interface; intervals are text, since few libraries know Arrow's."""
        table, places = self.table, [place for place, kind in enumerate(self.types) if INTERVAL in (kind, kind.element)]
        texts = self._texts if places else table
        for place in places:
            table = table.set_column(place, self.names[place], texts.column(place))
        return table.__arrow_c_stream__(requested_schema)

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the rows as Python values; text for infinity, years after 9999 and before Christ, which Python cannot hold."""
        return _tuples(self.columns.columns[: len(self.names)])

    def order_keys(self) -> list[tuple[Any, ...]]:
        """Return for each row the values it was ordered by: rows with equal values may be in any order."""
        return _tuples(self.columns.columns[len(self.names) :]) or [()] * len(self)

    def dicts(self) -> list[dict[str, Any]]:
        """Return the rows as dicts by column name."""
        return [dict(zip(self.names, row, strict=True)) for row in self.rows()]

    def text_rows(self) -> list[list[str | None]]:
        """Return the rows as PostgreSQL prints them, NULL as ``None``."""
        return [list(row) for row in zip(*(column.to_pylist() for column in self._texts.columns), strict=True)]

    @property
    def _texts(self) -> pa.Table:
        """The rows as texts: what a cast to text writes, but for booleans."""
        names = [f"c{place}" for place in range(len(self.names))]
        if not names:
            return pa.table({})
        storage, lock = scratch()
        shown = self.columns.select(list(range(len(names)))).rename_columns(names)
        with lock, storage.transaction(), time_zone.within(self.zone), storage.reading(shown) as rows:
            values = (Expr(f"CAST({quoted(name)} AS {kind.duckdb})", kind) for name, kind in zip(names, self.types, strict=True))
            items = (f"{output_text(value).sql} AS {name}" for value, name in zip(values, names, strict=True))
            return storage.arrow(f"SELECT {', '.join(items)} FROM {rows}")

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.columns.num_rows)


def _tuples(columns: list[pa.ChunkedArray]) -> list[tuple[Any, ...]]:
    return list(zip(*(cells(column) for column in columns), strict=True)) if columns else []
