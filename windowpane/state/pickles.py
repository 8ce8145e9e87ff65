"""Values that are pickled in state, read again by later versions: classes that have moved since are found where they are now.

A pickle names the modules of its classes. Invariant: a module whose classes may be in a checkpoint and that moves is named
here, so that every checkpoint can be continued. Payloads are Python objects: a checkpoint is trusted storage.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

_AGGREGATES = (
    "averages",
    "booleans",
    "collecting",
    "combined",
    "counting",
    "distinct_sketch",
    "extremes",
    "mode",
    "moments",
    "positions",
    "quantile_sketch",
    "quantiles",
    "sums",
)
_MOVED = {
    **{f"windowpane.windowing.aggregates.{name}": f"windowpane.windowing.aggregates.algorithms.{name}" for name in _AGGREGATES},
    **{f"windowpane.operators.{name}": f"windowpane.operators.over.{name}" for name in ("row_forms", "row_order")},
    "windowpane.windowing.frames": "windowpane.windowing.over.frames",
    "windowpane.windowing.over_spec": "windowpane.windowing.over.spec",
}
"""Modules by the name that they had when a checkpoint was written."""


def loads(data: bytes) -> Any:
    """Return the value of ``pickle.dumps``, whichever version of windowpane wrote it.

    Raises:
        ModuleNotFoundError: it is of a class that is not there.
    """
    try:
        return pickle.loads(data)
    except ModuleNotFoundError as error:
        if error.name not in _MOVED:
            raise
        return _Unpickler(io.BytesIO(data)).load()


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return super().find_class(_MOVED.get(module, module), name)
