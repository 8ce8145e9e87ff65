"""Fractions of integers as decimals of a number of places: rounded, exact, or with as many digits as RisingWave keeps.

A decimal of ``s`` places is the integer of its last place: 1.5 at two places is 150. All integers are Python's, so nothing is
lost before the one rounding at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal

from windowpane.sql.types import DIGITS, EXACT_PLACES, QUOTIENT_PLACES

LARGEST_MANTISSA = 2**96 - 1
"""RisingWave's numerics have 96 bits for their digits: 28 digits always fit, 29 sometimes."""
_LIMIT = 10**DIGITS
_SHOWING = Context(prec=2 * DIGITS)

Placed = Callable[[int, int], int]
"""Takes a numerator and a positive denominator, and returns the integer of the last place."""


class NumericValueError(ValueError):
    """A value that no ``numeric`` holds, or not without being rounded; DuckDB passes its text on."""


def divided(numerator: int, denominator: int) -> int:
    """Return the nearest integer to a fraction, halves away from zero, as PostgreSQL rounds numerics."""
    whole, rest = divmod(abs(numerator), denominator)
    whole += 2 * rest >= denominator
    return -whole if numerator < 0 else whole


def rounded(places: int) -> Placed:
    """Return fractions rounded to ``places``."""
    scale = 10**places

    def place(numerator: int, denominator: int) -> int:
        return fitting(divided(numerator * scale, denominator), places)

    return place


def exact(places: int) -> Placed:
    """Return fractions that have at most ``places`` decimal places; others are refused."""
    scale = 10**places

    def place(numerator: int, denominator: int) -> int:
        whole, rest = divmod(numerator * scale, denominator)
        if rest:
            raise NumericValueError(
                f"{shown(numerator, denominator)} has more than {places} decimal places, and would be rounded. Declare the "
                f"column numeric(38, s), or cast to numeric(38, s), with the places you want."
            )
        return fitting(whole, places)

    return place


def significant(places: int) -> Placed:
    """Return fractions at ``places``, rounded once to the digits that a ``numeric`` of RisingWave has."""
    powers: list[int] = [10**power for power in range(places + 1)]

    def place(numerator: int, denominator: int) -> int:
        found = divided(numerator * powers[places], denominator)
        if -LARGEST_MANTISSA <= found <= LARGEST_MANTISSA:
            return found
        fitting(found, places)
        more = len(str(abs(found))) - 29
        for dropped in (more, more + 1):
            kept = divided(numerator * powers[places - dropped], denominator)
            if abs(kept) <= LARGEST_MANTISSA:
                break
        return kept * powers[dropped]

    return place


def fitting(unscaled: int, places: int) -> int:
    """Return the integer of a last place, if 38 digits hold it.

    Raises:
        NumericValueError: they do not.
    """
    if abs(unscaled) >= _LIMIT:
        raise NumericValueError(out_of_range(f"{Decimal(unscaled).scaleb(-places, _SHOWING):f}", places))
    return unscaled


def out_of_range(value: str, places: int) -> str:
    """Return what is said of a value with too many digits before the point."""
    return (
        f"numeric out of range: {value} has more than {DIGITS - places} digits before the point, beside {places} decimal places. "
        f"Cast the expression to numeric(38, s) with fewer places, or an operand to double precision."
    )


def shown(numerator: int, denominator: int) -> str:
    """Return a fraction as a message shows it."""
    return f"{_SHOWING.divide(Decimal(numerator), Decimal(denominator)):f}"


PRODUCT: Placed = exact(EXACT_PLACES)
ROUNDED: Placed = significant(QUOTIENT_PLACES)
