"""Reals as text, as RisingWave prints them (``to_text``, Rust's ryu): the shortest digits that read back, plain up to a size.

PostgreSQL begins to write an exponent at other sizes: 0.00005 is ``5e-05`` there.
"""

from __future__ import annotations

import math

import numpy as np

_MOST, _LEAST = 13, -6
"""How many digits a plain number may have before the point, and below how many zeros behind it."""


def real_text(value: float) -> str:
    """Return a real as text.

    Example:
        >>> real_text(123456792.0), real_text(1e13)
        ('123456790', '1e+13')
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = _parts(np.format_float_scientific(np.float32(value), unique=True))
    point = len(digits) + exponent
    if 0 < point <= _MOST:
        return sign + (digits + "0" * exponent if exponent >= 0 else f"{digits[:point]}.{digits[point:]}")
    if _LEAST < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}" if digits else f"{sign}0"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{'-' if point < 1 else '+'}{abs(point - 1):02}"


def _parts(shortest: str) -> tuple[str, str, int]:
    """Return sign, digits without zeros around them, and the power of ten that they are multiplied with."""
    sign, unsigned = ("-", shortest[1:]) if shortest.startswith("-") else ("", shortest)
    mantissa, _, exponent = unsigned.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).rstrip("0")
    shift = int(exponent or 0) - len(fraction) + len(whole + fraction) - len(digits)
    return sign, digits.lstrip("0"), shift if digits else 0
