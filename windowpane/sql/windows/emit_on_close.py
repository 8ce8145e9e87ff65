"""EMIT ON WINDOW CLOSE: turns a plan into one that emits each row once, when by its watermark it will not change any more.

An OVER window gets a sort on its order column below it, and emits by itself; its result then has no watermark. A row pattern was
closed where it was bound; what is above it, and only adds rows, emits as it does.
Any other plan gets a sort at its root: a row is emitted as soon as one of its columns is behind that column's watermark, which
is enough for it not to change any more (the steps of CUMULATE share their start and differ in their end). A join without such a
column in its result waits until its rows are final (``close_joins``). Source of the rules: RisingWave's
planner, which takes the first of such columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from windowpane.errors import InvalidSpecError
from windowpane.sql.bind.build_plan import Computed, close_sort
from windowpane.sql.bind.scope import Ids
from windowpane.sql.expressions.operators import interval_length
from windowpane.sql.expressions.types import INTERVAL
from windowpane.sql.nodes import Filter, Join, Match, Node, Over, Project, Unary, UnionAll, Unnest, Watermark, every_node
from windowpane.sql.parse.positions import Text
from windowpane.sql.streaming.over import over_spec
from windowpane.sql.windows.close_joins import closing_join
from windowpane.windowing.frames import Units
from windowpane.windowing.over.spec import OverCall, check_closes

_NEEDED = "Declare WATERMARK FOR on the time column of the table, and keep or group by that column or a window of it."


def emit_on_close(node: Node, text: Text, query: exp.Expr, places: Mapping[str, exp.Expr], ids: Ids) -> Node:
    """Return a plan that emits on window close."""
    if _has_over(node):
        return _with_closing_windows(node, text, query, places, ids)
    if node.append_only and any(isinstance(each, Match) for each in every_node(node)):
        return node
    by = [column.id for column in node.columns if column.id in node.watermarks]
    if by:
        return close_sort(node, by)
    joined = closing_join(node, ids)
    if joined is not None:
        return joined
    raise text.unsupported(query, "EMIT ON WINDOW CLOSE without a watermark column in the result", _NEEDED)


def _has_over(node: Node) -> bool:
    return (isinstance(node, Over) and not node.closes) or any(_has_over(source) for source in node.inputs)


def _with_closing_windows(node: Node, text: Text, query: exp.Expr, places: Mapping[str, exp.Expr], ids: Ids) -> Node:
    if isinstance(node, Over):
        source = _with_closing_windows(node.input, text, query, places, ids) if _has_over(node.input) else node.input
        return _closing(replace(node, input=source), text, places.get(node.columns[-1].id, query), ids)
    if isinstance(node, Project):
        closed = _with_closing_windows(node.input, text, query, places, ids)
        return replace(node, input=closed, append_only=closed.append_only, watermarks=_kept(node, closed))
    if isinstance(node, Filter | Unnest):
        closed = _with_closing_windows(node.input, text, query, places, ids)
        return replace(node, input=closed, append_only=closed.append_only, watermarks=closed.watermarks)
    if isinstance(node, Unary | UnionAll | Join) and _has_over(node):
        instead = (
            "Make the window or the lower join a materialized view of its own that emits on window close, and read that without "
            "EMIT ON WINDOW CLOSE: its rows have no watermark any more."
        )
        raise text.unsupported(query, f"EMIT ON WINDOW CLOSE with {_label(node)} above an OVER window or a join AS OF", instead)
    return node


def _label(node: Node) -> str:
    """Return what a query says where a plan has a node: a join AS OF puts the rows of both sides together."""
    return "another join AS OF, or UNION ALL," if isinstance(node, UnionAll) else node.label


def _kept(node: Project, closed: Node) -> dict[str, Watermark]:
    return {name: watermark for name, watermark in node.watermarks.items() if name in closed.watermarks}


def _closing(node: Over, text: Text, place: exp.Expr, ids: Ids) -> Over:
    node = _by_length(node, ids)
    source = node.input
    if not source.append_only:
        raise text.unsupported(place, "EMIT ON WINDOW CLOSE over rows that change", "The rows must be APPEND ONLY.")
    if not node.partition:
        raise text.unsupported(place, "EMIT ON WINDOW CLOSE without PARTITION BY", "Write PARTITION BY 1::int for one partition.")
    if any(call.over is None for call in node.calls):
        missing = next(call.function for call in node.calls if call.over is None)
        raise text.unsupported(
            place,
            f"{missing} with EMIT ON WINDOW CLOSE",
            "Without EMIT ON WINDOW CLOSE it is kept up to date: rows come at once, and change.",
        )
    try:
        check_closes(over_spec(node))
    except InvalidSpecError as error:
        raise text.unsupported(place, "this window with EMIT ON WINDOW CLOSE", str(error)) from None
    _check_sorted(node, text, place)
    column = node.order[0].column
    if column not in source.watermarks:
        name = source.column(column).name
        behind = " What an OVER window or a join AS OF has emitted on window close has no watermark any more."
        raise text.unsupported(place, f"EMIT ON WINDOW CLOSE ordered by {name!r}, which has no watermark", _NEEDED + behind)
    return replace(node, input=close_sort(source, [column]), append_only=True, watermarks={}, closes=True)


def with_times(node: Node) -> Node:
    """Return rows that OVER windows emit on close, with the watermark of their order where each row comes as it is released."""
    if isinstance(node, Over) and node.closes and all(looks_back(call) for call in over_spec(node).calls):
        column = node.order[0].column
        return replace(node, watermarks={column: node.input.watermarks[column]})
    if isinstance(node, Project):
        source = with_times(node.input)
        kept = {name: source.watermarks[of] for name, of in node.unchanged.items() if of in source.watermarks}
        return replace(node, input=source, watermarks={**kept, **node.watermarks})
    if isinstance(node, Filter | Unnest):
        source = with_times(node.input)
        return replace(node, input=source, watermarks=source.watermarks)
    return node


def looks_back(call: OverCall) -> bool:
    """Whether no row behind the current one changes the result of a call."""
    reach = call.reach
    return reach.units is Units.ROWS and reach.end.steps is not None and reach.end.steps <= 0


def _by_length(node: Over, ids: Ids) -> Over:
    """Return a window with intervals of PARTITION BY as a text of their length: the engine does not sort intervals."""
    computed, source = Computed(ids), node.input
    lengths = {
        each.id: computed.column(interval_length(each.expr)).id
        for each in map(source.column, node.partition)
        if each.type == INTERVAL
    }
    partition, key = (tuple(lengths.get(name, name) for name in names) for names in (node.partition, node.key))
    widened = computed.apply(source)
    calls = node.columns[len(source.columns) :]
    return replace(node, input=widened, columns=(*widened.columns, *calls), partition=partition, key=key)


def _check_sorted(node: Over, text: Text, place: exp.Expr) -> None:
    """Refuse keys that the engine does not sort."""
    for names, where in ((node.partition, "in PARTITION BY"), (node.input.key, "in the key of the rows of a window")):
        for column in map(node.input.column, names):
            if column.type == INTERVAL or column.type.element is not None:
                instead = "Take a text of it in its place, or leave out EMIT ON WINDOW CLOSE."
                raise text.unsupported(place, f"{column.name!r} of type {column.type} {where} with EMIT ON WINDOW CLOSE", instead)
