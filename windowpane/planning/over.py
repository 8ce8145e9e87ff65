"""Plans of OVER windows: the calls of one ``select``, as a frozen value that prints, compares and explains itself.

A plan knows names, not types. Its calls are split by window (PARTITION BY and ORDER BY); each window is a *stage*, and the stages
form a chain, in the order of their first calls: each adds the columns of its calls to the rows it gets. ``over_programs``
resolves them against the types of the input. Source of splitting, merging and of the key of a chain: RisingWave's planner.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from windowpane.engines.over.program import Emit, Inconsistent
from windowpane.errors import InvalidSpecError
from windowpane.planning.settings import DEFAULTS, Settings, plan_text
from windowpane.windowing.expressions import Expression, OrderLike
from windowpane.windowing.frames import RUNNING_RANGE, RUNNING_ROWS, WHOLE_PARTITION, Exclude, Frame, Side
from windowpane.windowing.outputs import CHANGE_TYPE
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec, check_closes, watermark_delay, why_unlimited
from windowpane.windowing.times import format_micros


@dataclass(frozen=True)
class WindowedCall:
    """One call in its window, and the name of its result."""

    name: str
    partition_by: tuple[str, ...]
    order_by: tuple[OrderColumn, ...]
    call: OverCall


@dataclass(frozen=True)
class Stage:
    """One operator of the chain: its window with every call over it, and the columns of the calls."""

    spec: OverSpec
    names: tuple[str, ...]
    behind: int = 0
    """Microseconds by which its watermark stays behind that of the source, because stages before hold rows back."""


@dataclass(frozen=True)
class OverPlan:
    """The OVER calls of one ``select``, and how their results are emitted."""

    calls: tuple[WindowedCall, ...]
    key: tuple[str, ...]
    mode: Emit
    event_time: str | None = None
    has_watermark: bool = False
    append_only: bool = True
    key_delay: int | None = None
    """Where each partition has a watermark of its own, by how much it stays behind the partition's latest event time."""
    is_bounded: bool = False
    """Whether a changelog comes from an operator that says with its watermark which rows no change concerns any more."""
    settings: Settings = DEFAULTS
    """The lateness: in mode close, how long a row is waited for after the watermark has passed it."""
    retain: int | None = None
    """In mode update, microseconds that rows are kept behind the watermark; ``None``: as long as anything can reach them."""
    on_inconsistent: Inconsistent = Inconsistent.ERROR
    stages: tuple[Stage, ...] = field(init=False)
    uses_processing_time: ClassVar[bool] = False
    """OVER windows follow event time, or the order in which rows come."""

    def __post_init__(self) -> None:
        if not self.calls:
            raise InvalidSpecError("select has no OVER call: add one, such as n=wp.row_number(), or use the DataFrame as it is.")
        self._check_settings()
        if self.mode is Emit.CLOSE:
            for each in self.calls:
                self._check_order(each)
        object.__setattr__(self, "stages", self._split())
        if self.key_delay is not None:
            self._check_key_clocks()

    @property
    def retracts(self) -> bool:
        return self.mode is Emit.UPDATE

    @property
    def held_back(self) -> int | None:
        """How long in microseconds results may stay behind the watermark, ``None`` if nothing bounds it.

        On update, only rows above the watermark change results (others are late), so results stay above it, too, where each row
        looks back in event time only.
        """
        if self.mode is Emit.UPDATE:
            bounded = (self.forgets or self.is_bounded) and all(self._looks_back(stage.spec) for stage in self.stages)
            return (self.retain or 0) if bounded else None
        last = self.stages[-1]
        holds = watermark_delay(last.spec)
        waits = self.settings.allowed_lateness if len(self.stages) == 1 else 0
        return None if holds is None else last.behind + holds + waits

    def _check_key_clocks(self) -> None:
        reason = ""
        if self.mode is Emit.UPDATE:
            reason = "emit_on_update forgets rows by one watermark for all. Use emit_on_window_close"
        elif len(self.stages) > 1:
            reason = "a watermark of each key is that of one partitioning, and the calls have several. Give them all one window"
        elif not self.stages[0].spec.partition_by:
            reason = "without partition_by there is no key to have a watermark of its own. Name it with partition_by"
        if reason:
            raise InvalidSpecError(f"per_key: {reason}, or leave per_key out.")

    def _looks_back(self, spec: OverSpec) -> bool:
        """Whether a row of a window changes no result of a row with an earlier event time."""
        if self.event_time in spec.partition_by:
            return True
        by_time = bool(spec.order_by) and spec.order_by[0].name == self.event_time and not spec.order_by[0].descending
        return by_time and all(call.reach.end.side.value <= Side.CURRENT_ROW.value for call in spec.calls)

    @property
    def forgets(self) -> bool:
        """Whether, in mode update, rows behind the watermark are forgotten, so that a row can be late."""
        return self.event_time is not None and self.has_watermark and (self.append_only or self.retain is not None)

    def _check_settings(self) -> None:
        if self.settings.late_tag is not None and self.mode is Emit.UPDATE and not self.forgets:
            raise InvalidSpecError(
                "side_output_late_data: no row is ever late here, since emit_on_update keeps every row. Rows are late, and "
                "state ends, with event_time= and a watermark on append-only input, or with retain=."
            )
        if self.retain is None:
            return
        if self.retain < 0:
            raise InvalidSpecError(f"retain= cannot be negative, but is {format_micros(self.retain)}.")
        if self.event_time is None:
            raise InvalidSpecError(
                "retain= counts in event time: name the column with wp.over(df, event_time=..., watermark=...)."
            )

    def _check_order(self, each: WindowedCall) -> None:
        names = [column.name for column in each.order_by]
        if self.event_time is None or names != [self.event_time]:
            raise InvalidSpecError(
                f"emit_on_window_close: {each.call} is ordered by {', '.join(names) or 'nothing'}, and the watermark is on "
                f"{self.event_time or 'no column'}. Order by the event time and nothing else: ties are ordered by the key."
            )

    def _split(self) -> tuple[Stage, ...]:
        windows: dict[tuple[tuple[str, ...], tuple[OrderColumn, ...]], list[WindowedCall]] = {}
        for each in self.calls:
            windows.setdefault((each.partition_by, each.order_by), []).append(each)
        specs = [OverSpec(*window, self.key, tuple(each.call for each in calls)) for window, calls in windows.items()]
        names = [tuple(each.name for each in calls) for calls in windows.values()]
        chain = [Stage(spec, columns) for spec, columns in zip(specs, names, strict=True)]
        if self.mode is Emit.UPDATE:
            return _keyed(chain)
        for spec in specs:
            check_closes(spec)
        return _delayed(chain, self.settings.allowed_lateness)

    def explain(self, engines: Sequence[tuple[str, str]], buckets: str) -> str:
        """Return the plan as text, with the engine of each stage, and why it is this one."""
        close = self.mode is Emit.CLOSE
        inconsistent = "error" if self.on_inconsistent is Inconsistent.ERROR else "counted and passed over"
        lines = {
            "key": ", ".join(self.key),
            "event time": self.event_time or "none",
            "input": "append-only" if self.append_only else f"a changelog ({CHANGE_TYPE})",
            "late rows": self.settings.late_text if close else "",
            "lateness": format_micros(self.settings.allowed_lateness) if close else "",
            "retention": "" if close else self._retention_text(),
            "inconsistent": "" if close else inconsistent,
            "passed on": self._passed_text(),
            "buckets": buckets,
        }
        emitted = "on window close: each row once" if close else "on update: a changelog"
        texts = [plan_text(f"OVER windows, emitted {emitted}", lines)]
        for number, (stage, engine) in enumerate(zip(self.stages, engines, strict=True), start=1):
            spec, alone = stage.spec, "none: one partition, one bucket, so one task does all the work"
            lines = {
                "partition by": ", ".join(spec.partition_by) or alone,
                "order by": ", ".join(map(str, (*spec.order_by, *spec.key))),
                "call": "\n  call            ".join(map(str, spec.calls)),
                "engine": f"{engine[0]}: {engine[1]}",
            }
            texts.append(plan_text(f"operator {number} of {len(self.stages)}", lines))
        return "\n".join(texts)

    def _retention_text(self) -> str:
        if self.retain is not None:
            return f"{format_micros(self.retain)} of event time behind the watermark"
        if self.append_only and self.has_watermark:
            return "what rows above the watermark can still reach, where frames and order bound it"
        return "every row: there is no watermark on append-only input to say which are done with"

    def _passed_text(self) -> str:
        behind = self.held_back
        if behind is None and self.mode is Emit.UPDATE:
            return "no watermark: a later change may concern an older row"
        if behind is None:
            reasons = [reason for call in self.stages[-1].spec.calls if (reason := why_unlimited(call))]
            return f"no watermark: {'; '.join(reasons)}"
        return "the watermark" if not behind else f"the watermark less {format_micros(behind)}"


def _keyed(chain: list[Stage]) -> tuple[Stage, ...]:
    stages: list[Stage] = []
    for stage in chain:
        key = stages[-1].spec.output_key if stages else stage.spec.key
        stages.append(dataclasses.replace(stage, spec=dataclasses.replace(stage.spec, key=key)))
    return tuple(stages)


def _delayed(chain: list[Stage], allowed_lateness: int) -> tuple[Stage, ...]:
    """Order the chain and say how far each stage stays behind; the first one waits for late rows."""
    endless = [stage for stage in chain if watermark_delay(stage.spec) is None]
    if len(endless) > 1:
        windows = " and ".join(f"({', '.join(stage.spec.partition_by)})" for stage in endless)
        raise InvalidSpecError(
            f"emit_on_window_close: the windows partitioned by {windows} wait for later rows, so none of them can follow "
            "another. Keep such calls (lead, n FOLLOWING, SESSION) to one window, or use emit_on_update."
        )
    behind, stages = 0, []
    for stage in [*(stage for stage in chain if stage not in endless), *endless]:
        stages.append(dataclasses.replace(stage, behind=behind))
        behind += (watermark_delay(stage.spec) or 0) + (allowed_lateness if len(stages) == 1 else 0)
    return tuple(stages)


def resolved_frame(
    function_is_framed: bool, frame: Frame | None, exclude: Exclude | None, ordered: bool, rows_default: bool
) -> Frame | None:
    """Return the frame of a call where the user may have left it, or a part of it, to the default.

    ``rows_default``: the default with ORDER BY counts rows, as in RisingWave, instead of peers, as in SQL and Spark.
    """
    if frame is None and function_is_framed:
        running = RUNNING_ROWS if rows_default else RUNNING_RANGE
        frame = running if ordered else WHOLE_PARTITION
    if exclude is None:
        return frame
    if frame is None:
        raise InvalidSpecError("exclude takes rows out of a frame, and this function has none. Leave it out.")
    return frame.excluding(exclude)


@dataclass(frozen=True, eq=False)
class OverRequest:
    """The arguments of the fluent API, before names are resolved against a DataFrame."""

    key: tuple[str, ...]
    partition_by: tuple[OrderLike, ...]
    order_by: tuple[OrderLike, ...]
    columns: tuple[tuple[str, Expression | None], ...]
    """(output name, expression), ``("*", None)`` for all input columns."""
    mode: Emit
    rows_default: bool = False
    """Whether the default frame counts rows."""
    retain: int | None = None
    on_inconsistent: Inconsistent = Inconsistent.ERROR
    settings: Settings = DEFAULTS
