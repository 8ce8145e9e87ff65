"""Binds one SELECT: FROM, WHERE, GROUP BY, HAVING, WINDOW, QUALIFY, the select list, DISTINCT, ORDER BY, LIMIT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from windowpane.sql.bind import build_plan as plan
from windowpane.sql.bind.binding import Binding
from windowpane.sql.bind.bound_query import BoundQuery, Tables, output_place
from windowpane.sql.bind.conditions import conjuncts
from windowpane.sql.bind.correlation import Inner, Ties
from windowpane.sql.bind.grouping_sets import sets_of
from windowpane.sql.bind.joins import Joins
from windowpane.sql.bind.scope import Column, Scope, Visible
from windowpane.sql.bind.selects import Groups, SelectBinder, has_aggregates
from windowpane.sql.bind.subqueries import Subqueries
from windowpane.sql.embedded.macros import NOW
from windowpane.sql.expressions.binder import ScalarBinder, name_of, resolved
from windowpane.sql.expressions.expr import Expr, settled
from windowpane.sql.expressions.operators import by_value, sortable
from windowpane.sql.expressions.types import TIMESTAMPTZ
from windowpane.sql.nodes import Node, Order, TopN
from windowpane.sql.windows.calls import WindowCalls
from windowpane.sql.windows.group_windows import group_window
from windowpane.sql.windows.series import SetCalls, one_row
from windowpane.sql.windows.table_functions import TableFunctions
from windowpane.sql.windows.temporal_filters import asks_the_clock, in_time


class SelectPlan:
    """One SELECT on its way to a plan: FROM first, then what each clause adds."""

    def __init__(
        self,
        query: Binding,
        tree: exp.Select,
        tables: Tables,
        around: Scope | None = None,
        rows: Node | None = None,
        *,
        by_keys: bool = False,
    ) -> None:
        """Bind FROM; ``around`` are the columns of the query around a subquery, and ``rows`` its rows.

        ``by_keys``: what ties the subquery becomes keys, where it can.
        """
        self.query, self.tree, self.tables, self._by_keys = query, tree, tables, by_keys
        self.text, self.ids = query.text, query.ids
        self.ties = Ties(self.text, around or Scope(), rows)
        self.node, self.scope = self._from()
        self.windows = WindowCalls(self.text, self.ids, query.evaluate, query.default_frame)
        self.groups: Groups | None = None
        self.sets = SetCalls(self.text, self.ids)
        self.subqueries = Subqueries(self)
        self._tied: list[Column] = []
        self._of_nothing: tuple[Expr, ...] = ()
        self._stamp: Column | None = None

    def bind(self) -> BoundQuery:
        if not self.tree.expressions:
            raise self.text.syntax_error(self.tree.args.get("from_"), "SELECT needs something to select before FROM, such as *.")
        self.windows.declare(self.tree.args.get("windows") or [])
        where = self.tree.args.get("where")
        if where is not None:
            self._filter(self._untied(conjuncts(where.this)), self._binder("WHERE"))
        self._refuse_ties_elsewhere()
        self._take_group_window()
        self._group()
        self.windows.apart = [self._tie(value) for _, value in self.ties.keys]
        items = self._items()
        having = self.tree.args.get("having")
        over_groups = self._binder("HAVING")
        timed = having is not None and self.query.streaming and asks_the_clock(having.this)
        over_groups.now = NOW if timed else self.query.now
        condition = None if having is None else over_groups.boolean(having.this)
        outer = self._binder("SELECT", windows=True)
        qualify = self.tree.args.get("qualify")
        qualified = [] if qualify is None else conjuncts(self._without_aliases(qualify.this))
        for part in qualified:
            outer.boolean(part)
        bound = [(name, outer.bind(item)) for name, item in items]
        self.windows.check_unused(self._binder("WINDOW"))
        order = self._order(bound, outer)
        first_of = self._first_of(bound, order, outer)
        if self.groups is not None:
            self.node = self.subqueries.apply(self.groups.apply(self.node))
        if condition is not None and having is not None:
            node = self.node
            self.node = in_time(node, condition, having.this, self.text) if timed else plan.keep(node, condition)
        self._check_ties(bound)
        self.node = self.windows.apply(self.node)
        self.query.window_places.update(self.windows.places)
        self.query.by_default |= self.windows.by_default
        self._filter(qualified, outer)
        self.node = self.sets.apply(self.node)
        return self._project(bound, order, first_of)

    def inner(self) -> Inner:
        bound = self.bind()
        determined = {column.id for column in self._tied} | self.ties.equal_to_keys
        limited = isinstance(bound.node, TopN) and bound.node.limit == 1 and not bound.node.with_ties
        limited |= self.tree.args.get("from_") is None and not self.sets
        keys = tuple((outer, column) for (outer, _), column in zip(self.ties.keys, self._tied, strict=True))
        none = isinstance(bound.node, TopN) and (bound.node.limit == 0 or bound.node.offset > 0)
        of_nothing = () if none else self._of_nothing
        return Inner(bound, keys, self.ties.condition, limited or set(bound.node.key) <= determined, of_nothing)

    def _untied(self, conditions: list[exp.Expr]) -> list[exp.Expr]:
        """Return the conditions that name no columns around.

        Where rows are computed of several, comparisons among the others become keys, too.
        """
        tied = [each for each in conditions if self.ties.names_around(each, self.scope) is not None]
        if tied and (self._by_keys or _folds(self.tree)):
            equal = [each for each in tied if isinstance(each, exp.EQ)]
            self.ties.take(equal, self.scope, self.query.now)
            others = [each for each in tied if each not in equal]
            rest, self.node = self.ties.take_compared(others, self.node, self.scope, self.ids, self.query.now)
            conditions = [*(each for each in conditions if each not in tied), *rest]
        return self.ties.take(conditions, self.scope, self.query.now)

    def _tie(self, value: Expr) -> Expr:
        """Return what ties rows, or groups, to the query around a subquery: windows are those of each tie."""
        return value if self.groups is None else self.groups.keys[by_value(settled(value))].expr

    def _refuse_ties_elsewhere(self) -> None:
        parts = [self.tree.args.get(part) for part in ("group", "having", "qualify", "order")]
        self.ties.refuse_elsewhere([*self.tree.expressions, *(part for part in parts if part is not None)], self.scope)

    def _check_ties(self, bound: list[tuple[str | None, Expr]]) -> None:
        """Refuse what cannot be computed apart for each row of the query around; find the result of an empty aggregate."""
        tied = bool(self.ties.keys) or self.ties.condition is not None
        if tied and self.sets:
            raise self.text.unsupported(self.tree, "a function that returns rows in a tied subquery", "Put it into FROM.")
        folds = self.groups is not None or self.tree.args.get("limit") is not None or self.tree.args.get("distinct") is not None
        if folds and self.ties.condition is not None:
            instead = "Compare columns of both with = or <."
            raise self.text.unsupported(
                self.tree, "an aggregate, DISTINCT or LIMIT in a subquery tied by anything but a comparison", instead
            )
        if self.ties.condition is not None and self.windows.places:
            raise self.text.unsupported(
                self.tree, "OVER in a subquery tied by anything but a comparison", "Compare columns of both with = or <."
            )
        if self.groups is None or not _is_total(self.tree):
            return
        if self.tree.args.get("having") is None:
            self._of_nothing = tuple(self.groups.of_nothing(settled(value)) for _, value in bound)
        elif tied:
            raise self.text.unsupported(
                self.tree,
                "HAVING without GROUP BY in a tied subquery",
                "With GROUP BY it is, and has no row where nothing matches.",
            )

    def _from(self) -> tuple[Node, Scope]:
        source = self.tree.args.get("from_")
        if source is None:
            return one_row(self.ids), Scope()
        relation, rows = self.ties.relation(source.this, self.ids, self.query.now)
        node, scope = self.query.relation(relation, self.tables, rows)
        return Joins(self.query, self.tables).apply(node, scope, self.tree.args.get("joins") or [])

    def _binder(self, clause: str, *, windows: bool = False, grouped: bool = True) -> SelectBinder:
        groups = self.groups if grouped else None
        calls = self.windows if windows else None
        scalar = self.subqueries.value if groups is None else self.subqueries.value_of_groups
        binder = SelectBinder(self.text, self.scope, clause, self.query.now, groups, calls, scalar)
        binder.sets = self.sets if windows else None
        binder.stamp = self._stamped if self.query.streaming else None
        return binder

    def _stamped(self, tree: exp.Expr) -> Expr:
        """Return the time at which a row of FROM was taken in: ``PROCTIME()`` in a view."""
        if self.groups is not None:
            raise self.text.unsupported(tree, "PROCTIME() over groups in a materialized view", "Select it in a subquery in FROM.")
        if self._stamp is None:
            self._stamp = self.ids.column("proctime", TIMESTAMPTZ)
            self.node = plan.stamped(self.node, self._stamp)
        return self._stamp.expr

    def _filter(self, conditions: list[exp.Expr], binder: SelectBinder) -> None:
        timed = [condition for condition in conditions if self.query.streaming and asks_the_clock(condition)]
        for condition in conditions:
            if condition not in timed and not self.subqueries.condition(condition, binder):
                bound = binder.boolean(condition)  # joins the subqueries in it to the node
                self.node = plan.keep(self.node, bound)
        for condition in timed:
            self.node = self._in_time(condition, binder)

    def _in_time(self, condition: exp.Expr, binder: SelectBinder) -> Node:
        """Return the rows for which a condition with ``now()`` holds at each moment."""
        binder.now = NOW
        bound = binder.boolean(condition)
        binder.now = self.query.now
        return in_time(self.node, bound, condition, self.text)

    def _take_group_window(self) -> None:
        """Give rows the windows that GROUP BY names in Flink's older form, ``GROUP BY TUMBLE(...)``."""
        clause = self.tree.args.get("group")
        window = None if clause is None else group_window(list(clause.expressions), self.text)
        if window is None:
            return
        keys = [self._group_key(key) for key in window.others] if window.name == "session" else []
        call, functions = window.call(self.text), TableFunctions(self.text, self.ids, self.query.evaluate, self.query.now)
        time = self._binder("GROUP BY").bind(call.time)
        self.node, scope = functions.bind(call, self.node, self.scope, time, keys)
        columns = [visible.column for visible in scope.visible[-3:]]
        self.tree = window.select(self.tree, dict(zip(("start", "end", "rowtime"), columns, strict=True)), self.text)

    def _group(self) -> None:
        clause = self.tree.args.get("group")
        if not _is_grouped(self.tree):
            return
        items = [] if clause is None else clause.expressions
        if clause is not None and clause.args.get("all") and not items:
            raise self.text.unsupported(clause, "GROUP BY ALL", "List the columns.")
        has_sets = any(isinstance(item, exp.Rollup | exp.Cube | exp.GroupingSets) for item in items) and not _is_total(self.tree)
        if has_sets:
            self._tell_apart(sets_of(items))
        inner = self._binder("an aggregate")
        groups = Groups(self.text, self.ids, inner)
        for _, value in self.ties.keys:
            groups.add_key(value, is_tie=True)
        sets = [[self._group_key(part) for part in chosen] for chosen in sets_of(items)]
        if has_sets:
            groups.add_sets(sets, distinct=clause is not None and clause.args.get("all") is False)
        else:
            for value in sets[0]:
                groups.add_key(value)
        self.groups = groups

    def _tell_apart(self, sets: Sequence[Sequence[exp.Expr]]) -> None:
        """Give columns of their own to what grouping sets tell apart though it has the same value in each row.

        These are columns of FROM that are one column below, items of the select list that are named by number or alias and equal
        another one, and such items that are constants. Source: PostgreSQL, where a grouping column is an item of the list.
        """
        own = plan.Computed(self.ids)
        seen: set[str] = set()
        shown: list[Visible] = []
        for visible in self.scope.visible:
            column = own.own(visible.column.expr) if visible.column.id in seen else visible.column
            seen.add(visible.column.id)
            shown.append(replace(visible, column=column.renamed(visible.column.name)))
        self.scope = Scope(tuple(shown))
        self.node = own.apply(self.node)
        own, binder, taken = plan.Computed(self.ids), self._binder("GROUP BY", grouped=False), set[Expr]()
        self.tree = self.tree.copy()  # the query may be bound again
        for place in dict.fromkeys(place for chosen in sets for part in chosen for place in self._items_named(part)[:1]):
            item = self.tree.expressions[place]
            value = settled(binder.bind(item.unalias()))
            if value in taken or not value.columns:
                column = own.own(value)
                self.tree.expressions[place].replace(exp.alias_(resolved(column), item.alias_or_name or value.name, quoted=True))
            taken.add(value)
        self.node = own.apply(self.node)

    def _items_named(self, tree: exp.Expr) -> list[int]:
        """Return the places of the items of the select list that an item of GROUP BY names by number or alias."""
        place = output_place(tree, len(self.tree.expressions), self.text)
        if place is not None:
            return [place]
        if not isinstance(tree, exp.Column) or tree.args.get("table") or self.scope.find(name_of(tree.this)):
            return []
        aliased = [(number, item) for number, item in enumerate(self.tree.expressions) if isinstance(item, exp.Alias)]
        return [number for number, item in aliased if name_of(item.args["alias"]) == name_of(tree.this)]

    def _group_key(self, tree: exp.Expr) -> Expr:
        binder = self._binder("GROUP BY", grouped=False)
        named = [binder.bind(self.tree.expressions[place].unalias()) for place in self._items_named(tree)]
        return self._only(tree, named) if named else binder.bind(tree)

    def _items(self) -> list[tuple[str | None, exp.Expr]]:
        """Return the select list with stars written out, each with its name if it has one."""
        items: list[tuple[str | None, exp.Expr]] = []
        for item in self.tree.expressions:
            if isinstance(item, exp.Star):
                items += self._star(item, item, None)
            elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
                items += self._star(item.this, item, name_of(item.args["table"]))
            elif isinstance(item, exp.Alias):
                items.append((name_of(item.args["alias"]), item.this))
            else:
                items.append((None, item))
        return items

    def _star(self, star: exp.Star, tree: exp.Expr, table: str | None) -> list[tuple[str | None, exp.Expr]]:
        if table is not None and table not in self.scope.tables():
            raise self.text.name_error(tree, f"there is no table {table!r} in FROM; there are {', '.join(self.scope.tables())}.")
        if not self.scope.visible:
            raise self.text.syntax_error(tree, "SELECT * needs a FROM.")
        excepted = self._excepted(star)
        named: list[tuple[str | None, exp.Expr]] = [
            (column.name, resolved(column)) for column in self.scope.of_table(table) if column.id not in excepted
        ]
        if not named:
            raise self.text.syntax_error(tree, "EXCEPT leaves no column.")
        return named

    def _excepted(self, star: exp.Star) -> set[str]:
        binder, found = ScalarBinder(self.text, self.scope, "EXCEPT"), set[str]()
        for tree in star.args.get("except_") or ():
            if not (isinstance(tree, exp.Column) and isinstance(tree.this, exp.Identifier)):
                raise self.text.syntax_error(tree, "EXCEPT behind * takes names of columns.")
            column = binder.column(tree).column
            if column in found:
                raise self.text.name_error(tree, f"EXCEPT names {name_of(tree.this)!r} twice.")
            found.add(column)
        return found

    def _without_aliases(self, tree: exp.Expr) -> exp.Expr:
        """Return an expression with the aliases of the select list written out where they are no columns."""
        aliases = {name_of(item.args["alias"]): item.this for item in self.tree.expressions if isinstance(item, exp.Alias)}

        def written(part: exp.Expr) -> exp.Expr:
            if isinstance(part, exp.Column) and not part.args.get("table") and isinstance(part.this, exp.Identifier):
                name = name_of(part.this)
                if name in aliases and not self.scope.find(name):
                    return exp.Paren(this=aliases[name].copy())
            return part

        return tree.copy().transform(written)

    def _order(self, bound: list[tuple[str | None, Expr]], binder: SelectBinder) -> list[tuple[Expr, exp.Expr]]:
        clause = self.tree.args.get("order")
        items = [] if clause is None else clause.expressions
        return [(self._output(item.this, bound, binder), item) for item in items]

    def _output(self, tree: exp.Expr, bound: list[tuple[str | None, Expr]], binder: SelectBinder) -> Expr:
        """Return an output column by its number or name, or any other expression, as ORDER BY and DISTINCT ON take them."""
        place = output_place(tree, len(bound), self.text)
        if place is not None:
            return bound[place][1]
        found = []
        if isinstance(tree, exp.Column) and not tree.args.get("table"):
            found = [value for name, value in bound if (value.name if name is None else name) == name_of(tree.this)]
        return self._only(tree, found) if found else binder.bind(tree)

    def _only(self, tree: exp.Expr, found: list[Expr]) -> Expr:
        if len(set(found)) > 1:
            name = name_of(tree.this)
            raise self.text.name_error(tree, f"column {name!r} is ambiguous: the select list has it twice. Rename one with AS.")
        return found[0]

    def _first_of(
        self, bound: list[tuple[str | None, Expr]], order: list[tuple[Expr, exp.Expr]], binder: SelectBinder
    ) -> list[Expr]:
        """Return the expressions of DISTINCT ON; ORDER BY begins with them, in any order among themselves."""
        distinct = self.tree.args.get("distinct")
        if distinct is None or distinct.args.get("on") is None:
            return []
        chosen = [self._output(part, bound, binder) for part in distinct.args["on"].expressions]
        if not chosen:
            raise self.text.syntax_error(distinct, "DISTINCT ON needs an expression in its parentheses.")
        wanted = set(chosen)
        first = set(list(dict.fromkeys(value for value, _ in order))[: len(wanted)])
        if not (first <= wanted or wanted <= first):
            raise self.text.syntax_error(
                self.tree.args["order"], "ORDER BY begins with the expressions of DISTINCT ON. Write them first."
            )
        return chosen

    def _project(
        self, bound: list[tuple[str | None, Expr]], order: list[tuple[Expr, exp.Expr]], first_of: list[Expr]
    ) -> BoundQuery:
        items: dict[Expr, tuple[Column, Expr]] = {}

        def place(name: str, value: Expr) -> Column:
            value = settled(value)
            if value not in items:
                kept = Column(value.column, name, value.type) if value.is_column else self.ids.column(name, value.type)
                items[value] = (kept, value)
            return items[value][0].renamed(name)

        distinct = self.tree.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is None:
            bound = [(value.name if name is None else name, by_value(settled(value))) for name, value in bound]
        outputs = tuple(place(value.name if name is None else name, value) for name, value in bound)
        ordering = []
        for value, item in order:
            column = place("order", sortable(settled(value)))
            ordering.append(Order(column.id, bool(item.args.get("desc")), bool(item.args.get("nulls_first"))))
        self._tied = [place("tie", self._tie(value)) for _, value in self.ties.keys]
        for name in self.ties.own_columns:
            column = self.node.column(name)
            place(column.name, column.expr)
        tied = [column.id for column in self._tied]
        first = [place("first of", by_value(value)).id for value in first_of]
        node = self._distinct(plan.project(self.node, list(items.values())), outputs, ordering, first, tied)
        return self.query.limited(BoundQuery(node, outputs, tuple(ordering)), self.tree, tied)

    def _distinct(
        self, node: Node, outputs: tuple[Column, ...], order: list[Order], first_of: list[str], tied: list[str]
    ) -> Node:
        if self.tree.args.get("distinct") is None:
            return node
        if first_of:
            return plan.top(node, [*first_of, *tied], order, 1)
        hidden = [item for item in order if item.column not in {column.id for column in outputs}]
        if hidden:
            raise self.text.type_error(
                self.tree.args["order"], "SELECT DISTINCT orders by its own columns only. Select the column, too."
            )
        return plan.distinct(node, [*(column.id for column in outputs), *tied])


def _is_grouped(tree: exp.Select) -> bool:
    parts = [*tree.expressions, tree.args.get("qualify"), tree.args.get("order")]
    given = tree.args.get("group") is not None or tree.args.get("having") is not None
    return given or any(part is not None and has_aggregates(part) for part in parts)


def _folds(tree: exp.Select) -> bool:
    """Whether a row of a SELECT is computed of several rows of FROM."""
    parts = [*tree.expressions, tree.args.get("qualify")]
    over = any(part is not None and part.find(exp.Window) for part in parts)
    return over or _is_grouped(tree) or any(tree.args.get(part) is not None for part in ("limit", "offset", "distinct"))


def _is_total(tree: exp.Select) -> bool:
    """Whether groups are one group of all rows, which exists without rows, too."""
    clause = tree.args.get("group")
    return sets_of([] if clause is None else clause.expressions) == [()]
