"""Arrow tables as the pandas frames that PySpark's workers need, handed on without a copy.

PySpark puts every array, struct and map that a frame holds through a converter, value by value, by ``Series.apply``. What lies
in Arrow already needs none, so its columns map to themselves.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd


def frame_of(table: pa.Table) -> pd.DataFrame:
    """Return a table of single chunks as a frame that PySpark's worker takes as it is."""
    import pandas as pd  # half a second, which the worker that only looks at a program on the driver need not wait

    column = _column_class()
    return pd.DataFrame({name: column(table[name].chunk(0)) for name in table.column_names}, copy=False)


@cache
def _column_class() -> Any:
    import pandas as pd

    class Converted(pd.arrays.ArrowExtensionArray):
        def map(self, mapper: Any, na_action: Any = None) -> Converted:
            """Return the values as they are, whatever would be made of each."""
            return self

    return Converted
