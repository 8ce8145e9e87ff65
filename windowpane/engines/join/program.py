"""The program of a join: everything an engine needs to run it on a bucket, as one picklable value.

A table of input has its side as a tag (``common.tagged``). Its columns are those of ``JoinSide.columns``, and TIME, PARTITION and
POSITION of ``hidden_columns``. Key columns have the same types on both sides.
Outputs: ``MAIN``, and the late rows of each side as ``LATE_LEFT`` and ``LATE_RIGHT``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import pyarrow as pa

from windowpane.engines.batch.late_rows import late_schema
from windowpane.engines.join.grouping import CoGroup
from windowpane.engines.program import WINDOW_END, WINDOW_START, BucketProgram
from windowpane.engines.protocol import Counters
from windowpane.hidden_columns import FIRING_WATERMARK, TIME
from windowpane.windowing.expressions import Expression, Side
from windowpane.windowing.joins import LEFT_ONLY, PADS_LEFT, PADS_RIGHT, ArrivalMatch, AsOfMatch, How, Match, TimeOf, WindowMatch
from windowpane.windowing.outputs import CHANGE_TYPE

LATE_LEFT: Final = 1
LATE_RIGHT: Final = 2
LATE: Final[dict[Side, int]] = {"left": LATE_LEFT, "right": LATE_RIGHT}


@dataclass(frozen=True)
class JoinSide:
    keys: tuple[str, ...]  # names of its key columns, in the order of those of the other side
    columns: pa.Schema  # names and types of all columns that its rows carry
    passed: tuple[str, ...]  # names of those that are emitted with the results; the others are read by the match only
    has_late_output: bool = False  # whether its late rows are emitted


@dataclass(frozen=True)
class JoinCounters(Counters):
    gauges: ClassVar[tuple[str, ...]] = (*Counters.gauges, "held_left", "held_right")

    left_late: int = 0  # left rows that were late
    right_late: int = 0  # the same of the right side
    pairs: int = 0  # pairs that were emitted
    padded: int = 0  # rows that were emitted without a match
    held_left: int = 0  # left rows in state at the end of the batch
    held_right: int = 0  # the same of the right side


JOIN_COUNTERS: Final = ("left_late", "right_late", "pairs", "padded", "held_left", "held_right", "state_bytes", "before_cut")
"""The counters of a join in a query's progress."""


@dataclass(frozen=True)
class JoinProgram(BucketProgram):
    match: Match  # when a left and a right row of equal keys are a pair
    how: How  # which rows are emitted beside pairs
    left: JoinSide  # the left side
    right: JoinSide  # the right side
    condition: Expression | None = None  # a further condition on pairs, ``None`` for none
    null_safe: bool = False  # whether NULL in a key equals NULL; else it matches nothing
    allowed_lateness: int = 0  # how long in microseconds rows behind the watermark are waited for
    time_of: TimeOf = "max"  # which event time a pair has
    # type of the bounds of windows
    window_bound: pa.DataType = pa.timestamp("us", "UTC")  # noqa: RUF009 (types of Arrow are values)
    # what windows are given to in place of the join of their rows; results have the left keys then
    co_group: CoGroup | None = None
    # whether left rows of a join as of an instant are emitted at once, and are corrected until they are final
    updates: bool = False

    @property
    def retracts(self) -> bool:
        """Whether results may be taken back: by late rows of a window that has fired, or until they are final."""
        return self.updates or self.corrects

    @property
    def corrects(self) -> bool:
        return isinstance(self.match, WindowMatch) and self.allowed_lateness > 0 and self.co_group is None

    @property
    def pads_left(self) -> bool:
        return self.how in PADS_LEFT or self.how == "anti"

    @property
    def pads_right(self) -> bool:
        return self.how in PADS_RIGHT

    @property
    def sides(self) -> dict[Side, JoinSide]:
        return {"left": self.left, "right": self.right}

    @property
    def main_schema(self) -> pa.Schema:
        """The main output as an engine emits it: window bounds, left columns, right columns, the change, system columns.

        A column ``x`` of the left side is called ``left.x`` there.
        """
        bounds = [pa.field(name, self.window_bound) for name in (WINDOW_START, WINDOW_END)]
        sides: tuple[Side, ...] = ("left",) if self.how in LEFT_ONLY else ("left", "right")
        columns = [passed_field(side, self.sides[side], name) for side in sides for name in self.sides[side].passed]
        if self.co_group is not None:
            columns = [*(passed_field("left", self.left, name) for name in self.left.keys), *self.co_group.results]
        changes = [pa.field(CHANGE_TYPE, pa.string())] if self.retracts else []
        system = [pa.field(TIME, pa.int64()), pa.field(FIRING_WATERMARK, pa.int64())]
        return pa.schema([*(bounds if isinstance(self.match, WindowMatch) else ()), *columns, *changes, *system])

    def late_schema(self, side: Side) -> pa.Schema:
        return late_schema(self.sides[side].columns, self.window_bound, has_windows=isinstance(self.match, WindowMatch))

    @property
    def held_back(self) -> int | None:
        """Microseconds by which results may stay behind the watermark, ``None`` if nothing bounds it."""
        lateness, match = self.allowed_lateness, self.match
        if isinstance(match, ArrivalMatch):
            return None
        if isinstance(match, AsOfMatch):
            return lateness + (0 if match.direction == "backward" else match.tolerance or 0)
        if isinstance(match, WindowMatch):
            return lateness
        ahead: int | None = None if match.upper_column else match.reach
        of_left = None if ahead is None else lateness + ahead
        of_right = lateness + match.lag
        pairs = {"max": lateness, "left": of_left, "right": of_right}[self.time_of]
        if self.how in LEFT_ONLY:
            pairs = of_left
        needed = [pairs, *([of_left] if self.pads_left else []), *([of_right] if self.pads_right else [])]
        return None if any(each is None for each in needed) else max(each for each in needed if each is not None)


def passed_name(side: Side, name: str) -> str:
    return f"{side}.{name}"


def passed_field(side: Side, of: JoinSide, name: str) -> pa.Field:
    return of.columns.field(name).with_name(passed_name(side, name))
