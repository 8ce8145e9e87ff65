"""The program of an interval join or an as-of join: everything an engine needs to run it on a bucket, as one picklable value.

A table that an engine is given holds rows of one side or of both: the columns of ``keys`` (of one type on both sides), ``SIDE``,
those of ``left`` and ``right`` (of the other side NULL or absent), and the system columns TIME, PARTITION and POSITION. PARTITION
is lower for the left side, so that its rows come first. A right side that is a changelog has ``CHANGE_TYPE``.

A bucket advances to the batch's watermark, takes its rows, and gives out what the watermark already makes final.

The main table has ``keys``, ``SIDE`` (``BOTH`` for a pair, else the side of the row), ``left``, ``right`` (NULL where a row has
no match, absent for semi and anti), ``CHANGE_TYPE`` where results are corrected, TIME and JUDGING_WATERMARK. Late tables have
``keys``, the columns of their side, ``DROPPED``, TIME and JUDGING_WATERMARK; a late right row of an as-of join that left rows to
come can still match is not dropped.

A join of windows is no program of this kind: it is a window program over the rows of both sides, whose function is the join.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from windowpane.engines.common.late_rows import DROPPED
from windowpane.engines.program import MAIN, Upstream
from windowpane.hidden_columns import JUDGING_WATERMARK, SIDE, TIME
from windowpane.windowing.changes import CHANGE_TYPE
from windowpane.windowing.joins import LEFT, AsOfJoin, IntervalJoin, gives_pairs
from windowpane.windowing.times import MIN

LATE_LEFT = MAIN + 1
"""Number of the output of late left rows."""
LATE_RIGHT = MAIN + 2
"""Number of the output of late right rows."""

Condition = Callable[[pa.Table], pa.Array]
"""From a table of pairs, with the columns of both sides, to booleans; NULL is false."""


@dataclass(frozen=True)
class JoinProgram:
    """One interval or as-of join, resolved against the types of its inputs.

    Args:
        spec: the join itself.
        keys: names and types of the key columns.
        left: names and types of the other columns of left rows.
        right: names and types of the other columns of right rows; no name stands twice among the three.
        null_safe: whether NULL keys equal one another; else a row with one matches nothing.
        condition: what pairs must fulfil besides, ``None`` for nothing.
        right_is_changelog: whether right rows say in ``CHANGE_TYPE`` what they are (as-of joins).
        late_outputs: whether late rows come out, of the left and of the right side.
        upstream: where rows come from.
        engine: name of the engine that runs it.
        engine_reason: why it is this one.
        description: the parts a restart compares, by name.
    """

    spec: IntervalJoin | AsOfJoin
    keys: pa.Schema
    left: pa.Schema
    right: pa.Schema
    null_safe: bool = False
    condition: Condition | None = None
    right_is_changelog: bool = False
    late_outputs: tuple[bool, bool] = (False, False)
    upstream: Upstream = Upstream.SOURCE
    engine: str = "join reference"
    engine_reason: str = ""
    description: tuple[tuple[str, str], ...] = ()

    @property
    def main_schema(self) -> pa.Schema:
        """The main output as an engine emits it."""
        right = self.right if gives_pairs(self.spec.how) else ()
        changes = [pa.field(CHANGE_TYPE, pa.string())] if isinstance(self.spec, AsOfJoin) and self.spec.updates else []
        return pa.schema([*self.keys, pa.field(SIDE, pa.int8()), *self.left, *right, *changes, *_SYSTEM])

    def late_schema(self, side: int) -> pa.Schema:
        """The output of the late rows of a side."""
        columns = self.left if side == LEFT else self.right
        return pa.schema([*self.keys, *columns, pa.field(DROPPED, pa.bool_()), *_SYSTEM])

    def horizon(self, watermark: int) -> int:
        """Return the event time at or below which rows are late under a watermark."""
        return max(watermark - self.spec.allowed_lateness, MIN)

    def judged(self, watermark: int) -> int:
        """Return what rows are judged by downstream that come out when the watermark moves on from ``watermark``."""
        if isinstance(self.spec, AsOfJoin):
            return MIN if self.spec.updates else self.horizon(watermark)
        judged = self.spec.judged(watermark)
        return MIN if judged is None else max(judged, MIN)


_SYSTEM = (pa.field(TIME, pa.int64()), pa.field(JUDGING_WATERMARK, pa.int64()))
