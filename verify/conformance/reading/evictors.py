"""A program's evictor as windowpane's, and the evictor of rules that only the vectors know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from verify.conformance.reading.fields import Json, NotUnderstoodError, require_known
from verify.conformance.reading.triggers import parse_delta
from windowpane.windowing.evictors import (
    CountEvictor,
    DeltaEvictor,
    Elements,
    Evictor,
    EvictorContext,
    TimeEvictor,
    TimestampedValue,
)
from windowpane.windowing.windows import TimeWindow, Window


@dataclass(frozen=True)
class _Seen:
    """An element under a rule: its place among those that are left, the window, and ``n`` of the rule."""

    element: TimestampedValue
    index: int
    size: int
    window: Window
    watermark: int
    n: int

    @property
    def value(self) -> int:
        """The value."""
        return int(self.element.value["value"])


_RULES: dict[str, Callable[[_Seen], bool]] = {
    "odd": lambda seen: seen.value % 2 != 0,
    "even": lambda seen: seen.value % 2 == 0,
    "below": lambda seen: seen.value < seen.n,
    "keep_first": lambda seen: seen.index >= seen.n,
    "drop_first_if_over": lambda seen: seen.index == 0 and seen.size > seen.n,
    "older_than_watermark": lambda seen: seen.element.timestamp < seen.watermark,
    "newer_than_watermark": lambda seen: seen.element.timestamp > seen.watermark,
    "before_start_plus": lambda seen: isinstance(seen.window, TimeWindow) and seen.element.timestamp < seen.window.start + seen.n,
    "every_second": lambda seen: seen.index % 2 == 1,
}
"""What a rule evicts."""


@dataclass(frozen=True)
class RulesEvictor(Evictor):
    """Evicts by rules, (name, n), one after the other: some before the function, some after it."""

    before: tuple[tuple[str, int], ...]
    after: tuple[tuple[str, int], ...]

    def evict_before(self, elements: Elements, size: int, window: Window, context: EvictorContext) -> Elements:
        """Evict before the function."""
        return _left(self.before, elements, size, window, context)

    def evict_after(self, elements: Elements, size: int, window: Window, context: EvictorContext) -> Elements:
        """Evict after it."""
        return _left(self.after, elements, size, window, context)


def _left(rules: tuple[tuple[str, int], ...], elements: Elements, size: int, window: Window, context: EvictorContext) -> Elements:
    watermark = context.current_watermark
    for rule, n in rules:
        seen = (_Seen(element, index, size, window, watermark, n) for index, element in enumerate(elements))
        elements = [each.element for each in seen if not _RULES[rule](each)]
    return elements


def parse_evictor(fields: Json | None) -> Evictor | None:
    """Return the evictor, ``None`` for none.

    Raises:
        NotUnderstoodError: an unknown type or field.
    """
    if fields is None:
        return None
    known = {"type", "evict_after", "count", "keep_ms", "threshold", "delta", "delta_fn", "before", "after"}
    require_known(fields, known, "evictor")
    after = fields.get("evict_after", False)
    if fields["type"] == "count":
        return CountEvictor.of(fields["count"], after)
    if fields["type"] == "time":
        return TimeEvictor.of(fields["keep_ms"], after)
    if fields["type"] == "delta":
        return DeltaEvictor.of(fields["threshold"], parse_delta(fields), after)
    if fields["type"] == "rules":
        return RulesEvictor(_rules(fields["before"]), _rules(fields["after"]))
    raise NotUnderstoodError(f"evictor type {fields['type']!r} is not understood")


def _rules(rules: list[Json]) -> tuple[tuple[str, int], ...]:
    for rule in rules:
        require_known(rule, {"rule", "n"}, "rule of an evictor")
        if rule["rule"] not in _RULES:
            raise NotUnderstoodError(f"rule {rule['rule']!r} of an evictor is not understood")
    return tuple((rule["rule"], rule.get("n", 0)) for rule in rules)
