"""Window table functions: TUMBLE, HOP, CUMULATE and SESSION, in RisingWave's and Flink's spelling.

All bounds are computed in microseconds from the epoch. Rows without a time are in no window of HOP, CUMULATE and SESSION; TUMBLE
gives them NULL bounds, as RisingWave does. Sizes and slides are fixed lengths: months have none and are refused.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from windowpane.errors import InvalidSpecError
from windowpane.sql.bind.build_plan import Computed
from windowpane.sql.bind.late_rows import in_open_windows, with_late_rows
from windowpane.sql.bind.scope import Column, Ids, Scope, Visible
from windowpane.sql.expressions.binder import ScalarBinder
from windowpane.sql.expressions.expr import Expr, MismatchError, build, convert, rising, settled
from windowpane.sql.expressions.operators import partition_value
from windowpane.sql.expressions.types import BOOLEAN, INTERVAL, TIMESTAMP, TIMESTAMPTZ, SqlType
from windowpane.sql.nodes import Node, SessionWindows, TimeWindows
from windowpane.sql.parse.positions import Text
from windowpane.sql.values import zone
from windowpane.sql.values.intervals import length
from windowpane.sql.windows.time_functions import bound_type, instant_sql, micros_sql
from windowpane.sql.windows.window_bounds import WindowBounds, calendar_bounds, fixed_bounds
from windowpane.windowing.assigners.base import WindowAssigner
from windowpane.windowing.assigners.calendar import CalendarWindows
from windowpane.windowing.assigners.session import EventTimeSessionWindows
from windowpane.windowing.assigners.sliding import CumulateEventTimeWindows, SlidingEventTimeWindows
from windowpane.windowing.assigners.tumbling import TumblingEventTimeWindows
from windowpane.windowing.intervals import Interval
from windowpane.windowing.times import format_micros

NAMES = ("tumble", "hop", "cumulate", "session")
_LEADING = {"tumble": ("size",), "hop": ("slide", "size"), "cumulate": ("step", "size"), "session": ("gap",)}
_FLINK_NAMES = {
    "data": "relation",
    "timecol": "time",
    "size": "size",
    "slide": "slide",
    "step": "step",
    "offset": "offset",
    "gap": "gap",
}
_CALENDAR = ("timezone", "first_day", "origin")

Evaluate = Callable[[exp.Expr, SqlType | None], object]


@dataclass(frozen=True)
class TableCall:
    """A window table function as written: its relation, its time column, its partition and its lengths."""

    name: str
    tree: exp.Expr
    relation: exp.Expr
    time: exp.Expr
    partition: tuple[exp.Expr, ...]
    lengths: Mapping[str, exp.Expr]
    is_described: bool
    """Whether the time is a DESCRIPTOR: Flink's spelling, which adds ``window_time``."""
    calendar: Mapping[str, exp.Expr] = field(default_factory=dict)
    """What was said of the calendar: its time zone, the first day of its weeks, its origin."""
    closes: exp.Expr | None = None
    """The condition of CLOSE WHEN."""


def read_call(tree: exp.Expr, text: Text) -> TableCall:
    """Return a parsed call with its arguments by name."""
    name = str(tree.this).lower()
    order = ["relation", "time", *_LEADING[name], "offset"]
    options = () if name == "session" else _CALENDAR
    found: dict[str, exp.Expr] = {}
    calendar: dict[str, exp.Expr] = {}
    partition: tuple[exp.Expr, ...] = ()
    closes: exp.Expr | None = None
    position = 0
    for argument in tree.expressions:
        if isinstance(argument, exp.Kwarg):
            said = str(argument.this.name).lower()
            if said in options:
                calendar[said] = argument.expression
                continue
            key = _FLINK_NAMES.get(said)
            if key is None or key not in order:
                has = ", ".join([*order, *options])
                raise text.name_error(argument, f"{name} has no argument {argument.this.name!r}; it has {has}.")
            found[key] = argument.expression
        elif isinstance(argument, exp.Anonymous) and str(argument.this).upper() == "PARTITION_BY":
            partition = tuple(argument.expressions)
        elif isinstance(argument, exp.Anonymous) and str(argument.this).upper() == "CLOSE_WHEN" and argument.expressions:
            closes = argument.expressions[0]
        elif position >= len(order):
            raise text.syntax_error(argument, f"{name} takes {', '.join(order)}, and no more.")
        else:
            found[order[position]] = argument
            position += 1
    missing = [each for each in order[:-1] if each not in found]
    if missing:
        raise text.syntax_error(tree, f"{name} takes {', '.join(order[:-1])}; {', '.join(missing)} is missing.")
    lengths = {each: found[each] for each in order[2:] if each in found}
    time = _descriptor(found["time"])
    return TableCall(name, tree, found["relation"], time, partition, lengths, time is not found["time"], calendar, closes)


def _descriptor(tree: exp.Expr) -> exp.Expr:
    if isinstance(tree, exp.Anonymous) and str(tree.this).upper() == "DESCRIPTOR" and len(tree.expressions) == 1:
        inside: exp.Expr = tree.expressions[0]
        return inside
    return tree


class TableFunctions:
    def __init__(self, text: Text, ids: Ids, evaluate: Evaluate, now: str) -> None:
        """Remember where constants are evaluated, and what ``now()`` is, empty where it is not allowed."""
        self._text, self._ids, self._evaluate, self._now = text, ids, evaluate, now

    def bind(
        self, call: TableCall, node: Node, scope: Scope, time: Expr | None = None, partition: Sequence[Expr] | None = None
    ) -> tuple[Node, Scope]:
        """Return the relation with ``window_start`` and ``window_end``, and the names that can be used of it.

        ``time`` and ``partition``, the keys of sessions, are given where they are bound already.
        """
        binder = ScalarBinder(self._text, scope, f"{call.name.upper()}", self._now)
        time = time or binder.bind(call.time)
        try:
            kind = bound_type(time.type)
        except MismatchError as error:
            raise self._text.type_error(call.time, f"{call.name}: {error}") from None
        lengths = {name: self._length(tree) for name, tree in call.lengths.items()}
        bounds = (self._ids.column("window_start", kind), self._ids.column("window_end", kind))
        if call.name == "session":
            keys = [binder.bind(item) for item in call.partition] if partition is None else partition
            closes = None if call.closes is None else self._closing(call.closes, binder)
            node = self._session(call, node, keys, time, lengths["gap"], bounds, closes)
        else:
            node = self._windows(call, node, time, kind, lengths, bounds)
        table = scope.tables()[0] if scope.tables() else call.name
        added = tuple(Visible(table, column) for column in bounds)
        if call.is_described:
            node, last = self._window_time(node, bounds[1])
            added = (*added, Visible(table, last))
        return node, scope + Scope(added)

    def _window_time(self, node: Node, end: Column) -> tuple[Node, Column]:
        """Return a relation with the last moment of its windows, as Flink counts it: a millisecond before their end."""
        computed, until = Computed(self._ids), end.expr
        column = computed.column(rising(build(end.type, "({0} - to_milliseconds(1))", until), until), "window_time")
        return computed.apply(node), column.renamed("window_time")

    def _length(self, tree: exp.Expr) -> Interval:
        found = self._evaluate(tree, INTERVAL)
        if not isinstance(found, Interval):
            raise self._text.type_error(
                tree, f"the length of a window is an interval, not {found!r}. Write INTERVAL '10 minutes'."
            )
        return found

    def _micros(self, call: TableCall, lengths: Mapping[str, Interval], name: str) -> int:
        micros = length(lengths[name]) or 0
        if micros <= 0:
            raise self._text.type_error(
                call.lengths[name], f"the {name} of a window is greater than zero, not {format_micros(micros)}."
            )
        return micros

    def _windows(
        self,
        call: TableCall,
        node: Node,
        time: Expr,
        kind: SqlType,
        lengths: Mapping[str, Interval],
        bounds: tuple[Column, Column],
    ) -> Node:
        is_calendar = bool(call.calendar) or any(each.months for each in lengths.values())
        calendar = self._calendar(call, kind, lengths) if is_calendar else None
        made = self._fixed_bounds(call, lengths) if calendar is None else calendar_bounds(calendar)
        stamp = time if kind == time.type else build(TIMESTAMP, "CAST({0} AS TIMESTAMP)", time)

        def of_stamp(kind: SqlType, template: str, *others: Expr) -> Expr:
            return build(kind, template.replace("{t}", micros_sql("{0}")), stamp, *others)

        condition = of_stamp(BOOLEAN, made.condition)
        if call.name != "tumble":
            condition = of_stamp(BOOLEAN, f"({made.condition} AND {{1}} IS NOT NULL)", time)
        moment = micros_sql("{w}" if kind == time.type else "CAST({w} AS TIMESTAMP)")
        firsts = [instant_sql(first.replace("{t}", moment), kind) for first in (made.first_start, made.first_end)]
        mark = node.watermarks.get(time.column) if time.is_column else None
        late = with_late_rows(node, time.column, firsts[0]) if mark is not None and kind == time.type else None
        node = node if late is None else late[0]
        watermarks = dict(node.watermarks)
        if mark is not None:
            watermarks.update((bound.id, mark.through(first)) for bound, first in zip(bounds, firsts, strict=True))
        key = node.key if call.name == "tumble" else (*node.key, bounds[0].id, bounds[1].id)
        shown = [f"{name} {value}" for name, value in lengths.items()]
        windows = TimeWindows(
            (*node.columns, *bounds),
            key,
            node.append_only,
            watermarks,
            input=node,
            kind=call.name.upper(),
            start=of_stamp(kind, instant_sql(made.start, kind)),
            end=of_stamp(kind, instant_sql(made.end, kind)),
            count=made.count,
            condition=condition,
            text=f"by {time.name}, {', '.join(shown)}",
            time=time.column if time.is_column else None,
            assigner=calendar or self._assigner(call, lengths),
        )
        if late is None:
            return windows
        return in_open_windows(windows, {bound.id: first for bound, first in zip(bounds, firsts, strict=True)}, late[1])

    def _assigner(self, call: TableCall, lengths: Mapping[str, Interval]) -> WindowAssigner:
        """Return windows of fixed lengths as the window engines know them."""
        size, step = (self._micros(call, lengths, name) for name in ("size", _LEADING[call.name][0]))
        offset = (length(lengths["offset"]) or 0) if "offset" in lengths else 0
        if call.name == "tumble":
            return TumblingEventTimeWindows(size, offset % size)
        if call.name == "cumulate":
            return CumulateEventTimeWindows(size, step, offset % size)
        return SlidingEventTimeWindows(size, step, offset % step)

    def _fixed_bounds(self, call: TableCall, lengths: Mapping[str, Interval]) -> WindowBounds:
        size = self._micros(call, lengths, "size")
        smaller = _LEADING[call.name][0]
        step = self._micros(call, lengths, smaller)
        if size % step and call.name == "cumulate":
            message = f"the size is a multiple of the {smaller}, but {format_micros(size)} is none of {format_micros(step)}."
            raise self._text.type_error(call.tree, f"{call.name}: {message}")
        offset = (length(lengths["offset"]) or 0) if "offset" in lengths else 0
        return fixed_bounds(call.name, size, step, offset)

    def _calendar(self, call: TableCall, kind: SqlType, lengths: Mapping[str, Interval]) -> CalendarWindows:
        """Return windows of a calendar: of the zone that is named, else of that of the session."""
        if "offset" in lengths:
            raise self._text.type_error(
                call.lengths["offset"], "windows of a calendar have no offset: say origin => DATE '2024-04-01' instead."
            )
        given = {name: self._constant(tree, name) for name, tree in call.calendar.items()}
        if "timezone" in given and kind != TIMESTAMPTZ:
            raise self._text.type_error(
                call.calendar["timezone"],
                "a timestamp without time zone is a local time already. Leave timezone out, or make windows by a column of type "
                "TIMESTAMPTZ.",
            )
        named = given.get("timezone", zone.current() if kind == TIMESTAMPTZ else "UTC")
        options: Any = {**given, "timezone": zone.known(named) or named}
        size, smaller = lengths["size"], _LEADING[call.name][0]
        try:
            if call.name == "cumulate":
                windows = CalendarWindows.cumulate(size, lengths["step"], **options)
            else:
                windows = CalendarWindows.of(size, slide=lengths[smaller], **options)
        except InvalidSpecError as error:
            raise self._text.type_error(call.tree, f"{call.name}: {str(error).removeprefix('CalendarWindows: ')}") from None
        return windows

    def _constant(self, tree: exp.Expr, name: str) -> str:
        found = self._evaluate(tree, None)
        if not isinstance(found, str | dt.date):
            raise self._text.type_error(tree, f"{name} is a text, or a date for the origin, and not {found!r}.")
        return str(found).lower() if name == "first_day" else str(found)

    def _closing(self, tree: exp.Expr, binder: ScalarBinder) -> Expr:
        condition = binder.bind(tree)
        if condition.type != BOOLEAN:
            raise self._text.type_error(tree, f"CLOSE WHEN takes a condition, true or false, and this is {condition.type}.")
        return condition

    def _session(
        self,
        call: TableCall,
        node: Node,
        keys: Sequence[Expr],
        time: Expr,
        gap: Interval,
        bounds: tuple[Column, Column],
        closes: Expr | None,
    ) -> Node:
        if gap.is_zero or gap.is_negative:
            raise self._text.type_error(call.lengths["gap"], f"the gap of a session is greater than zero, not {gap}.")
        computed = Computed(self._ids)
        partition = tuple(computed.column(partition_value(settled(key))).id for key in keys)
        moment = computed.column(convert(time, bounds[0].type), "time")
        # A session that a row has closed is decided: no row behind the watermark joins it, or splits it.
        lower = f"{{w}} - {Expr.of_interval(gap).sql}" if closes is None else "{w}"
        closing = None if closes is None else computed.column(settled(closes), "closes").id
        late = with_late_rows(node, time.column, lower) if time.is_column and moment.id == time.column else None
        node = computed.apply(node if late is None else late[0])
        if late is not None:
            node = in_open_windows(node, {moment.id: f"({lower})"}, late[1])
        key = (*node.key, *(name for name in partition if name not in node.key))
        watermarks = {name: node.watermarks[name] for name in partition if name in node.watermarks}
        if moment.id in node.watermarks:
            watermarks[bounds[1].id] = node.watermarks[moment.id]
        micros = None if gap.days and bounds[0].type.name == "timestamptz" else length(gap)  # days are those of the zone
        return SessionWindows(
            (*node.columns, *bounds),
            key,
            False,
            watermarks,
            input=node,
            partition=partition,
            time=moment.id,
            gap=Expr.of_interval(gap),
            closes=closing,
            text=f"SESSION by {time.name}, gap {gap}" + ("" if call.closes is None else ", CLOSE WHEN"),
            assigner=None if micros is None or closing is not None else EventTimeSessionWindows.with_gap(micros),
        )
