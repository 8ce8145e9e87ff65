"""The picture of a program on a few rows: a harness is given the rows of a static DataFrame, one after the other."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from windowpane.engines.patterns.program import PatternProgram
from windowpane.engines.program import Program
from windowpane.engines.rows import python_keys, python_rows
from windowpane.errors import InvalidSpecError, MissingTimestampError
from windowpane.hidden_columns import TIME
from windowpane.matching import MatchResult
from windowpane.stream import Result
from windowpane.testing.harness import WindowTestHarness
from windowpane.testing.pattern_harness import PatternTestHarness
from windowpane.testing.timeline import Timeline
from windowpane.windowing.times import MAX, MIN, Duration, to_micros
from windowpane.windowing.watermarks import Watermarks

_MOST_ROWS = 200
"""More would not be a picture."""


def draw(result: Result | MatchResult, watermark: Duration | Watermarks = 0) -> Timeline:
    """Draw what a program of windows, or a row pattern, makes of a few rows: elements, the watermark, results, late rows, as SVG.

    The rows arrive one by one, in the order of the DataFrame, each in a batch of its own; then the input ends. So trigger,
    lateness and late rows are seen as on a stream, which a static DataFrame by itself, all of it on time, does not show.

    Args:
        result: windows or a row pattern over a static DataFrame of at most 200 rows.
        watermark: how far the watermark stays behind the latest event time; of windows also a strategy of ``wp.Watermarks``.

    Returns:
        The picture: a notebook shows it by itself, ``save(path)`` writes it, ``svg`` is its text.

    Raises:
        InvalidSpecError: a stream, more rows, windows over windows, or a program that is none of windows.
        MissingTimestampError: a row has no event time, and the windows need one.

    Example:
        >>> totals = wp.stream(df, event_time="at").key_by("shop").window(hour).allowed_lateness("1 hour").aggregate(n=wp.count())
        >>> draw(totals, watermark="10 minutes").save("totals.svg")
    """
    if isinstance(result, MatchResult):
        return _of_pattern(result, watermark)
    built = result._built if isinstance(result, Result) else None
    if built is None or len(built.operators) != 1 or built.source.upstream is not None:
        raise InvalidSpecError(f"draw takes the result of one window over a DataFrame, got {type(result).__name__}.")
    rows = _few_rows(built)
    if built.source.heartbeat is not None:
        raise InvalidSpecError(f"draw: a heartbeat is no element, leave heartbeat={built.source.heartbeat!r} and its rows out.")
    program = built.operators[0].program
    assert isinstance(program, Program)
    strategy = Watermarks.of(watermark)
    harness = WindowTestHarness(program.spec, watermarks=strategy)
    keys, values = python_keys(rows, program.key_columns), python_rows(rows.select(program.values))
    for key, value, time in zip(keys, values, _times(rows, built.source.event_time), strict=True):
        if time is None and program.spec.assigner.is_event_time:
            raise MissingTimestampError(program.spec.assigner, key, value)
        harness.process_element(value, time, key)
        harness.finish_batch()
    if not strategy.of_each_key:
        harness.process_watermark(MAX)
    return harness.timeline()


def _few_rows(built: Any) -> pa.Table:
    if built.is_streaming:
        raise InvalidSpecError("draw takes a static DataFrame: read some rows of the stream as one, with spark.read.")
    rows: pa.Table = built.operators[0].reads.dataframe.limit(_MOST_ROWS + 1).toArrow()
    if rows.num_rows > _MOST_ROWS:
        raise InvalidSpecError(f"draw takes at most {_MOST_ROWS} rows, and the DataFrame has more: df.limit(...).")
    return rows


def _of_pattern(result: MatchResult, watermark: Duration | Watermarks) -> Timeline:
    if isinstance(watermark, Watermarks):
        raise InvalidSpecError(f"draw: of a pattern the watermark is a duration, such as '10 minutes', not {watermark!r}.")
    built = result._built
    rows, program = _few_rows(built), built.operators[0].program
    assert isinstance(program, PatternProgram)
    harness, latest, delay = PatternTestHarness(program), MIN, to_micros(watermark)
    times = rows[program.event_time].cast(pa.int64()).to_pylist()
    for row, time in zip(python_rows(rows.select(program.columns.names)), times, strict=True):
        harness.process_row(row, time)
        latest = max(latest, time)
        harness.process_watermark(latest - delay - 1)
    harness.process_watermark(MAX)
    return harness.timeline()


def _times(rows: pa.Table, event_time: str | None) -> list[int | None]:
    name = TIME if TIME in rows.column_names else event_time
    times: list[int | None] = [None] * rows.num_rows if name is None else rows[name].cast(pa.int64()).to_pylist()
    return times
