"""A program: everything an engine needs to run one windowed computation on a bucket, as one picklable value.

Tables handed to an engine carry, besides the columns the functions see, hidden columns (``hidden_columns``); tables it returns
carry ``TIME`` and ``FIRING_WATERMARK`` for a window further downstream.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from windowpane.engines.changes import Description
from windowpane.hidden_columns import FIRING_WATERMARK, TIME
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.arrow_functions import ArrowAggregateFunction, ArrowWindowFunction
from windowpane.windowing.outputs import CHANGE_TYPE, OutputTag
from windowpane.windowing.over.spec import OrderColumn
from windowpane.windowing.panes import (
    PANE_INDEX,
    PANE_IS_FIRST,
    PANE_IS_LAST,
    PANE_NONSPECULATIVE_INDEX,
    PANE_TIMING,
    PaneOptions,
)
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.times import MIN

WINDOW_START = "window_start"
WINDOW_END = "window_end"

MAIN = 0
"""Number of the main output; late data and side outputs follow, in the order of ``Program.side_outputs``."""
LATE = MAIN + 1
"""Number of the late output of programs that have no other side output."""


class Upstream(Enum):
    """Where rows come from, which decides whether the watermark or the rows go first in a batch (Flink's order, both times)."""

    SOURCE = "source"
    """A source: the batch's watermark was made from earlier rows, so it goes first."""
    WINDOW_WITH_WATERMARKS = "window, rows say their watermark"
    """Another window of the same query; each row carries the watermark under which it was emitted."""
    WINDOW = "window"
    """Another window, whose rows no longer carry it: they are late under the watermark of the batch before, and go first."""


@dataclass(frozen=True)
class SideOutput:
    """One side output: its tag, and the schema of its rows; ``is_late`` for the late data of the input."""

    tag: OutputTag
    schema: pa.Schema
    is_late: bool = False


@dataclass(frozen=True, kw_only=True)
class BucketProgram(ABC):
    """What programs of every kind have in common."""

    upstream: Upstream = Upstream.SOURCE  # where rows come from
    engine: str = ""  # name of the engine that runs it
    engine_reason: str = ""  # why it is this one
    description: Description = field(default_factory=dict, compare=False)  # what a restart compares

    @property
    @abstractmethod
    def main_schema(self) -> pa.Schema:
        """The main output as an engine emits it."""


@dataclass(frozen=True)
class Program(BucketProgram):
    """One windowed computation, resolved against the types of its input."""

    spec: WindowSpec  # the windowed computation itself
    keys: pa.Schema  # names and types of the key columns in the output; empty for ``window_all``
    key_columns: tuple[str, ...]  # names of the key columns in the input
    values: tuple[str, ...]  # names of the columns that functions see
    main: pa.Schema  # names and types of the function's columns in the main output, after keys and window bounds
    window_bound: pa.DataType  # type of ``window_start`` and ``window_end``
    late_columns: tuple[str, ...] = ()  # names of the input columns that late rows carry
    side_outputs: tuple[SideOutput, ...] = ()  # late data and side outputs, in order
    order_by: tuple[OrderColumn, ...] = ()  # columns that order the rows of a batch, before arrival order
    # for built-in aggregates, (output name, aggregate, columns of its arguments)
    aggregates: tuple[tuple[str, Aggregate, tuple[str, ...]], ...] = ()
    value_types: pa.Schema = field(default_factory=lambda: pa.schema([]))  # names and types of the columns that functions see
    arrow: ArrowAggregateFunction | ArrowWindowFunction | None = None  # a function on Arrow tables in place of the aggregates
    processes_results: bool = False  # whether a process function follows the built-in aggregates
    # where each key has a watermark of its own, the microseconds by which it stays behind the key's latest event time; ``None``
    # where all keys have one
    key_delay: int | None = None
    # whether tasks know, before the shuffle, how far the watermark that finds their rows late may be
    foresees_watermark: bool = True
    engine: str = field(default="reference", kw_only=True)
    generation: int = 0  # how many programs before it had windows of their own
    begins: int = MIN  # its windows start from here on, where there were others
    earlier: tuple[Program, ...] = ()  # those that may have windows to finish, the oldest first

    @property
    def main_schema(self) -> pa.Schema:
        """The main output as an engine emits it: keys, window bounds, the function's columns, system columns."""
        bounds = [pa.field(WINDOW_START, self.window_bound), pa.field(WINDOW_END, self.window_bound)]
        system = [pa.field(TIME, pa.int64()), pa.field(FIRING_WATERMARK, pa.int64())]
        return pa.schema([*self.keys, *bounds, *self.main, *self.pane_columns, *system])

    @property
    def pane_columns(self) -> pa.Schema:
        return pane_columns(self.spec.panes)

    @property
    def window_schemas(self) -> tuple[pa.Schema, pa.Schema]:
        """The tables that an Arrow window function is given and returns: keys and bounds hide columns of the same name."""
        bounds = [pa.field(WINDOW_START, self.window_bound), pa.field(WINDOW_END, self.window_bound)]
        hidden = {*self.keys.names, WINDOW_START, WINDOW_END}
        rows = [self.value_types.field(name) for name in self.values if name not in hidden]
        return pa.schema([*self.keys, *bounds, *rows]), pa.schema([*self.keys, *bounds, *self.main])

    def output_of(self, tag: OutputTag) -> int | None:
        for number, side in enumerate(self.side_outputs, start=MAIN + 1):
            if side.tag.name == tag.name:
                return number
        return None

    @property
    def late_output(self) -> int | None:
        """The number of the late output, ``None`` if late data is not asked for."""
        for number, side in enumerate(self.side_outputs, start=MAIN + 1):
            if side.is_late:
                return number
        return None


_INFO = pa.schema(
    [
        pa.field(PANE_INDEX, pa.int64()),
        pa.field(PANE_NONSPECULATIVE_INDEX, pa.int64()),
        pa.field(PANE_TIMING, pa.string()),
        pa.field(PANE_IS_FIRST, pa.bool_()),
        pa.field(PANE_IS_LAST, pa.bool_()),
    ]
)
_CHANGE = pa.schema([pa.field(CHANGE_TYPE, pa.string())])


def pane_columns(options: PaneOptions) -> pa.Schema:
    """Return the columns after those of the function: the information of panes, and the word of the changelog."""
    return pa.schema([*(_INFO if options.shows_info else ()), *(_CHANGE if options.retracts else ())])
