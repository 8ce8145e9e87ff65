"""Fractions of integers as decimals of a number of places: rounded, exact, or with as many digits as RisingWave keeps.

A decimal of ``s`` places is the integer of its last place: 1.5 at two places is 150. All integers are Python's, so nothing is
lost before the one rounding at the end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from decimal import Context, Decimal

from windowpane.errors import InvalidValueError, OutOfRangeError
from windowpane.sql.expressions.types import DIGITS, EXACT_PLACES, QUOTIENT_PLACES

LARGEST_MANTISSA = 2**96 - 1
"""RisingWave's numerics have 96 bits for their digits: 28 digits always fit, 29 sometimes."""
_LIMIT = 10**DIGITS
_MANTISSAS = [LARGEST_MANTISSA * 10**dropped for dropped in range(QUOTIENT_PLACES + 1)]
_SHOWING = Context(prec=2 * DIGITS)

Placed = Callable[[int, int], int]
"""Takes a numerator and a positive denominator, and returns the integer of the last place."""


def divided(numerator: int, denominator: int) -> int:
    """Return the nearest integer to a fraction, halves away from zero, as PostgreSQL rounds numerics."""
    whole, rest = divmod(abs(numerator), denominator)
    whole += 2 * rest >= denominator
    return -whole if numerator < 0 else whole


def rounded(places: int) -> Placed:
    scale = 10**places

    def place(numerator: int, denominator: int) -> int:
        return fitting(divided(numerator * scale, denominator), places)

    return place


def exact(places: int) -> Placed:
    """Return fractions that have at most ``places`` decimal places; others are refused."""
    scale: int = 10**places

    def place(numerator: int, denominator: int) -> int:
        whole, rest = divmod(numerator * scale, denominator)
        if rest:
            raise InvalidValueError(
                f"{shown(numerator, denominator)} has more than {places} decimal places, and would be rounded. Declare the "
                f"column numeric(38, s), or cast to numeric(38, s), with the places you want."
            )
        return fitting(whole, places)

    return place


def significant(places: int) -> Placed:
    """Return fractions at ``places``, rounded once to the digits that a ``numeric`` of RisingWave has."""
    scale: int = 10**places

    def place(numerator: int, denominator: int) -> int:
        whole, rest = divmod(abs(numerator) * scale, denominator)
        if whole >= LARGEST_MANTISSA:
            whole = fewer_digits(fitting(whole, places), places)
        elif 2 * rest >= denominator:
            whole += 1
        return -whole if numerator < 0 else whole

    return place


def fewer_digits(whole: int, places: int) -> int:
    """Return a positive integer of a last place with as many of its last digits rounded to zeros as RisingWave lacks.

    What was cut behind it does not matter: from half of a digit on it is rounded up.
    """
    dropped = bisect_left(_MANTISSAS, whole)
    while True:
        step: int = 10 ** min(dropped, places)
        kept = (2 * whole + step) // (2 * step)
        if kept <= LARGEST_MANTISSA or dropped >= places:
            return kept * step
        dropped += 1


def fitting(unscaled: int, places: int) -> int:
    """Return the integer of a last place, if 38 digits hold it."""
    if abs(unscaled) >= _LIMIT:
        raise OutOfRangeError(out_of_range(f"{Decimal(unscaled).scaleb(-places, _SHOWING):f}", places))
    return unscaled


def out_of_range(value: str, places: int) -> str:
    """Return what is said of a value with too many digits before the point."""
    return (
        f"numeric out of range: {value} has more than {DIGITS - places} digits before the point, beside {places} decimal places. "
        f"Cast the expression to numeric(38, s) with fewer places, or an operand to double precision."
    )


def shown(numerator: int, denominator: int) -> str:
    return f"{_SHOWING.divide(Decimal(numerator), Decimal(denominator)):f}"


PRODUCT: Placed = exact(EXACT_PLACES)
ROUNDED: Placed = significant(QUOTIENT_PLACES)


_CERTAIN = 29
"""So many characters, the point among them, are 28 digits."""


def numeric_text(value: Decimal) -> str:
    """Return a numeric as text.

    A value with more than 20 places is the result of a quotient, or of a function: it shows the digits that RisingWave's have.

    Example:
        >>> numeric_text(Decimal("7.5000"))
        '7.5'
    """
    text = f"{value:f}"
    if len(text) > _CERTAIN and -int(value.as_tuple().exponent) > EXACT_PLACES:
        text = _with_fewer_digits(text)
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _with_fewer_digits(text: str) -> str:
    whole, _, fraction = text.partition(".")
    unscaled = int(whole + fraction)
    if abs(unscaled) <= LARGEST_MANTISSA:
        return text
    digits = str(fewer_digits(abs(unscaled), len(fraction))).rjust(len(fraction) + 1, "0")
    return f"{'-' if unscaled < 0 else ''}{digits[: -len(fraction)]}.{digits[-len(fraction) :]}"
