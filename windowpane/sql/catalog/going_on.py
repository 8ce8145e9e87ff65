"""How a view goes on under another query: its rows, and the state of its groups, become those of the new one.

The measure is the view made fresh: its rows have to be there as if the new query had run from the beginning, so no result may be
NULL for a while, or complete from some time on. Two things are the same before and behind: rows that are stored, and groups that
are folded, of which none was freed::

    rows     columns that are those of stored rows or computed of them; rows that a further condition leaves out
    groups   calls that are left out or in another order, and count(*), which each group knows; all rows, where no watermark frees
             groups: so also those that a condition has left out so far

The rows of joins, Top-N, OVER and windows that are emitted once are taken as they are stored; what their operators keep stays
theirs, where these are planned as before. What fails on a row that is there, and all else, is made anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from windowpane.sql.catalog.entries import ViewInfo
from windowpane.sql.catalog.relations import held_types
from windowpane.sql.catalog.views import ViewPlan
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import Expr, quoted
from windowpane.sql.failures.trying import tried_expr
from windowpane.sql.nodes import Aggregate, Filter, Fold, Node, Project, Scan, TimeWindows, every_node, structure
from windowpane.sql.streaming.folding import FOLDED, ROWS, folds, rows_of_groups
from windowpane.sql.streaming.freeing import closing_columns
from windowpane.sql.streaming.job import Job
from windowpane.sql.streaming.operators import state_name


@dataclass(frozen=True)
class Parts:
    """A plan taken apart: the values of its columns, and the conditions above its operators, over what these emit."""

    values: Mapping[str, Expr]
    conditions: tuple[Expr, ...]
    operators: Node

    @classmethod
    def of(cls, node: Node) -> Parts:
        values, conditions = {column.id: column.expr for column in node.columns}, list[Expr]()
        while type(node) in (Project, Filter):
            if isinstance(node, Project):
                items = _items(node)
                values = {name: value.over(items) for name, value in values.items()}
                conditions = [condition.over(items) for condition in conditions]
            elif isinstance(node, Filter):
                conditions.append(node.condition)
            (node,) = node.inputs
        return cls(values, tuple(conditions), node)


@dataclass(frozen=True)
class MovedGroups:
    """Folded groups whose state becomes that of others of the same rows, with fewer calls or in another order.

    Args:
        was: the groups.
        now: the new ones.
        calls: for each new call the number of the old one, ``None`` for the number of rows.
    """

    was: Aggregate
    now: Aggregate
    calls: tuple[int | None, ...]

    @classmethod
    def of(cls, was: Node, now: Node) -> MovedGroups | None:
        """Return how the state of one node becomes that of another, ``None`` if it cannot."""
        if not (isinstance(was, Aggregate) and isinstance(now, Aggregate) and _is_folded(was) and _is_folded(now)):
            return None
        before, after = _Rows.of(was), _Rows.of(now)
        groups = [
            [(rows.value(group), of.column(group).type, of.input.watermarks.get(group)) for group in of.groups]
            for of, rows in ((was, before), (now, after))
        ]
        if not before.are_those_of(after) or groups[0] != groups[1]:
            return None
        known = [before.call(fold) for fold in was.folds]
        found = list[int | None]()
        for fold in now.folds:
            call = after.call(fold)
            if call not in known and fold != Fold.of_count():
                return None
            found.append(known.index(call) if call in known else None)
        return cls(was, now, tuple(found))

    @property
    def is_as_before(self) -> bool:
        """Whether nothing moves."""
        return is_same(self.was, self.now)

    @property
    def columns(self) -> dict[str, Expr]:
        """The columns of the new groups over those of the old ones; one that these do not have is of no name there."""
        width = len(self.was.groups)
        groups, numbers = zip(self.now.columns, self.was.columns[:width], strict=False), enumerate(self.calls)
        found = {one.id: other.expr for one, other in groups}
        calls = [None if number is None else self.was.columns[width + number].id for _, number in numbers]
        pairs = zip(self.now.columns[width:], calls, strict=True)
        return found | {each.id: Expr.of_column(of or f"new {each.id}", each.type) for each, of in pairs}

    def state_sql(self, job: Job) -> str:
        """Return the state of the old groups as that of the new ones, as SQL."""
        pairs = zip(self.was.groups, self.now.groups, strict=True)
        items = [*(f"{quoted(one)} AS {quoted(other)}" for one, other in pairs), ROWS]
        for number, of in enumerate(self.calls):
            items += [f"0::BIGINT AS a{number}, {ROWS} AS n{number}"] if of is None else []
            items += [] if of is None else [f"a{of} AS a{number}, n{of} AS n{number}"]
        return f"SELECT {', '.join(items)} FROM {state_name(job.owner(self.was), FOLDED)}"


@dataclass(frozen=True)
class GoingOn:
    """How a view goes on.

    Args:
        source: the rows, as a relation.
        values: of each stored column of the new view what it is of these.
        conditions: which of them stay.
        keeps_rows: whether those that read it see no other rows.
        is_of_groups: whether they are made of the groups in state.
        moved: the groups whose state becomes that of others; ``None`` where it stays.
    """

    source: str
    values: Mapping[str, Expr]
    conditions: tuple[Expr, ...] = ()
    keeps_rows: bool = False
    is_of_groups: bool = False
    moved: MovedGroups | None = None

    @classmethod
    def of(cls, old: ViewInfo, new: ViewPlan, storage: Storage) -> GoingOn | None:
        """Return how a view goes on as another one, ``None`` if it cannot."""
        was, now = Parts.of(old.node), Parts.of(new.node)
        groups = None if old.job is None else MovedGroups.of(was.operators, now.operators)
        if groups is None and not is_same(was.operators, now.operators):
            return None
        moved = None if groups is None or groups.is_as_before else groups
        found = _of_rows(old, was, now, new, {} if moved is None else moved.columns)
        if found is None and groups is not None and old.job is not None and not closing_columns(groups.was):
            rows = f"(SELECT {rows_of_groups(groups.now)} FROM ({groups.state_sql(old.job)}))"
            values = {name: now.values[identity] for name, identity in new.ids.items()}
            found = cls(rows, values, now.conditions, is_of_groups=True)
        return None if found is None or found._fails(storage) else replace(found, moved=moved)

    @property
    def rows_sql(self) -> str:
        """The rows of the new view."""
        items = ", ".join(f"{value.sql} AS {quoted(name)}" for name, value in self.values.items())
        only = " AND ".join(f"({condition.sql})" for condition in self.conditions)
        return f"SELECT {items} FROM {self.source}{f' WHERE {only}' if only else ''}"

    def effect(self, part: str) -> str:
        """Return what happens to rows and state where a part differs, for users."""
        if part.startswith("call "):
            return "the state of its groups goes on"
        if self.is_of_groups:
            return "its rows are made of its groups, which are all in state"
        return "its rows are stored, and are rewritten" if part == "columns" else "rows that it leaves out are removed"

    def _fails(self, storage: Storage) -> bool:
        """Whether an expression fails on a row: a view made fresh counts that, or fails."""
        attempts = [each for expr in (*self.values.values(), *self.conditions) for each in tried_expr(expr).attempts]
        if not attempts:
            return False
        failing = " OR ".join(f"coalesce({each.fails.sql}, false)" for each in attempts)
        return bool(storage.value(f"SELECT count(*) FROM {self.source} WHERE {failing}"))


def _of_rows(old: ViewInfo, was: Parts, now: Parts, new: ViewPlan, renamed: Mapping[str, Expr]) -> GoingOn | None:
    """Return how the stored rows are those of the new view, ``None`` if they are not."""
    known = {was.values[identity]: name for name, identity in old.ids.items()}
    conditions = [condition.over(renamed) for condition in now.conditions]
    if not set(was.conditions) <= set(conditions):
        return None
    further = [_over_stored(condition, known) for condition in conditions if condition not in was.conditions]
    values = {name: _over_stored(now.values[identity].over(renamed), known) for name, identity in new.ids.items()}
    stored, kept = {name: value for name, value in values.items() if value is not None}, [each for each in further if each]
    if len(stored) < len(values) or len(kept) < len(further):
        return None
    types, others = held_types(old.relation), held_types(new.relation)
    is_alike = all(value.column == name or types.get(name) != others[name] for name, value in stored.items())
    return GoingOn(old.relation.storage, stored, tuple(kept), keeps_rows=is_alike and not kept)


def _over_stored(value: Expr, known: Mapping[Expr, str]) -> Expr | None:
    """Return a value over stored columns, ``None`` if they do not have what it is made of."""
    if value in known:
        return Expr.of_column(known[value], value.type)
    if value.column or value.reads_clock:
        return None
    parts = [_over_stored(part, known) for part in value.parts]
    found = [part for part in parts if part is not None]
    return replace(value, parts=tuple(found), rises_with=None, at_scale=None) if len(found) == len(parts) else None


def is_same(one: Node, other: Node) -> bool:
    """Whether two plans are the same, and so is what their operators keep."""
    if one != other or structure(one) != structure(other):
        return False
    return all(mine.watermarks == others.watermarks for mine, others in zip(every_node(one), every_node(other), strict=True))


def _is_folded(node: Aggregate) -> bool:
    return bool(node.groups) and folds(node) and not any(fold.counts_values for fold in node.folds if fold is not None)


@dataclass(frozen=True)
class _Rows:
    """The rows that groups are of: what they are read from, the steps that handle each alone, and the values of their columns."""

    base: Node
    steps: tuple[Any, ...]
    items: Mapping[str, Expr]

    @classmethod
    def of(cls, groups: Aggregate) -> _Rows:
        chain, node = list[Node](), groups.input
        while type(node) in (Project, Filter, TimeWindows):
            chain.append(node)
            (node,) = node.inputs
        items, steps = dict[str, Expr](), list[Any]()
        for each in reversed(chain):
            if isinstance(each, Project):
                items = {name: value.over(items) for name, value in _items(each).items()}
            elif isinstance(each, Filter):
                steps.append(each.condition.over(items))
            elif isinstance(each, TimeWindows):
                made = [each.start.over(items), each.end.over(items), each.condition.over(items)]
                steps.append((each.kind, each.count, [column.id for column in each.columns[-2:]], made))
        return cls(node, tuple(steps), items)

    def are_those_of(self, other: _Rows) -> bool:
        """Whether the groups are of the same rows; columns that they do not read may differ."""
        if self.steps != other.steps:
            return False
        if not (isinstance(self.base, Scan) and isinstance(other.base, Scan)):
            return is_same(self.base, other.base)
        one, two = (
            {column.id: name for column, name in zip(of.columns, of.stored, strict=True)} for of in (self.base, other.base)
        )
        same_names = all(two.get(identity, name) == name for identity, name in one.items())
        return same_names and (self.base.relation, self.base.append_only) == (other.base.relation, other.base.append_only)

    def value(self, name: str | None) -> Expr | str | None:
        """Return what a column is of the rows: the id of one of theirs, or an expression."""
        value = None if name is None else self.items.get(name)
        return name if value is None else value.column or value

    def call(self, fold: Fold | None) -> Any:
        """Return what a folded call computes."""
        if fold is None:
            return None
        return replace(fold, argument=None, condition=None), self.value(fold.argument), self.value(fold.condition)


def _items(node: Project) -> dict[str, Expr]:
    return {column.id: item for column, item in zip(node.columns, node.items, strict=True)}
