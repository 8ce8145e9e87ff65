"""The program of a filling: everything an engine needs to fill the gaps of windows on a bucket, as one picklable value.

Input tables carry the results of windows, and so does the main output: all of them, and those that are filled in.

The rule: a *seen* window of a key has a result. From each of them its key is filled: the windows after it, up to ``limit`` of
them and up to the next seen one, have a result once the watermark has passed their end. What a filled window shows depends on the
seen one that it is filled from alone. So a late result, of a window that was not seen before, changes what is filled behind it:

- windows that had no result by then, and are closed, are filled at once;
- where values are those of the result before, windows that were filled from an earlier one are filled again.

State holds a seen window until the last one that is filled from it is over: until then a late result can come between. With no
limit, that of the last seen window is held for ever.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from windowpane.arrays.values import Value
from windowpane.engines.program import WINDOW_END, WINDOW_START, BucketProgram, Upstream
from windowpane.hidden_columns import FIRING_WATERMARK, TIME


@dataclass(frozen=True)
class FillingProgram(BucketProgram):
    keys: tuple[str, ...]  # names of the key columns
    results: pa.Schema  # results as windows emit them: keys, bounds, values, time and watermark
    size: int  # microseconds of a window
    step: int  # microseconds from the start of a window to that of the next
    limit: int | None  # how many windows behind a seen one are filled, ``None`` for all
    previous: tuple[str, ...] = ()  # the columns that keep the value of the seen window
    constants: tuple[tuple[str, Value], ...] = ()  # the values of others; those of neither are NULL
    allowed_lateness: int = 0  # how long in microseconds a late result can come
    upstream: Upstream = field(default=Upstream.WINDOW_WITH_WATERMARKS, kw_only=True)

    @property
    def main_schema(self) -> pa.Schema:
        return self.results

    @property
    def columns(self) -> pa.Schema:
        """The columns that state keeps of a seen window: keys and values."""
        others = {WINDOW_START, WINDOW_END, TIME, FIRING_WATERMARK}
        return pa.schema([field for field in self.results if field.name not in others])
