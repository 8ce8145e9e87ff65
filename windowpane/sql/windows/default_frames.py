"""The frame of OVER windows with an ORDER BY that name none: RisingWave's, or by ``SET default_frame = 'range'`` PostgreSQL's.

The two differ where rows tie in the ORDER BY: ROWS gives each its own running value, RANGE the value of all that tie.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from windowpane.sql.expressions.expr import quoted
from windowpane.sql.nodes import Match, Node, Over, compile_plan, every_node
from windowpane.windowing.frames import RUNNING_RANGE, RUNNING_ROWS, WHOLE_PARTITION, Frame

DEFAULT_FRAME = "default_frame"
"""The parameter; a view keeps the value it was made with."""
ROWS, RANGE = "rows", "range"
TIES = (
    "OVER with an ORDER BY and without a frame counts rows here, ROWS UNBOUNDED PRECEDING, as in RisingWave; rows that tie have "
    "values of their own. In PostgreSQL and Flink it is RANGE, and rows that tie have the same value. Write the frame, or "
    "SET default_frame = 'range'."
)
_EXPLAINED = {
    ROWS: f"Frame where none is named: {RUNNING_ROWS}, RisingWave's; PostgreSQL's is SET default_frame = 'range'",
    RANGE: f"Frame where none is named: {RUNNING_RANGE}, PostgreSQL's, by SET default_frame = 'range'",
}


def default_frame(units: str, *, ordered: bool) -> Frame:
    """Return the frame of a window that names none."""
    if not ordered:
        return WHOLE_PARTITION
    return RUNNING_RANGE if units == RANGE else RUNNING_ROWS


def explained(by_default: Mapping[str, str]) -> list[str]:
    """Return what ``EXPLAIN`` says of calls whose window names no frame: their columns, each with the parameter it has."""
    return [_EXPLAINED[units] for units in sorted(set(by_default.values()))]


def windows_with_ties(node: Node, by_default: Mapping[str, str]) -> Iterator[Over]:
    """Yield the windows of a plan that count rows by default and in which rows may tie: no key is part of what they sort by."""
    for each in every_node(node):
        if any(isinstance(below, Match) for below in every_node(each)):
            continue  # no query says what is in it now
        if isinstance(each, Over) and any(by_default.get(column.id) == ROWS for column in each.columns):
            sorted_by = {*each.partition, *(item.column for item in each.order)}
            if not set(each.input.key) <= sorted_by:
                yield each


def ties_sql(window: Over) -> str:
    """Return the relation of the values that several rows of a window have now."""
    by = ", ".join(quoted(column) for column in (*window.partition, *(item.column for item in window.order)))
    return f"(SELECT {by} FROM ({compile_plan(window.input)}) GROUP BY {by} HAVING count(*) > 1)"
