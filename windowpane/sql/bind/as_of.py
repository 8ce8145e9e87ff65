"""ASOF joins: each row of the left side with the one row of the right side that is nearest in time, and not on the other side.

A join FOR SYSTEM_TIME AS OF a time of the left side is one of them: each row of the right side is a version, valid from its time.
Rows of both sides are put together and sorted by key and time, forwards or backwards; then the nearest row of the right side is
the last one before a left row, which is a call over a window. So a right row that is inserted late, updated or deleted corrects
the left rows up to its neighbour, and with EMIT ON WINDOW CLOSE each row is emitted once, when the watermarks of both sides have
passed it. Source of the rules: RisingWave's ASOF JOIN; of right rows with equal keys and times the one with the smallest key
of its own counts, as there. In a table without a primary key, where RisingWave leaves it open, the last that was inserted does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from windowpane.sql.bind import build_plan as plan
from windowpane.sql.bind.conditions import conjuncts, key_pair
from windowpane.sql.bind.scope import Column, Ids, Scope
from windowpane.sql.catalog.entries import ROW_ID
from windowpane.sql.expressions.binder import ScalarBinder
from windowpane.sql.expressions.expr import Expr, MismatchError, build
from windowpane.sql.expressions.operators import combined, comparables
from windowpane.sql.expressions.types import BOOLEAN, INTEGER, SqlType, is_instant, is_integer, is_number
from windowpane.sql.nodes import Filter, Node, Order, Project, Scan
from windowpane.sql.parse.positions import Text
from windowpane.sql.windows.over_calls import OverNodeCall
from windowpane.windowing.frames import UNBOUNDED_PRECEDING, Frame

_BACKWARD = (exp.GTE, exp.GT)
_STRICT = (exp.GT, exp.LT)
_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GTE: exp.LTE, exp.GT: exp.LT, exp.LTE: exp.GTE, exp.LT: exp.GT}
_UPRIGHT = "tie"
"""A part of a key that cannot be turned around, such as a text or one that may be NULL: the sort must be in the other order."""
_INSTEAD = (
    "Its condition is equalities, and one of >=, >, <=, < between a time of the left side and one of the right: "
    "ON l.k = r.k AND l.at >= r.at. What else a row must be, a subquery or WHERE says."
)


_ALL_MEET = Expr("1", INTEGER)
"""The key of rows that no equality ties: a window in a view has a partition."""


@dataclass(frozen=True)
class _Nearness:
    """The condition of an ASOF join: pairs of equal expressions, the times of both sides, and where to look."""

    keys: tuple[tuple[Expr, Expr], ...]
    times: tuple[Expr, Expr]
    backward: bool
    strict: bool


@dataclass(frozen=True)
class _Part:
    """A column of the rows of both sides, and its value in rows of each; ``None`` for NULL."""

    column: Column
    left: Expr | None
    right: Expr | None

    def of(self, of_left: bool) -> tuple[Expr, SqlType]:
        kind = self.column.type
        return (self.left if of_left else self.right) or Expr.null(kind), kind


def as_of_join(
    left: Node, right: Node, scope: Scope, other: Scope, join: exp.Expr, binder: ScalarBinder, ids: Ids
) -> tuple[Node, Scope]:
    """Return rows of the left side with the nearest of the right one, and what names mean in them."""
    nearness = _nearness(join, binder, left.ids, right.ids)
    return _Joining(nearness, left, right, ids).joined(scope, other, keeps_all=bool(join.args.get("side")))


def version_join(
    left: Node,
    right: Node,
    scope: Scope,
    other: Scope,
    join: exp.Expr,
    moment: tuple[exp.Expr, Expr, Column],
    binder: ScalarBinder,
    ids: Ids,
) -> tuple[Node, Scope]:
    """Return rows of the left side with the version that was valid at a time of theirs: ``FOR SYSTEM_TIME AS OF l.at``."""
    ours, theirs = left.ids, right.ids
    keys = []
    for part in conjuncts(join.args["on"]):
        pair = key_pair(part, binder, ours, theirs)
        if pair is None:
            raise binder.text.unsupported(
                part,
                f"{part.sql()} in the condition of a join FOR SYSTEM_TIME AS OF",
                "It is equalities of both sides, the key of the versions. What else a row must be, a subquery or WHERE says.",
            )
        keys.append(pair)
    place, at, since = moment
    nearness = _Nearness(tuple(keys), _times(place, at, since.expr, binder.text), backward=True, strict=False)
    return _Joining(nearness, left, right, ids).joined(scope, other, keeps_all=bool(join.args.get("side")))


def _nearness(join: exp.Expr, binder: ScalarBinder, ours: set[str], theirs: set[str]) -> _Nearness:
    on, match = join.args.get("on"), join.args.get("match_condition")
    parts = [part for tree in (on, match) if tree is not None for part in conjuncts(tree)]
    keys, near = [], []
    for part in parts:
        pair = key_pair(part, binder, ours, theirs)
        if pair is not None:
            keys.append(pair)
        else:
            near.append(_inequality(part, binder, ours, theirs))
    if len(near) != 1:
        raise binder.text.unsupported(join, f"ASOF JOIN with {len(near)} inequalities", _INSTEAD)
    kind, times = near[0]
    return _Nearness(tuple(keys) or ((_ALL_MEET, _ALL_MEET),), times, kind in _BACKWARD, kind in _STRICT)


def _inequality(
    part: exp.Expr, binder: ScalarBinder, ours: set[str], theirs: set[str]
) -> tuple[type[exp.Expr], tuple[Expr, Expr]]:
    kind = type(part)
    if kind in _TURNED and not part.find(exp.Query):
        one, two = binder.bind(part.this), binder.bind(part.expression)
        if one.columns <= theirs and two.columns <= ours:
            one, two, kind = two, one, _TURNED[kind]
        if one.columns and two.columns and one.columns <= ours and two.columns <= theirs:
            return kind, _times(part, one, two, binder.text)
    raise binder.text.unsupported(part, f"{part.sql()} in the condition of an ASOF JOIN", _INSTEAD)


def _times(part: exp.Expr, one: Expr, two: Expr, text: Text) -> tuple[Expr, Expr]:
    try:
        first, second = comparables(one, two)
    except MismatchError as error:
        raise text.type_error(part, str(error)) from None
    if not (is_instant(first.type) or is_number(first.type)):
        raise text.type_error(part, f"an ASOF JOIN goes by a time or a number, not by {first.type}.")
    return first, second


class _Joining:
    """The rows of both sides, and the calls that look from one to the other."""

    def __init__(self, nearness: _Nearness, left: Node, right: Node, ids: Ids) -> None:
        self._nearness, self._left, self._right, self._ids = nearness, left, right, ids
        one, two = nearness.times
        self._keys = [self._part("key", one.type, one, two) for one, two in nearness.keys]
        self._time = self._part("time", one.type, one, two)
        self._ties = [self._tie(column) for column in map(right.column, right.key)]
        self._lefts = {column.id: self._part(column.name, column.type, column.expr, None) for column in left.columns}
        self._rights = {column.id: self._part(column.name, column.type, None, column.expr) for column in right.columns}
        self._nulls = {
            column.id: self._part("null", BOOLEAN, None, build(BOOLEAN, "({0} IS NULL)", column.expr)) for column in right.columns
        }

    def _part(self, name: str, kind: SqlType, left: Expr | None, right: Expr | None) -> _Part:
        return _Part(self._ids.column(name, kind), left, right)

    def _tie(self, column: Column) -> _Part:
        """Return what orders right rows of one time: the last one counts, so the smallest key is put last, if possible.

        A negative number would not do: the least integer has none.
        """
        value, kind = column.expr, column.type
        equal = [*(pair[1] for pair in self._nearness.keys), self._nearness.times[1]]
        if column.name == ROW_ID or any(each.is_column and each.column == column.id for each in equal):
            return self._part("number", kind, None, value)
        if is_integer(kind) and _is_never_null(self._right):
            return self._part("turned", kind, None, build(kind, "(~ {0})", value))
        return self._part(_UPRIGHT, kind, None, value)

    def joined(self, scope: Scope, other: Scope, keeps_all: bool) -> tuple[Node, Scope]:
        rows = self._both()
        wanted = list(dict.fromkeys(each.column.id for each in other.visible))
        values = {name: self._ids.column(self._rights[name].column.name, self._rights[name].column.type) for name in wanted}
        nulls = {name: self._ids.column("null", BOOLEAN) for name in wanted}
        calls = [(values[name], self._nearest(self._rights[name].column)) for name in wanted]
        calls += [(nulls[name], self._nearest(self._nulls[name].column)) for name in wanted]
        *_, branch, _ = rows.columns
        seen = plan.over(rows, [part.column.id for part in self._keys], self._order(branch), calls)
        kept = build(BOOLEAN, f"({{0}} = {self._branches().index(True)})", branch.expr)
        if not keeps_all:
            found = build(BOOLEAN, "({0} IS NOT NULL AND {1} IS NOT NULL)", nulls[wanted[0]].expr, self._time.column.expr)
            kept = combined("AND", kept, found)
        names = {name: self._left_column(name) for name in self._lefts}
        items = [(column, column.expr) for column in dict.fromkeys(names.values())]
        time = self._time.column.expr
        for name in wanted:
            value, null = values[name].expr, nulls[name].expr
            shown = build(value.type, "CASE WHEN {0} OR {1} IS NULL THEN NULL ELSE {2} END", null, time, value)
            names[name] = self._ids.column(values[name].name, value.type)
            items.append((names[name], shown))
        return plan.project(plan.keep(seen, kept), items), (scope + other).with_columns(names)

    def _left_column(self, name: str) -> Column:
        """Return what a column of the left side is now: the time by which rows are sorted still has its watermark."""
        time, part = self._nearness.times[0], self._lefts[name]
        if time.is_column and time.column == name and time.type == part.column.type:
            return self._time.column.renamed(part.column.name)
        return part.column

    def _both(self) -> Node:
        """Return the rows of both sides, of the right one those that a left row can find."""
        of_right = [pair[1] for pair in self._nearness.keys] + [self._nearness.times[1]]
        listed = " AND ".join(f"{{{place}}} IS NOT NULL" for place in range(len(of_right)))
        there = build(BOOLEAN, f"({listed})", *of_right)
        parts = [*self._keys, self._time, *self._ties]
        parts += [*self._nulls.values(), *self._rights.values(), *self._lefts.values()]
        branches = []
        for of_left in self._branches():
            items = [(self._ids.column(part.column.name, part.column.type), part.of(of_left)[0]) for part in parts]
            branches.append(plan.project(self._left if of_left else plan.keep(self._right, there), items))
        rows = plan.union_all(branches, [part.column for part in parts], self._ids)
        *_, branch, _ = rows.columns
        own = [part.column.id for part in self._ties] + [self._lefts[name].column.id for name in self._left.key]
        return replace(rows, key=(branch.id, *own))

    def _branches(self) -> tuple[bool, bool]:
        """Return which branch is the left side: of rows of one time the branch is sorted first that the other one may find."""
        return (True, False) if self._nearness.strict else (False, True)

    def _order(self, branch: Column) -> list[Order]:
        """Return how rows are sorted, before their key tells them apart."""
        order = [Order(self._time.column.id, descending=not self._nearness.backward, nulls_first=False)]
        if any(part.column.name == _UPRIGHT for part in self._ties):
            order.append(Order(branch.id, descending=False, nulls_first=False))
            order += [Order(each.column.id, descending=each.column.name == _UPRIGHT, nulls_first=True) for each in self._ties]
        return order

    def _nearest(self, column: Column) -> OverNodeCall:
        frame = Frame.rows(UNBOUNDED_PRECEDING)
        return OverNodeCall("last_value", (column.id,), column.type, frame, over="last_value", ignore_nulls=True)


def _is_never_null(right: Node) -> bool:
    """Whether the key of a right side is that of a table, which has no NULL; NULL, the largest key, has no turned one."""
    while isinstance(right, Filter | Project):
        right = right.input
    return isinstance(right, Scan) and right.keyed
