"""Nodes that look along the time of rows: sessions, OVER windows, and what waits for a watermark."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from windowpane.engines.patterns.text import refusal_of
from windowpane.sql.embedded.macros import NOW
from windowpane.sql.expressions.expr import Expr, quoted
from windowpane.sql.expressions.types import is_integer
from windowpane.sql.nodes.base import Order, Unary, listed, placed
from windowpane.sql.windows.over_calls import OverNodeCall, over_sql
from windowpane.windowing.assigners.base import WindowAssigner
from windowpane.windowing.patterns.spec import PatternSpec
from windowpane.windowing.times import format_micros


@dataclass(frozen=True)
class SessionWindows(Unary):
    """Each row with the bounds of its session: rows of a partition that follow one another in the gap at most, as in Flink.

    ``closes`` is the column that says which rows close their session, with all rows of their instant: rows of a table have no
    other order. ``assigner`` is the same for the window engines; ``None`` where they have none, or order rows of an instant.
    """

    partition: tuple[str, ...] = field(kw_only=True)
    time: str = field(kw_only=True)
    gap: Expr = field(kw_only=True)
    closes: str | None = field(default=None, kw_only=True)
    text: str = field(kw_only=True)
    assigner: WindowAssigner | None = field(default=None, kw_only=True)
    kind: ClassVar[str] = "SESSION"
    state_fields = ("partition", "time")

    def sql(self, *relations: str, extra: str = "") -> str:
        first, last_bound = self.columns[-2:]
        names = listed(tuple(column.id for column in self.columns[:-2]))
        by = f"PARTITION BY {listed(self.partition)} " if self.partition else ""
        session = f"PARTITION BY {listed((*self.partition, 'windowpane session'))}"
        time, gap = quoted(self.time), self.gap.sql
        over, rows, end = f"OVER ({by}ORDER BY {time})", relations[0], f"max({time}) OVER ({session}) + {gap}"
        begins = f"CASE WHEN lag({time}) {over} + {gap} >= {time} THEN 0 ELSE 1 END"
        if self.closes is not None:
            instant = f"PARTITION BY {listed((*self.partition, self.time))}"
            closing = f'bool_or(coalesce({quoted(self.closes)}, false)) OVER ({instant}) AS "windowpane closes"'
            rows, last = f"(SELECT *, {closing} FROM {rows})", f"lag({time}) {over}"
            goes_on = f'({last} + {gap} > {time} AND NOT lag("windowpane closes") {over})'
            begins = f"CASE WHEN {last} = {time} OR {goes_on} THEN 0 ELSE 1 END"
            closed = f"max({time}) OVER ({session}) + to_microseconds(1)"
            end = f'CASE WHEN bool_or("windowpane closes") OVER ({session}) THEN {closed} ELSE {end} END'
        flagged = f'SELECT *, {begins} AS "windowpane begins" FROM {rows} WHERE {time} IS NOT NULL'
        numbered = (
            f'SELECT *, sum("windowpane begins") OVER ({by}ORDER BY {time} RANGE UNBOUNDED PRECEDING) AS "windowpane session" '
            f"FROM ({flagged})"
        )
        bounds = f"min({time}) OVER ({session}) AS {quoted(first.id)}, {end} AS {quoted(last_bound.id)}"
        return f"SELECT {names}, {bounds} FROM ({numbered})"

    @property
    def detail(self) -> str:
        return self.text

    @property
    def state_parts(self) -> dict[str, Any]:
        parts = super().state_parts
        return parts if self.closes is None else {**parts, "closes": self.closes}


@dataclass(frozen=True)
class Over(Unary):
    """The input with one column for each call over one combination of PARTITION BY and ORDER BY."""

    partition: tuple[str, ...] = field(kw_only=True)
    order: tuple[Order, ...] = field(kw_only=True)
    calls: tuple[OverNodeCall, ...] = field(kw_only=True)
    closes: bool = field(default=False, kw_only=True)
    state_fields = ("partition", "order", "calls", "closes")

    def sql(self, *relations: str, extra: str = "") -> str:
        order = tuple((item.column, self._item(item), item.descending) for item in self.order)
        return over_sql(relations[0], self.columns, self.partition, order, self.calls, self.input.key)

    @property
    def detail(self) -> str:
        calls, closes = ", ".join(call.text for call in self.calls), ", when closed" if self.closes else ""
        return f"{calls}{placed(self.partition, self.order)}{closes}"

    def _item(self, item: Order) -> str:
        """Return an item of ORDER BY; DuckDB adds distances to integers, which must not end at the edge of their type."""
        has_distance = any(call.frame is not None and call.frame.has_distance for call in self.calls)
        if not has_distance or not is_integer(self.input.column(item.column).type):
            return item.sql
        return f"CAST({quoted(item.column)} AS HUGEINT) {item.direction}"


@dataclass(frozen=True)
class Match(Unary):
    """Matches of a row pattern, one row each or their rows: columns of the input, then values of the matches.

    ``spec`` has one measure for each of these values, and columns by id. ``time`` is the column of event time, ``None`` where the
    rows have none; ``timed_out`` a column that says whether an attempt failed for want of a row.
    """

    partition: tuple[str, ...] = field(kw_only=True)
    order: tuple[Order, ...] = field(kw_only=True)
    spec: PatternSpec = field(kw_only=True, compare=False)
    time: str | None = field(kw_only=True)
    shown: tuple[str, ...] = field(kw_only=True)
    timed_out: str | None = field(default=None, kw_only=True)

    def sql(self, *relations: str, extra: str = "") -> str:
        """Return what names the plan: no query has matches, see ``streaming.matching``."""
        return f"SELECT {listed(tuple(column.id for column in self.columns))} FROM {relations[0]}"

    @property
    def reads(self) -> set[str]:
        time = [self.time] if self.time else []
        return {*self.partition, *(item.column for item in self.order), *self.shown, *self.spec.asks, *time}

    @property
    def detail(self) -> str:
        within = "" if self.spec.within is None else f" within {format_micros(self.spec.within)}"
        refused = refusal_of(self.spec)
        way = "pattern text" if refused is None else f"pattern reference, since {refused}"
        return f"{self.spec.pattern}{placed(self.partition, self.order)}{within}; {way}"

    @property
    def state_parts(self) -> dict[str, Any]:
        spec = self.spec
        return {
            "pattern": str(spec.pattern),
            "define": {name: repr(condition) for name, condition in spec.conditions.items()},
            "subset": {name: sorted(of) for name, of in spec.subsets.items()},
            "measures": [[measure.name, repr(measure.value), measure.is_final] for measure in spec.measures],
            "match": [spec.rows, str(spec.after_match), spec.within, spec.has_timeouts],
            "partition": list(self.partition),
            "order": [item.parts for item in self.order],
        }


@dataclass(frozen=True)
class TemporalFilter(Unary):
    """The rows for which a condition holds at the time of the clock: they leave, or enter, as it advances.

    ``possible`` holds for rows of which it holds or can hold some day, ``undecided`` for those on which a comparison with the
    clock can still change; both have ``NOW`` in the place of the clock, as the condition has.
    """

    condition: Expr = field(kw_only=True)
    possible: Expr = field(kw_only=True)
    undecided: Expr = field(kw_only=True)

    def sql(self, *relations: str, extra: str = "") -> str:
        return f"SELECT * FROM {relations[0]} WHERE {self.condition.sql}"

    @property
    def detail(self) -> str:
        return self.condition.sql


@dataclass(frozen=True)
class ClockStamp(Unary):
    """Each row with the time at which it was taken in behind it: ``PROCTIME()``."""

    def sql(self, *relations: str, extra: str = "") -> str:
        return f"SELECT *, {NOW} AS {quoted(self.columns[-1].id)} FROM {relations[0]}"


@dataclass(frozen=True)
class CloseSort(Unary):
    """Holds rows back until the watermark of one of some columns has passed them: EMIT ON WINDOW CLOSE."""

    by: tuple[str, ...] = field(kw_only=True)
    state_fields = ("by",)

    def sql(self, *relations: str, extra: str = "") -> str:
        return f"SELECT * FROM {relations[0]}"

    @property
    def detail(self) -> str:
        return f"by {', '.join(self.by)}"
