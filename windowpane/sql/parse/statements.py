"""The statements of SQL, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from windowpane.sql.dml.conflicts import OVERWRITE, OnConflict
from windowpane.sql.dml.literal_rows import LiteralRows
from windowpane.sql.expressions.types import SqlType
from windowpane.sql.parse.positions import Place


@dataclass(frozen=True)
class ColumnSpec:
    """A column as CREATE TABLE declares it; ``default`` fills it when INSERT leaves it out, ``generated`` always."""

    name: str
    type: SqlType
    not_null: bool = False
    default: exp.Expr | None = None
    generated: exp.Expr | None = None


@dataclass(frozen=True)
class WatermarkSpec:
    """``WATERMARK FOR column AS expression``."""

    column: str
    expression: exp.Expr
    place: Place


@dataclass(frozen=True)
class Statement:
    """One statement: where it begins, and its text."""

    place: Place
    text: str


@dataclass(frozen=True)
class CreateTable(Statement):
    """``CREATE TABLE`` or ``CREATE SOURCE``.

    ``definition`` is its text without ``AS query``; ``head`` is the text before its columns, or before where they would be.
    """

    name: str
    columns: tuple[ColumnSpec, ...]
    primary_key: tuple[str, ...] = ()
    watermark: WatermarkSpec | None = None
    append_only: bool = False
    is_source: bool = False
    if_not_exists: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    query: exp.Expr | None = None
    conflict: OnConflict = OVERWRITE
    definition: str = ""
    small: bool = False
    head: str = ""

    def with_columns(self, columns: str) -> str:
        """Return the definition with columns where it names none."""
        rest = self.definition[len(self.head) :]
        return f"{self.head}{columns}, {rest}" if self.head.endswith("(") else f"{self.head} ({columns}){rest}"


@dataclass(frozen=True)
class CreateIndex(Statement):
    """``CREATE INDEX name ON relation (columns)``: kept as a name, of no effect."""

    name: str
    relation: str
    columns: tuple[str, ...]
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateView(Statement):
    """``CREATE [OR REPLACE] [MATERIALIZED] VIEW``; or ``ALTER MATERIALIZED VIEW ... AS``, with the ``text`` of such a CREATE."""

    name: str
    query: exp.Expr
    materialized: bool = False
    on_window_close: bool = False
    column_names: tuple[str, ...] = ()
    if_not_exists: bool = False
    small: bool = False
    replaces: bool = False
    must_exist: bool = False


@dataclass(frozen=True)
class CreateSink(Statement):
    """``CREATE SINK name FROM [LATE | MALFORMED ROWS OF] relation WITH (...)``, or ``AS query``."""

    name: str
    source: str | None
    query: exp.Expr | None
    on_window_close: bool
    options: Mapping[str, str]
    if_not_exists: bool = False
    rows: str = ""
    """Which rows of the relation: ``LATE``, ``MALFORMED``, or empty for its own."""


@dataclass(frozen=True)
class Drop(Statement):
    kind: str
    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class Rename(Statement):
    """``ALTER kind name RENAME TO new_name``."""

    kind: str
    name: str
    new_name: str


@dataclass(frozen=True)
class Insert(Statement):
    table: str
    columns: tuple[str, ...]
    query: exp.Expr
    returning: exp.Select | None = None
    literals: LiteralRows | None = None


@dataclass(frozen=True)
class Update(Statement):
    table: str
    assignments: tuple[tuple[str, exp.Expr], ...]
    where: exp.Expr | None
    returning: exp.Select | None = None


@dataclass(frozen=True)
class Delete(Statement):
    table: str
    where: exp.Expr | None
    returning: exp.Select | None = None


@dataclass(frozen=True)
class Query(Statement):
    """``SELECT``, ``VALUES``, ``WITH``; ``on_window_close`` only to explain it."""

    query: exp.Expr
    on_window_close: bool = False


@dataclass(frozen=True)
class Explain(Statement):
    statement: Statement


@dataclass(frozen=True)
class ExplainAnalyze(Statement):
    """``EXPLAIN ANALYZE MATERIALIZED VIEW name``."""

    name: str


@dataclass(frozen=True)
class Show(Statement):
    what: str


@dataclass(frozen=True)
class Describe(Statement):
    name: str


@dataclass(frozen=True)
class Flush(Statement):
    """``FLUSH`` or ``WAIT``."""


@dataclass(frozen=True)
class SetParameter(Statement):
    name: str
    value: str
