"""Numerics as text, the way PostgreSQL and RisingWave print them: all digits, without zeros at the end."""

from __future__ import annotations

from decimal import Decimal

from windowpane.sql.numerics.placing import LARGEST_MANTISSA, divided
from windowpane.sql.types import EXACT_PLACES


def numeric_text(value: Decimal) -> str:
    """Return a numeric as text.

    A value with more than 20 places came of a quotient, or of a function: it shows the digits that RisingWave's have.

    Example:
        >>> numeric_text(Decimal("7.5000"))
        '7.5'
    """
    places = -int(value.as_tuple().exponent)
    unscaled = _unscaled(value)
    if places > EXACT_PLACES and abs(unscaled) > LARGEST_MANTISSA:
        unscaled, places = _fewer_digits(unscaled, places)
    digits = str(abs(unscaled)).rjust(places + 1, "0")
    whole, fraction = (digits[:-places], digits[-places:].rstrip("0")) if places > 0 else (digits + "0" * -places, "")
    text = f"{whole}.{fraction}" if fraction else whole
    return f"-{text}" if unscaled < 0 and text.strip("0.") else text


def _unscaled(value: Decimal) -> int:
    sign, digits, _ = value.as_tuple()
    found = int("".join(map(str, digits)) or "0")
    return -found if sign else found


def _fewer_digits(unscaled: int, places: int) -> tuple[int, int]:
    dropped = len(str(abs(unscaled))) - 29
    for more in (dropped, dropped + 1):
        kept = divided(unscaled, 10**more)
        if abs(kept) <= LARGEST_MANTISSA or more >= places:
            break
    return kept, places - more
