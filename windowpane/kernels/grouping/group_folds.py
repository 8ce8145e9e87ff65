"""Grouped kernels on known groups: what Arrow's sum, count, min and max by group give, by numpy's reductions.

Where it is known which rows belong together, this costs a few nanoseconds a row; hashing the groups anew costs some hundred.
Columns of other types, and other kernels, have no such form.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windowpane.arrays import NumpyArray
from windowpane.arrays.columns import flat
from windowpane.kernels.grouping.coded_groups import Groups, neutral
from windowpane.kernels.keys.ordered_codes import validity

_VIEWS = {
    pa.int8(): pa.int8(),
    pa.int16(): pa.int16(),
    pa.int32(): pa.int32(),
    pa.int64(): pa.int64(),
    pa.float32(): pa.float32(),
    pa.float64(): pa.float64(),
    pa.date32(): pa.int32(),
}
_SUMMED = (pa.int64(), pa.float64())


def folded(column: object, kernel: str, groups: Groups) -> pa.Array | None:
    """Return a column's value for each group, ``None`` if there is no such form."""
    values = flat(column)
    if not is_folded(values.type, kernel):
        return None
    if kernel == "count":
        return pa.array(_count(values, groups))
    view = _view_of(values.type)
    numbers, is_valid = _parts(values, view, kernel)
    found = _reduced(numbers, kernel, groups)
    missing = None if is_valid is None else groups.total(groups.picked(is_valid)) == 0
    return pa.array(found, mask=missing).view(values.type)


def is_folded(kind: pa.DataType, kernel: str) -> bool:
    if kernel == "count":
        return True
    return kind in _SUMMED if kernel == "sum" else kernel in ("min", "max") and _view_of(kind) is not None


def counted(groups: Groups) -> pa.Array:
    return pa.array(groups.sizes)


def _view_of(kind: pa.DataType) -> pa.DataType | None:
    """Return the type of numpy that orders and adds as values of ``kind`` do."""
    return pa.int64() if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) else _VIEWS.get(kind)


def _count(values: pa.Array, groups: Groups) -> NumpyArray:
    if not values.null_count:
        return groups.sizes
    return groups.total(groups.picked(validity(values).astype(np.int64)))


def _parts(values: pa.Array, view: pa.DataType, kernel: str) -> tuple[NumpyArray, NumpyArray | None]:
    """Return the values as numbers, with nulls that change nothing, and 1 where there is one."""
    numbers = values.view(view)
    if not values.null_count:
        return numbers.to_numpy(), None
    is_valid = validity(values)
    filled = numbers.fill_null(0).to_numpy()
    return np.where(is_valid, filled, neutral(filled.dtype, kernel)), is_valid.astype(np.int64)


def _reduced(numbers: NumpyArray, kernel: str, groups: Groups) -> NumpyArray:
    if kernel == "sum" and not numbers.any():
        return np.zeros(groups.count, numbers.dtype)
    gathered = groups.picked(numbers)
    if kernel == "min":
        return groups.least(gathered)
    if kernel == "max":
        return groups.greatest(gathered)
    with np.errstate(invalid="ignore", over="ignore"):  # opposite infinities add up to NaN, as they do in Spark
        totals: NumpyArray = groups.total(gathered) + gathered.dtype.type(0)  # no sum is a negative zero, as in Arrow
    return totals
