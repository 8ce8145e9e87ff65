"""Every error windowpane raises, under one base class.

A message names the value, the key and the window it is about, and says what to do.
"""

from __future__ import annotations

import difflib
import sysconfig
import traceback
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Self

from windowpane.hidden_columns import PREFIX
from windowpane.instants import format_instant

_NOT_THE_USERS = (str(Path(__file__).parent), *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")))
"""Folders of code that a user has not written."""


class WindowpaneError(Exception):
    """Base class of all errors of windowpane."""

    def located(self, **place: object) -> Self:
        """Add where it happened (key, element, window) to the message, once, and return the error."""
        if not getattr(self, "_located", False):
            where = ", ".join(f"{name} {value!r}" for name, value in place.items())
            self.args = (f"{self.args[0]} [{where}]" if where else self.args[0], *self.args[1:])
            self._located = True
        return self


class MissingExtraError(WindowpaneError, ModuleNotFoundError):
    """A package that is not installed, of an extra of windowpane."""

    def __init__(self, package: str, extra: str) -> None:
        """Name the package, and the extra that brings it."""
        super().__init__(f"{package} is not installed. It comes with an extra: pip install 'windowpane[{extra}]'.")
        self.name = package

    @classmethod
    def unless(cls, extra: str, *packages: str) -> None:
        """Look for the packages of an extra, without importing them.

        Raises:
            MissingExtraError: naming the first that is not there.
        """
        for package in packages:
            if find_spec(package) is None:
                raise cls(package, extra)


class InvalidDurationError(WindowpaneError, ValueError):
    """A duration that is no duration: unknown unit, wrong type, finer than a microsecond, beyond int64."""

    def __init__(self, duration: object, reason: str) -> None:
        """Name the value and what is wrong with it."""
        super().__init__(
            f"{duration!r} is not a duration: {reason}. Write text such as '10 minutes' or '1 hour 30 minutes' (units of "
            "fixed length up to weeks), a timedelta, or an integer of microseconds."
        )


class InvalidSpecError(WindowpaneError, ValueError):
    """A window assigner, trigger, evictor or plan whose parameters cannot work; refused when it is built."""


class NonMergingTriggerError(InvalidSpecError):
    """A trigger that cannot merge was put on an assigner whose windows merge (sessions)."""

    def __init__(self, assigner: object, trigger: object) -> None:
        """Name both and what to do."""
        super().__init__(
            f"{assigner!r} merges windows, but {trigger!r} cannot merge its state. Use a trigger whose can_merge() is true "
            "(event time, processing time, count, continuous), or give yours can_merge and on_merge. A trigger that overrides "
            "on_element needs an on_merge of its own, which carries over what it keeps and may call super().on_merge."
        )


class MissingTimestampError(WindowpaneError, ValueError):
    """An element without a timestamp reached event-time windows that need one."""

    def __init__(self, assigner: object, key: object, value: object) -> None:
        """Name the element and what to do."""
        super().__init__(
            f"{f'element {value!r}' if value else 'an element'} of key {key!r} has no timestamp, and {assigner!r} assigns "
            "windows by event time. Filter out rows whose event time is null, give them one, or use processing-time or global "
            "windows."
        )


class MissingEventTimeError(MissingTimestampError):
    """A row without an event time reached rolling features or a deduplication, which need it."""

    def __init__(self, key: object, who: str = "rolling features go") -> None:
        """Name the key, what needs its time, and what to do."""
        WindowpaneError.__init__(
            self,
            f"a row of key {key!r} has no event time, and {who} by it. Filter out rows whose event time is NULL, "
            "or give them one.",
        )


class MissingWatermarkError(InvalidSpecError):
    """A stream without a watermark, of which nothing would ever be final."""

    def __init__(self, who: str, way_out: str) -> None:
        """Name who has none ("rolling features have"), and how one is given."""
        super().__init__(f"{who} no watermark, so no row would ever be final: {way_out}.")


class DuplicateColumnError(InvalidSpecError):
    """Two columns of a result have one name."""

    def __init__(self, columns: Iterable[str], way_out: str) -> None:
        """Name the columns and what to do."""
        super().__init__(f"the result would have {', '.join(map(repr, columns))} twice. {way_out}")


class TileMismatchError(InvalidSpecError):
    """A rolling window or a step that is no multiple of the length of its tiles."""

    def __init__(self, what: str, hop: str, nearest: str) -> None:
        """Name both and the nearest lengths that are, nothing if a length is none."""
        reason = f"The nearest are {nearest}; .hop(...) sets other tiles." if nearest else "Both must be longer than nothing."
        super().__init__(f"{what} is no multiple of {hop}, the length of its tiles. {reason}")


class EdgeError(InvalidSpecError):
    """An edge of rolling windows that does not fit how they are emitted."""

    def __init__(self, what: str) -> None:
        """Name both and what to do."""
        super().__init__(f"{what} do not go together: each row is to have the rows of its own window. Use .edge('exact').")


class UnboundedStateError(InvalidSpecError):
    """An aggregate over a long rolling window that keeps every value."""

    def __init__(self, name: str, aggregate: object, length: str) -> None:
        """Name the feature and the ways out."""
        super().__init__(
            f"{name}={aggregate!r} over {length} keeps every value of that time for every key. Use an approximate one, such as "
            "approx_count_distinct or approx_quantile, a window of up to a day, or allow it by .unbounded_state()."
        )


class TimestampOverflowError(WindowpaneError, OverflowError):
    """A window of an element would begin or end beyond int64 microseconds."""

    def __init__(self, timestamp: int, start: int, end: int) -> None:
        """Name the element's time and the window that does not fit."""
        super().__init__(
            f"the window [{start}, {end}) of an element at {timestamp} µs ({format_instant(timestamp)}) does not fit into "
            "64 bits of microseconds. The event time is most likely wrong (a unit mixed up?): filter such rows out before "
            "the window."
        )


class CalendarRangeError(WindowpaneError, OverflowError):
    """An element lies outside of the years in which calendar windows are known."""

    def __init__(self, timestamp: int | None, timezone: str) -> None:
        """Name the element's time, if it is known, and the zone of the calendar."""
        at = "a bound" if timestamp is None else f"the element at {timestamp} µs ({format_instant(timestamp)})"
        super().__init__(
            f"{at} of calendar windows in {timezone!r} lies outside of the years 1 to 9999. The event time is most likely wrong "
            "(a unit mixed up?): filter such rows out before the window."
        )


class EvictionTimeError(WindowpaneError, ValueError):
    """A time evictor met elements whose times it cannot compare."""

    def __init__(self, window_size: int, reason: str) -> None:
        """Name the evictor and what it met."""
        super().__init__(
            f"TimeEvictor.of({window_size}) cannot tell which elements are too old: {reason}. Filter such rows out before the "
            "window, give all of them a time, or evict by count."
        )


class InvalidSessionGapError(WindowpaneError, ValueError):
    """A dynamic session gap that is not greater than zero."""

    def __init__(self, gap: object, value: object) -> None:
        """Name the gap and the element it was made from."""
        super().__init__(
            f"the session gap of element {value!r} is {gap!r}, but a gap must be an integer of microseconds greater than zero. "
            "Mend the function given to with_dynamic_gap, or filter out the rows it has no gap for."
        )


class WindowTypeError(WindowpaneError, TypeError):
    """A trigger or function met a kind of window it is not made for."""

    def __init__(self, what: object, window: object) -> None:
        """Name the part, the window and what to do."""
        super().__init__(
            f"{what!r} works on time windows and met {window}. On global windows use a count, delta, never or end-of-stream "
            "trigger, or one of your own."
        )


class MergeBehindWatermarkError(WindowpaneError):
    """Merging windows made one that ends behind the watermark (or behind the clock, for processing time)."""

    def __init__(self, key: object, window: object, allowed_lateness: int, clock: str, now: int) -> None:
        """Name key, window and time."""
        super().__init__(
            f"merging windows of key {key!r} gave {window}, which with an allowed lateness of {allowed_lateness} µs ends at or "
            f"before the current {clock} {now} ({format_instant(now)}): its results could never be emitted. The assigner's "
            "merge_windows must not shrink windows, and max timestamp + allowed lateness must stay within int64."
        )


class PerWindowStateError(WindowpaneError):
    """A function used per-window state on merging windows, where no window lives long enough to own it."""

    def __init__(self, key: object, window: object) -> None:
        """Name key, window and what to do."""
        super().__init__(
            f"per-window state was asked for in {window} of key {key!r}, but merging windows (sessions) have none: a merge would "
            "leave it without an owner. Use context.global_state, or keep it in the trigger with on_merge."
        )


class TriggerResultError(WindowpaneError, TypeError):
    """A trigger of the user's answered with something that is no TriggerResult."""

    def __init__(self, trigger: object, result: object, window: object) -> None:
        """Name the trigger, what it returned and the window."""
        super().__init__(
            f"{trigger!r} returned {result!r} for window {window}, which is no TriggerResult. Every callback of a trigger "
            "returns one of wp.TriggerResult: CONTINUE where nothing is to happen, FIRE, PURGE or FIRE_AND_PURGE. Nothing of "
            "this batch was committed: mend the trigger and restart from the same checkpoint."
        )


class UndeclaredSideOutputError(WindowpaneError, KeyError):
    """A function wrote to, or a caller read, a side output that is not declared."""

    def __init__(self, tag: object, declared: object) -> None:
        """Name the tag and those that are declared."""
        super().__init__(
            f"side output {tag!r} is not declared; declared are {declared!r}. Declare it with .side_output(OutputTag(...)) (or "
            ".side_output_late_data(...) for late rows) before the function is set."
        )

    def __str__(self) -> str:
        """Return the message (KeyError would print its repr)."""
        return str(self.args[0])


class UserFunctionError(WindowpaneError):
    """A function, trigger, evictor or assigner given by the user raised; the original error is the cause."""

    def __init__(self, what: object, key: object, window: object, error: BaseException) -> None:
        """Name the function, the key, the window and the error."""
        super().__init__(
            f"{what!r} raised {type(error).__name__}: {error}{_place_in(error)} -- key {key!r}, window {window}. Nothing of this "
            "batch was committed: mend the function and restart from the same checkpoint."
        )


def _place_in(error: BaseException) -> str:
    """Return the line of the user's that an error comes from, as text to follow its message; nothing if it is not known."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_NOT_THE_USERS)]
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno}, in {frames[-1].name})" if frames else ""


class EndlessTimerError(WindowpaneError):
    """A trigger registers one timer after the other, so that one advance of a clock would never end."""

    def __init__(self, trigger: object, key: object, window: object, firings: int) -> None:
        """Name the trigger, the key and the window."""
        super().__init__(
            f"{trigger!r} keeps registering timers that are already due, and fired {firings:,} of them again within one "
            f"advance of the clock, the last one for key {key!r} in {window}. A periodic trigger on a global window never "
            "reaches the end of a bounded stream, and a trigger must not register the timer it was called for, nor an earlier "
            "one: use time windows, or a count or end-of-stream trigger."
        )


class UnknownStateFormatError(WindowpaneError):
    """A state blob is of another kind, or of a format version this windowpane does not read."""

    def __init__(self, kind: str, found: str, supported: tuple[int, ...]) -> None:
        versions = ", ".join(str(version) for version in supported)
        super().__init__(
            f"state blob of kind {kind!r}: found {found}, but this windowpane reads only "
            f"format version(s) {versions} of {kind!r}. Upgrade windowpane, or restart with "
            "the version that wrote the checkpoint."
        )
        self.kind = kind
        self.found = found
        self.supported = supported


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


class SqlError(WindowpaneError, ValueError):
    """A statement was refused; ``line`` and ``column`` say where in the text, counted from 1."""

    def __init__(self, message: str, line: int, column: int) -> None:
        """Say what, and where."""
        super().__init__(f"line {line}, column {column}: {message}")
        self.line = line
        self.column = column


class SqlSyntaxError(SqlError):
    """The text is not SQL."""


class UnsupportedSqlError(SqlError):
    """A construct of SQL that windowpane does not run; the message names the nearest one that it does."""


class SqlNameError(SqlError, LookupError):
    """A table, column, function or window that does not exist, or exists twice."""


class SqlTypeError(SqlError, TypeError):
    """An operator or function that has no meaning for the types it was given."""


class SqlRunError(WindowpaneError):
    """A statement was understood and failed while it ran; nothing of it was kept."""


class DivisionByZeroError(SqlRunError, ZeroDivisionError):
    """A number was divided by zero; in a view the quotient is NULL instead."""

    def __init__(self) -> None:
        """Say so."""
        super().__init__("division by zero.")


class OutOfRangeError(SqlRunError, OverflowError):
    """A value, or what was computed, is out of the range of its type."""


class UnsupportedValueError(OutOfRangeError):
    """A value that other databases have and no type here holds: NaN and infinity of numeric, intervals of very many hours."""


class InvalidValueError(SqlRunError, ValueError):
    """An argument that a function or operator has no result for, such as a pattern that is none."""


class InvalidTextError(InvalidValueError):
    """A text that is no value of the type it was cast to."""

    def __init__(self, kind: str, value: str) -> None:
        """Name the type and the text."""
        super().__init__(f'invalid input syntax for type {kind}: "{value}".')
        self.kind, self.value = kind, value


class OutOfMemoryError(SqlRunError, MemoryError):
    """A statement needs more memory than there is."""


class ResultSizeError(OutOfMemoryError):
    """The result of a query is larger than ``max_result_size``; ``most`` has its bytes, ``rows`` how many were read by then."""

    def __init__(self, most: int, rows: int) -> None:
        """Name the bound, and the ways out."""
        super().__init__(
            f"the result has more than {most:,} bytes, after {rows:,} rows, and max_result_size allows no more at once. "
            "Read it in parts with Session.stream, ask for less (LIMIT, GROUP BY), or raise the bound: SET max_result_size = "
            "'4GB', where 0 is no bound."
        )
        self.most, self.rows = most, rows


class StaleViewError(WindowpaneError):
    """A statement was run and kept, but some views could not follow: they show the rows of their last good flush."""

    def __init__(self, failures: dict[str, str]) -> None:
        """Name each view, and why it stays behind."""
        lines = [f"  {name}: {reason}" for name, reason in failures.items()]
        super().__init__(
            "views that could not be brought up to date; all others were, and the changes are kept:\n" + "\n".join(lines) + "\n"
            "Such a view keeps the rows of its last good flush. Mend the rows that it reads, and the next FLUSH catches up, or "
            "drop it. SHOW ERRORS lists the values."
        )
        self.failures = failures


class UnexpectedError(WindowpaneError):
    """Something failed that should not: a mistake of windowpane's, to be reported with the statement."""

    def __init__(self, statement: str, error: BaseException) -> None:
        """Name the statement and what failed; ``__cause__`` has the traceback."""
        first = str(error).split("\n")[0]
        super().__init__(
            f"{type(error).__name__}: {first}. This is a mistake of windowpane's, not of yours: please report it, with the "
            "statement and the tables it names. Nothing of the statement was kept, and the session can be used further. It was: "
            f"{statement}"
        )
        self.statement = statement


class UnsupportedStoreError(WindowpaneError):
    """A store that a session of this mode, with Spark or without, cannot open."""

    def __init__(self, store: str, reason: str) -> None:
        """Name the store, why not, and what to do."""
        super().__init__(f"store {store!r}: {reason}")


class StoreVersionError(WindowpaneError):
    """A store was written by another version of windowpane, which planned its views, or stored their rows, in another way."""

    def __init__(self, store: str, differences: dict[str, tuple[str | None, str | None]]) -> None:
        """Name the store, and each part that differs, as it was and as it is."""
        lines = [f"  {part}: was {was or 'not kept'}\n    is {now}" for part, (was, now) in differences.items()]
        super().__init__(
            f"store {store!r} was written by another version of windowpane:\n" + "\n".join(lines) + "\nOpen it with that "
            "version, or CREATE everything in a new store and INSERT the rows of the tables, which are plain tables of this "
            "DuckDB file, in schema main. Nothing was changed."
        )
        self.store, self.differences = store, differences


class ChangedViewSchemaError(WindowpaneError):
    """A store holds a table of that name with other columns; a view never changes the schema of what is stored."""

    def __init__(self, table: str, differences: dict[str, tuple[str | None, str | None]]) -> None:
        """Name each column that differs, as it is stored and as it is in the view."""
        lines = [f"  {name}: stored {was or 'absent'}, view {now or 'absent'}" for name, (was, now) in differences.items()]
        super().__init__(
            f"table {table!r} of the store has other columns than the view:\n" + "\n".join(lines) + "\nDrop or rename the "
            "stored table, or give the view another name; nothing was written."
        )
        self.differences = differences


class StoreError(WindowpaneError):
    """A store cannot be reached, or refuses what is written to it."""

    def __init__(self, store: str, reason: str) -> None:
        """Name the store, and repeat its error."""
        super().__init__(f"store {store}: {reason}")
        self.store, self.reason = store, reason


class MisplacedStateError(WindowpaneError):
    """A PostgreSQL store and the file with the state of its views do not belong together."""


class UnreadableStateError(WindowpaneError):
    """State bytes do not decode: they are damaged, incomplete, or need something this machine lacks."""


class PageLimitError(WindowpaneError, ValueError):
    """A page limit of SortedPages is below one row or one byte."""


class AggregateTypeError(WindowpaneError, TypeError):
    """A built-in aggregate has no meaning for the types of its arguments; refused when the plan is built."""

    def __init__(self, aggregate: object, types: object, wanted: str) -> None:
        """Name the aggregate, the types it got and those it takes."""
        super().__init__(f"{aggregate} got {types}, but takes {wanted}. Cast the column, or aggregate another one.")


class AggregateOverflowError(WindowpaneError, OverflowError):
    """The result of a built-in aggregate does not fit its result type; it is never wrapped or cut."""

    def __init__(self, aggregate: object, value: object, result_type: object) -> None:
        """Name the aggregate, the value and the type it does not fit."""
        super().__init__(
            f"the result of {aggregate} is {value}, which does not fit {result_type}. Cast the column "
            "to a wider type (double or a decimal with fewer decimal places), or aggregate over smaller windows."
        )


class ChangedPlanError(WindowpaneError):
    """A restart found state that another program wrote: its plan or schema differs from the one that runs now."""

    def __init__(self, differences: dict[str, tuple[str | None, str | None]]) -> None:
        """Name each part that differs, as it was and as it is."""
        lines = [f"  {part}: was {was or 'absent'}, is {now or 'absent'}" for part, (was, now) in differences.items()]
        super().__init__(
            "the checkpoint was written by a different program; its state cannot be read by this one:\n"
            + "\n".join(lines)
            + "\nRestore these parts, or start with a new checkpoint location. Nothing was changed in the old one."
        )
        self.differences = differences


class RunningCheckpointError(WindowpaneError):
    """A query was started with the checkpoint of a query that runs."""

    def __init__(self, checkpoint: str, name: str | None, query: str) -> None:
        """Name the checkpoint, the query and the ways out."""
        super().__init__(
            f"checkpoint {checkpoint!r} belongs to query {name or query!r}, which runs in this session: Spark would stop it to "
            f"start this one. Stop it before, spark.streams.get({query!r}).stop(), or give this query a checkpoint of its own. "
            "To have Spark stop it, set spark.sql.streaming.stopActiveRunOnRestart to true."
        )
        self.checkpoint, self.query = checkpoint, query


class EndedStreamError(WindowpaneError):
    """A query was started with the checkpoint of a stream that ``flush_at_end`` has ended."""

    def __init__(self, checkpoint: str) -> None:
        """Name the checkpoint and the ways out."""
        super().__init__(
            f"checkpoint {checkpoint!r} belongs to a stream that flush_at_end=True has ended: all of its windows are written, "
            "and rows that came now would be late for them. To read the whole input again, start with a new checkpoint and new "
            "outputs. Where more rows will arrive, leave flush_at_end out: later rows, or heartbeats, close the windows."
        )
        self.checkpoint = checkpoint


class HistoryAfterStartError(WindowpaneError):
    """A history was given to rolling features whose checkpoint has begun already."""

    def __init__(self, checkpoint: str | None = None) -> None:
        """Name the checkpoint, if it is known, and the ways out."""
        which = "this checkpoint" if checkpoint is None else f"checkpoint {checkpoint!r}"
        super().__init__(
            f"history= is what a query begins with, and {which} has begun already. To continue from it, leave history= and cut= "
            "out: a history that it began with is in its state. To begin with another one, start with a new checkpoint."
        )
        self.checkpoint = checkpoint


class RepartitionedCheckpointError(WindowpaneError):
    """Spark's offline repartition has rewritten a checkpoint: its keys are in other buckets than rows are sent to now."""

    def __init__(self, written: int, partitions: int) -> None:
        """Name the number of state partitions that the keys were spread over, and the number there is now."""
        super().__init__(
            f"the state was written over {written} state partitions, and the checkpoint has been repartitioned to {partitions}: "
            "windowpane spreads keys by that number, so rows would not find the state of their keys. Go on from a copy of the "
            f"checkpoint made before, or start with a new checkpoint location and spark.sql.shuffle.partitions = {partitions}. "
            "The refused batch has written nothing."
        )
        self.written = written
        self.partitions = partitions


class OutputSchemaError(WindowpaneError, TypeError):
    """A row that a function returned does not fit the schema it was declared with."""

    def __init__(self, output: str, reason: str, row: object, key: object, window: object) -> None:
        """Name the output, what does not fit, the row, key and window."""
        super().__init__(
            f"output {output!r}: {reason}; the row is {row!r}, of key {key!r} in {window}. Return dicts that fit the declared "
            "schema, or mend the schema given with the function."
        )


class UnknownColumnError(WindowpaneError, ValueError):
    """A column that the DataFrame does not have."""

    def __init__(self, column: object, role: str, available: Iterable[str]) -> None:
        """Name the column, what it was wanted for, and the columns there are."""
        close = difflib.get_close_matches(str(column), [str(each) for each in available], n=1, cutoff=0.5)
        meant = f" Did you mean {close[0]!r}?" if close else ""
        super().__init__(f"{role}: there is no column {column!r}; the DataFrame has {list(available)}.{meant}")


class UnsupportedTypeError(WindowpaneError, TypeError):
    """A column of a type that cannot pass through Arrow, or cannot play the role it was given."""


class UnrepresentableValueError(WindowpaneError, ValueError):
    """A value that Spark can hold and Python cannot, such as a timestamp after the year 9999."""

    def __init__(self, column: str, value: object, error: BaseException) -> None:
        """Name the column and the value."""
        super().__init__(
            f"column {column!r} holds {value}, which Python cannot represent ({error}). Functions see rows as Python values: "
            "filter such rows out, or cast the column to a number or a string before the window."
        )


class LongSortKeyError(WindowpaneError, ValueError):
    """A text or bytes in ORDER BY that is too long: all keys of a batch are as long as the longest."""

    def __init__(self, width: int, rows: int, most: int) -> None:
        """Name the length of the longest key, the rows and the bound."""
        super().__init__(
            f"ORDER BY, or PARTITION BY, has a text of about {width:,} bytes among {rows:,} rows that are sorted together. Keys "
            f"are as long as the longest, and {most:,} bytes are the most for all. Order by the first letters, such as "
            "left(text, 200), or take fewer rows a batch."
        )


class InvalidIntervalError(WindowpaneError, ValueError):
    """A calendar interval that cannot be added to an instant."""

    def __init__(self, interval: object, instant: object, reason: str) -> None:
        """Name the interval, the instant and why."""
        super().__init__(f"{instant} plus {interval!r}: {reason}. Use a smaller interval, or filter out rows with such values.")


class InvalidFrameError(InvalidSpecError):
    """A window frame that SQL has no meaning for; refused when it is built."""


class NeverClosesError(InvalidSpecError):
    """A window that can never emit on close: a call needs rows that no watermark ever completes."""

    def __init__(self, call: object, reason: str) -> None:
        """Name the call, why it never closes, and what to do."""
        super().__init__(f"{call}: {reason}, so a row would never be emitted. Bound the frame, or emit on update.")


def _shown(row: object) -> object:
    """Return a row without the columns that windowpane has added to it."""
    if not isinstance(row, dict):
        return row
    return {name: value for name, value in row.items() if not str(name).startswith(PREFIX)}


class InconsistentChangeError(WindowpaneError, ValueError):
    """A change that cannot be: a double insert, a delete of an absent row, an update after a delete."""

    def __init__(self, change: str, row: object, reason: str) -> None:
        """Name the change, the row and what contradicts it."""
        super().__init__(
            f"{change} of {_shown(row)!r}: {reason}. The input is no sound changelog, or its key does not identify rows: mend "
            'it, or set on_inconsistent="warn" to count such changes and continue.'
        )


class MissingOrderError(WindowpaneError, ValueError):
    """A row without an ORDER BY value reached a window that emits on close: it has no place in the order of time."""

    def __init__(self, column: str, row: object) -> None:
        """Name the column and the row."""
        super().__init__(f"{column!r} of the row {row!r} is NULL, so no watermark ever closes it. Filter such rows out before.")


class FailedBatchError(WindowpaneError):
    """A batch of ``start`` failed; the cause has what failed."""

    def __init__(self, batch: int) -> None:
        """Name the batch and what to do."""
        super().__init__(
            f"batch {batch} failed by the error above, and the query has stopped. Mend the cause and start from the same "
            "checkpoint: the batch runs again, and its outputs are written over."
        )


class ArrowResultError(WindowpaneError, ValueError):
    """What a function on Arrow tables returned does not fit."""

    def __init__(self, what: object, reason: str) -> None:
        """Name the function and what does not fit."""
        super().__init__(
            f"{what!r}: {reason}. Return a pyarrow.Table as the function's documentation says, with the columns of the declared "
            "schema; nothing of this batch was committed."
        )


class UnreadableFileError(WindowpaneError, ValueError):
    """A file that is not of the format it was read as, or whose values do not fit the schema."""

    def __init__(self, path: str, format: str, error: BaseException) -> None:
        """Name the file, the format and what Arrow says."""
        super().__init__(
            f"{path} cannot be read as {format}: {error}. Mend the file or move it away, or mend the schema; its batch was not "
            "committed, and the query continues from there."
        )
        self.path = path


class WorkerPythonError(WindowpaneError):
    """Spark's workers on this machine run a Python that cannot run windowpane."""

    def __init__(self, executable: str, reason: str, here: str) -> None:
        """Name the Python of the workers, what is wrong with it, and the one to take."""
        super().__init__(
            f"Spark's workers would run {executable!r}, but {reason}. Before the session is made, say "
            f"os.environ['PYSPARK_PYTHON'] = sys.executable (here {here!r}), or activate the virtual environment."
        )
        self.executable = executable


class ConditionError(WindowpaneError, ValueError):
    """The condition of a join that cannot be computed on its rows."""

    def __init__(self, condition: object, reason: str) -> None:
        """Name the condition, what is wrong, and what to do."""
        super().__init__(
            f"where({condition!r}): {reason}. The join computes it on pairs, from operators, constants and columns: whatever "
            "else it needs, compute with Spark before the join, as a column of its side."
        )


class WatermarkPolicyError(InvalidSpecError):
    """Spark is set to take the greatest watermark of several inputs, under which results of a join are not final."""

    def __init__(self, policy: str) -> None:
        """Name the policy and the setting."""
        super().__init__(
            f"spark.sql.streaming.multipleWatermarkPolicy is {policy!r}: the watermark would be that of the faster side, and "
            "rows of the slower one be lost. A join needs 'min', Spark's default: unset it, or set it to 'min' before the join."
        )


class MixedBoundednessError(InvalidSpecError):
    """A stream and a static DataFrame in one join."""

    def __init__(self, static: str) -> None:
        """Name the static side and what to do."""
        stream = "left" if static == "right" else "right"
        super().__init__(
            f"the {static} side of the join is static and the {stream} one is a stream. Join a stream with a table by Spark's "
            "stream-static join, stream_df.join(table_df, 'key'): it looks every row up when it comes, and needs no state."
        )


class ChangelogInputError(InvalidSpecError):
    """A changelog where a join takes rows."""

    def __init__(self, side: str, column: str) -> None:
        """Name the side, the column and what to do."""
        super().__init__(
            f"the {side} side of the join is a changelog (it has {column!r}), and a row that has been joined cannot be taken "
            "back. Only the right side of wp.as_of may be one. If all rows are inserts, drop the column."
        )


class KeyTypeError(InvalidSpecError, TypeError):
    """Keys of a join whose types have no common type."""

    def __init__(self, left: str, left_type: str, right: str, right_type: str) -> None:
        """Name the keys, their types and what to do."""
        super().__init__(
            f"on: {left!r} of the left side is {left_type}, {right!r} of the right side is {right_type}. Spark widens neither "
            "to the other without loss: cast one of them before the join."
        )


class EmptyIntervalError(InvalidSpecError):
    """The bounds of an interval join that no two rows can meet."""

    def __init__(self, lower: object, upper: object) -> None:
        """Name the bounds."""
        super().__init__(
            f"within({lower!r}, {upper!r}): no time of a right row is both after the lower and before the upper bound. The "
            "bounds are added to the time of the left row, the lower one first: within('-5 minutes', '1 minute')."
        )


class UnboundedIntervalError(InvalidSpecError):
    """An interval join without one of its bounds, whose state would grow for ever."""

    def __init__(self, bound: str) -> None:
        """Name the bound."""
        super().__init__(
            f"within: the {bound} bound is None, so every row would be kept for ever. Give a duration; for the latest row before "
            "another, however old, use wp.as_of."
        )


class UnknownChangeError(WindowpaneError, ValueError):
    """A row of a changelog that says of itself something else than what a changelog says."""

    def __init__(self, column: str, word: object, words: Sequence[str]) -> None:
        """Name the column, the word and those that there are."""
        super().__init__(
            f"a row of the right side of the join has {column} = {word!r}, but it is one of {', '.join(map(repr, words))}. "
            "Translate it before the join, or drop the column if every row is a version."
        )


class UnsupportedJoinError(InvalidSpecError):
    """A kind of join that has no meaning for how rows are matched."""

    def __init__(self, what: str, reason: str) -> None:
        """Name what is missing, and what to do."""
        super().__init__(f"{what}: {reason}.")


class MissingSideTimestampError(MissingTimestampError):
    """A row of a join without an event time."""

    def __init__(self, side: str, rows: int) -> None:
        """Name the side and how many rows."""
        WindowpaneError.__init__(
            self,
            f"{rows} {'row' if rows == 1 else 'rows'} of the {side} side of the join have no event time, so no watermark ever "
            "says that they are final. Filter out rows whose event time is null before the join, or give them one.",
        )
