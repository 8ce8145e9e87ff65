"""What a query can read: stored relations and plain views."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqlglot import exp

from windowpane.sql.expressions.types import SqlType, as_held
from windowpane.sql.nodes import Watermark
from windowpane.sql.windows.default_frames import ROWS


@dataclass(frozen=True)
class StoredColumn:
    """A column of a stored relation; hidden ones only identify rows."""

    name: str
    type: SqlType
    hidden: bool = False
    not_null: bool = False


@dataclass(frozen=True)
class Relation:
    """A table, source or materialized view.

    Args:
        kind: ``table``, ``source`` or ``materialized view``.
        columns: its columns, hidden ones last.
        small: whether it has few rows, by declaration or by its query.
        arrival: the columns that are declared as ``PROCTIME()``, the time at which a row is written.
    """

    name: str
    kind: str
    columns: tuple[StoredColumn, ...]
    key: tuple[str, ...]
    append_only: bool
    storage: str
    watermarks: Mapping[str, Watermark] = field(default_factory=dict)
    small: bool = False
    arrival: frozenset[str] = frozenset()

    @property
    def visible(self) -> tuple[StoredColumn, ...]:
        return tuple(column for column in self.columns if not column.hidden)

    @property
    def types(self) -> dict[str, SqlType]:
        return {column.name: column.type for column in self.columns}


def held_types(relation: Relation) -> dict[str, SqlType]:
    """Return the types of its columns as their values are held, which is how two relations are compared."""
    return {name: as_held(kind) for name, kind in relation.types.items()}


def shape(relation: Relation) -> tuple[object, ...]:
    """Return what those that follow a relation depend on: its columns with their types, and its key."""
    return held_types(relation), relation.key


@dataclass(frozen=True)
class PlainView:
    """A view that is no more than its query, which names ``reads``; places in it are counted in the text ``script``.

    It keeps the ``default_frame`` that it was made with.
    """

    name: str
    query: exp.Expr
    script: str
    text: str
    column_names: tuple[str, ...] = ()
    reads: frozenset[str] = frozenset()
    default_frame: str = ROWS


class Schema(Protocol):
    def find(self, name: str) -> Relation | PlainView | None:
        """Return what a name means."""

    def names(self) -> list[str]:
        """Return all names."""


Evaluator = Callable[[str], Any]
"""Evaluates one DuckDB expression without columns."""
