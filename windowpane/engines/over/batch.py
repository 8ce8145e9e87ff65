"""What all engines of OVER windows do with a batch: late rows, impossible changes, and the watermark of results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.engines.batch.driver import OrderedBatch
from windowpane.engines.over.program import Inconsistent, OverProgram
from windowpane.engines.program import Upstream
from windowpane.errors import InconsistentChangeError
from windowpane.hidden_columns import FIRING_WATERMARK, PARTITION, POSITION, TIME
from windowpane.kernels.over.window import call_kernel
from windowpane.windowing.outputs import CHANGE_TYPE
from windowpane.windowing.times import MIN

_SYSTEM = (PARTITION, POSITION, CHANGE_TYPE, FIRING_WATERMARK)


class OverBatch(OrderedBatch[OverProgram]):
    def report(self, error: InconsistentChangeError) -> None:
        if self.program.on_inconsistent is Inconsistent.ERROR:
            raise error
        self.count("inconsistent", 1)

    def emit(self, results: pa.Table) -> None:
        under = np.full(results.num_rows, self.program.fired_under(self.before))
        schema = self.program.main_schema
        super().emit(results.append_column(FIRING_WATERMARK, pa.array(under)).select(schema.names).cast(schema))

    def arrived(self, tables: Sequence[pa.Table]) -> pa.Table | None:
        """Return the rows that are not late under the watermark, or under the one that each carries; ``None`` for none."""
        names = [*self.program.columns.names, TIME]
        rows = pa.concat_tables(
            [table.select([*names, *(name for name in _SYSTEM if name in table.column_names)]) for table in tables],
            promote_options="default",
        )
        horizon = self.program.horizon(self.late_under)
        if horizon is None:
            return rows
        horizons = pa.scalar(horizon, pa.int64())
        if self.program.upstream is Upstream.WINDOW_WITH_WATERMARKS and FIRING_WATERMARK in rows.column_names:
            each = [self.program.horizon(fired_under) for fired_under in rows[FIRING_WATERMARK].to_pylist()]
            horizons = pa.array(each, pa.int64())
        late = pc.less_equal(rows[TIME], horizons)
        if late.null_count:
            late = pc.coalesce(late, pc.greater(horizons, MIN) if self.program.null_is_late else pa.scalar(False))
        if not pc.any(late).as_py():
            return rows
        if FIRING_WATERMARK not in rows.column_names:
            rows = rows.append_column(FIRING_WATERMARK, pa.array(np.full(rows.num_rows, self.late_under)))
        schema = self.program.late_schema if self.program.has_late_output else None
        return self.punctual(rows, late.to_numpy(zero_copy_only=False), schema, FIRING_WATERMARK)


def calls_in_words(program: OverProgram) -> str:
    """Return, for people, which calls continue from counters and which are folded row by row."""
    kernels = [call_kernel(call, program.columns) for call in program.spec.calls]
    running = [str(kernel.call) for kernel in kernels if kernel.is_running]
    folded = [str(kernel.call) for kernel in kernels if kernel.is_folded]
    parts = [f"{', '.join(running)} from counters of the row before"] if running else []
    parts += [f"{', '.join(folded)} row by row by the aggregate itself"] if folded else []
    return "; ".join(parts) or "every call for all rows at once"
