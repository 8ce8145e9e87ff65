"""Rows below the watermark of their table: ``late_rows`` says who judges them.

By ``'watermark'``, RisingWave's rule, the table drops them. By ``'open_windows'``, that of Flink and Arroyo, a table that is
APPEND ONLY and has no primary key keeps every row, and in the hidden column ``STAMP`` the watermark before the row's chunk. A
query takes the rows that were not below it, and where it makes windows, those whose window was open then. So what is late
depends on the chunks alone and never on a flush, and a view holds what its query returns, whenever it was made.

State is freed behind the watermark of a column, so no column has one that a row which is taken can be below. Below TUMBLE, HOP
and CUMULATE it is the start of the first window that is open; below SESSION it is a gap lower, since a row whose own session is
open may extend another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from windowpane.engines.batch import late_rows as why
from windowpane.sql.bind.bound_query import BoundQuery
from windowpane.sql.bind.build_plan import keep, project
from windowpane.sql.bind.scope import Column, Ids
from windowpane.sql.expressions.expr import Expr, build, function
from windowpane.sql.expressions.jsonb import json_text
from windowpane.sql.expressions.types import BIGINT, BOOLEAN, JSONB, VARCHAR, array_of
from windowpane.sql.nodes import Filter, Node, OnTime, Project, SessionWindows, TimeWindows, Watermark, every_node

LATE_ROWS = "late_rows"
"""The parameter; a table keeps the value it was made with."""
WATERMARK, OPEN_WINDOWS = "watermark", "open_windows"
STAMP = "_watermark"
"""The hidden column with the watermark before the chunk of a row."""
_OF_THE_TABLE = "{w}"


def on_time(node: Node, column: str, stamp: Column) -> OnTime:
    """Return the rows of a table that were not below its watermark."""
    condition = _not_below(node, {column: _OF_THE_TABLE}, stamp)
    return OnTime(node.columns, node.key, node.append_only, node.watermarks, input=node, condition=condition, stamp=stamp.id)


def with_late_rows(node: Node, time: str, lower: str) -> tuple[Node, Column] | None:
    """Return rows with the late ones among them, and their stamp; ``None`` if nothing but their table judges them.

    Args:
        node: the rows that windows are made of.
        time: the column they are made by.
        lower: what no row that is taken is below, as SQL over ``{w}``, the watermark.
    """
    mark = node.watermarks.get(time)
    is_own = mark is not None and [sql for _, sql in mark.parts] == [_OF_THE_TABLE]
    return _lifted(node, lower) if is_own else None


def _lifted(node: Node, lower: str) -> tuple[Node, Column] | None:
    if isinstance(node, OnTime):
        return replace(node.input, watermarks=_lowered(node, lower)), node.input.column(node.stamp)
    if not isinstance(node, Filter | Project):
        return None
    found = _lifted(node.input, lower)
    if found is None:
        return None
    source, stamp = found
    if isinstance(node, Filter):
        return keep(source, node.condition), stamp
    items, columns = (*node.items, stamp.expr), (*node.columns, stamp)
    return replace(node, input=source, columns=columns, items=items, watermarks=_lowered(node, lower)), stamp


def _lowered(node: Node, lower: str) -> dict[str, Watermark]:
    def changed(mark: Watermark) -> Watermark:
        return replace(mark, parts=tuple((name, sql.replace(_OF_THE_TABLE, f"({lower})")) for name, sql in mark.parts))

    return {column: changed(mark) for column, mark in node.watermarks.items()}


def in_open_windows(node: Node, limits: Mapping[str, str], stamp: Column) -> Node:
    """Return the rows that were not below limits, by column and as SQL over ``{w}``, when their chunk came."""
    return keep(node, _not_below(node, limits, stamp))


def _not_below(node: Node, limits: Mapping[str, str], stamp: Column) -> Expr:
    at = enumerate(limits.values(), start=1)
    not_below = " AND ".join(f"{{{place}}} >= {sql.replace(_OF_THE_TABLE, '{0}')}" for place, sql in at)
    return build(BOOLEAN, f"({{0}} IS NULL OR ({not_below}))", stamp.expr, *(node.column(name).expr for name in limits))


_EACH = "windowpane_n"


def late_rows_of(node: Node, ids: Ids) -> list[BoundQuery]:
    """Return the rows that each place of a plan is too late for, as it judges them: of windows those that missed one.

    A place is where windows are made of rows that a table keeps, or where rows are read that no window judges.
    """
    found = []
    for each in every_node(node):
        if isinstance(each, OnTime):
            missing = build(BOOLEAN, "(NOT {0})", each.condition)
            found.append(_late(keep(each.input, missing), Expr("'[]'", VARCHAR), Expr("TRUE", BOOLEAN), ids))
        elif isinstance(each, Filter) and any(column.name == STAMP for column in each.input.columns):
            judged = each.condition.columns & {column.id for column in each.input.columns if column.name == STAMP}
            if judged and isinstance(each.input, TimeWindows):
                found.append(_late_for_windows(each.input, each.condition, ids))
            elif judged:
                found += [
                    _late_for_sessions(each, above, ids) for above in every_node(node)
                    if isinstance(above, SessionWindows) and above.input is each
                ]  # fmt: skip
    return found


def _late_for_windows(windows: TimeWindows, in_time: Expr, ids: Ids) -> BoundQuery:
    start, end = (column.id for column in windows.columns[-2:])
    taken = in_time.over({start: windows.start, end: windows.end})
    shown = _window(windows.start, windows.end)

    def listed(holds: str) -> Expr:
        case = build(VARCHAR, f"CASE WHEN {{0}} AND {holds} THEN {{2}} END", windows.condition, taken, shown)
        return build(
            array_of(VARCHAR),
            f"list_sort(list_filter(list_transform(range({windows.count}), {{0}}), lambda one: one IS NOT NULL))",
            function(case, _EACH),
        )

    missed = listed("NOT {1}")
    rows = keep(windows.input, build(BOOLEAN, "len({0}) > 0", missed))
    return _late(rows, build(VARCHAR, "('[' || array_to_string({0}, ',') || ']')", missed),
                 build(BOOLEAN, "len({0}) = 0", listed("{1}")), ids)  # fmt: skip


def _late_for_sessions(judge: Filter, windows: SessionWindows, ids: Ids) -> BoundQuery:
    time = windows.column(windows.time).expr
    missed = build(VARCHAR, "('[' || {0} || ']')", _window(time, build(time.type, "({0} + {1})", time, windows.gap)))
    return _late(keep(judge.input, build(BOOLEAN, "(NOT {0})", judge.condition)), missed, Expr("TRUE", BOOLEAN), ids)


def _window(start: Expr, end: Expr) -> Expr:
    return build(VARCHAR, """('{{"start":' || {0} || ',"end":' || {1} || '}}')""", json_text(start), json_text(end))


def _late(rows: Node, missed: Expr, dropped: Expr, ids: Ids) -> BoundQuery:
    own = [column for column in rows.columns if column.name != STAMP and column.id not in rows.key]
    added = [
        (ids.column(why.WINDOWS_MISSED, JSONB), build(JSONB, "CAST({0} AS JSON)", missed)),
        (ids.column(why.DROPPED, BOOLEAN), dropped),
    ]
    mark = next(column for column in rows.columns if column.name == STAMP)
    added.append((ids.column(why.WATERMARK, mark.type), mark.expr))
    times = [column for column in rows.columns if column.id in rows.watermarks and column.type == mark.type]
    for time in times[:1]:
        late_by = build(BIGINT, "(epoch_us({0}) - epoch_us({1}))", mark.expr, time.expr)
        added.append((ids.column(why.LATE_BY, BIGINT), late_by))
    node = project(replace(rows, watermarks={}), [*((column, column.expr) for column in own), *added])
    return BoundQuery(node, (*own, *(column for column, _ in added)))
