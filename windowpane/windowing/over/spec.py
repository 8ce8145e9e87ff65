"""The spec of an OVER window: one combination of PARTITION BY and ORDER BY, any number of calls, not yet bound to types.

The order of rows in a partition is that of the ORDER BY columns, then of the key columns ascending: the key breaks every tie of
``row_number``, ``lag``, ``lead`` and ROWS frames. Peers are rows with equal ORDER BY columns. Source: RisingWave's operators.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, fields

from windowpane.arrays.values import Value
from windowpane.errors import InvalidSpecError, NeverClosesError, present
from windowpane.windowing.aggregates.definition import Definition, definition_of, definitions, is_defined
from windowpane.windowing.aggregates.spec import Aggregate
from windowpane.windowing.calls import FUNCTIONS, NUMBERING, OFFSET_FUNCTIONS, RUNNING_NUMBERING, VALUE_FUNCTIONS
from windowpane.windowing.frames import (
    CURRENT_ROW,
    UNBOUNDED_FOLLOWING,
    UNBOUNDED_PRECEDING,
    WHOLE_PARTITION,
    Frame,
    Offset,
    Side,
    Units,
    following,
    preceding,
)
from windowpane.windowing.intervals import MICROS_PER_DAY, Interval

_IGNORE_NULLS = OFFSET_FUNCTIONS | VALUE_FUNCTIONS
_COUNTED = {"ntile": "buckets", "nth_value": "rows"}
_NO_ARGUMENTS = NUMBERING
_ONE_ARGUMENT = OFFSET_FUNCTIONS | VALUE_FUNCTIONS


@dataclass(frozen=True, slots=True)
class OrderColumn:
    """One column of ORDER BY. The place of NULLs is always given; each API has its own default.

    Example:
        >>> print(OrderColumn("ts", descending=True, nulls_first=False))
        ts DESC NULLS LAST
    """

    name: str  # the input column
    descending: bool = False  # whether large values are first
    nulls_first: bool = field(kw_only=True)  # whether NULLs are first

    def __str__(self) -> str:
        return f"{self.name} {'DESC' if self.descending else 'ASC'} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


@dataclass(frozen=True, slots=True)
class OverCall:
    """One call of a function over the window.

    Raises:
        InvalidSpecError: the function does not exist, or has no such argument, frame or option.

    Example:
        >>> print(OverCall("lag", ("price",), offset=2))
        lag(price, 2)
    """

    function: str  # one of ``FUNCTIONS``, or an aggregate
    arguments: tuple[str, ...] = ()  # names of input columns
    # for aggregates and ``first_value``, ``last_value``, ``nth_value``; they need one, the others have none
    frame: Frame | None = None
    # the distance of ``lag`` and ``lead`` in rows (below zero it is the other one), the n of ``nth_value`` (from 1) and the
    # number of buckets of ``ntile``
    offset: int = 1
    default: Hashable = None  # the constant that ``lag`` and ``lead`` give where there is no such row
    ignore_nulls: bool = False  # whether ``lag``, ``lead``, ``first_value``, ``last_value`` and ``nth_value`` pass over NULLs
    filter: str | None = None  # a boolean column; an aggregate sees the rows where it is true
    distinct: bool = False  # whether an aggregate sees each combination of its arguments once
    parameters: tuple[tuple[str, Hashable], ...] = ()  # constants of an aggregate by name, ``(("q", 0.9),)``

    def __post_init__(self) -> None:
        if self.function not in FUNCTIONS and not is_defined(self.function):
            known = sorted(FUNCTIONS | {each.name for each in definitions()})
            raise InvalidSpecError(f"there is no window function {self.function!r}; there are {', '.join(known)}.")
        count = len(self.arguments)
        wanted = 0 if self.function in _NO_ARGUMENTS else 1 if self.function in _ONE_ARGUMENT else count
        if count != wanted:
            raise InvalidSpecError(f"{self}: {self.function} takes {wanted} columns, not {count}.")
        if self.function in _COUNTED and self.offset < 1:
            raise InvalidSpecError(f"{self}: the number of {_COUNTED[self.function]} is at least 1, not {self.offset}.")
        framed = self.is_aggregate or self.function in VALUE_FUNCTIONS
        if framed and self.frame is None:
            raise InvalidSpecError(f"{self}: {self.function} needs a frame; give the default frame of your API in its place.")
        if not framed and self.frame is not None:
            raise InvalidSpecError(f"{self}: {self.function} has no frame. Leave it out.")
        if self.ignore_nulls and self.function not in _IGNORE_NULLS:
            raise InvalidSpecError(f"{self}: IGNORE NULLS goes with {', '.join(sorted(_IGNORE_NULLS))}.")
        if (self.distinct or self.filter is not None) and not self.is_aggregate:
            raise InvalidSpecError(f"{self}: DISTINCT and FILTER go with aggregates.")
        if self.default is not None and self.function not in OFFSET_FUNCTIONS:
            raise InvalidSpecError(f"{self}: a default goes with lag and lead.")

    @property
    def own_frame(self) -> Frame:
        return present(self.frame, f"{self.function} has a frame")

    @classmethod
    def of(cls, aggregate: Aggregate, frame: Frame, filter: str | None = None, distinct: bool = False) -> OverCall:
        arguments, parameters = aggregate.arguments, aggregate.parameters
        return cls(aggregate.name, arguments, frame, filter=filter, distinct=distinct, parameters=parameters)

    @property
    def is_aggregate(self) -> bool:
        return self.function not in FUNCTIONS

    @property
    def drops_repeats(self) -> bool:
        """Whether DISTINCT changes the result: of an idempotent aggregate it does not."""
        return self.distinct and not self.aggregate.definition.idempotent

    @property
    def is_numbering(self) -> bool:
        return self.function in NUMBERING

    @property
    def aggregate(self) -> Aggregate:
        return Aggregate(self.function, self.arguments, self.parameters)

    @property
    def columns(self) -> tuple[str, ...]:
        """The input columns that the value of the call is made from, besides partition, order and key."""
        return self.arguments if self.filter is None else (*self.arguments, self.filter)

    @property
    def reach(self) -> Frame:
        """The frame that holds every row that the value can depend on: the call's own, or that of a function without."""
        if self.frame is not None:
            return self.frame
        if self.function in OFFSET_FUNCTIONS:
            return _offset_reach(self.offset if self.function == "lead" else -self.offset, self.ignore_nulls)
        if self.function in RUNNING_NUMBERING:
            return Frame.rows(UNBOUNDED_PRECEDING, CURRENT_ROW)
        return WHOLE_PARTITION

    def __reduce__(self) -> tuple[Callable[..., OverCall], tuple[Value, ...]]:
        definition = definition_of(self.function) if self.is_aggregate else None
        return _arrived, (definition, *(getattr(self, each.name) for each in fields(self)))

    def __str__(self) -> str:
        parts = [", ".join(self.arguments)] if self.arguments else []
        parts += [str(self.offset)] if self.function in OFFSET_FUNCTIONS | set(_COUNTED) else []
        parts += [repr(self.default)] if self.default is not None else []
        parts += [f"{name}={value!r}" for name, value in self.parameters]
        text = f"{self.function}({'DISTINCT ' if self.distinct else ''}{', '.join(parts)})"
        text += " IGNORE NULLS" if self.ignore_nulls else ""
        text += "" if self.filter is None else f" FILTER (WHERE {self.filter})"
        return text if self.frame is None else f"{text} {self.frame}"


def _arrived(definition: Definition | None, *values: Value) -> OverCall:
    return OverCall(*values)


def _offset_reach(steps: int, ignore_nulls: bool) -> Frame:
    """The reach of a row ``steps`` rows after the current one; past NULLs it may be any row on that side."""
    if steps == 0:
        return Frame.rows(CURRENT_ROW, CURRENT_ROW)
    if steps < 0:
        return Frame.rows(UNBOUNDED_PRECEDING if ignore_nulls else preceding(-steps), preceding(1 if ignore_nulls else -steps))
    return Frame.rows(following(1 if ignore_nulls else steps), UNBOUNDED_FOLLOWING if ignore_nulls else following(steps))


@dataclass(frozen=True, slots=True)
class OverSpec:
    """An OVER window: what it partitions by, how it orders, what identifies a row, what it calls.

    Raises:
        InvalidSpecError: no key or no call, a column twice, or a call that needs an ORDER BY this window has not.

    Example:
        >>> spec = OverSpec(("sym",), (OrderColumn("ts", nulls_first=True),), ("id",), (OverCall("row_number"),))
        >>> print(spec)
        row_number() OVER (PARTITION BY sym ORDER BY ts ASC NULLS FIRST), rows by id
    """

    partition_by: tuple[str, ...]  # input columns; empty for one partition of all rows
    order_by: tuple[OrderColumn, ...]  # the ORDER BY columns; may be empty
    key: tuple[str, ...]  # the input columns that identify a row
    calls: tuple[OverCall, ...]  # at least one

    def __post_init__(self) -> None:
        if not self.key:
            raise InvalidSpecError("an OVER window needs key columns: they say which row is which, and break ties of the order.")
        if not self.calls:
            raise InvalidSpecError("an OVER window without a call computes nothing: add one, such as row_number().")
        for role, names in (("PARTITION BY", self.partition_by), ("ORDER BY", self.order_names), ("the key", self.key)):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise InvalidSpecError(f"{role} names {', '.join(twice)} twice. Once is enough.")
        for call in self.calls:
            self._check_order(call)

    def _check_order(self, call: OverCall) -> None:
        if call.is_numbering and not self.order_by:
            raise InvalidSpecError(f"{call} numbers rows in an order: add ORDER BY.")
        if call.frame is not None and call.frame.has_range_offset and len(self.order_by) != 1:
            columns = ", ".join(self.order_names) or "none"
            raise InvalidSpecError(f"{call}: its frame measures the distance of one ORDER BY column, and there are: {columns}.")

    @property
    def order_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.order_by)

    @property
    def output_key(self) -> tuple[str, ...]:
        """What identifies a row of the output: the key, and the PARTITION BY columns that are not in it.

        A row that moves to another partition is therefore a delete and an insert.
        """
        return (*self.key, *(name for name in self.partition_by if name not in self.key))

    @property
    def columns(self) -> tuple[str, ...]:
        """Every input column that the window reads, each once."""
        read = (*self.partition_by, *self.order_names, *self.key, *(name for call in self.calls for name in call.columns))
        return tuple(dict.fromkeys(read))

    def __str__(self) -> str:
        partition = f"PARTITION BY {', '.join(self.partition_by)}" if self.partition_by else ""
        order = f"ORDER BY {', '.join(map(str, self.order_by))}" if self.order_by else ""
        window = " ".join(part for part in (partition, order) if part)
        return f"{', '.join(map(str, self.calls))} OVER ({window}), rows by {', '.join(self.key)}"


# On window close a row is emitted once, when its place in the order is certain (the watermark has passed it) and so is every row
# of its frames. Source: RisingWave's rules for EMIT ON WINDOW CLOSE; that frames other than ROWS close by the watermark is added.


def check_closes(spec: OverSpec) -> None:
    """Refuse a window that cannot emit on window close."""
    if len(spec.order_by) != 1 or spec.order_by[0].descending:
        order = ", ".join(map(str, spec.order_by)) or "nothing"
        raise InvalidSpecError(f"emit on window close orders by one column, ascending: the event time. This orders by {order}.")
    for call in spec.calls:
        if call.is_numbering and call.function not in RUNNING_NUMBERING:
            raise NeverClosesError(call, f"{call.function} needs the whole partition, and a stream has no end")
        if call.frame is not None and call.frame.units is not Units.SESSION and call.frame.end.is_unbounded:
            raise NeverClosesError(call, "its frame goes to the end of the partition, and a stream has none")


def watermark_delay(spec: OverSpec) -> int | None:
    """Return by how many microseconds emitted rows can trail the watermark, ``None`` if there is no limit."""
    delays = [_delay(call) for call in spec.calls]
    return None if None in delays else max(delay for delay in delays if delay is not None)


def why_unlimited(call: OverCall) -> str | None:
    """Return why rows can trail the watermark without a limit because of this call; ``None`` if they cannot."""
    if _delay(call) is not None:
        return None
    return f"{call} waits for later rows, which a quiet partition may never get"


def _delay(call: OverCall) -> int | None:
    if call.is_numbering:
        return 0
    frame = call.reach
    if frame.units is Units.SESSION:
        return None
    offset: Offset | None = frame.end.offset
    if frame.end.side in (Side.PRECEDING, Side.CURRENT_ROW):
        return 0
    if frame.units is not Units.RANGE:
        return None if frame.end.is_unbounded or offset else 0
    if isinstance(offset, Interval):
        return offset.micros + (offset.days + 31 * offset.months) * MICROS_PER_DAY + (0 if offset.is_fixed else MICROS_PER_DAY)
    return offset if isinstance(offset, int) else None
