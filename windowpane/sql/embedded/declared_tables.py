"""What CREATE TABLE and CREATE SOURCE declare: columns, key, watermark, defaults and generated columns, bound to types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from windowpane.sql.bind.late_rows import OPEN_WINDOWS, STAMP
from windowpane.sql.bind.scope import Column, Scope, Visible
from windowpane.sql.catalog.entries import ROW_ID, TableInfo, TableWatermark
from windowpane.sql.catalog.relations import Relation, StoredColumn
from windowpane.sql.dml.conflicts import OnConflict
from windowpane.sql.embedded.macros import NOW
from windowpane.sql.expressions.binder import ScalarBinder
from windowpane.sql.expressions.expr import Expr, MismatchError, cast, convert, quoted, settled
from windowpane.sql.expressions.types import BIGINT, UNKNOWN, SqlType, common, innermost, is_instant, is_number
from windowpane.sql.nodes import Watermark
from windowpane.sql.parse.naming import check_columns
from windowpane.sql.parse.positions import Text
from windowpane.sql.parse.statements import CreateTable


def declared_columns(statement: CreateTable, text: Text) -> tuple[StoredColumn, ...]:
    """Return the columns that a statement declares; a generated one without a type has that of its expression."""
    given = tuple(StoredColumn(column.name, column.type, not_null=column.not_null) for column in statement.columns)
    typed = tuple(Visible(statement.name, Column(each.name, each.name, each.type)) for each in given if each.type != UNKNOWN)
    binder = ScalarBinder(text, Scope(typed), "a generated column", NOW)
    columns = []
    for column, spec in zip(given, statement.columns, strict=True):
        made = column.type == UNKNOWN and spec.generated is not None
        columns.append(replace(column, type=settled(binder.bind(spec.generated)).type) if made and spec.generated else column)
    return tuple(columns)


def table_info(statement: CreateTable, columns: tuple[StoredColumn, ...], text: Text, late_rows: str) -> TableInfo:
    """Return the table that a statement describes; ``late_rows`` is the parameter.

    Raises:
        SqlError: its key, watermark, defaults or generated columns name something that does not exist.
    """
    names = [column.name for column in columns]
    check_columns(statement.name, names, statement.place)
    for name in (*statement.primary_key, *([statement.watermark.column] if statement.watermark else [])):
        if name not in names:
            raise text.name_error(None, f"table {statement.name!r} has no column {name!r}; it has {', '.join(names)}.")
    for column in columns:
        if column.name in statement.primary_key and innermost(column.type).name == "jsonb":
            raise text.unsupported(None, f"a primary key of {column.type}", "Equal values differ in text: take a part of it.")
    key = statement.primary_key or (ROW_ID,)
    hidden = () if statement.primary_key else (StoredColumn(ROW_ID, BIGINT, hidden=True),)
    scope = Scope(tuple(Visible(statement.name, Column(column.name, column.name, column.type)) for column in columns))
    watermark = _watermark(statement, columns, scope, text)
    if watermark is not None and late_rows == OPEN_WINDOWS and statement.append_only and not statement.primary_key:
        hidden = (*hidden, StoredColumn(STAMP, watermark.type, hidden=True))
    relation = Relation(
        statement.name,
        "source" if statement.is_source else "table",
        (*columns, *hidden),
        key,
        statement.append_only,
        f"main.{quoted(statement.name)}",
        {watermark.column: Watermark(((statement.name, "{w}"),), statement.append_only)} if watermark else {},
        small=statement.small,
        arrival=frozenset(column.name for column in statement.columns if _is_proctime(column.generated)),
    )
    types = {column.name: column.type for column in columns}
    generated = _generated(statement, scope, types, text)
    for name in statement.primary_key:
        if name in generated and generated[name].reads_clock:
            message = f"column {name!r} of the primary key is computed from the clock. Leave it out of the key."
            raise text.type_error(None, message)
    return TableInfo(
        relation,
        _defaults(statement, text),
        generated,
        watermark,
        statement.options,
        statement.text,
        _conflict(statement, columns, text),
    )


def _conflict(statement: CreateTable, columns: tuple[StoredColumn, ...], text: Text) -> OnConflict:
    types = {column.name: column.type for column in columns}
    for name in statement.conflict.versions:
        if name not in types:
            raise text.name_error(None, f"table {statement.name!r} has no version column {name!r}; it has {', '.join(types)}.")
        if types[name].name in ("array", "jsonb", "boolean"):
            raise text.type_error(None, f"version column {name!r} is of type {types[name]}, which counts no versions.")
    return statement.conflict


def _watermark(statement: CreateTable, columns: tuple[StoredColumn, ...], scope: Scope, text: Text) -> TableWatermark | None:
    spec = statement.watermark
    if spec is None:
        return None
    kind = next(column.type for column in columns if column.name == spec.column)
    bound = ScalarBinder(text, scope, "WATERMARK FOR", "").bind(spec.expression)
    try:
        return TableWatermark(spec.column, kind, cast(bound, kind))
    except MismatchError as error:
        raise text.type_error(spec.expression, str(error)) from None


def _defaults(statement: CreateTable, text: Text) -> dict[str, Expr]:
    binder = ScalarBinder(text, Scope(), "DEFAULT", NOW)
    given = [column for column in statement.columns if column.default is not None]
    return {column.name: assigned(binder.bind(column.default), column.type) for column in given if column.default is not None}


def _is_proctime(tree: exp.Expr | None) -> bool:
    return isinstance(tree, exp.Anonymous) and str(tree.this).lower() == "proctime"


def _generated(statement: CreateTable, scope: Scope, types: Mapping[str, SqlType], text: Text) -> dict[str, Expr]:
    binder = ScalarBinder(text, scope, "a generated column", NOW)
    given = [column for column in statement.columns if column.generated is not None]
    return {
        column.name: assigned(binder.bind(column.generated), types[column.name])
        for column in given
        if column.generated is not None
    }


def assigned(value: Expr, kind: SqlType) -> Expr:
    """Return a value as the type of the column it is assigned to.

    Raises:
        MismatchError: it cannot be assigned without a cast.
    """
    if _kin(value.type, kind):
        return convert(value, kind) if innermost(kind).open else cast(value, kind)
    if common(value.type, kind) != kind:
        raise MismatchError(f"column is of type {kind}, but the expression is of type {value.type}. Cast it.")
    return convert(value, kind)


def _kin(one: SqlType, other: SqlType) -> bool:
    """Whether both are numbers, or both instants, or arrays of such: an assignment casts between these (PostgreSQL)."""
    if one.element is not None and other.element is not None:
        return _kin(one.element, other.element)
    return (is_number(one) and is_number(other)) or (is_instant(one) and is_instant(other))
