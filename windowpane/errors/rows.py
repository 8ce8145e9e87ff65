"""Errors of rows: raised while they are processed; the failed batch is not committed."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

from windowpane.arrays.instants import format_instant
from windowpane.errors.base import WindowpaneError
from windowpane.hidden_columns import PREFIX

_NOT_THE_USERS = (str(Path(__file__).parents[1]), *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")))
"""Folders of code that a user has not written."""


class MissingTimestampError(WindowpaneError, ValueError):
    """An element without a timestamp reached event-time windows that need one."""

    def __init__(self, assigner: object, key: object, value: object) -> None:
        super().__init__(
            f"{f'element {value!r}' if value else 'an element'} of key {key!r} has no timestamp, and {assigner!r} assigns "
            "windows by event time. Filter out rows whose event time is null, give them one, or use processing-time or global "
            "windows."
        )


class MissingSideTimestampError(MissingTimestampError):
    """A row of a join without an event time."""

    def __init__(self, side: str, rows: int) -> None:
        WindowpaneError.__init__(
            self,
            f"{rows} {'row' if rows == 1 else 'rows'} of the {side} side of the join have no event time, so no watermark ever "
            "says that they are final. Filter out rows whose event time is null before the join, or give them one.",
        )


class MissingEventTimeError(MissingTimestampError):
    """A row without an event time reached rolling features or a deduplication, which need it."""

    def __init__(self, key: object, who: str = "rolling features go") -> None:
        WindowpaneError.__init__(
            self,
            f"a row of key {key!r} has no event time, and {who} by it. Filter out rows whose event time is NULL, "
            "or give them one.",
        )


class GapTooLongError(WindowpaneError, ValueError):
    """One key would have more windows filled at once than anyone means."""

    def __init__(self, key: object, windows: int, start: int) -> None:
        super().__init__(
            f"fill_gaps would fill {windows} windows of key {key!r} at once, from that of {format_instant(start)} on. A time is "
            "most likely wrong (a unit mixed up, a heartbeat far ahead?): filter such rows out, or take a shorter until=."
        )


class CalendarRangeError(WindowpaneError, OverflowError):
    """An element lies outside of the years in which calendar windows are known."""

    def __init__(self, timestamp: int | None, timezone: str) -> None:
        at = "a bound" if timestamp is None else f"the element at {timestamp} µs ({format_instant(timestamp)})"
        super().__init__(
            f"{at} of calendar windows in {timezone!r} lies outside of the years 1 to 9999. The event time is most likely wrong "
            "(a unit mixed up?): filter such rows out before the window."
        )


class TimestampOverflowError(WindowpaneError, OverflowError):
    """A window of an element would begin or end beyond int64 microseconds."""

    def __init__(self, timestamp: int, start: int, end: int) -> None:
        super().__init__(
            f"the window [{start}, {end}) of an element at {timestamp} µs ({format_instant(timestamp)}) does not fit into "
            "64 bits of microseconds. The event time is most likely wrong (a unit mixed up?): filter such rows out before "
            "the window."
        )


class EvictionTimeError(WindowpaneError, ValueError):
    """A time evictor met elements whose times it cannot compare."""

    def __init__(self, window_size: int, reason: str) -> None:
        super().__init__(
            f"TimeEvictor.of({window_size}) cannot tell which elements are too old: {reason}. Filter such rows out before the "
            "window, give all of them a time, or evict by count."
        )


class MissingOrderError(WindowpaneError, ValueError):
    """A row without an ORDER BY value reached a window that emits on close: it has no place in the order of time."""

    def __init__(self, column: str, row: object) -> None:
        super().__init__(f"{column!r} of the row {row!r} is NULL, so no watermark ever closes it. Filter such rows out before.")


def _shown(row: object) -> object:
    """Return a row without the columns that windowpane has added to it."""
    if not isinstance(row, dict):
        return row
    return {name: value for name, value in row.items() if not str(name).startswith(PREFIX)}


class InconsistentChangeError(WindowpaneError, ValueError):
    """A change that cannot be: a double insert, a delete of an absent row, an update after a delete."""

    def __init__(self, change: str, row: object, reason: str) -> None:
        super().__init__(
            f"{change} of {_shown(row)!r}: {reason}. The input is no sound changelog, or its key does not identify rows: mend "
            'it, or set on_inconsistent="warn" to count such changes and continue.'
        )


class AbsentInsertError(WindowpaneError, ValueError):
    """A changelog takes a row back that it has not inserted, where it is settled: read as the rows that stay."""

    def __init__(self, row: object, times: int) -> None:
        super().__init__(
            f"the changelog takes {_shown(row)!r} back {times} more time{'s' if times > 1 else ''} than it inserted it, and the "
            "watermark has passed the row. The changelog was not read from its beginning, or rows of it are changed under "
            "another event time: read it whole, or drop _change_type if every row is an insert."
        )


class AbsentRowError(WindowpaneError, ValueError):
    """A change takes back a row that the table of a store does not have."""

    def __init__(self, table: str, key: dict[str, object]) -> None:
        super().__init__(
            f"a change deletes or replaces the row {_shown(key)} of table {table!r}, which does not have it: others have written "
            "the table, the changes before are not in it, or the key does not identify a row. Nothing of the batch was written. "
            "Name all columns of the key, put a copy of the table back that belongs to the checkpoint, or start with a new "
            "checkpoint and a new table."
        )
        self.table, self.key = table, key


class InvalidIntervalError(WindowpaneError, ValueError):
    """A calendar interval that cannot be added to an instant."""

    def __init__(self, interval: object, instant: object, reason: str) -> None:
        super().__init__(f"{instant} plus {interval!r}: {reason}. Use a smaller interval, or filter out rows with such values.")


class LongSortKeyError(WindowpaneError, ValueError):
    """A text or bytes in ORDER BY that is too long: all keys of a batch are as long as the longest."""

    def __init__(self, width: int, rows: int, most: int) -> None:
        super().__init__(
            f"ORDER BY, or PARTITION BY, has a text of about {width:,} bytes among {rows:,} rows that are sorted together. Keys "
            f"are as long as the longest, and {most:,} bytes are the most for all. Order by the first letters, such as "
            "left(text, 200), or take fewer rows a batch."
        )


class UnrepresentableValueError(WindowpaneError, ValueError):
    """A value that Spark can hold and Python cannot, such as a timestamp after the year 9999."""

    def __init__(self, column: str, value: object, error: BaseException) -> None:
        super().__init__(
            f"column {column!r} holds {value}, which Python cannot represent ({error}). Functions see rows as Python values: "
            "filter such rows out, or cast the column to a number or a string before the window."
        )


class UnencodableKeyError(WindowpaneError, TypeError):
    """A key holds a value that has no canonical byte encoding."""

    def __init__(self, value: object, reason: str) -> None:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        super().__init__(
            f"cannot use {value!r} of type {kind} in a key: {reason}. Convert it first to "
            "None, bool, int, float, str, bytes, Decimal, date, datetime, time, timedelta, or a list, tuple "
            "or dict of these."
        )
        self.value = value


class InvalidSessionGapError(WindowpaneError, ValueError):
    """A dynamic session gap that is not greater than zero."""

    def __init__(self, gap: object, value: object) -> None:
        super().__init__(
            f"the session gap of element {value!r} is {gap!r}, but a gap must be an integer of microseconds greater than zero. "
            "Mend what with_dynamic_gap was given, or filter out the rows it has no gap for."
        )


class NegativeSizeError(WindowpaneError, ValueError):
    """A row would make a session smaller that a size closes."""

    def __init__(self, column: str, value: int) -> None:
        super().__init__(
            f"closed_by(size=({column!r}, ...)) adds up numbers that are not negative, and met {value}. Filter such rows out, or "
            "give a Column that has none, such as F.greatest(F.col('bytes'), F.lit(0))."
        )


class WindowTypeError(WindowpaneError, TypeError):
    """A trigger or function met a kind of window it is not made for."""

    def __init__(self, what: object, window: object) -> None:
        super().__init__(
            f"{what!r} works on time windows and met {window}. On global windows use a count, delta, never or end-of-stream "
            "trigger, or one of your own."
        )


class MergeBehindWatermarkError(WindowpaneError, page="how-to/what-was-late.md"):
    """Merging windows made one that ends behind the watermark (or behind the clock, for processing time)."""

    def __init__(self, key: object, window: object, allowed_lateness: int, clock: str, now: int) -> None:
        super().__init__(
            f"merging windows of key {key!r} gave {window}, which with an allowed lateness of {allowed_lateness} µs ends at or "
            f"before the current {clock} {now} ({format_instant(now)}): its results could never be emitted. The assigner's "
            "merge_windows must not shrink windows, and max timestamp + allowed lateness must stay within int64."
        )


class PerWindowStateError(WindowpaneError):
    """A function used per-window state on merging windows, where no window lives long enough to own it."""

    def __init__(self, key: object, window: object) -> None:
        super().__init__(
            f"per-window state was asked for in {window} of key {key!r}, but merging windows (sessions) have none: a merge would "
            "leave it without an owner. Use context.global_state, or keep it in the trigger with on_merge."
        )


class UserFunctionError(WindowpaneError):
    """A function, trigger, evictor or assigner given by the user raised; the original error is the cause."""

    def __init__(self, what: object, key: object, window: object, error: BaseException) -> None:
        super().__init__(
            f"{what!r} raised {type(error).__name__}: {error}{_place_in(error)} -- key {key!r}, window {window}. Nothing of this "
            "batch was committed: mend the function and restart from the same checkpoint."
        )


def _place_in(error: BaseException) -> str:
    """Return the line of the user's that an error comes from, as text to follow its message; nothing if it is not known."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_NOT_THE_USERS)]
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno}, in {frames[-1].name})" if frames else ""


class TriggerResultError(WindowpaneError, TypeError):
    """A trigger of the user's answered with something that is no TriggerResult."""

    def __init__(self, trigger: object, result: object, window: object) -> None:
        super().__init__(
            f"{trigger!r} returned {result!r} for window {window}, which is no TriggerResult. Every callback of a trigger "
            "returns one of wp.TriggerResult: CONTINUE where nothing is to happen, FIRE, PURGE or FIRE_AND_PURGE. Nothing of "
            "this batch was committed: mend the trigger and restart from the same checkpoint."
        )


class OutputSchemaError(WindowpaneError, TypeError):
    """A row that a function returned does not fit the schema it was declared with."""

    def __init__(self, output: str, reason: str, row: object, key: object, window: object) -> None:
        super().__init__(
            f"output {output!r}: {reason}; the row is {row!r}, of key {key!r} in {window}. Return dicts that fit the declared "
            "schema, or mend the schema given with the function."
        )


class FailedBatchError(WindowpaneError):
    """A batch of ``start`` failed; the cause has what failed."""

    def __init__(self, batch: int) -> None:
        super().__init__(
            f"batch {batch} failed by the error above, and the query has stopped. Mend the cause and start from the same "
            "checkpoint: the batch runs again, and its outputs are written over."
        )


class UnreadableFileError(WindowpaneError, ValueError):
    """A file that is not of the format it was read as, or whose values do not fit the schema."""

    def __init__(self, path: str, format: str, error: BaseException) -> None:
        super().__init__(
            f"{path} cannot be read as {format}: {error}. Mend the file or move it away, or mend the schema; its batch was not "
            "committed, and the query continues from there."
        )
        self.path, self.format = path, format


class MalformedRowError(WindowpaneError, ValueError, page="how-to/kafka.md"):
    """A row of a source cannot be read, and malformed rows were to be an error."""

    def __init__(self, row: object, path: str = "") -> None:
        super().__init__(
            f"{row}. Its batch was not committed. malformed='null' makes such values NULL and leaves out what is no row at all, "
            "malformed='drop' leaves out the whole row; both count and show them. Or mend the row, or the schema."
        )
        self.path = path


class PatternNameError(WindowpaneError, ValueError):
    """The path of a file has a character of patterns, for which Spark reads other files of its batch more than once."""

    def __init__(self, path: str, way_out: str) -> None:
        super().__init__(
            f"the path {path!r} has one of ? * [ ] {{ }} \\: Spark's file source takes it for a pattern, and reads the other "
            f"files of its batch more than once. {way_out} Nothing of the batch was committed."
        )
        self.path = path


class ArrowResultError(WindowpaneError, ValueError):
    """What a function on Arrow tables returned does not fit."""

    def __init__(self, what: object, reason: str) -> None:
        super().__init__(
            f"{what!r}: {reason}. Return a pyarrow.Table as the function's documentation says, with the columns of the declared "
            "schema; nothing of this batch was committed."
        )


class AggregateOverflowError(WindowpaneError, OverflowError):
    """The result of a built-in aggregate does not fit its result type; it is never wrapped or cut."""

    def __init__(self, aggregate: object, value: object, result_type: object) -> None:
        super().__init__(
            f"the result of {aggregate} is {value}, which does not fit {result_type}. Cast the column "
            "to a wider type (double or a decimal with fewer decimal places), or aggregate over smaller windows."
        )


class EndlessTimerError(WindowpaneError):
    """A trigger registers one timer after the other, so that one advance of a clock would never end."""

    def __init__(self, trigger: object, key: object, window: object, firings: int) -> None:
        super().__init__(
            f"{trigger!r} keeps registering timers that are already due, and fired {firings:,} of them again within one "
            f"advance of the clock, the last one for key {key!r} in {window}. A periodic trigger on a global window never "
            "reaches the end of a bounded stream, and a trigger must not register the timer it was called for, nor an earlier "
            "one: use time windows, or a count or end-of-stream trigger."
        )


class SkipTargetError(WindowpaneError):
    """AFTER MATCH names a row to go on at that there is not, or that is the first row of the match: it would go on for ever.

    Attributes:
        key: the partition.
        variable: whose row it was to be.
    """

    def __init__(self, key: object, variable: str, has_row: bool) -> None:
        """Name the partition and the variable."""
        reason = (
            "that is the first row of the match, from which it would go on for ever" if has_row else "the match has no such row"
        )
        super().__init__(
            f"partition {key!r}: after a match the search goes on at a row of {variable!r}, and {reason}. Choose another "
            "after_match, or on_error='next row', which goes on at the next row and counts bad_skips."
        )
        self.key, self.variable = key, variable


class PatternLimitError(WindowpaneError, page="how-to/patterns.md"):
    """The search for one match took too many steps.

    Attributes:
        key: the partition.
        steps: how many were allowed.
    """

    def __init__(self, key: object, steps: int) -> None:
        """Name the partition and the bound."""
        super().__init__(
            f"partition {key!r}: the search for a match that begins at one row took more than {steps:,} steps. Nested loops over "
            "rows that all variables take, as in '(a+)+', try every way to share the rows out: write 'a+', or raise max_steps."
        )
        self.key, self.steps = key, steps


class StateStoreError(WindowpaneError):
    """Spark's state store did not read or write what it was asked to."""

    def __init__(self, said: str) -> None:
        super().__init__(
            f"Spark's state store failed: {said}. Nothing of this batch was committed: mend the cause (a full disk, a checkpoint "
            "folder that cannot be reached) and restart from the same checkpoint."
        )
        self.said = said
