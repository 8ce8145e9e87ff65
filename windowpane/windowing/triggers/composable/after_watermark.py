"""AfterWatermark: one pane at the window's end, and the early and late ones around it; EarlyAndFinal says it in one word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windowpane.errors import InvalidSpecError
from windowpane.windowing.times import Duration
from windowpane.windowing.triggers.base import Trigger
from windowpane.windowing.triggers.composable.base import ComposableTrigger, Moment, child_path
from windowpane.windowing.triggers.composable.combined import FIRST_TURN, AfterAny, InTurn, Repeatedly, Turn
from windowpane.windowing.triggers.composable.leaves import AfterCount, AfterProcessingTime, as_node

_LATE = 1
"""The turn behind the window's end; before it is the first one."""


@dataclass(frozen=True, init=False)
class AfterWatermark(InTurn):
    """Fires when the watermark reaches the window's end; before that as ``early`` does, behind it as ``late`` does.

    Both parts repeat. Without ``late`` it is finished at the end. Sessions that grow past the watermark begin anew: they have
    another end to reach.

    Args:
        early: fires before the end, ``None`` for nothing.
        late: fires behind it, ``None`` to be finished.

    Example:
        >>> AfterWatermark(early=AfterProcessingTime("1 minute"), late=AfterCount(1)).may_finish(3_600_000_000)
        False
    """

    early: ComposableTrigger | None
    late: ComposableTrigger | None

    def __init__(self, early: ComposableTrigger | Trigger | None = None, late: ComposableTrigger | Trigger | None = None) -> None:
        object.__setattr__(self, "early", None if early is None else _repeated(early))
        object.__setattr__(self, "late", None if late is None else _repeated(late))

    @property
    def is_once(self) -> bool:
        return self.early is None and self.late is None

    @property
    def waits_for_end(self) -> bool:
        return True

    @property
    def children(self) -> Sequence[ComposableTrigger]:
        return tuple(part for part in (self.early, self.late) if part is not None)

    def may_finish(self, allowed_lateness: int) -> bool:
        return allowed_lateness > 0 and self.late is None

    def part(self, turn: int) -> ComposableTrigger | None:
        return self.late if turn == _LATE else self.early

    def is_ready(self, state: Turn | None, path: str, moment: Moment) -> bool:
        """Return whether the end is reached for the first time, or the part whose phase it is is ready."""
        is_late = (state or FIRST_TURN)[0] == _LATE
        return (moment.end_reached and not is_late) or super().is_ready(state, path, moment)

    def fired(self, state: Turn | None, path: str, moment: Moment) -> tuple[Turn | None, bool]:
        turn, held = state or FIRST_TURN
        part, below = self.part(turn), child_path(path, turn)
        if moment.end_reached and turn != _LATE:
            if part is not None:
                part.forget(below, moment)
            return (_LATE, None), self.late is None
        if part is not None:
            held, _ = part.fired(held, below, moment)
        return (turn, held), False

    def merged(self, left: Turn | None, right: Turn | None) -> Turn | None:
        """Be late only if both are; else begin anew, with what is early of both."""
        phases = (left or FIRST_TURN, right or FIRST_TURN)
        turn = min(turn for turn, _ in phases)
        part, held = self.part(turn), [held for each, held in phases if each == turn]
        return turn, None if part is None else part.merged(*held) if len(held) == 2 else held[0]

    def settled(self, state: Turn | None, path: str, moment: Moment) -> Turn | None:
        """Begin anew where the merged window has another end to reach."""
        is_passed = (state or FIRST_TURN)[0] == _LATE and not moment.end_reached
        return FIRST_TURN if is_passed else super().settled(state, path, moment)

    def forget(self, path: str, moment: Moment) -> None:
        for turn, part in enumerate((self.early, self.late)):
            if part is not None:
                part.forget(child_path(path, turn), moment)


def _repeated(part: ComposableTrigger | Trigger) -> ComposableTrigger:
    node = as_node(part)
    return node if isinstance(node, Repeatedly) else Repeatedly(node)


class EarlyAndFinal(AfterWatermark):
    """Early results while a window fills, one at its end, and one for each late row that is allowed.

    ``.trigger(EarlyAndFinal(count=100))`` says in short
    ``.trigger(AfterWatermark(early=AfterCount(100), late=AfterCount(1))).accumulation("accumulating").pane_info()``: each result
    has all rows so far, and the column ``pane_timing`` says whether it is ``EARLY``, ``ON_TIME`` or ``LATE``. An
    ``.accumulation(...)`` of your own holds instead.

    Args:
        count: an early result after so many rows, again and again.
        delay: an early result so long, by the clock, after the first row since the last result. With ``count``, whichever is
            first.

    Raises:
        InvalidSpecError: neither is given, or the count is below 1.

    Example:
        >>> EarlyAndFinal(count=100).early
        Repeatedly(trigger=AfterCount(count=100))
    """

    def __init__(self, count: int | None = None, delay: Duration | None = None) -> None:
        parts: list[ComposableTrigger] = [] if count is None else [AfterCount(count)]
        parts += [] if delay is None else [AfterProcessingTime(delay)]
        if not parts:
            raise InvalidSpecError(
                "EarlyAndFinal needs to know when results are early: EarlyAndFinal(count=100), or delay='1 minute'. Without "
                "early results it is EventTimeTrigger, the default."
            )
        super().__init__(early=parts[0] if len(parts) == 1 else AfterAny(*parts), late=AfterCount(1))
