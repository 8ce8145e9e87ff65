"""Rows as Spark SQL compares their values: NaN equals NaN, -0.0 equals 0.0, maps whatever their order; and rows as written.

A change from 0.0 to -0.0 is one, since a text of the value shows it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pyarrow as pa

from windowpane.arrays.values import Row, Value
from windowpane.windowing.aggregates.canonical import Form, form_of, written_form_of


class RowForms:
    def __init__(self, columns: pa.Schema, names: Sequence[str] | None = None) -> None:
        fields = [columns.field(name) for name in (columns.names if names is None else names)]
        self._forms = [(field.name, form_of(field.type)) for field in fields]
        self._written = [(field.name, written_form_of(field.type)) for field in fields]

    def frozen(self, row: Row) -> Hashable:
        """Return what equal rows have in common and unequal rows have not."""
        return _frozen(row, self._forms)

    def spelled(self, row: Row) -> tuple[Value, ...]:
        """Return the values; those of equal rows are spelled alike: one NaN, one zero, the entries of a map in one order."""
        return tuple(None if row[name] is None else form.thaw(form.freeze(row[name])) for name, form in self._forms)

    def same(self, a: Row, b: Row) -> bool:
        """Return whether two rows are equal and their zeros have the same signs."""
        return _frozen(a, self._written) == _frozen(b, self._written)


def _frozen(row: Row, forms: Sequence[tuple[str, Form]]) -> Hashable:
    return tuple(None if row.get(name) is None else form.freeze(row[name]) for name, form in forms)
