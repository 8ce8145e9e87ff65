"""Numerics as text, the way PostgreSQL and RisingWave print them: all digits, without zeros at the end."""

from __future__ import annotations

from decimal import Decimal

from windowpane.sql.expressions.types import EXACT_PLACES
from windowpane.sql.numerics.placing import LARGEST_MANTISSA, fewer_digits

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
