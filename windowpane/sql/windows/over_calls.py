"""Calls over windows inside a plan, and how DuckDB computes them on a whole relation.

Functions that look at single rows (``row_number``, ``lag``, ROWS frames) break ties of the ORDER BY by the row's key, as the
OVER engines do; peers (``rank``, RANGE, GROUPS) are rows with equal ORDER BY columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windowpane.sql.bind.scope import Column
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.expressions.types import SqlType
from windowpane.sql.values.intervals import interval_sql
from windowpane.windowing.intervals import Interval
from windowpane.windowing.over.frames import Bound, Exclude, Frame, Side, Units

_BY_POSITION = frozenset({"row_number", "lag", "lead", "ntile"})
_WITHOUT_FRAME = frozenset({"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"})


@dataclass(frozen=True)
class OverNodeCall:
    """One call over a window.

    Args:
        function: DuckDB's name.
        arguments: ids of columns.
        type: type of the result.
        frame: the frame; ``None`` for functions without.
        over: the function's name in the OVER engines, ``None`` if they have none.
        constants: further arguments as SQL (the offset of ``lag``, the separator of ``string_agg``).
        offset: of ``lag``, ``lead``, ``nth_value``, ``ntile``.
        default: SQL of the default of ``lag`` and ``lead``.
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
    default: str | None = None
    ignore_nulls: bool = False
    distinct: bool = False
    filter: str | None = None

    @property
    def text(self) -> str:
        """As ``EXPLAIN`` shows it."""
        return f"{self.call_sql} {self.frame}" if self.frame is not None else self.call_sql

    @property
    def call_sql(self) -> str:
        """The call, without its window."""
        arguments = [quoted(argument) for argument in self.arguments] + list(self.constants)
        if self.default is not None:
            arguments.append(self.default)
        name = "count" if self.function == "count" and not arguments else self.function
        inside = ", ".join(arguments) if arguments or self.function != "count" else "*"
        nulls = " IGNORE NULLS" if self.ignore_nulls else ""
        condition = f" FILTER (WHERE {quoted(self.filter)})" if self.filter else ""
        return f"{name}({'DISTINCT ' if self.distinct else ''}{inside}{nulls}){condition}"


OrderItem = tuple[str, str, bool]
"""Column id, its ORDER BY item as SQL, whether it is descending."""

_SESSION = "windowpane session"


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
    items = [quoted(name) for name in plain]
    for call, column in zip(calls, results, strict=True):
        window = _window_sql(call, [*partition, *sessions.get(call.frame, ())], order, key)
        items.append(f"CAST({call.call_sql} OVER ({window}) AS {call.type.duckdb}) AS {quoted(column.id)}")
    return f"SELECT {', '.join(items)} FROM {source}"


def _with_sessions(
    relation: str, partition: Sequence[str], order: Sequence[OrderItem], calls: Sequence[OverNodeCall]
) -> tuple[str, dict[Frame | None, tuple[str, ...]]]:
    """Return the relation with a column that numbers the sessions of each gap, and the names of those columns."""
    frames = dict.fromkeys(call.frame for call in calls if call.frame is not None and call.frame.units is Units.SESSION)
    names: dict[Frame | None, tuple[str, ...]] = {}
    for number, frame in enumerate(frames):
        assert frame is not None
        name, time = f"{_SESSION} {number}", quoted(order[0][0])
        by = f"PARTITION BY {', '.join(map(quoted, partition))} " if partition else ""
        window = f"({by}ORDER BY {order[0][1]})"
        begins = f"CASE WHEN lag({time}) OVER {window} + {_offset(frame.gap)} > {time} THEN 0 ELSE 1 END"
        flagged = f'SELECT *, {begins} AS "begins" FROM {relation}'
        running = f'sum("begins") OVER ({by}ORDER BY {order[0][1]} RANGE UNBOUNDED PRECEDING)'
        relation = f'(SELECT * EXCLUDE ("begins"), {running} AS {quoted(name)} FROM ({flagged}))'
        names[frame] = (name,)
    return relation, names


def _window_sql(call: OverNodeCall, partition: Sequence[str], order: Sequence[OrderItem], key: Sequence[str]) -> str:
    parts = [f"PARTITION BY {', '.join(map(quoted, partition))}"] if partition else []
    items = [item for _, item, _ in order]
    frame = call.frame
    if call.function in _BY_POSITION or (frame is not None and frame.units in (Units.ROWS, Units.SESSION)):
        items += [f"{quoted(name)} ASC NULLS LAST" for name in key if name not in [column for column, _, _ in order]]
    if items:
        parts.append(f"ORDER BY {', '.join(items)}")
    if frame is not None and call.function not in _WITHOUT_FRAME:
        parts.append(frame_sql(frame))
    return " ".join(parts)


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
