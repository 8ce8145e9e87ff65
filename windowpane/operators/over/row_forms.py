"""Whole rows compared as Spark SQL compares their values: NaN equals NaN, -0.0 equals 0.0, maps whatever their order."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pyarrow as pa

from windowpane.windowing.aggregates.canonical import form_of
from windowpane.windowing.changes import Row


class RowForms:
    """The canonical form of some columns of rows."""

    def __init__(self, columns: pa.Schema, names: Sequence[str] | None = None) -> None:
        """Compare the columns ``names`` of rows of these types, all of them if not given."""
        self._forms = [(name, form_of(columns.field(name).type)) for name in (columns.names if names is None else names)]

    def frozen(self, row: Row) -> Hashable:
        """Return what equal rows have in common and unequal rows have not."""
        return tuple(None if row[name] is None else form.freeze(row[name]) for name, form in self._forms)

    def same(self, a: Row, b: Row) -> bool:
        """Return whether two rows are equal."""
        return self.frozen(a) == self.frozen(b)
