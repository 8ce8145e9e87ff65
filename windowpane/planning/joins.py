"""Plans of joins: two streams and how their rows are matched, as a frozen value that checks and explains itself.

A plan knows names, not types: ``join_programs`` resolves it against the types of both inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from windowpane.arrays.values import Value
from windowpane.engines.join.program import JoinProgram
from windowpane.errors import InvalidSpecError, UnsupportedJoinError
from windowpane.planning.settings import DEFAULTS, Settings, plan_text
from windowpane.planning.windows import unfired_text
from windowpane.windowing.evictors import Evictor
from windowpane.windowing.expressions import Expression, Side
from windowpane.windowing.joins import (
    ArrivalMatch,
    AsOfMatch,
    How,
    IntervalMatch,
    Match,
    TimeOf,
    WindowMatch,
    check_join,
    uses_clock,
    uses_event_time,
)
from windowpane.windowing.outputs import OutputTag, Schema
from windowpane.windowing.spec import Refine
from windowpane.windowing.times import format_micros
from windowpane.windowing.triggers import Trigger


@dataclass(frozen=True, eq=False)
class JoinRequest:
    """The arguments of the fluent API; of two, the first is of the left side."""

    on: tuple[tuple[str, str], ...]
    match: Match
    null_safe: bool = False
    """Whether NULL in a key equals NULL."""
    how: How = "inner"
    condition: Expression | None = None
    columns: tuple[tuple[str, Expression | None], ...] = (("*", None),)
    """(name, expression), or ``("*", None)`` for all."""
    prefixes: tuple[str, str] = ("left_", "right_")
    """Put before the names that both sides have."""
    time_of: TimeOf = "max"
    late: tuple[OutputTag | None, OutputTag | None] = (None, None)
    settings: Settings = DEFAULTS
    co_group: tuple[Callable[..., Value], Schema, bool] | None = None
    """The function that takes the place of the join, its declared schema, and whether it is one on Arrow tables."""
    trigger: Trigger | None = None
    evictor: Evictor | None = None
    refine: Refine = "last"
    updates: tuple[str, ...] = ()
    """The columns that identify a row of the left side, where rows are emitted at once and corrected; else none."""

    def check(self) -> None:
        check_join(self.match, self.how, is_co_group=self.co_group is not None)
        set_ = {"trigger": self.trigger, "evictor": self.evictor, "refine": None if self.refine == "last" else self.refine}
        for name, part in set_.items():
            if part is not None and self.co_group is None:
                raise UnsupportedJoinError(f"{name}({part!r})", "a join fires at the end of windows; co_group takes others")
        joins = self.how != "inner" or self.condition is not None or self.columns != (("*", None),)
        if self.co_group is not None and joins:
            raise UnsupportedJoinError("co_group", "its function makes the results: leave out how, where and select")

    def __post_init__(self) -> None:
        if not isinstance(self.match, WindowMatch):
            check_join(self.match, self.how)
        if isinstance(self.match, ArrivalMatch) and self.updates:
            raise UnsupportedJoinError("by_arrival", "left rows are emitted at once and are final: leave out emit_on_update")
        if isinstance(self.match, ArrivalMatch) and (any(self.late) or self.settings.allowed_lateness):
            raise UnsupportedJoinError(
                "by_arrival", "no row of a join by arrival is late: leave out side_output_late_data and allowed_lateness"
            )
        names = [tag.name for tag in self.late if tag is not None]
        if len(set(names)) != len(names) or "main" in names:
            raise InvalidSpecError(f"side outputs need names that differ from each other and from 'main', but are {names}.")


@dataclass(frozen=True, eq=False)
class JoinPlan:
    """A join, checked against its inputs; event times and watermarks (as text) are those of the left and the right side."""

    request: JoinRequest
    event_times: tuple[str, str]
    is_streaming: bool
    watermarks: tuple[str, str] = ("", "")

    def __post_init__(self) -> None:
        self.request.check()
        if self.is_streaming and isinstance(self.request.match, AsOfMatch):
            self.request.match.check_closes()

    @property
    def retracts(self) -> bool:
        request = self.request
        corrects = isinstance(request.match, WindowMatch) and request.settings.allowed_lateness > 0 and request.co_group is None
        return corrects or bool(request.updates)

    @property
    def uses_processing_time(self) -> bool:
        trigger = self.request.trigger
        return uses_clock(self.request.match) or (trigger is not None and trigger.uses_processing_time)

    @property
    def unfired_text(self) -> str:
        """What becomes of rows that no firing shows, where their window is cleaned up with them; empty where there are none."""
        match = self.request.match
        return unfired_text(self.request.trigger, match.assigner) if isinstance(match, WindowMatch) else ""

    def explain(self, program: JoinProgram, engine: Mapping[str, str], buckets: str) -> str:
        """Return the plan as text, with the lines about what runs it, by what they are about."""
        request = self.request
        on = [one if one == other else f"{one} = {other}" for one, other in request.on]
        updated = f"on update: rows of {', '.join(request.updates)} are corrected until final"
        lines = {
            "keys": ", ".join(on) + (", NULL equals NULL" if request.null_safe else ", NULL matches nothing"),
            "match": str(request.match),
            "condition": "" if request.condition is None else repr(request.condition),
            **self._times(),
            "emit": updated if request.updates else "",
            **self._held(program),
            "unfired rows": self.unfired_text,
            "costs": self._costs(),
            "late rows": ", ".join(
                f"{side} {'counted and dropped' if tag is None else f'to side output {tag.name}'}"
                for side, tag in zip(("left", "right"), request.late, strict=True)
            ),
            "passed on": _passed_text(program),
            **engine,
            "buckets": buckets,
        }
        what = f"{request.how} join" if request.co_group is None else "co_group"
        return plan_text(f"{what} of two streams", lines)

    def _times(self) -> dict[str, str]:
        if not uses_event_time(self.request.match):
            is_by_arrival = isinstance(self.request.match, ArrivalMatch)
            which = "the clock of the machine" if not is_by_arrival else "order of arrival, right rows of a batch first"
            return {"time": f"{which}; no row is late"}
        return {
            "event time": f"left {self.event_times[0]}, right {self.event_times[1]}",
            "watermark": "the smaller one of both sides: a silent side holds it, until a heartbeat of that side moves it"
            if self.is_streaming
            else "none: the inputs are static, and all rows are final at their end",
            **dict(zip(("of left", "of right"), self.watermarks, strict=True)),
            "lateness": format_micros(self.request.settings.allowed_lateness),
        }

    def _held(self, program: JoinProgram) -> dict[str, str]:
        match, lateness = self.request.match, self.request.settings.allowed_lateness
        if self.uses_processing_time:
            until = "until the clock is past the end of their last window"
            return {"held left": until, "held right": until}
        if isinstance(match, WindowMatch):
            until = _reached(lateness, "the end of their last window")
            return {"held left": until, "held right": until}
        if isinstance(match, IntervalMatch):
            column = match.upper_column
            left = _reached(match.upper + lateness, "their time" if column is None else f"their {column}")
            return {"held left": left, "held right": _reached(lateness - match.lower, "their time")}
        if isinstance(match, ArrivalMatch):
            return {
                "held left": "not at all: they are emitted at once",
                "held right": "the last of each key, for ever",
            }
        wait = lateness + (0 if match.direction == "backward" else match.tolerance or 0)
        newest = "for ever" if match.retain is None else f"for {format_micros(match.retain)}, after which it matches nothing"
        if match.tolerance is not None:
            newest = f"for {format_micros(match.tolerance)}"
        return {
            "held left": _reached(wait, "their time"),
            "held right": f"until the watermark is past them and a newer one of the key; the newest of each key {newest}",
        }

    def _costs(self) -> str:
        match, lateness = self.request.match, self.request.settings.allowed_lateness
        if isinstance(match, WindowMatch):
            return "state: the rows of windows that have not ended" + (", or not so long ago" if lateness else "")
        if isinstance(match, ArrivalMatch):
            return "state: one right row a key"
        if isinstance(match, IntervalMatch):
            span = format_micros(max(match.upper - match.lower + lateness, 0))
            rows = f"left rows until their {match.upper_column}" if match.upper_column else f"the rows of {span} of event time"
            return f"state: {rows}, and of as long as one side is behind the other"
        reads = "; a batch reads all left rows that wait" if self.request.updates else ""
        return f"state: left rows that wait, right rows as new as these, and one right row a key{reads}"


def _reached(wait: int, what: str) -> str:
    """Return until when rows are held, from how long after an instant the watermark makes them final."""
    if not wait:
        return f"until the watermark has reached {what}"
    return f"until the watermark is {format_micros(abs(wait))} {'past' if wait > 0 else 'before'} {what}"


def _passed_text(program: JoinProgram) -> str:
    if program.retracts:
        return "no watermark: the results are a changelog"
    delay = program.held_back
    if delay is None:
        if isinstance(program.match, ArrivalMatch):
            return "no watermark: left rows are emitted whatever their time is"
        return "no watermark: padded rows may stay behind it without a limit"
    return "the watermark" if not delay else f"the watermark less {format_micros(delay)}"


def side_tags(request: JoinRequest) -> dict[Side, OutputTag]:
    sides: tuple[Side, Side] = ("left", "right")
    return {side: tag for side, tag in zip(sides, request.late, strict=True) if tag is not None}
