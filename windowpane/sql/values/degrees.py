"""Trigonometric functions of degrees: exact where PostgreSQL's (``float.c``) are, as in ``sind(30) = 0.5``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

_SIN_30 = math.sin(math.radians(30))
_SHORT_OF_COS_60 = 1 - math.cos(math.radians(60))
_ASIN_HALF, _ACOS_HALF, _ATAN_1 = math.asin(0.5), math.acos(0.5), math.atan(1)


def _sin_to_30(x: float) -> float:
    return math.sin(math.radians(x)) / _SIN_30 / 2


def _cos_to_60(x: float) -> float:
    return 1 - (1 - math.cos(math.radians(x))) / _SHORT_OF_COS_60 / 2


def _sin_to_90(x: float) -> float:
    return _sin_to_30(x) if x <= 30 else _cos_to_60(90 - x)


def _cos_to_90(x: float) -> float:
    return _cos_to_60(x) if x <= 60 else _sin_to_30(90 - x)


_TAN_45 = _sin_to_90(45) / _cos_to_90(45)
_COT_45 = _cos_to_90(45) / _sin_to_90(45)


def _folded(x: float) -> tuple[float, float, float]:
    """Return the angle between 0 and 90 with the same sine and cosine but for their signs, and these signs."""
    if not math.isfinite(x):
        return math.nan, 1.0, 1.0
    x, sine, cosine = math.fmod(x, 360), 1.0, 1.0
    if x < 0:
        x, sine = -x, -sine
    if x > 180:
        x, sine = 360 - x, -sine
    if x > 90:
        x, cosine = 180 - x, -cosine
    return x, sine, cosine


def _ratio(one: float, other: float) -> float:
    return math.inf if other == 0 else one / other


def sin(x: float) -> float:
    """Return the sine of an angle in degrees."""
    angle, sign, _ = _folded(x)
    return sign * _sin_to_90(angle)


def cos(x: float) -> float:
    """Return the cosine of an angle in degrees."""
    angle, _, sign = _folded(x)
    return sign * _cos_to_90(angle)


def tan(x: float) -> float:
    """Return the tangent of an angle in degrees."""
    angle, sine, cosine = _folded(x)
    return sine * cosine * _ratio(_sin_to_90(angle), _cos_to_90(angle)) / _TAN_45 + 0.0


def cot(x: float) -> float:
    """Return the cotangent of an angle in degrees."""
    angle, sine, cosine = _folded(x)
    return sine * cosine * _ratio(_cos_to_90(angle), _sin_to_90(angle)) / _COT_45 + 0.0


def _asin_to_90(x: float) -> float:
    return math.asin(x) / _ASIN_HALF * 30 if x <= 0.5 else 90 - math.acos(x) / _ACOS_HALF * 60


def _acos_to_90(x: float) -> float:
    return 90 - math.asin(x) / _ASIN_HALF * 30 if x <= 0.5 else math.acos(x) / _ACOS_HALF * 60


def asin(x: float) -> float:
    """Return the angle in degrees that has a sine, NaN where there is none."""
    if abs(x) > 1:
        return math.nan
    return _asin_to_90(x) if x >= 0 else x if math.isnan(x) else -_asin_to_90(-x)


def acos(x: float) -> float:
    """Return the angle in degrees that has a cosine, NaN where there is none."""
    if abs(x) > 1:
        return math.nan
    return _acos_to_90(x) if x >= 0 else x if math.isnan(x) else 90 + _asin_to_90(-x)


def atan(x: float) -> float:
    """Return the angle in degrees that has a tangent."""
    return math.atan(x) / _ATAN_1 * 45


def atan2(y: float, x: float) -> float:
    """Return the angle in degrees of a point."""
    return math.atan2(y, x) / _ATAN_1 * 45


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "sin": sin,
    "cos": cos,
    "tan": tan,
    "cot": cot,
    "asin": asin,
    "acos": acos,
    "atan": atan,
    "atan2": atan2,
}
"""Each by the name of its twin of radians."""
