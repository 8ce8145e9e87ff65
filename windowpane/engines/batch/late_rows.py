"""Late rows as an output: their columns, and then what made them late, by one rule for every kind of program.

The watermark is shown in Spark's meaning: nothing *below* it was still expected. ``late_by`` is how far the row was behind it, so
that a delay longer by so much would have had it on time. Both are NULL behind the end of the input, and for rows that were not
behind the watermark: their trigger was finished.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.engines.protocol import Clock
from windowpane.errors import InvalidSpecError
from windowpane.hidden_columns import TIME
from windowpane.windowing.times import MAX, MIN

WINDOWS_MISSED: Final = "windows_missed"
DROPPED: Final = "dropped"
REASON: Final = "reason"
"""Why a row is among the late ones; the column exists where a trigger may be finished while rows still arrive."""
WATERMARK, LATE_BY, WATERMARK_DELAY, LED_BY = "watermark", "late_by", "watermark_delay", "led_by"
INSTANT: Final = pa.timestamp("us", "UTC")
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999, which are all that Python knows: a watermark beyond is not shown, so that the rows can still be read."""


def late_schema(own: pa.Schema, instant: pa.DataType = INSTANT, has_windows: bool = False, has_reason: bool = False) -> pa.Schema:
    """Return the columns of a late output; with a reason where a row may be there for another one than that it is late.

    Raises:
        InvalidSpecError: rows have a column of such a name.
    """
    missed = pa.list_(pa.struct([pa.field("start", instant), pa.field("end", instant)]))
    more = [pa.field(WINDOWS_MISSED, missed)] if has_windows else []
    more += [pa.field(DROPPED, pa.bool_()), *([pa.field(REASON, pa.string())] if has_reason else [])]
    more += [pa.field(WATERMARK, instant), pa.field(LATE_BY, pa.int64())]
    more += [pa.field(WATERMARK_DELAY, pa.int64()), pa.field(LED_BY, pa.string())]
    if taken := [each.name for each in more if each.name in own.names]:
        raise InvalidSpecError(
            f"late rows get the columns {', '.join(each.name for each in more)}, and the input has {', '.join(taken)} already: "
            f"rename it, df.withColumnRenamed({taken[0]!r}, ...), or leave side_output_late_data out."
        )
    return pa.schema([*own, *more])


def late_table(
    schema: pa.Schema, rows: pa.Table, under: int | Integers, clock: Clock, outcome: Mapping[str, object] | None = None
) -> pa.Table:
    """Return late rows, with ``TIME``, as their output has them; ``under``: the watermark that all or each are late under.

    ``outcome``: columns that say what became of them; no window and no row took them where it says nothing.
    """
    count = rows.num_rows
    columns = {DROPPED: pa.repeat(True, count), **_why(rows[TIME], np.broadcast_to(under, (count,)), clock), **(outcome or {})}
    found = [columns[name] if name in columns else rows[name] for name in schema.names]
    return pa.table(found, names=schema.names).cast(schema)


def _why(times: pa.Array, under: Integers, clock: Clock) -> dict[str, pa.Array]:
    count, known = len(times), (under != MIN) & (under != MAX)
    marks = np.where(known, under, 0) + 1
    shown = known & (marks >= _FIRST) & (marks <= _LAST)
    has_time = ~np.asarray(times.is_null())
    behind = marks - np.where(known & has_time, times.fill_null(0).to_numpy(), marks)
    return {
        WATERMARK: pa.array(marks, pa.int64(), mask=~shown).cast(INSTANT),
        LATE_BY: pa.array(behind, pa.int64(), mask=behind <= 0),
        WATERMARK_DELAY: pa.repeat(pa.scalar(clock.delay, pa.int64()), count),
        LED_BY: pa.repeat(pa.scalar(clock.led_by, pa.string()), count),
    }
