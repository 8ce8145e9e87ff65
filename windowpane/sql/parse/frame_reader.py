"""Reads the frame and the calls of parsed OVER clauses."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from sqlglot import exp

from windowpane.errors import InvalidFrameError
from windowpane.sql.expressions.expr import Expr, MismatchError, convert
from windowpane.sql.expressions.types import INTERVAL, TIMESTAMPTZ, UNKNOWN, SqlType, is_exact, is_float, is_instant, is_integer
from windowpane.sql.numerics.conversions import literal_type
from windowpane.sql.parse.dialect import SESSION_GAP
from windowpane.sql.parse.positions import Text
from windowpane.sql.values import zone
from windowpane.windowing.frames import (
    CURRENT_ROW,
    UNBOUNDED_FOLLOWING,
    UNBOUNDED_PRECEDING,
    Bound,
    Exclude,
    Frame,
    Offset,
    Units,
    following,
    preceding,
)

Evaluate = Callable[[exp.Expr, SqlType | None], Any]
"""Evaluates a constant expression as a type."""


def read_frame(window: exp.Window, order_types: list[SqlType], text: Text, evaluate: Evaluate) -> Frame | None:
    """Return the frame that a window names, ``None`` if it names none.

    Raises:
        SqlError: bounds that cannot be combined, offsets of a wrong type, with their place.
    """
    order = window.args.get("order")
    gap = order.meta.get(SESSION_GAP) if order is not None else None
    spec = window.args.get("spec")
    try:
        if gap is not None:
            return Frame.session(_range_offset(gap, order_types, text, evaluate))
        return None if spec is None else _frame(spec, order_types, text, evaluate)
    except (InvalidFrameError, MismatchError) as error:
        raise text.type_error(window, str(error)) from None


def _frame(spec: exp.Expr, order_types: list[SqlType], text: Text, evaluate: Evaluate) -> Frame:
    units = Units[str(spec.args["kind"]).upper()]

    def bound(side: str) -> Bound:
        value, direction = spec.args.get(side), str(spec.args.get(f"{side}_side") or "").upper()
        if value is None or value == "CURRENT ROW":
            return CURRENT_ROW
        if value == "UNBOUNDED":
            return UNBOUNDED_PRECEDING if direction == "PRECEDING" else UNBOUNDED_FOLLOWING
        if direction not in ("PRECEDING", "FOLLOWING"):
            raise text.syntax_error(value, "a bound of a frame ends with PRECEDING or FOLLOWING.")
        is_least = (side == "start") is (direction == "FOLLOWING")
        of_range = units is Units.RANGE
        offset = _range_offset(value, order_types, text, evaluate, is_least) if of_range else _count(value, text, evaluate)
        return preceding(offset) if direction == "PRECEDING" else following(offset)

    exclude = Exclude[str(spec.args["exclude"].name).upper().replace(" ", "_")] if spec.args.get("exclude") else Exclude.NO_OTHERS
    return Frame(units, bound("start"), bound("end"), exclude)


def _count(value: exp.Expr, text: Text, evaluate: Evaluate) -> int:
    found = evaluate(value, None)
    if not isinstance(found, int) or isinstance(found, bool):
        raise text.type_error(value, f"a frame counts whole rows, not {found!r}.")
    return found


def _range_offset(value: exp.Expr, order_types: list[SqlType], text: Text, evaluate: Evaluate, is_least: bool = False) -> Offset:
    """Return a distance; ``is_least`` says that values at least so far away are meant, not those at most so far."""
    if len(order_types) != 1:
        raise text.type_error(value, f"a frame with a distance needs exactly one ORDER BY column, not {len(order_types)}.")
    kind = order_types[0]
    if is_instant(kind) or kind == INTERVAL:
        found = evaluate(value, INTERVAL)
    elif is_integer(kind):
        found = evaluate(value, kind)
    elif is_exact(kind):
        found = evaluate(value, None)
        found = evaluate(value, literal_type(found) or kind) if isinstance(found, str) else found
        found = _at_scale(found, kind.scale, is_least) if isinstance(found, Decimal) else evaluate(value, kind)
        found = None if found is None else Decimal(found)
    elif is_float(kind):
        found = evaluate(value, kind)
        found = None if found is None else float(found)
    else:
        raise text.type_error(
            value, f"values of type {kind} have no distance. Cast the ORDER BY column to a number or a timestamp."
        )
    if found is None:
        raise text.type_error(value, "the distance of a frame is not NULL.")
    if kind == TIMESTAMPTZ and zone.current() != zone.UTC and not found.is_fixed:
        raise text.type_error(
            value,
            f"a frame over instants has no days or months in the time zone {zone.current()}, where days differ in length. Write "
            f"hours, or ORDER BY the local time, (x AT TIME ZONE '{zone.current()}').",
        )
    offset: Offset = found
    return offset


def _at_scale(distance: Decimal, scale: int, is_least: bool) -> Decimal:
    """Return the distance that means the same of values with so many decimal places."""
    return distance.quantize(Decimal(1).scaleb(-scale), ROUND_CEILING if is_least else ROUND_FLOOR)


def constant_as(bound: Expr, kind: SqlType | None) -> Expr:
    """Return a constant as a type that it converts to without a cast."""
    if kind is None or bound.type == kind:
        return bound
    numbers = is_exact(bound.type) and (is_exact(kind) or is_float(kind))
    if bound.type == UNKNOWN or (numbers and not (is_integer(kind) and not is_integer(bound.type))):
        return convert(bound, kind)
    raise MismatchError(f"{bound.type} does not go with {kind}. Cast it.")
