"""Running sums and means of decimals: the totals are those of whole numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windowpane.errors import MistakeError
from windowpane.kernels.over.calls.decimals import decimal_means, decimal_sums
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.over.running.calls import RunningIntegerSum
from windowpane.windowing.over.types import bind_call


class RunningDecimalSum(RunningIntegerSum):
    """sum."""

    @property
    def result_type(self) -> pa.DataType:
        """The type of the call's result."""
        [name] = self.call.arguments
        return bind_call(self.call, pa.schema([(name, self.kind)])).result_type

    def value(self, rows: SortedRows) -> pa.Array:
        return decimal_sums(*self.summed(rows), self.totals(rows) > 0, self.result_type)


class RunningDecimalMean(RunningDecimalSum):
    """avg."""

    def value(self, rows: SortedRows) -> pa.Array:
        if self.kind is None:
            raise MistakeError("it has an argument")
        counts = np.where(rows.wanted, self.totals(rows), 0)
        return decimal_means(*self.summed(rows), counts, self.kind.scale, self.result_type, str(self.call))
