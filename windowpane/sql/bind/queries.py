"""Binds queries to plans: relations, common table expressions, VALUES, set operations; ``select_plan`` binds each SELECT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from sqlglot import exp

from windowpane.sql.bind import build_plan as plan
from windowpane.sql.bind.bound_query import BoundQuery, Tables, open_literals, output_place
from windowpane.sql.bind.correlation import Inner
from windowpane.sql.bind.joins import Joins, is_comma
from windowpane.sql.bind.late_rows import STAMP, on_time
from windowpane.sql.bind.scope import Ids, Scope, Visible
from windowpane.sql.bind.select_plan import SelectPlan
from windowpane.sql.bind.selects import SelectBinder
from windowpane.sql.catalog.relations import Evaluator, PlainView, Relation, Schema
from windowpane.sql.embedded.macros import NOW
from windowpane.sql.expressions.binder import ScalarBinder, name_of
from windowpane.sql.expressions.expr import Expr, MismatchError, convert
from windowpane.sql.expressions.operators import by_value, common_type
from windowpane.sql.expressions.types import INTEGER, SqlType
from windowpane.sql.nodes import Node, Order, Scan, Values
from windowpane.sql.parse.frame_reader import constant_as
from windowpane.sql.parse.positions import Text
from windowpane.sql.patterns.clause import match_recognize
from windowpane.sql.scalar.sets import SETS
from windowpane.sql.windows.default_frames import ROWS
from windowpane.sql.windows.gap_fill import gap_fill
from windowpane.sql.windows.series import OF_PAIRS, call_in_from, called, one_row, rows_of
from windowpane.sql.windows.table_functions import NAMES, TableFunctions, read_call

_MOST_ROWS = 2**63 - 1


class QueryBinder:
    """Binds queries over a schema.

    Args:
        streaming: whether the plan is to be maintained.
    """

    def __init__(
        self,
        schema: Schema,
        text: Text,
        evaluate: Evaluator,
        *,
        streaming: bool = False,
        ids: Ids | None = None,
        default_frame: str = ROWS,
    ) -> None:
        self.schema, self.text, self._evaluator = schema, text, evaluate
        self.streaming, self.default_frame = streaming, default_frame
        self.ids = ids or Ids()
        self.now = "" if streaming else NOW
        self.window_places: dict[str, exp.Expr] = {}
        self.by_default = dict[str, str]()
        self.arrival_times = set[str]()
        self.relation_places: dict[str, exp.Expr] = {}
        self.reads: list[exp.Table] = []

    def names_read(self) -> frozenset[str]:
        """Return the names of relations and plain views that the queries bound so far read themselves."""
        return frozenset(name_of(table.this) for table in self.reads)

    def over(self, schema: Schema) -> QueryBinder:
        return QueryBinder(schema, self.text, self._evaluator, streaming=self.streaming, default_frame=self.default_frame)

    def bind(self, tree: exp.Expr, tables: Tables | None = None) -> BoundQuery:
        """Return a query as a plan.

        Raises:
            SqlError: something in it does not exist, does not fit, or is not supported, with its place.
        """
        tables = dict(tables or {})
        if isinstance(tree, exp.Subquery) and not tree.args.get("alias"):
            return self._bind_wrapped(tree, tables)
        named = self._take_with(tree, tables)
        bound = self._bind_body(tree, tables)
        self._check_unread(named)
        return bound

    def _bind_body(self, tree: exp.Expr, tables: Tables) -> BoundQuery:
        if isinstance(tree, exp.Select):
            return SelectPlan(self, tree, tables).bind()
        if isinstance(tree, exp.SetOperation):
            return self._set_operation(tree, tables)
        if isinstance(tree, exp.Values):
            return self._values(tree)
        if isinstance(tree, exp.Table):
            raise self.text.syntax_error(tree, "a relation alone in parentheses. Leave them out.")
        raise self.text.unsupported(tree, f"{tree.key.upper()} as a query", "SELECT, VALUES, UNION, EXCEPT and INTERSECT are.")

    def _bind_wrapped(self, tree: exp.Subquery, tables: Tables) -> BoundQuery:
        named = self._take_with(tree, tables)
        bound = self.ordered(self.bind(tree.this, tables), tree)
        self._check_unread(named)
        return bound

    def bind_inner(self, tree: exp.Expr, tables: Tables, around: Scope, rows: Node, *, by_keys: bool = False) -> Inner:
        """Return a subquery as a plan, and what ties it to the query around it, which has these rows.

        ``by_keys``: what ties it becomes keys, where it can.
        """
        while isinstance(tree, exp.Subquery) and {part for part, value in tree.args.items() if value} <= {"this", "alias"}:
            tree = tree.this
        if not isinstance(tree, exp.Select):
            bound = self.bind(tree, tables)
            return Inner(bound, is_single=not bound.node.key)
        tables = dict(tables)
        named = self._take_with(tree, tables)
        inner = SelectPlan(self, tree, tables, around, rows, by_keys=by_keys).inner()
        self._check_unread(named)
        return inner

    def _take_with(self, tree: exp.Expr, tables: Tables) -> list[_Fixed]:
        clause = tree.args.get("with_")
        if clause is None:
            return []
        if clause.args.get("recursive"):
            raise self.text.unsupported(clause, "WITH RECURSIVE", "Write the steps out.")
        taken = dict[str, _Fixed]()
        for table in clause.expressions:
            name = name_of(table.args["alias"].this)
            if name in taken:
                raise self.text.name_error(table, f"WITH names {name!r} twice.")
            tables[name] = taken[name] = _Fixed(table, dict(tables))
        return list(taken.values())

    def _check_unread(self, named: Sequence[_Fixed]) -> None:
        """Bind the common table expressions that nothing has read, too: what they name must exist."""
        for table in reversed(named):
            if not table.is_read:
                aside = self.over(self.schema)
                aside._bind_named(table)
                self.reads += aside.reads

    def _bind_named(self, table: _Fixed) -> BoundQuery:
        table.is_read = True
        return self.bind(table.table.this, table.tables)

    def evaluate(self, tree: exp.Expr, kind: SqlType | None = None) -> Any:
        bound = ScalarBinder(self.text, Scope(), "a constant", self.now).bind(tree)
        try:
            return self._evaluator(constant_as(bound, kind).sql)
        except MismatchError as error:
            raise self.text.type_error(tree, str(error)) from None

    def evaluate_sql(self, sql: str) -> Any:
        return self._evaluator(sql)

    def whole_number(self, tree: exp.Expr, what: str) -> int:
        found = self.evaluate(tree)
        if isinstance(found, Decimal) and found == int(found):
            found = int(found)
        if not isinstance(found, int) or isinstance(found, bool) or found < 0:
            raise self.text.type_error(tree, f"{what} is a whole number that is not negative, not {found!r}.")
        if found > _MOST_ROWS:
            raise self.text.type_error(tree, f"{what} of {found} is out of range for type bigint.")
        return found

    def relation(self, tree: exp.Expr, tables: Tables, rows: Node | None = None) -> tuple[Node, Scope]:
        alias = tree.args.get("alias")
        version = tree.args.get("version")
        if version is not None:
            raise self.text.unsupported(version, "FOR SYSTEM_TIME AS OF here", "It stands behind the table of a JOIN.")
        call = call_in_from(tree)
        if tree.args.get("ordinality") and call is None:
            raise self.text.unsupported(tree, "WITH ORDINALITY of this relation", "It numbers the rows of UNNEST and its like.")
        if isinstance(tree, exp.Subquery) and _is_join(tree.this):
            return self._in_parentheses(tree, tables)
        if isinstance(tree, exp.Subquery | exp.Values) or isinstance(tree.this, exp.Values):
            bound = self.bind(tree if isinstance(tree, exp.Values) else tree.this, tables)
            bound = self.ordered(bound, tree) if isinstance(tree, exp.Subquery) else bound
            node, scope = self._as_table(bound, "")
        elif call is not None:
            binder = ScalarBinder(self.text, Scope(), called(call), self.now)
            node, scope = rows_of(tree, rows or one_row(self.ids), binder, self.ids, self.text)
        elif isinstance(tree, exp.Table) and isinstance(tree.this, exp.Anonymous):
            node, scope = self._table_function(tree.this, tables)
        elif isinstance(tree, exp.Table) and isinstance(tree.this, exp.Identifier):
            node, scope = self._named(tree, tables)
        else:
            raise self.text.unsupported(
                tree, f"{tree.key.upper()} in FROM", "Relations, subqueries and window table functions are."
            )
        self.relation_places |= {column.id: tree for column in node.columns}
        scope, match = self.aliased(scope, alias), tree.args.get("match")
        if match is not None:
            node, scope = match_recognize(self, match, node, scope)
            scope = self.aliased(scope, match.args.get("alias"))
        return self._joined(tree, node, scope, tables)

    def _joined(self, tree: exp.Expr, node: Node, scope: Scope, tables: Tables) -> tuple[Node, Scope]:
        """Return a relation with those that are joined to it before others: ``a JOIN b JOIN c ON ... ON ...``."""
        return Joins(self, tables).apply(node, scope, tree.args.get("joins") or [])

    def _in_parentheses(self, tree: exp.Subquery, tables: Tables) -> tuple[Node, Scope]:
        """Return ``(a JOIN b ...)``; an alias behind it hides the names of its tables, and what USING has merged."""
        if any(is_comma(join) for join in tree.this.args.get("joins") or []):
            raise self.text.syntax_error(tree.this, "a comma stands between relations in parentheses. Write CROSS JOIN there.")
        node, scope = self.relation(tree.this, tables)
        alias = tree.args.get("alias")
        if alias is not None:
            scope = self.aliased(Scope(tuple(visible for visible in scope.visible if not visible.merged)), alias)
        return self._joined(tree, node, scope, tables)

    def aliased(self, scope: Scope, alias: exp.Expr | None) -> Scope:
        if alias is None:
            return scope
        name = name_of(alias.this) if alias.this is not None else ""
        names = [name_of(column) for column in alias.args.get("columns") or []]
        if len(names) > len(scope.visible):
            raise self.text.name_error(alias, f"{name!r} has {len(scope.visible)} columns, but {len(names)} names.")
        renamed = []
        for index, visible in enumerate(scope.visible):
            column = visible.column.renamed(names[index]) if index < len(names) else visible.column
            if not names and column.name in SETS and visible.table == column.name:
                column = column.renamed(name)
            renamed.append(replace(visible, table=name, column=column, merged=False))
        return Scope(tuple(renamed))

    def _as_table(self, bound: BoundQuery, name: str) -> tuple[Node, Scope]:
        return bound.node, Scope(tuple(Visible(name, column) for column in bound.outputs))

    def _named(self, tree: exp.Table, tables: Tables) -> tuple[Node, Scope]:
        name = name_of(tree.this)
        schema = tree.args.get("db")
        if schema is not None and name_of(schema) != "public":
            raise self.text.unsupported(tree, f"the schema {name_of(schema)!r}", "There is one schema, public.")
        common_table = tables.get(name) if schema is None else None
        if isinstance(common_table, _Fixed):
            node, scope = self._as_table(self._bind_named(common_table), name)
            return node, self.aliased(scope, common_table.table.args["alias"])
        found = self.schema.find(name)
        if found is None:
            known = ", ".join(self.schema.names()) or "none"
            raise self.text.name_error(tree, f"there is no table or view {name!r}; there are {known}.")
        self.reads.append(tree)
        return self._view(found) if isinstance(found, PlainView) else self._scan(found, name)

    def _view(self, view: PlainView) -> tuple[Node, Scope]:
        inner = QueryBinder(
            self.schema,
            Text(view.script),
            self._evaluator,
            streaming=self.streaming,
            ids=self.ids,
            default_frame=view.default_frame,
        )
        bound = inner.bind(view.query)
        self.window_places.update(dict.fromkeys(inner.window_places, view.query))
        self.arrival_times |= inner.arrival_times
        self.by_default |= inner.by_default
        names = view.column_names or tuple(column.name for column in bound.outputs)
        outputs = tuple(column.renamed(name) for column, name in zip(bound.outputs, names, strict=True))
        return self._as_table(replace(bound, outputs=outputs), view.name)

    def _scan(self, found: Relation, name: str) -> tuple[Node, Scope]:
        columns = self.ids.columns(found.types)
        watermarks = {columns[each].id: watermark for each, watermark in found.watermarks.items()}
        node: Node = Scan(
            tuple(columns.values()),
            tuple(columns[each].id for each in found.key),
            found.append_only,
            watermarks,
            relation=found.name,
            stored=tuple(columns),
            storage=found.storage,
            small=found.small,
            keyed=found.kind != "materialized view",
        )
        if STAMP in columns:
            node = on_time(node, next(iter(watermarks)), columns[STAMP])
        self.arrival_times.update(columns[each].id for each in found.arrival)
        visible = tuple(Visible(name, columns[stored.name]) for stored in found.visible)
        return node, Scope(visible)

    def _table_function(self, tree: exp.Expr, tables: Tables) -> tuple[Node, Scope]:
        name = str(tree.this).lower()
        if name == "gap_fill" and tree.expressions:
            node, scope = self._first_argument(tree.expressions[0], tables)
            return gap_fill(tree, node, scope, self.evaluate, self.text, self.ids)
        if name not in NAMES:
            known = ", ".join((*NAMES, "gap_fill", *SETS, *OF_PAIRS))
            raise self.text.unsupported(tree, f"the table function {name}", f"There are {known}.")
        call = read_call(tree, self.text)
        node, scope = self._first_argument(call.relation, tables)
        return TableFunctions(self.text, self.ids, self.evaluate, self.now).bind(call, node, scope)

    def _first_argument(self, source: exp.Expr, tables: Tables) -> tuple[Node, Scope]:
        """Return the relation that a table function is called on; its name was parsed as that of a column."""
        if isinstance(source, exp.Column):
            source = exp.Table(this=source.this, db=source.args.get("table"))
        return self.relation(source, tables)

    def _values(self, tree: exp.Values) -> BoundQuery:
        binder = SelectBinder(self.text, Scope(), "VALUES", self.now)
        rows = [
            [binder.bind(item) for item in (row.expressions if isinstance(row, exp.Tuple) else [row])] for row in tree.expressions
        ]
        width = len(rows[0])
        if not width:
            raise self.text.syntax_error(tree, "a row of VALUES has no value.")
        if any(len(row) != width for row in rows):
            raise self.text.syntax_error(tree, "the rows of VALUES have different lengths.")
        try:
            types = [common_type([row[index] for row in rows]) for index in range(width)]
        except MismatchError as error:
            raise self.text.type_error(tree, str(error)) from None
        columns = tuple(self.ids.column(f"column{index + 1}", kind) for index, kind in enumerate(types))
        number = self.ids.column("number", INTEGER)
        written = [
            (*(convert(value, kind) for value, kind in zip(row, types, strict=True)), Expr(str(index), INTEGER))
            for index, row in enumerate(rows)
        ]
        node = Values((*columns, number), (number.id,), True, {}, rows=tuple(written))
        return BoundQuery(node, columns)

    def _set_operation(self, tree: exp.SetOperation, tables: Tables) -> BoundQuery:
        if not isinstance(tree.this, exp.Subquery) and any(tree.this.args.get(part) for part in ("order", "limit", "offset")):
            message = f"ORDER BY, LIMIT and OFFSET stand behind the whole {tree.key.upper()}."
            raise self.text.syntax_error(tree.this, f"{message} Put a side that has its own in parentheses.")
        left, right = self.bind(tree.this, tables), self.bind(tree.expression, tables)
        if len(left.outputs) != len(right.outputs):
            raise self.text.syntax_error(tree, f"{tree.key.upper()} of {len(left.outputs)} and {len(right.outputs)} columns.")
        literals = (open_literals(tree.this), open_literals(tree.expression))
        types = [
            self._set_type(tree, literals[0].get(index) or one.expr, literals[1].get(index) or other.expr)
            for index, (one, other) in enumerate(zip(left.outputs, right.outputs, strict=True))
        ]
        columns = tuple(self.ids.column(one.name, kind) for one, kind in zip(left.outputs, types, strict=True))
        distinct = bool(tree.args.get("distinct"))
        sides = [self._with_types(tree, side, types, given) for side, given in zip((left, right), literals, strict=True)]
        if isinstance(tree, exp.Union):
            node = plan.union_all(sides, columns, self.ids)
            if distinct:
                node = plan.distinct(node, [column.id for column in columns])
        elif not distinct:
            raise self.text.unsupported(
                tree, f"{tree.key.upper()} ALL", f"{tree.key.upper()} without ALL is, and gives each row once."
            )
        else:
            node = plan.set_operation(sides[0], sides[1], tree.key, columns)
        return self.ordered(BoundQuery(node, columns), tree)

    def _set_type(self, tree: exp.Expr, one: Expr, other: Expr) -> SqlType:
        try:
            return common_type((one, other))
        except MismatchError:
            types = f"{one.type} and {other.type}"
            raise self.text.type_error(tree, f"{tree.key.upper()} types {types} cannot be matched. Cast one.") from None

    def _with_types(self, tree: exp.Expr, bound: BoundQuery, types: Sequence[SqlType], literals: Mapping[int, Expr]) -> Node:
        """Return a side of a set operation with the types of its result; literals are read as these."""
        items, distinct = [], bool(tree.args.get("distinct"))
        for index, (column, kind) in enumerate(zip(bound.outputs, types, strict=True)):
            try:
                value = convert(literals.get(index) or column.expr, kind)
            except MismatchError as error:
                raise self.text.type_error(tree, str(error)) from None
            value = replace(value, literal=None)
            items.append((self.ids.column(column.name, kind), by_value(value) if distinct else value))
        return plan.project(bound.node, items)

    def ordered(self, bound: BoundQuery, tree: exp.Expr) -> BoundQuery:
        order = bound.order
        if tree.args.get("order") is not None:
            scope = Scope(tuple(Visible("", column) for column in bound.outputs))
            order = tuple(self._order_item(item, bound, scope) for item in tree.args["order"].expressions)
        return self.limited(replace(bound, order=order), tree)

    def _order_item(self, item: exp.Expr, bound: BoundQuery, scope: Scope) -> Order:
        place = output_place(item.this, len(bound.outputs), self.text)
        if place is not None:
            column = bound.outputs[place]
        else:
            value = ScalarBinder(self.text, scope, "ORDER BY", self.now).bind(item.this)
            if not value.is_column:
                raise self.text.unsupported(
                    item, "an expression in the ORDER BY of a set operation", "Order by an output column."
                )
            column = next(each for each in bound.outputs if each.id == value.column)
        return Order(column.id, bool(item.args.get("desc")), bool(item.args.get("nulls_first")))

    def limited(self, bound: BoundQuery, tree: exp.Expr, partition: Sequence[str] = ()) -> BoundQuery:
        clause, skipped = tree.args.get("limit"), tree.args.get("offset")
        if clause is None and skipped is None:
            return bound
        ties, limit = False, None
        if isinstance(clause, exp.Fetch):
            options = clause.args.get("limit_options")
            ties = bool(options is not None and options.args.get("with_ties"))
            if ties and not bound.order:
                raise self.text.syntax_error(tree, "WITH TIES needs an ORDER BY: rows that are equal in it are ties.")
            limit = self.whole_number(clause.args["count"], "FETCH FIRST") if clause.args.get("count") is not None else 1
        elif clause is not None and not isinstance(clause.expression, exp.Null | exp.Var):
            limit = self.whole_number(clause.expression, "LIMIT")
        offset = 0 if skipped is None else self.whole_number(skipped.expression, "OFFSET")
        return replace(bound, node=plan.top(bound.node, partition, bound.order, limit, offset, with_ties=ties and limit != 0))


def _is_join(tree: exp.Expr) -> bool:
    """Whether the parentheses in FROM have a join, and no query."""
    if isinstance(tree, exp.Subquery) and not tree.args.get("joins"):
        return not tree.args.get("alias") and _is_join(tree.this)
    return isinstance(tree, exp.Table | exp.Subquery) and bool(tree.args.get("joins"))


class _Fixed(exp.Expr):
    """A common table expression, with the ones it can name."""

    def __init__(self, table: exp.Expr, tables: Tables) -> None:
        super().__init__()
        self.table, self.tables, self.is_read = table, tables, False
