"""Binds joins: ON, USING, NATURAL, and commas."""

from __future__ import annotations

from sqlglot import exp

from windowpane.errors import SqlNameError
from windowpane.sql.bind import build_plan as plan
from windowpane.sql.bind.as_of import as_of_join, version_join
from windowpane.sql.bind.binding import Binding
from windowpane.sql.bind.correlation import outputs_of
from windowpane.sql.bind.scope import Column, Scope, Visible
from windowpane.sql.expressions.binder import ScalarBinder, name_of
from windowpane.sql.expressions.expr import Expr, build, convert
from windowpane.sql.expressions.operators import key_value
from windowpane.sql.expressions.types import SqlType, common, comparison_type
from windowpane.sql.nodes import Node
from windowpane.sql.windows.series import call_in_from, called, looks_aside, rows_of

_KINDS = {"": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full"}


class Joins:
    def __init__(self, query: Binding, tables: dict[str, exp.Expr]) -> None:
        self._query, self._tables, self._text = query, tables, query.text

    def apply(self, node: Node, scope: Scope, joins: list[exp.Expr]) -> tuple[Node, Scope]:
        """Return a relation joined with others; JOIN binds closer than a comma, as ``a, b RIGHT JOIN c`` shows."""
        for join, *closer in _by_commas(joins):
            node, scope = self._join(node, scope, join, closer)
        return node, scope

    def _join(self, node: Node, scope: Scope, join: exp.Expr, closer: list[exp.Expr]) -> tuple[Node, Scope]:
        side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
        if side not in _KINDS or kind not in ("", "INNER", "OUTER", "CROSS"):
            raise self._text.unsupported(join, f"{side} {kind} JOIN".strip(), "INNER, LEFT, RIGHT, FULL and CROSS joins are.")
        method = str(join.args.get("method") or "").upper()
        if method not in ("", "NATURAL", "ASOF") or (method == "ASOF" and side not in ("", "LEFT")):
            raise self._text.unsupported(join, f"{method} {side}".strip() + " JOIN", "ASOF JOIN and ASOF LEFT JOIN are.")
        if (side and kind not in ("", "OUTER")) or (kind == "OUTER" and not side) or (method == "NATURAL" and kind == "CROSS"):
            raise self._text.syntax_error(join, f"there is no {' '.join(filter(None, (method, side, kind)))} JOIN.")
        if (kind == "CROSS" or method == "NATURAL") and (join.args.get("on") is not None or join.args.get("using")):
            word = method or kind
            raise self._text.syntax_error(join, f"a {word} JOIN has no ON or USING. Write JOIN without {word}.")
        if closer and looks_aside(join.this):
            right, other = self._alone(join, closer)
            return plan.join(node, right, "inner", (), None, self._query.ids), self._distinct(join, scope, other)
        call = call_in_from(join.this)
        if call is not None and looks_aside(join.this):
            return self._rows_of(call, node, scope, join, _KINDS[side])
        if isinstance(join.this, exp.Lateral):
            return self._lateral(node, scope, join, _KINDS[side])
        relation, moment = self._without_version(join)
        right, other = self.apply(*self._query.relation(relation, self._tables), closer)
        self._distinct(join, scope, other)
        if method == "ASOF":
            if join.args.get("using") or moment is not None:
                word = "USING" if moment is None else "FOR SYSTEM_TIME AS OF"
                raise self._text.unsupported(join, f"ASOF JOIN with {word}", "Its condition stands behind ON.")
            binder = ScalarBinder(self._text, scope + other, "ASOF JOIN", self._query.now)
            return as_of_join(node, right, scope, other, join, binder, self._query.ids)
        if moment is not None and moment.sql().upper() == "PROCTIME()":
            return self._by_arrival(node, right, scope + other, join, _KINDS[side]), scope + other
        if moment is not None:
            return self._of_versions(node, right, scope, other, join, moment)
        names = self._shared_names(scope, other, join)
        if names:
            return self._using(node, right, scope, other, _KINDS[side], names, join)
        condition = join.args.get("on")
        both = scope + other
        if condition is None:
            if not method and (side or kind in ("INNER", "OUTER")):
                raise self._text.syntax_error(join, "a JOIN needs ON, USING or NATURAL. CROSS JOIN has none.")
            return plan.join(node, right, _KINDS[side], (), None, self._query.ids), both
        bound = ScalarBinder(self._text, both, "JOIN ON", self._query.now).boolean(condition)
        return plan.join(node, right, _KINDS[side], (), bound, self._query.ids), both

    def _without_version(self, join: exp.Expr) -> tuple[exp.Expr, exp.Expr | None]:
        """Return the relation that is joined, and as of which moment; ``None`` as it is."""
        version = join.this.args.get("version")
        if version is None:
            return join.this, None
        if str(version.args.get("kind")).upper() != "AS OF":
            raise self._text.unsupported(version, f"FOR SYSTEM_TIME {version.args.get('kind')}", "FOR SYSTEM_TIME AS OF is.")
        relation = join.this.copy()
        relation.set("version", None)
        return relation, version.expression

    def _of_versions(
        self, left: Node, right: Node, scope: Scope, other: Scope, join: exp.Expr, moment: exp.Expr
    ) -> tuple[Node, Scope]:
        """Join each row with the version of its key that was valid at a time of the row.

        A column of the left side that is declared as ``PROCTIME()`` looks up a table without versions, as in Flink.
        """
        version = join.this.args["version"]
        if (join.args.get("side") or "").upper() not in ("", "LEFT") or join.args.get("on") is None:
            raise self._text.unsupported(join, "FOR SYSTEM_TIME AS OF in this join", "JOIN and LEFT JOIN with ON are.")
        at = ScalarBinder(self._text, scope, "FOR SYSTEM_TIME AS OF", self._query.now).bind(moment)
        times = [each.column for each in other.visible if each.column.id in right.watermarks]
        has_versions = right.append_only and len(times) == 1
        if not has_versions and at.is_column and at.column in self._query.arrival_times:
            kind = _KINDS[str(join.args.get("side") or "").upper()]
            return self._by_arrival(left, right, scope + other, join, kind), scope + other
        if not has_versions:
            raise self._text.unsupported(
                version,
                "FOR SYSTEM_TIME AS OF a time of the left side for a table that has not each version as a row",
                "A table with a PRIMARY KEY keeps the newest version alone. Make it APPEND ONLY, each version a row, with one "
                "WATERMARK FOR the time from which it is valid. To look up the rows of a table when a row of the left side "
                "arrives, write FOR SYSTEM_TIME AS OF PROCTIME(). A join without FOR SYSTEM_TIME gives another result: when a "
                "row of this side changes, results that stand already change with it.",
            )
        if not at.columns:
            raise self._text.unsupported(
                version, "FOR SYSTEM_TIME AS OF a constant", "Write a time of the left side, or PROCTIME()."
            )
        both = ScalarBinder(self._text, scope + other, "JOIN ON", self._query.now)
        return version_join(left, right, scope, other, join, (moment, at, times[0]), both, self._query.ids)

    def _distinct(self, join: exp.Expr, scope: Scope, other: Scope) -> Scope:
        """Return both scopes; refuse a name that both have."""
        shared = set(scope.tables()) & set(other.tables()) - {""}
        if shared:
            raise self._text.name_error(join.this, f"table name {shared.pop()!r} stands in FROM twice. Give one an alias.")
        return scope + other

    def _alone(self, join: exp.Expr, closer: list[exp.Expr]) -> tuple[Node, Scope]:
        """Return a LATERAL or UNNEST behind a comma with what is joined to it before the comma is.

        Raises:
            SqlError: it reads columns of the relations before the comma, and a RIGHT or FULL JOIN follows.
        """
        tree, query = join.this, self._query
        in_parentheses = isinstance(tree, exp.Lateral) and isinstance(tree.this, exp.Subquery)
        try:
            node, scope = query.relation(tree.this if in_parentheses else tree, self._tables)
        except SqlNameError:
            raise self._text.unsupported(
                join,
                f"{tree.key.upper()} of columns before a comma, with a RIGHT or FULL JOIN behind it",
                "RIGHT and FULL JOIN bind closer than the comma. Put both relations into a subquery in FROM, and join that.",
            ) from None
        return self.apply(node, query.aliased(scope, tree.args.get("alias")) if in_parentheses else scope, closer)

    def _by_arrival(self, left: Node, right: Node, both: Scope, join: exp.Expr, kind: str) -> Node:
        """Join each row with those of a table at the time when it arrives. Source of the rules: RisingWave's temporal join."""
        condition = join.args.get("on")
        if kind not in ("inner", "left") or condition is None:
            raise self._text.unsupported(join, "FOR SYSTEM_TIME AS OF in this join", "JOIN and LEFT JOIN with ON are.")
        if not left.append_only:
            raise self._text.unsupported(
                join,
                "FOR SYSTEM_TIME AS OF PROCTIME() for rows that change",
                "The left side must be APPEND ONLY, or a source. A join without it follows the changes of both sides.",
            )
        binder = ScalarBinder(self._text, both, "JOIN ON", self._query.now)
        return plan.join_by_arrival(left, right, kind, (), binder.boolean(condition), self._query.ids)

    def _lateral(self, node: Node, scope: Scope, join: exp.Expr, kind: str) -> tuple[Node, Scope]:
        """Join each row with the rows of a subquery that names its columns."""
        tree = join.this
        if not isinstance(tree.this, exp.Subquery) or tree.args.get("ordinality"):
            raise self._text.unsupported(
                join, "LATERAL with anything but a subquery", "LATERAL (SELECT ...) and LATERAL UNNEST(...) are."
            )
        self._check_unconditional(join, kind, "LATERAL", "JOIN LATERAL ... ON TRUE is.")
        inner = self._query.bind_inner(tree.this, self._tables, scope, node)
        ours, values = plan.Computed(self._query.ids), plan.Computed(self._query.ids)
        keys = [(ours.column(outer).id, column.id) for outer, column in inner.keys]
        kind = "left" if inner.of_nothing else kind
        joined = plan.join(ours.apply(node), inner.query.node, kind, keys, inner.condition, self._query.ids)
        columns = zip(outputs_of(inner), inner.query.outputs, strict=True)
        shown = tuple(Visible("", values.column(value).renamed(column.name)) for value, column in columns)
        return values.apply(joined), self._distinct(join, scope, self._query.aliased(Scope(shown), tree.args.get("alias")))

    def _rows_of(self, call: exp.Expr, node: Node, scope: Scope, join: exp.Expr, kind: str) -> tuple[Node, Scope]:
        """Join each row with the elements of an array, or the rows of another call, which may be of columns of it."""
        name = called(call)
        self._check_unconditional(join, kind, name, f"CROSS JOIN {name}(...) and LEFT JOIN {name}(...) ON TRUE are.")
        binder = ScalarBinder(self._text, scope, name, self._query.now)
        node, added = rows_of(join.this, node, binder, self._query.ids, self._text, keeps=kind == "left")
        return node, self._distinct(join, scope, self._query.aliased(added, join.this.args.get("alias")))

    def _check_unconditional(self, join: exp.Expr, kind: str, name: str, instead: str) -> None:
        """Refuse a join with what looks aside that has a condition: ON, USING, NATURAL or ASOF."""
        on = join.args.get("on")
        ties = join.args.get("using") or join.args.get("method") or not (on is None or (isinstance(on, exp.Boolean) and on.this))
        if kind not in ("inner", "left") or ties:
            raise self._text.unsupported(join, f"a join with {name} on a condition", instead)

    def _shared_names(self, scope: Scope, other: Scope, join: exp.Expr) -> list[str]:
        using = join.args.get("using")
        if using:
            names = [name_of(each) for each in using]
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise self._text.name_error(join, f"USING names {twice!r} twice.")
            return names
        if str(join.args.get("method") or "").upper() != "NATURAL":
            return []
        theirs = [column.name for column in other.of_table()]
        return [column.name for column in scope.of_table() if column.name in theirs]

    def _using(
        self, left: Node, right: Node, scope: Scope, other: Scope, kind: str, names: list[str], join: exp.Expr
    ) -> tuple[Node, Scope]:
        one, two = plan.Computed(self._query.ids), plan.Computed(self._query.ids)
        pairs, keys = [], []
        for name in names:
            mine, theirs = self._only(scope, name, join), self._only(other, name, join)
            shared, compared = common(mine.type, theirs.type), comparison_type(mine.type, theirs.type)
            if shared is None or compared is None:
                raise self._text.type_error(join, f"column {name!r} is {mine.type} here and {theirs.type} there. Cast one.")
            pairs.append((name, mine, theirs, shared))
            keys.append((one.column(key_value(_as(mine, compared))).id, two.column(key_value(_as(theirs, compared))).id))
        node = plan.join(one.apply(left), two.apply(right), kind, keys, None, self._query.ids)
        merged = plan.Computed(self._query.ids)
        columns = [merged.column(self._merged(kind, mine, theirs, shared), name) for name, mine, theirs, shared in pairs]
        first = tuple(Visible("", column.renamed(name)) for column, name in zip(columns, names, strict=True))
        rest = tuple(
            Visible(each.table, each.column, each.merged or each.column.name in names) for each in (scope + other).visible
        )
        return merged.apply(node), Scope(first + rest)

    def _only(self, scope: Scope, name: str, join: exp.Expr) -> Column:
        found = scope.find(name)
        if len(found) != 1:
            raise self._text.name_error(join, f"column {name!r} of USING is there {len(found)} times on one side of the join.")
        return found[0]

    @staticmethod
    def _merged(kind: str, mine: Column, theirs: Column, shared: SqlType) -> Expr:
        if kind == "right":
            return _as(theirs, shared)
        if kind == "full":
            return build(shared, "coalesce({0}, {1})", _as(mine, shared), _as(theirs, shared))
        return _as(mine, shared)


def _by_commas(joins: list[exp.Expr]) -> list[list[exp.Expr]]:
    """Return joins in the order in which they are made, each comma with the joins that bind closer than it.

    What reads columns of the relations before it (LATERAL, UNNEST) is joined to all of them, which gives the same rows unless a
    RIGHT or FULL JOIN follows before the next comma.
    """
    grouped: list[list[exp.Expr]] = []
    behind_comma = False
    for join in joins:
        behind_comma = behind_comma or is_comma(join)
        if is_comma(join) or not behind_comma:
            grouped.append([join])
        else:
            grouped[-1].append(join)
    return [part for group in grouped for part in ([[join] for join in group] if _may_part(group) else [group])]


def _may_part(group: list[exp.Expr]) -> bool:
    """Whether the joins behind a comma may be made one after the other with all that is before it, and must be."""
    keeps_right = any(str(join.args.get("side") or "").upper() in ("RIGHT", "FULL") for join in group[1:])
    return any(looks_aside(join.this) for join in group) and not keeps_right


def is_comma(join: exp.Expr) -> bool:
    return not any(value for part, value in join.args.items() if part != "this")


def _as(column: Column, kind: SqlType) -> Expr:
    return convert(column.expr, kind)
