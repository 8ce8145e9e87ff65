"""Values as jsonb: what ``to_jsonb`` and ``jsonb_agg`` make of each type."""

from __future__ import annotations

from windowpane.sql.expressions.expr import Expr, as_text, build, each_of, settled
from windowpane.sql.expressions.types import BOOLEAN, JSONB, TIMESTAMP, TIMESTAMPTZ, VARCHAR, is_exact, is_float

_QUOTED = "CAST(to_json({0}) AS VARCHAR)"


def to_jsonb(value: Expr) -> Expr:
    """Return a value as jsonb: numbers and booleans as such, arrays as arrays, all else as the text that it is shown as.

    Sources: PostgreSQL, "JSON Functions and Operators", ``to_jsonb``: an instant has a T between its date and its time, a float
    that is not finite is a text. As in RisingWave a number that is no integer is a double.
    """
    if value.type == JSONB:
        return value
    return build(JSONB, "CAST(windowpane_jsonb({0}) AS JSON)", json_text(settled(value)), name="to_jsonb")


def json_text(value: Expr, depth: int = 0) -> Expr:
    """Return a JSON text of a value, NULL of NULL."""
    kind = value.type
    if kind.element is not None:

        def shown(item: Expr) -> Expr:
            return build(VARCHAR, "coalesce({0}, 'null')", json_text(item, depth + 1))

        listed = each_of(value, VARCHAR, shown, f"windowpane_item_{depth}")
        return build(VARCHAR, "('[' || array_to_string({0}, ',') || ']')", listed)
    if kind in (JSONB, BOOLEAN):
        return build(VARCHAR, "CAST({0} AS VARCHAR)", value)
    text = as_text(value)
    if is_exact(kind):
        return text
    if is_float(kind):
        return build(VARCHAR, f"(CASE WHEN isfinite({{1}}) THEN {{0}} ELSE {_QUOTED} END)", text, value)
    if kind in (TIMESTAMP, TIMESTAMPTZ):
        text = build(VARCHAR, "regexp_replace({0}, ' ', 'T')", text)
    return build(VARCHAR, _QUOTED, text)
