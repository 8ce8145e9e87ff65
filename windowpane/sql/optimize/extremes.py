"""A join of rows with the extreme of their own group as a Top-N: the rows are computed once, and no side of a join is kept.

``rows JOIN (SELECT g, max(x) AS most FROM rows GROUP BY g) ON rows.g = g AND rows.x = most`` are the rows that come first by
``x`` in their group, with ties. It is how the greatest of each group is asked for without a window function; Nexmark's q5 does.
Both sides must read the same rows by the same expressions, whatever their columns are called. NULL equals nothing: rows with
NULL in a group or in ``x`` are in no result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from windowpane.sql.bind import build_plan as plan
from windowpane.sql.bind.scope import Column
from windowpane.sql.expressions.expr import Expr, build
from windowpane.sql.expressions.operators import MIRRORED
from windowpane.sql.expressions.types import BOOLEAN, is_exact, is_instant
from windowpane.sql.expressions.written import has_spellings
from windowpane.sql.nodes import Aggregate, Filter, Fold, Join, Node, Order, Project, Scan, TimeWindows
from windowpane.sql.optimize.conditions import all_of

_COMPARED = {"max": ("=", ">="), "min": ("=", "<=")}
"""How a value is compared with the extreme of its group; it is never beyond it."""
_SAME = (Scan, Project, Filter, Aggregate, TimeWindows)
"""Nodes that give the same rows of the same rows; all that they are is in their fields."""
_PLACE = ("columns", "key", "append_only", "watermarks", "input")  # What of a node follows from its inputs and its other fields


def first_of_each_group(join: Join) -> Node | None:
    """Return an inner join as a Top-N with the same columns and key, ``None`` if it is anything else."""
    if join.kind != "inner" or join.null_safe or join.by_arrival:
        return None
    pairs = [(one, other, "=") for one, other in join.keys]
    if (residual := join.residual) is not None:
        if residual.operator not in MIRRORED or not all(part.is_column for part in residual.parts):
            return None
        one, other = (part.column for part in residual.parts)
        pairs.append((one, other, residual.operator) if one in join.left.ids else (other, one, MIRRORED[residual.operator]))
    mirrored = [(other, one, MIRRORED[operator]) for one, other, operator in pairs]
    return _first_rows(join, join.left, join.right, pairs) or _first_rows(join, join.right, join.left, mirrored)


def _first_rows(join: Join, rows: Node, extremes: Node, pairs: list[tuple[str, str, str]]) -> Node | None:
    """Return it where one side is the rows; ``pairs`` are columns of it and of the other side, and how they are compared."""
    core, of_core = _core(rows)
    groups, of_groups = _core(extremes)
    if not isinstance(groups, Aggregate) or len(groups.folds) != 1 or len(groups.calls) != 1 or not groups.groups:
        return None
    (fold,) = groups.folds
    if fold is None or fold.function not in _COMPARED or fold.condition is not None or fold.argument is None:
        return None
    grouped, below = _core(groups.input)
    same = _same(core, grouped)
    if same is None:
        return None
    extreme, made_of = groups.columns[-1], {name: same[below[name]] for name in (*groups.groups, fold.argument)}
    found = {of_groups[theirs]: (mine, operator) for mine, theirs, operator in pairs if theirs in of_groups}
    if len(found) < len(pairs) or found.keys() != {*groups.groups, extreme.id}:
        return None
    for name, (mine, operator) in found.items():
        of = fold.argument if name == extreme.id else name
        allowed = _COMPARED[fold.function] if name == extreme.id else ("=",)
        if operator not in allowed or of_core.get(mine) != made_of[of].id:
            return None
    value = rows.column(found[extreme.id][0])
    if value.type != extreme.type or not (is_exact(value.type) or is_instant(value.type)):
        return None
    partition = [found[name][0] for name in groups.groups]
    if any(has_spellings(rows.column(name).type) for name in (*partition, value.id)):
        return None  # a group shows one of them
    present = all_of([build(BOOLEAN, "({0} IS NOT NULL)", rows.column(name).expr) for name in (*partition, value.id)])
    order = Order(value.id, descending=fold.function == "max", nulls_first=False)
    top = plan.top(rows if present is None else plan.keep(rows, present), partition, [order], 1, with_ties=True)
    by_id = {column.id: column.expr for column in rows.columns}
    by_id |= {each.id: by_id[found[of_groups[each.id]][0]] for each in extremes.columns}
    items = tuple(by_id[column.id] for column in join.columns)
    marks = {
        each.id: top.watermarks[item.column]
        for each, item in zip(join.columns, items, strict=True)
        if item.column in top.watermarks
    }
    if not join.watermarks.keys() <= marks.keys():
        return None
    return Project(join.columns, join.key, top.append_only, marks, input=top, items=items)


def _core(node: Node) -> tuple[Node, dict[str, str]]:
    """Return the node below projections that only choose and rename columns, and its columns by the ids that they have above."""
    names = {name: name for name in node.ids}
    while isinstance(node, Project) and len(node.unchanged) == len(node.columns):
        names = {above: node.unchanged[name] for above, name in names.items()}
        node = node.input
    return node, names


def _same(one: Node, other: Node) -> dict[str, Column] | None:
    """Return the columns of a plan by the ids of those of another one that has the same rows; ``None`` if it may have others."""
    if type(one) is not type(other) or not isinstance(one, _SAME) or len(one.columns) != len(other.columns):
        return None
    names: dict[str, Column] = {}
    for source, other_source in zip(one.inputs, other.inputs, strict=True):
        below = _same(source, other_source)
        if below is None:
            return None
        names |= below
    for column, their in zip(one.columns, other.columns, strict=True):
        if column.type != their.type or names.setdefault(their.id, column).id != column.id:
            return None
    is_same = all(getattr(one, name) == _renamed(value, names) for name, value in _parts(other))
    return names if is_same else None


def _parts(node: Node) -> Iterator[tuple[str, Any]]:
    return ((each.name, getattr(node, each.name)) for each in fields(node) if each.name not in _PLACE)


def _renamed(value: Any, names: Mapping[str, Column]) -> Any:
    """Return a part of a node with other columns in it."""
    if isinstance(value, Expr):
        return value.over({name: column.expr for name, column in names.items()})
    if isinstance(value, str):
        return names[value].id if value in names else value
    if isinstance(value, tuple):
        return tuple(_renamed(each, names) for each in value)
    if isinstance(value, Fold | Order):
        return replace(value, **{each.name: _renamed(getattr(value, each.name), names) for each in fields(value)})
    return value
