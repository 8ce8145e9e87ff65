"""The values that expressions of views failed on: ``SHOW ERRORS``.

State: ``windowpane.errors``, one row for each view, expression and value, with the error, how many rows had the value, and when
it was first seen; written in the transaction of the flush. A view and expression have at most 100 values; further ones are
counted together in a row without value. They are deleted with their view.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from windowpane.errors import WindowpaneError
from windowpane.malformed import shortened
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.failures.trying import Attempt, computed, expressions, scratch, tried_expr
from windowpane.sql.nodes import Node, TimeWindows
from windowpane.sql.streaming.deltas import WEIGHT

_MOST = 100
WHOLE = "(the whole view)"
"""Stands for the expression where a view failed otherwise than by one."""


@dataclass(frozen=True)
class _Found:
    expression: str
    value: str | None
    error: str
    count: int


class BadValues:
    """Finds, counts and lists the values that expressions of views failed on."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def note_batch(self, view: str, node: Node, delta: str) -> bool:
        """Count the inserted rows of a batch on which expressions of a node fail; say whether one fails, on deleted rows too."""
        names = {column.id: column.name for source in node.inputs for column in source.columns}
        attempts = dict.fromkeys(attempt for each in expressions(node) for attempt in tried_expr(each).attempts)
        here = [attempt for attempt in attempts if attempt.fails.columns <= set(names)]
        numbers = node.numbers if isinstance(node, TimeWindows) else ""
        found = [each for attempt in here for each in self._failed(attempt, delta, names, numbers)]
        self._add(view, [each for each in found if each.count])
        return bool(found)

    def _failed(self, attempt: Attempt, delta: str, names: Mapping[str, str], numbers: str) -> Iterator[_Found]:
        """Yield the values that an expression fails on, in one of the windows of a row where there are ``numbers`` of them."""
        columns = ", ".join(map(quoted, attempt.columns))
        shown = ", ".join(f"CAST({quoted(name)} AS VARCHAR)" for name in attempt.columns)
        weight = quoted(WEIGHT)
        items = f"{columns}, [{shown}] AS windowpane_shown, " if columns else "[] AS windowpane_shown, "
        fails = attempt.fails.sql
        if numbers:
            fails = f"EXISTS (SELECT 1 FROM (SELECT 1){numbers} WHERE {fails})"
        rows = self._storage.arrow(
            f"SELECT {items}CAST(sum(greatest({weight}, 0)) AS BIGINT) AS windowpane_count FROM {delta} "
            f"WHERE {fails} GROUP BY ALL ORDER BY windowpane_count DESC"
        )
        expression = shortened(attempt.expr.shown(names))
        for index, row in enumerate(rows.select(["windowpane_shown", "windowpane_count"]).to_pylist()):
            if index == _MOST:
                counts = rows["windowpane_count"].slice(index).to_pylist()
                yield _Found(expression, None, "further values", sum(counts))
                return
            error = _said(attempt, rows.slice(index, 1), numbers)
            yield _Found(expression, _value(attempt.columns, row["windowpane_shown"], names), error, row["windowpane_count"])

    def note_view(self, view: str, error: str) -> None:
        """Count a failure of a view that no single value causes."""
        self._add(view, [_Found(WHOLE, None, error, 1)])

    def _add(self, view: str, found: Sequence[_Found]) -> None:
        if not found:
            return
        rows = self._storage.run("SELECT expression, value, count FROM windowpane.errors WHERE view = ?", [view])
        counts: dict[tuple[str, str | None], int] = {(expression, value): count for expression, value, count in rows}
        for each in found:
            if (each.expression, each.value) not in counts and each.value is not None:
                listed = sum(expression == each.expression for expression, _ in counts)
                each = each if listed < _MOST else _Found(each.expression, None, "further values", each.count)
            key = (each.expression, each.value)
            where = "WHERE view = ? AND expression = ? AND value IS NOT DISTINCT FROM ?"
            if key in counts:
                update = f"UPDATE windowpane.errors SET count = count + ?, error = ? {where}"
                self._storage.run(update, [each.count, each.error, view, *key])
            else:
                insert = "INSERT INTO windowpane.errors VALUES (?, ?, ?, ?, ?, now())"
                self._storage.run(insert, [view, *key, each.error, each.count])
            counts[key] = counts.get(key, 0) + each.count

    def forget_view(self, view: str) -> None:
        """Forget what is noted of a whole view, which has caught up."""
        self._storage.run("DELETE FROM windowpane.errors WHERE view = ? AND expression = ?", [view, WHOLE])

    def drop(self, view: str) -> None:
        self._storage.run("DELETE FROM windowpane.errors WHERE view = ?", [view])


def _said(attempt: Attempt, row: pa.Table, numbers: str) -> str:
    storage, lock = scratch()
    try:
        with lock, storage.transaction():
            storage.run(f"{computed(attempt.expr.sql)} FROM {storage.temporary_from(row)}{numbers}")
    except (WindowpaneError, duckdb.Error) as error:
        return str(error).split("\n")[0]
    return "it fails."


def _value(columns: Sequence[str], shown: Sequence[Any], names: Mapping[str, str]) -> str:
    cells = ["NULL" if cell is None else str(cell) for cell in shown]
    if len(cells) == 1:
        return shortened(cells[0])
    return shortened(", ".join(f"{names[column]} = {cell}" for column, cell in zip(columns, cells, strict=True)))
