"""A join of rows with the extreme of their own group as a Top-N: the rows are computed once, and no side of a join is kept.

``rows JOIN (SELECT g, max(x) AS most FROM rows GROUP BY g) ON rows.g = g AND rows.x = most`` are the rows that come first by
``x`` in their group, with ties. It is how the greatest of each group is asked for without a window function; Nexmark's q5 does.
Both sides must read the same rows by the same expressions, whatever their columns are called. NULL equals nothing: rows with
NULL in a group or in ``x`` are in no result.
"""

from __future__ import annotations

from dataclasses import replace

from windowpane.sql.bind import build_plan as plan
from windowpane.sql.expressions.expr import build
from windowpane.sql.expressions.operators import MIRRORED, combined
from windowpane.sql.expressions.types import BOOLEAN, is_exact, is_instant
from windowpane.sql.expressions.written import has_spellings
from windowpane.sql.nodes import Aggregate, Filter, Join, Node, Order, Project, Scan, TimeWindows, every_node, form

_COMPARED = {"max": ("=", ">="), "min": ("=", "<=")}
"""How a value is compared with the extreme of its group; it is never beyond it."""
_SAME = (Scan, Project, Filter, Aggregate, TimeWindows)
"""Nodes that give the same rows of the same rows."""


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
    if form(core) != form(grouped) or not all(isinstance(each, _SAME) for each in every_node(core)):
        return None
    same = {their.id: column.id for column, their in zip(core.columns, grouped.columns, strict=True)}
    extreme, made_of = groups.columns[-1], {name: same[below[name]] for name in (*groups.groups, fold.argument)}
    found = {of_groups[theirs]: (mine, operator) for mine, theirs, operator in pairs if theirs in of_groups}
    if len(found) < len(pairs) or found.keys() != {*groups.groups, extreme.id}:
        return None
    for name, (mine, operator) in found.items():
        of = fold.argument if name == extreme.id else name
        allowed = _COMPARED[fold.function] if name == extreme.id else ("=",)
        if operator not in allowed or of_core.get(mine) != made_of[of]:
            return None
    value = rows.column(found[extreme.id][0])
    if value.type != extreme.type or not (is_exact(value.type) or is_instant(value.type)):
        return None
    partition = [found[name][0] for name in groups.groups]
    if any(has_spellings(rows.column(name).type) for name in (*partition, value.id)):
        return None  # a group shows one of them
    present = combined("AND", *(build(BOOLEAN, "({0} IS NOT NULL)", rows.column(name).expr) for name in (*partition, value.id)))
    order = Order(value.id, descending=fold.function == "max", nulls_first=False)
    top = plan.top(plan.keep(rows, present), partition, [order], 1, with_ties=True)
    shown = {column.id: column.expr for column in rows.columns}
    shown |= {each.id: shown[found[of_groups[each.id]][0]] for each in extremes.columns}
    projection = plan.project(top, [(column, shown[column.id]) for column in join.columns])
    return replace(projection, key=join.key) if join.watermarks.keys() <= projection.watermarks.keys() else None


def _core(node: Node) -> tuple[Node, dict[str, str]]:
    """Return the node below projections that only choose and rename columns, and its columns by the ids that they have above."""
    names = {name: name for name in node.ids}
    while isinstance(node, Project) and len(node.unchanged) == len(node.columns):
        names = {above: node.unchanged[name] for above, name in names.items()}
        node = node.input
    return node, names
