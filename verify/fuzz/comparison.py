"""Whether two engines gave the same rows: as multisets, doubles up to rounding, one NaN, the sign of zero as it is.

Rows are matched by everything but their doubles and signs of zeros first, so that neither can pair the wrong ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from windowpane.arrays.values import Row

REL_TOL = 1e-9
ABS_TOL = 1e-9


def difference(expected: Iterable[Row], got: Iterable[Row]) -> str | None:
    """Return what differs between two lists of rows in any order, ``None`` if nothing does."""
    wanted, shown = sorted(expected, key=_sort_key), sorted(got, key=_sort_key)
    for left, right in zip(wanted, shown, strict=False):
        if not same(left, right):
            return f"expected {left}\n    got      {right}"
    if len(wanted) == len(shown):
        return None
    extra = wanted[len(shown) :] or shown[len(wanted) :]
    return f"{'missing' if len(wanted) > len(shown) else 'one too many'}: {extra[0]}"


def _sort_key(row: Row) -> tuple[str, str, str]:
    exact = [(name, with_one_zero(value)) for name, value in row.items() if not isinstance(value, float)]
    doubles = [(name, f"{value + 0.0:.6g}") for name, value in row.items() if isinstance(value, float)]
    return repr(exact), repr(doubles), repr([_signs_of_zeros(value) for value in row.values()])


def _signs_of_zeros(value: Any) -> Any:
    """Return the signs of the zeros in a value, in order."""
    if isinstance(value, float):
        return math.copysign(1.0, value) if value == 0.0 else None
    if isinstance(value, dict):
        return [_signs_of_zeros(item) for item in value.values()]
    return [_signs_of_zeros(item) for item in value] if isinstance(value, list | tuple) else None


def with_one_zero(value: Any) -> Any:
    """Return a value without negative zeros."""
    if isinstance(value, float):
        return value + 0.0
    if isinstance(value, dict):
        return {name: with_one_zero(item) for name, item in value.items()}
    return [with_one_zero(item) for item in value] if isinstance(value, list | tuple) else value


def same(left: Any, right: Any) -> bool:
    """Return whether two values are the same."""
    if isinstance(left, float) and isinstance(right, float):
        if left == right == 0.0:
            return math.copysign(1.0, left) == math.copysign(1.0, right)
        both_nan = math.isnan(left) and math.isnan(right)
        return both_nan or math.isclose(left, right, rel_tol=REL_TOL, abs_tol=ABS_TOL)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return _same_items(left, right)
    return bool(left == right)


def identical(left: Row, right: Row) -> bool:
    """Return whether two rows are the same to the last bit: a sum of doubles in another order may well differ there."""
    return repr(left) == repr(right)


def _same_items(left: Sequence[Any], right: Sequence[Any]) -> bool:
    return len(left) == len(right) and all(same(one, other) for one, other in zip(left, right, strict=True))
