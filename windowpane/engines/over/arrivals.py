"""The input of a columnar OVER engine: the rows of a batch that are late, those that are not, and impossible changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.engines.over.program import CHANGE_TYPE, LATE, Inconsistent, OverProgram
from windowpane.engines.program import Upstream
from windowpane.errors import InconsistentChangeError
from windowpane.hidden_columns import FIRING_WATERMARK, PARTITION, POSITION, TIME
from windowpane.windowing.times import MIN

_SYSTEM = (PARTITION, POSITION, CHANGE_TYPE, FIRING_WATERMARK)


class Arrivals:
    """Takes in the rows of one batch of one bucket; counts late rows and impossible changes."""

    def __init__(self, program: OverProgram) -> None:
        """Take in rows for ``program``."""
        self._program = program
        self._names = [*program.columns.names, TIME]
        self._late: list[pa.Table] = []
        self.inconsistent = 0

    @property
    def late(self) -> int:
        """How many rows were late."""
        return sum(table.num_rows for table in self._late)

    def report(self, error: InconsistentChangeError) -> None:
        """Take an impossible change: raise it, or count it and return."""
        if self._program.on_inconsistent is Inconsistent.ERROR:
            raise error
        self.inconsistent += 1

    def punctual(self, tables: Sequence[pa.Table], watermark: int) -> pa.Table:
        """Return the rows that are not late under ``watermark``, or under the one that each carries."""
        kept = [table.select([*self._names, *(name for name in _SYSTEM if name in table.column_names)]) for table in tables]
        rows = pa.concat_tables(kept, promote_options="default")
        horizons = self._horizons(rows, watermark)
        if horizons is None:
            return rows
        late = pc.less_equal(rows[TIME], horizons)
        if late.null_count:
            late = pc.coalesce(late, pc.greater(horizons, MIN) if self._program.null_is_late else pa.scalar(False))
        if not pc.any(late).as_py():
            return rows
        dropped = rows.filter(late)
        carried = FIRING_WATERMARK in dropped.column_names
        under = dropped[FIRING_WATERMARK] if carried else pa.array(np.full(dropped.num_rows, watermark))
        lost = dropped.select(self._names).append_column(FIRING_WATERMARK, under)
        self._late.append(lost.cast(self._program.late_schema))
        return rows.filter(pc.invert(late))

    def late_output(self) -> Iterator[tuple[int, pa.Table]]:
        """Yield the late output, if it is asked for and not empty."""
        if self._late and self._program.has_late_output:
            yield LATE, pa.concat_tables(self._late)

    def _horizons(self, rows: pa.Table, watermark: int) -> pa.Scalar | pa.Array | None:
        horizon = self._program.horizon(watermark)
        if horizon is None:
            return None
        if self._program.upstream is not Upstream.WINDOW_WITH_WATERMARKS or FIRING_WATERMARK not in rows.column_names:
            return pa.scalar(horizon, pa.int64())
        return pa.array([self._program.horizon(fired_under) for fired_under in rows[FIRING_WATERMARK].to_pylist()], pa.int64())
