"""Arrays: the types of the numpy arrays that rules on whole columns are written with."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Integers: TypeAlias = npt.NDArray[np.int64]
"""Whole numbers: times in microseconds, positions of rows, numbers of groups, codes of keys."""
Unsigned: TypeAlias = npt.NDArray[np.uint64]
"""64 bits as they are: hashes, and columns packed into words."""
Doubles: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
"""Which rows, one boolean for each."""
Bytes: TypeAlias = npt.NDArray[np.bytes_]
"""Values of one width, such as sort keys that compare as bytes."""
NumpyArray: TypeAlias = npt.NDArray[Any]
"""An array whose type depends on the column it is of."""
