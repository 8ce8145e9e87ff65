"""Numbers as doubles, rounded as Python rounds them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windowpane.arrays import Doubles


def doubles_of(column: pa.Array) -> Doubles:
    """Return a column of numbers as doubles, NULL as 0; Arrow's cast of decimals is not rounded to the nearest."""
    if pa.types.is_decimal(column.type):
        return np.array([0.0 if value is None else float(value) for value in column.to_pylist()], np.float64)
    doubles: Doubles = column.cast(pa.float64(), safe=False).fill_null(0.0).to_numpy()
    return doubles
