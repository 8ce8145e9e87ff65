"""``now()`` in the WHERE of a view: a temporal filter, whose result rows leave, or enter, as the clock advances.

A condition may compare an expression over the row with one that rises with ``now()``, in any place among ANDs and ORs:
``at > now() - INTERVAL '1 hour'`` removes a row an hour after its time, ``at < now() - INTERVAL '1 minute'`` adds it a minute
after. Both sides must be apart: ``now() - at < INTERVAL '1 hour'`` is refused. Source of the rule: RisingWave's temporal filters.
"""

from __future__ import annotations

from sqlglot import exp

from windowpane.sql.embedded.macros import NOW
from windowpane.sql.expressions.expr import Expr, build
from windowpane.sql.expressions.operators import MIRRORED, combined
from windowpane.sql.expressions.types import BOOLEAN
from windowpane.sql.nodes import Node, TemporalFilter
from windowpane.sql.parse.positions import Text
from windowpane.sql.values import zone
from windowpane.windowing.intervals import Interval

_LEAVES, _ENTERS = (">", ">="), ("<", "<=")
_SLACK = "INTERVAL 4 DAY"
"""Times moved by months go back by at most this: the month's end has up to three days fewer, and a time of day."""

_FORM = "Compare an expression over the row with one over now() alone, as in at > now() - INTERVAL '1 hour', joined by AND or OR."


def asks_the_clock(tree: exp.Expr) -> bool:
    """Whether a parsed condition says ``now()``, outside of subqueries."""
    if isinstance(tree, exp.Query):
        return False
    if isinstance(tree, exp.CurrentTimestamp | exp.CurrentDate | exp.Localtimestamp):
        return True
    if isinstance(tree, exp.Anonymous) and str(tree.this).lower() == "now":
        return True
    return any(asks_the_clock(child) for child in tree.iter_expressions())


def in_time(node: Node, condition: Expr, tree: exp.Expr, text: Text) -> Node:
    """Return the rows for which a condition with ``now()`` holds at each moment.

    Args:
        node: the rows.
        condition: the condition, with ``NOW`` in the place of the clock.
        tree: the condition as parsed, for places.
        text: the text that has it.

    Raises:
        SqlError: it is not of the form that says when a row leaves and enters.
    """
    possible, open_ = _possible(condition, tree, text), _undecided(condition)
    enters = any(_operator(leaf) in (*_ENTERS, "=") for leaf in _leaves(condition) if leaf.reads_clock)
    watermarks = {} if enters else {name: mark.unsettled() for name, mark in node.watermarks.items()}
    return TemporalFilter(
        node.columns, node.key, False, watermarks, input=node, condition=condition, possible=possible, undecided=open_
    )


def _leaves(condition: Expr) -> list[Expr]:
    if condition.operator in ("AND", "OR"):
        return [leaf for part in condition.parts for leaf in _leaves(part)]
    return [condition]


def _sides(leaf: Expr) -> tuple[str, Expr, Expr]:
    """Return a comparison as (operator, expression over the row, expression over the clock)."""
    one, other = leaf.parts
    return (leaf.operator, one, other) if other.reads_clock else (MIRRORED[leaf.operator], other, one)


def _operator(leaf: Expr) -> str:
    return _sides(leaf)[0]


def _possible(condition: Expr, tree: exp.Expr, text: Text) -> Expr:
    """Return when a condition holds or can hold some day."""
    if condition.operator in ("AND", "OR"):
        return combined(condition.operator, *(_possible(part, tree, text) for part in condition.parts))
    if not condition.reads_clock:
        return condition
    if condition.operator not in MIRRORED:
        raise text.unsupported(tree, "now() in this condition of a materialized view", _FORM)
    operator, value, clock = _sides(condition)
    if value.reads_clock or clock.columns or not value.columns:
        raise text.unsupported(tree, "now() on both sides of a comparison, or beside a column, in a materialized view", _FORM)
    if not (clock.rises_with == NOW or _is_moved_by_months(clock)):
        there = f" In the time zone {zone.current()} use hours in place of days." if zone.current() != zone.UTC else ""
        raise text.unsupported(tree, "a clock that does not always rise, in a materialized view", _FORM + there)
    if operator in _ENTERS:
        return build(BOOLEAN, "({0} IS NOT NULL)", value, operator="IS")
    return combined(">=", value, _earlier(clock))


def _is_moved_by_months(clock: Expr) -> bool:
    """Whether it is ``now()``, moved by an interval that is written out."""
    return clock.operator in ("+", "-") and clock.parts[0].template == NOW and isinstance(clock.parts[1].value, Interval)


def _undecided(condition: Expr) -> Expr:
    """Return when one of the comparisons with the clock can still change."""
    sides = [_sides(leaf) for leaf in _leaves(condition) if leaf.reads_clock]
    return combined("OR", *(combined(">=", value, _earlier(clock)) for _, value, clock in sides))


def _earlier(clock: Expr) -> Expr:
    return clock if clock.rises_with == NOW else build(clock.type, f"({{0}} - {_SLACK})", clock)
