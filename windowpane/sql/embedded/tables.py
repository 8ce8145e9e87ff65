"""The rows of tables, and changes of them: these wait for the next flush, and late rows are dropped on the way in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from windowpane.errors import SqlRunError, UnsupportedSqlError
from windowpane.hidden_columns import SPLIT
from windowpane.sql.bind.bound_query import BoundQuery, open_literals
from windowpane.sql.bind.late_rows import STAMP
from windowpane.sql.bind.queries import QueryBinder
from windowpane.sql.bind.scope import Column, Scope, Visible
from windowpane.sql.bind.selects import SelectBinder
from windowpane.sql.catalog.entries import ROW_ID, TableInfo
from windowpane.sql.catalog.relations import PlainView, Relation, Schema
from windowpane.sql.dml.conflicts import winners
from windowpane.sql.dml.literal_rows import LiteralRows, as_texts, typed_column
from windowpane.sql.embedded.declared_tables import assigned
from windowpane.sql.embedded.macros import NOW
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.binder import ScalarBinder
from windowpane.sql.expressions.expr import Expr, MismatchError, cast, quoted
from windowpane.sql.expressions.types import SqlType
from windowpane.sql.nodes import Node, Project, Scan, compile_plan
from windowpane.sql.parse.connector_options import idleness
from windowpane.sql.parse.positions import Place, Text
from windowpane.sql.parse.statements import Delete, Insert, Update
from windowpane.sql.streaming.clock import Watermarks
from windowpane.sql.streaming.deltas import WEIGHT, Delta, Rows, apply_to, inserted, netted, same
from windowpane.sql.streaming.matching import matched


@dataclass(frozen=True)
class _ChangedRows:
    """A schema in which one table holds the rows of a change only; other names mean what they mean."""

    schema: Schema
    relation: Relation
    rows: str

    def find(self, name: str) -> Relation | PlainView | None:
        return replace(self.relation, storage=self.rows) if name == self.relation.name else self.schema.find(name)

    def names(self) -> list[str]:
        return self.schema.names()


def _is_row_by_row(node: Node) -> bool:
    """Whether a plan has a row for each changed row: it aggregates nothing, and reads nothing else."""
    return isinstance(node, Scan) or (isinstance(node, Project) and _is_row_by_row(node.input))


def _over_changed_rows(items: exp.Select, table: str) -> exp.Select:
    source = exp.Table(this=exp.to_identifier(table, quoted=True))
    query = items.copy()
    query.set("from_", exp.From(this=source))
    return query


def create(storage: Storage, info: TableInfo) -> None:
    columns = ", ".join(f"{quoted(column.name)} {column.type.duckdb}" for column in info.relation.columns)
    storage.run(f"CREATE TABLE {info.relation.storage} ({columns})")
    storage.run(f"CREATE TABLE {info.pending} ({columns}, {quoted(WEIGHT)} INTEGER)")


def drop(storage: Storage, info: TableInfo) -> None:
    storage.run(f"DROP TABLE {info.relation.storage}")
    storage.run(f"DROP TABLE {info.pending}")
    storage.waiting.drop(info.relation.name)


def _is_default(tree: exp.Expr) -> bool:
    """Whether an expression is the word DEFAULT; a column of that name is quoted."""
    if isinstance(tree, exp.Column) and not tree.args.get("table"):
        tree = tree.this
    return isinstance(tree, exp.Var | exp.Identifier) and not tree.args.get("quoted") and tree.name.upper() == "DEFAULT"


def _default_sql(info: TableInfo, name: str) -> str:
    """Return the value of a column that INSERT leaves out, or of DEFAULT, as SQL."""
    default = info.defaults.get(name)
    kind = next(column.type for column in info.relation.columns if column.name == name)
    return default.sql if default else f"CAST(NULL AS {kind.duckdb})"


class TableWriter:
    """Changes the rows of tables; every call is one chunk, before which the watermark is that of the chunks before."""

    def __init__(self, storage: Storage, clock: Watermarks, query: QueryBinder, text: Text) -> None:
        self._storage, self._clock, self._query, self._text = storage, clock, query, text
        self.delta = Delta("")

    def returned(self, items: exp.Select, info: TableInfo, *, removed: bool = False) -> BoundQuery:
        """Return a RETURNING clause as a query over the rows that the last change wrote, or removed."""
        kept = f"(SELECT * FROM {self.delta} WHERE {quoted(WEIGHT)} {'<' if removed else '>'} 0)"
        schema = _ChangedRows(self._query.schema, info.relation, kept)
        bound = self._query.over(schema).bind(_over_changed_rows(items, info.relation.name))
        if not _is_row_by_row(bound.node):
            construct = "an aggregate, a window function or a subquery in RETURNING"
            raise self._text.unsupported(items, construct, "RETURNING has expressions over each changed row; SELECT the rest.")
        return bound

    def insert(self, statement: Insert, info: TableInfo) -> int:
        writable = [column.name for column in info.relation.visible if column.name not in info.generated]
        targets = statement.columns or tuple(writable)
        twice = next((name for name in targets if targets.count(name) > 1), None)
        if twice is not None:
            raise self._text.name_error(None, f"INSERT names column {twice!r} twice.")
        for name in targets:
            if name in info.generated:
                message = f"column {name!r} of {statement.table!r} is generated. Leave it out: it is computed from the others."
                raise self._text.name_error(None, message)
            if name not in writable:
                raise self._text.name_error(None, f"table {statement.table!r} has no column {name!r} to insert into.")
        literals = statement.literals
        source = None if literals is None else self._literal_rows(literals, targets, info)
        if source is None:
            source = self._rows(statement.query if literals is None else literals.tree(), targets, info)
        if len(source[1]) < len(statement.columns):
            message = f"INSERT names {len(statement.columns)} columns, but has {len(source[1])} values."
            raise self._text.syntax_error(statement.query, message)
        reads_tables = literals is None and statement.query.find(exp.Table) is not None
        return self.append(source, info, reads_tables=reads_tables)

    def _rows(self, tree: exp.Expr, targets: tuple[str, ...], info: TableInfo) -> tuple[str, tuple[str, ...]]:
        types = info.relation.types
        if isinstance(tree, exp.Values):
            return self._value_rows(tree, targets, info)
        bound = self._query.bind(tree)
        bound = replace(bound, node=matched(bound.node, self._storage))
        names = self._fitting(len(bound.outputs), targets, tree)
        items = []
        literals = open_literals(tree)
        for index, (column, name) in enumerate(zip(bound.outputs, names, strict=True)):
            value = Expr.of_column(column.id, column.type)
            value = cast(value, types[name]) if index in literals else value
            items.append(f"{self._assigned(value, types[name], name, tree)} AS {quoted(name)}")
        return f"SELECT {', '.join(items)} FROM ({ordered_sql(bound)})", names

    def _value_rows(self, tree: exp.Values, targets: tuple[str, ...], info: TableInfo) -> tuple[str, tuple[str, ...]]:
        types = info.relation.types
        binder = SelectBinder(self._text, Scope(), "VALUES", NOW)
        rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in tree.expressions]
        if not rows[0]:
            raise self._text.syntax_error(tree, "a row of VALUES has no value.")
        names = self._fitting(len(rows[0]), targets, tree)
        written = []
        for row in rows:
            if len(row) != len(names):
                raise self._text.syntax_error(row[0] if row else tree, "the rows of VALUES have different lengths.")
            cells = [
                _default_sql(info, name) if _is_default(cell) else self._assigned(binder.bind(cell), types[name], name, cell)
                for cell, name in zip(row, names, strict=True)
            ]
            written.append(f"({', '.join(cells)})")
        columns = ", ".join(map(quoted, names))
        return f"SELECT * FROM (VALUES {', '.join(written)}) AS v({columns})", names

    def _literal_rows(
        self, literals: LiteralRows, targets: tuple[str, ...], info: TableInfo
    ) -> tuple[str, tuple[str, ...]] | None:
        """Return rows of literals as a query, ``None`` where they must be read one by one."""
        columns, types = literals.columns, info.relation.types
        if columns is None or len(columns) > len(targets):
            return None
        items, conditions = [], []
        for name, cells in zip(targets, columns, strict=False):
            typed = typed_column(cells, name, types[name])
            try:
                items.append("" if typed is None else f"{assigned(typed[0], types[name]).sql} AS {quoted(name)}")
            except MismatchError:
                return None
            conditions.append("FALSE" if typed is None else typed[1])
        if "FALSE" in conditions:
            return None
        names = targets[: len(columns)]
        rows = self._storage.temporary_from(pa.table(dict(zip(names, map(as_texts, columns), strict=True))))
        if not self._storage.is_empty(f"{rows} WHERE NOT ({' AND '.join(conditions)})"):
            return None
        return f"SELECT {', '.join(items)} FROM {rows}", names

    def _fitting(self, width: int, targets: tuple[str, ...], tree: exp.Expr) -> tuple[str, ...]:
        if width > len(targets):
            raise self._text.syntax_error(tree, f"INSERT has {width} values for {len(targets)} columns.")
        return targets[:width]

    def _assigned(self, value: Expr, kind: SqlType, name: str, tree: exp.Expr) -> str:
        try:
            return assigned(value, kind).sql
        except MismatchError as error:
            raise self._text.type_error(tree, f"{name}: {error}") from None

    def append(self, source: tuple[str, tuple[str, ...]], info: TableInfo, *, reads_tables: bool = False) -> int:
        """Insert the rows of a query with columns of the given stored names, and return how many it has."""
        if info.has_row_id and not (reads_tables or info.watermark or info.generated):
            return self._append_at_once(source, info)
        rows = self._made(source, info)
        self._store(self._on_time(rows, info, has_splits=SPLIT in source[1]), info)
        return self._storage.count(rows)

    def pass_time(self, info: TableInfo) -> None:
        """Take no rows of partitions: those that are silent for long hold the watermark back no more."""
        if info.watermark is not None:
            self._clock.advance(info.relation.name, {}, idleness(info.options), info.watermark.type)

    def _append_at_once(self, source: tuple[str, tuple[str, ...]], info: TableInfo) -> int:
        """Insert rows directly, without a temporary copy."""
        relation, last = info.relation, self._storage.waiting.last_number(info.relation.name)
        names = ", ".join(quoted(column.name) for column in relation.visible)
        number = f"{last} + row_number() OVER () AS {quoted(ROW_ID)}"
        query = f"SELECT {self._all_columns(source[1], info)}, {number} FROM ({source[0]})"
        count = int(self._storage.run(f"INSERT INTO {relation.storage} ({names}, {quoted(ROW_ID)}) {query}")[0][0])
        self._storage.waiting.number(relation.name, count)
        self.delta = newer_rows(relation, last)
        check_nulls(self._storage, self.delta.relation, relation)
        return count

    def _all_columns(self, names: tuple[str, ...], info: TableInfo) -> str:
        return ", ".join(
            quoted(column.name) if column.name in names else f"{_default_sql(info, column.name)} AS {quoted(column.name)}"
            for column in info.relation.visible
        )

    def _made(self, source: tuple[str, tuple[str, ...]], info: TableInfo) -> str:
        """Return the rows of an INSERT with all their columns, numbered in order."""
        query, names = source
        relation = info.relation
        items = self._all_columns(names, info) + f", {quoted(SPLIT)}" * (SPLIT in names)
        rows = self._storage.temporary(f"SELECT {items}, row_number() OVER () AS windowpane_n FROM ({query})")
        rows = self._with_generated(rows, info)
        check_nulls(self._storage, rows, relation)
        return rows

    def _with_generated(self, rows: str, info: TableInfo) -> str:
        if not info.generated:
            return rows
        return self._storage.temporary(f"SELECT * REPLACE ({info.generated_sql}) FROM {rows}")

    def _on_time(self, rows: str, info: TableInfo, *, has_splits: bool = False) -> str:
        """Return the rows that are taken, and count the late ones; the chunk then advances the watermark, by late rows, too.

        Late rows are not taken, unless the table keeps them for queries to judge. Where rows are of partitions with watermarks
        of their own, the least of these is that of the table.
        """
        if info.watermark is None:
            return rows
        name = info.relation.name
        held = self._clock.get(name)
        taken = info.on_time(rows, held)
        kept = rows if taken == rows else self._storage.temporary(f"FROM {taken}")
        reached = info.watermark.reached if held is None else f"greatest({info.watermark.reached}, {held})"
        ((risen, dropped),) = self._storage.run(f"SELECT CAST({reached} AS VARCHAR), {info.late(held)} FROM {rows}")
        if has_splits:
            latest = f"SELECT {quoted(SPLIT)}, epoch_us({info.watermark.reached}) FROM {rows} GROUP BY ALL"
            reached_by = {split: time for split, time in self._storage.run(latest) if time is not None}
            self._clock.advance(name, reached_by, idleness(info.options), info.watermark.type)
        else:
            self._clock.raise_to(name, risen, info.watermark.type)
        self._clock.count_late(name, dropped)
        return kept

    def _store(self, rows: str, info: TableInfo) -> None:
        relation, weight = info.relation, quoted(WEIGHT)
        names = ", ".join(quoted(column.name) for column in relation.visible)
        if info.has_row_id:
            last = self._storage.waiting.last_number(relation.name)
            number = f"{last} + windowpane_n AS {quoted(ROW_ID)}"
            count = int(self._storage.value(f"SELECT coalesce(max(windowpane_n), 0) FROM {rows}"))
            self._storage.waiting.number(relation.name, count)
            names = f"{names}, {quoted(STAMP)}" if info.keeps_late_rows else names
            self.delta = Delta.of(f"SELECT {names}, {number}, 1 AS {weight} FROM {rows}", Rows.INSERTED)
            columns = [column.name for column in relation.columns]
            apply_to(self._storage, relation.storage, self.delta, columns, relation.key)
            return
        new = self._storage.temporary(winners(rows, relation, info.conflict))
        if self._storage.is_empty(relation.storage):
            self.apply(Delta.of(f"SELECT {names}, 1 AS {weight} FROM {new}", Rows.INSERTED), info)
            return
        old = f"SELECT s.* FROM {relation.storage} AS s SEMI JOIN {new} AS n ON {same('s', 'n', relation.key)}"
        changes = f"SELECT {names}, 1 AS {weight} FROM {new} UNION ALL SELECT *, -1 FROM ({old})"
        self.apply(Delta(self._storage.temporary(changes)), info)

    def apply(self, delta: Delta, info: TableInfo) -> None:
        names = [column.name for column in info.relation.columns]
        listed = ", ".join(map(quoted, [*names, WEIGHT]))
        apply_to(self._storage, info.relation.storage, delta, names, info.relation.key)
        self.delta = delta
        name, waiting = info.relation.name, self._storage.waiting
        flushed = f" WHERE {quoted(ROW_ID)} <= {waiting.flushed(name)}" if info.has_row_id else ""
        self._storage.run(f"INSERT INTO {info.pending} ({listed}) SELECT {listed} FROM {delta}{flushed}")
        waiting.add_changes(name)

    def update(self, statement: Update, info: TableInfo) -> int:
        relation = info.relation
        scope = table_scope(relation)
        changed = self._assignments(statement.assignments, info, ScalarBinder(self._text, scope, "SET", NOW))
        old = self._storage.temporary(f"SELECT * FROM {relation.storage}{self._where(statement.where, relation)}")
        items = [f"{changed.get(column.name, quoted(column.name))} AS {quoted(column.name)}" for column in relation.columns]
        new = f"SELECT {', '.join(items)} FROM {old}"
        if info.generated:
            new = f"SELECT * REPLACE ({info.generated_sql}) FROM ({new})"
        rows = self._storage.temporary(new)
        check_nulls(self._storage, rows, relation)
        weight = quoted(WEIGHT)
        changes = self._storage.temporary(f"SELECT *, 1 AS {weight} FROM {rows} UNION ALL SELECT *, -1 FROM {old}")
        self.apply(Delta(changes), info)
        return int(self._storage.value(f"SELECT count(*) FROM {old}"))

    def _assignments(self, assignments: Sequence[tuple[str, exp.Expr]], info: TableInfo, binder: ScalarBinder) -> dict[str, str]:
        types = {column.name: column.type for column in info.relation.visible}
        changed: dict[str, str] = {}
        for name, tree in assignments:
            self._check_assignable(name, info, tree)
            if name in changed:
                raise self._text.name_error(tree, f"SET names column {name!r} twice.")
            changed[name] = (
                _default_sql(info, name) if _is_default(tree) else self._assigned(binder.bind(tree), types[name], name, tree)
            )
        return changed

    def _check_assignable(self, name: str, info: TableInfo, tree: exp.Expr) -> None:
        names = [column.name for column in info.relation.visible]
        if name not in names:
            raise self._text.name_error(tree, f"table {info.relation.name!r} has no column {name!r}; it has {', '.join(names)}.")
        if name in info.relation.key:
            raise self._text.unsupported(
                tree, f"changing {name!r}, a column of the primary key", "DELETE the row and INSERT another."
            )
        if name in info.generated:
            raise self._text.unsupported(tree, f"setting {name!r}, a generated column", "Set the columns it is made from.")

    def delete(self, statement: Delete, info: TableInfo) -> int:
        where = self._where(statement.where, info.relation)
        old = self._storage.temporary(f"SELECT *, -1 AS {quoted(WEIGHT)} FROM {info.relation.storage}{where}")
        self.apply(Delta(old), info)
        return int(self._storage.value(f"SELECT count(*) FROM {old}"))

    def _where(self, tree: exp.Expr | None, relation: Relation) -> str:
        if tree is None:
            return ""
        if tree.find(exp.Query):
            return self._where_of_query(tree, relation)
        scope = table_scope(relation)
        return f" WHERE {ScalarBinder(self._text, scope, 'WHERE', NOW).boolean(tree).sql}"

    def _where_of_query(self, tree: exp.Expr, relation: Relation) -> str:
        """Return a condition with subqueries as one on the key: the rows are those that a SELECT finds."""
        source = exp.Table(this=exp.to_identifier(relation.name, quoted=True))
        select = exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=source), where=exp.Where(this=tree))
        node = matched(self._query.bind(select).node, self._storage)
        pairs = zip(_first_scan(node).key, relation.key, strict=True)
        same_key = " AND ".join(
            f"found.{quoted(one)} IS NOT DISTINCT FROM {relation.storage}.{quoted(other)}" for one, other in pairs
        )
        return f" WHERE EXISTS (SELECT 1 FROM ({compile_plan(node)}) AS found WHERE {same_key})"


def check_nulls(storage: Storage, rows: str, relation: Relation) -> None:
    """Refuse NULL in a column that is NOT NULL."""
    for column in relation.visible:
        if column.not_null and not storage.is_empty(f"{rows} WHERE {quoted(column.name)} IS NULL"):
            there = f"column {column.name!r} of {relation.name!r} is NOT NULL, and a row has NULL there."
            raise SqlRunError(f"{there} Nothing was inserted.")


def newer_rows(relation: Relation, number: int) -> Delta:
    return inserted(f"{relation.storage} WHERE {quoted(ROW_ID)} > {number}")


def waiting_changes(storage: Storage, info: TableInfo) -> Delta | None:
    """Return the changes of a table that wait for the next flush, ``None`` if there are none."""
    relation, waiting = info.relation, storage.waiting
    rows = newer_rows(relation, waiting.flushed(relation.name))
    new = rows if waiting.has_new_rows(relation.name, rows.relation) else None
    changes: Delta | None = None
    if waiting.has_changes(relation.name, info.pending):
        if storage.is_empty(f"{info.pending} WHERE {quoted(WEIGHT)} < 0"):
            changes = Delta(info.pending, Rows.INSERTED)
        else:
            changes = netted(storage, f"SELECT * FROM {info.pending}", relation.types)
    if new is None or changes is None:
        return new or changes
    names = ", ".join(quoted(name) for name in [*(column.name for column in relation.columns), WEIGHT])
    return Delta.of(f"SELECT {names} FROM {changes} UNION ALL SELECT {names} FROM {new}", Rows.NETTED)


def _first_scan(node: Node) -> Node:
    """Return the relation that FROM names; subqueries are joined to the right of it, with keys of their own."""
    while node.inputs:
        node = node.inputs[0]
    return node


def table_scope(relation: Relation) -> Scope:
    return Scope(tuple(Visible(relation.name, Column(column.name, column.name, column.type)) for column in relation.visible))


def ordered_sql(bound: BoundQuery) -> str:
    order = f" ORDER BY {', '.join(item.sql for item in bound.order)}" if bound.order else ""
    return f"SELECT * FROM ({compile_plan(bound.node)}){order}"


def refuse_append_only(info: TableInfo, what: str, place: Place) -> None:
    if info.relation.append_only:
        what = f"{what} on {info.relation.name!r}, which is APPEND ONLY, is not supported. INSERT is."
        raise place.error(UnsupportedSqlError, what)
