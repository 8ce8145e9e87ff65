"""Calls over windows inside a plan, and how DuckDB computes them on a whole relation.

Functions that look at single rows (``row_number``, ``lag``, ROWS frames) break ties of the ORDER BY by the row's key, as the
OVER engines do; peers (``rank``, RANGE, GROUPS) are rows with equal ORDER BY columns. Lists and texts of frames of peers, and
their first and last values, are of rows in the order of the key, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from windowpane.errors import MistakeError, present
from windowpane.sql.bind.scope import Column
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.expressions.types import SqlType
from windowpane.sql.values.intervals import interval_sql
from windowpane.windowing.aggregates.definition import definition_in_duckdb
from windowpane.windowing.calls import NUMBERING, OFFSET_FUNCTIONS
from windowpane.windowing.frames import Bound, Exclude, Frame, Side, Units
from windowpane.windowing.intervals import Interval

_BY_POSITION = frozenset({"row_number", "ntile"}) | OFFSET_FUNCTIONS
_FIRST_OF = {"first_value": "first", "last_value": "last", "nth_value": "array_agg"}
"""The aggregate, of rows in order, that a value function is of."""

_WITHOUT_FRAME = NUMBERING | OFFSET_FUNCTIONS


@dataclass(frozen=True)
class OverNodeCall:
    """One call over a window.

    Args:
        over: the function's name in the OVER engines, ``None`` if they have none.
        constants: further arguments as SQL (the offset of ``lag``, the separator of ``string_agg``).
        offset: of ``lag``, ``lead``, ``nth_value``, ``ntile``.
        filter: id of a boolean column.
    """

    function: str
    arguments: tuple[str, ...]
    type: SqlType
    frame: Frame | None = None
    over: str | None = None
    constants: tuple[str, ...] = ()
    parameters: tuple[tuple[str, float | str], ...] = ()
    offset: int = 1
    ignore_nulls: bool = False
    distinct: bool = False
    filter: str | None = None

    @property
    def is_by_place(self) -> bool:
        """Whether the result is made of rows by their places in the frame."""
        definition = definition_in_duckdb(_FIRST_OF.get(self.function, self.function))
        return definition is not None and definition.is_by_place

    @property
    def text(self) -> str:
        """As ``EXPLAIN`` shows it."""
        return f"{self.call_sql} {self.frame}" if self.frame is not None else self.call_sql

    @property
    def parts(self) -> list[Any]:
        frame = None if self.frame is None else str(self.frame)
        return [self.function, list(self.arguments), frame, self.offset, self.ignore_nulls, self.distinct, self.filter]

    @property
    def call_sql(self) -> str:
        """The call, without its window."""
        return self.sql_in_order("")

    def sql_in_order(self, order: str) -> str:
        """Return the call, without its window, of rows in an order of its own (ORDER BY ...), ``""`` for that of the window."""
        arguments = [quoted(argument) for argument in self.arguments] + list(self.constants)
        name = "count" if self.function == "count" and not arguments else self.function
        inside = ", ".join(arguments) if arguments or self.function != "count" else "*"
        nulls = " IGNORE NULLS" if self.ignore_nulls else ""
        condition = f" FILTER (WHERE {quoted(self.filter)})" if self.filter else ""
        return f"{name}({'DISTINCT ' if self.distinct else ''}{inside}{order}{nulls}){condition}"


OrderItem = tuple[str, str, bool]
"""Column id, its ORDER BY item as SQL, whether it is descending."""

_SESSION = "windowpane session"
_NUMBERED = quoted("windowpane numbered")
_SEEN_FROM = quoted("windowpane current")


def over_sql(
    relation: str,
    columns: Sequence[Column],
    partition: Sequence[str],
    order: Sequence[OrderItem],
    calls: Sequence[OverNodeCall],
    key: Sequence[str],
) -> str:
    """Return the query of a relation with its calls; ``columns`` end with one for each call."""
    results = columns[len(columns) - len(calls) :]
    plain = [column.id for column in columns[: len(columns) - len(calls)]]
    source, sessions = _with_sessions(relation, partition, order, calls)
    items, numbers = [quoted(name) for name in plain], []
    for number, (call, column) in enumerate(zip(calls, results, strict=True)):
        window = _Window((*partition, *sessions.get(call.frame, ())), order, key)
        if _leaves_out_peers(call):
            numbers += window.numbers(number)
            computed = _without_peers(call, window, number)
        else:
            computed = f"{call.sql_in_order(window.order_among_peers(call))} OVER ({window.sql(call)})"
        items.append(f"CAST({computed} AS {call.type.duckdb}) AS {quoted(column.id)}")
    if not numbers:
        return f"SELECT {', '.join(items)} FROM {source}"
    numbered = f"WITH {_NUMBERED} AS MATERIALIZED (SELECT *, {', '.join(numbers)} FROM {source})"
    return f"{numbered} SELECT {', '.join(items)} FROM {_NUMBERED} AS {_SEEN_FROM}"


def _leaves_out_peers(call: OverNodeCall) -> bool:
    """Whether a call has a frame of rows in order of their key that leaves out peers, who are rows with equal ORDER BY columns.

    DuckDB has one ORDER BY for both, in which the key makes peers of none.
    """
    frame = call.frame
    if frame is None or call.function in _WITHOUT_FRAME or frame.units not in (Units.ROWS, Units.SESSION):
        return False
    return frame.exclude in (Exclude.GROUP, Exclude.TIES)


def _without_peers(call: OverNodeCall, window: _Window, number: int) -> str:
    """Return such a call as a subquery over the rows of the same partition, numbered in both orders."""
    frame = present(call.frame, "only calls with a frame leave out peers")
    row, peers = (quoted(name) for name in _number_names(number))
    conditions = [f"{quoted(name)} IS NOT DISTINCT FROM {_SEEN_FROM}.{quoted(name)}" for name in window.partition]
    if frame.units is Units.ROWS:
        conditions += [
            f"{row} {sign} {_SEEN_FROM}.{row}{_steps(bound)}"
            for sign, bound in ((">=", frame.start), ("<=", frame.end))
            if bound.side not in (Side.UNBOUNDED_PRECEDING, Side.UNBOUNDED_FOLLOWING)
        ]
    itself = f" OR {row} = {_SEEN_FROM}.{row}" if frame.exclude is Exclude.TIES else ""
    conditions.append(f"({peers} <> {_SEEN_FROM}.{peers}{itself})")
    return f"(SELECT {_aggregate(call, row)} FROM {_NUMBERED} WHERE {' AND '.join(conditions)})"


def _aggregate(call: OverNodeCall, row: str) -> str:
    if not call.is_by_place or call.distinct:
        return call.call_sql
    name = _FIRST_OF.get(call.function, call.function)
    arguments = [quoted(argument) for argument in call.arguments]
    condition = quoted(call.filter) if call.filter else f"{arguments[0]} IS NOT NULL" if call.ignore_nulls else "TRUE"
    constants = () if call.function == "nth_value" else call.constants
    aggregate = f"{name}({', '.join([*arguments, *constants])} ORDER BY {row}) FILTER (WHERE {condition})"
    return f"({aggregate})[{call.offset}]" if call.function == "nth_value" else aggregate


def _steps(bound: Bound) -> str:
    return "" if bound.side is Side.CURRENT_ROW else f" {'-' if bound.side is Side.PRECEDING else '+'} {bound.offset}"


def _number_names(number: int) -> tuple[str, str]:
    return f"windowpane row {number}", f"windowpane peers {number}"


def _with_sessions(
    relation: str, partition: Sequence[str], order: Sequence[OrderItem], calls: Sequence[OverNodeCall]
) -> tuple[str, dict[Frame | None, tuple[str, ...]]]:
    """Return the relation with a column that numbers the sessions of each gap, and the names of those columns."""
    frames = dict.fromkeys(call.frame for call in calls if call.frame is not None and call.frame.units is Units.SESSION)
    names: dict[Frame | None, tuple[str, ...]] = {}
    for number, frame in enumerate(frames):
        if frame is None:
            raise MistakeError("only calls with a frame are taken")
        ((column, item, descending),) = order
        name, time, ahead = f"{_SESSION} {number}", quoted(column), "- {} <" if descending else "+ {} >"
        by = f"PARTITION BY {', '.join(map(quoted, partition))} " if partition else ""
        window = f"({by}ORDER BY {item})"
        begins = f"CASE WHEN lag({time}) OVER {window} {ahead.format(_offset(frame.gap))} {time} THEN 0 ELSE 1 END"
        flagged = f'SELECT *, {begins} AS "begins" FROM {relation}'
        running = f'sum("begins") OVER ({by}ORDER BY {item} RANGE UNBOUNDED PRECEDING)'
        relation = f'(SELECT * EXCLUDE ("begins"), {running} AS {quoted(name)} FROM ({flagged}))'
        names[frame] = (name,)
    return relation, names


@dataclass(frozen=True)
class _Window:
    """PARTITION BY and ORDER BY of a call, and the key that breaks ties."""

    partition: tuple[str, ...]
    order: Sequence[OrderItem]
    key: Sequence[str]

    def sql(self, call: OverNodeCall) -> str:
        frame = call.frame
        by_position = call.function in _BY_POSITION or (frame is not None and frame.units in (Units.ROWS, Units.SESSION))
        parts = self._parts(by_position=by_position)
        if frame is not None and call.function not in _WITHOUT_FRAME:
            parts.append(frame_sql(frame))
        return " ".join(parts)

    def order_among_peers(self, call: OverNodeCall) -> str:
        """Return the ORDER BY of a call whose result depends on the order of rows, where the frame says nothing of peers."""
        frame = call.frame
        if frame is None or frame.units not in (Units.RANGE, Units.GROUPS) or call.distinct or not self.key:
            return ""
        return f" ORDER BY {', '.join(self._items(by_position=True))}" if call.is_by_place else ""

    def numbers(self, number: int) -> list[str]:
        """Return the columns that number the rows of a partition in order of their key, and their peers."""
        row, peers = (quoted(name) for name in _number_names(number))
        numbered = f"row_number() OVER ({' '.join(self._parts(by_position=True))}) AS {row}"
        return [numbered, f"rank() OVER ({' '.join(self._parts(by_position=False))}) AS {peers}"]

    def _parts(self, *, by_position: bool) -> list[str]:
        parts = [f"PARTITION BY {', '.join(map(quoted, self.partition))}"] if self.partition else []
        items = self._items(by_position=by_position)
        if items:
            parts.append(f"ORDER BY {', '.join(items)}")
        return parts

    def _items(self, *, by_position: bool) -> list[str]:
        items = [item for _, item, _ in self.order]
        if by_position:
            ordered = [column for column, _, _ in self.order]
            items += [f"{quoted(name)} ASC NULLS LAST" for name in self.key if name not in ordered]
        return items


def frame_sql(frame: Frame) -> str:
    """Return a frame as DuckDB has it; a session is the whole of its partition."""
    units = "ROWS" if frame.units is Units.SESSION else frame.units.value
    exclude = "" if frame.exclude is Exclude.NO_OTHERS else f" EXCLUDE {frame.exclude.value}"
    return f"{units} BETWEEN {_bound_sql(frame.start)} AND {_bound_sql(frame.end)}{exclude}"


def _bound_sql(bound: Bound) -> str:
    side = bound.side.name.replace("_", " ")
    return f"{_offset(bound.offset)} {side}" if bound.side in (Side.PRECEDING, Side.FOLLOWING) else side


def _offset(offset: object) -> str:
    return interval_sql(offset) if isinstance(offset, Interval) else str(offset)
