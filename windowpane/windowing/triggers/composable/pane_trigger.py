"""The trigger that runs a tree of composable triggers: when it is called, what a firing means, which rows the end releases.

A tree is evaluated after each row added, once when the watermark reaches the window's end, once at each time of the clock that
it waits for, and at the times of Flink's triggers in it; nowhere else. At cleanup an unfinished window emits the rows that it
still holds, whatever the tree answers. Source of the rules: Apache Beam, with Flink's order of things around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from windowpane.arrays.values import Value
from windowpane.windowing.lateness import Lateness
from windowpane.windowing.panes import AccumulationMode, Firing, PaneBehavior
from windowpane.windowing.triggers.base import MergeContext, Trigger, TriggerContext, TriggerResult, reads_elements
from windowpane.windowing.triggers.composable.base import ComposableTrigger, LeafMergeContext, LeafTimers, Moment, State
from windowpane.windowing.triggers.composable.leaves import AfterProcessingTime, FlinkTrigger, fires
from windowpane.windowing.windows import Window

_STATE = "tree"


class _WindowState(NamedTuple):
    """The state of one window: whether the tree is finished, whether rows arrived since the last pane, and the tree's state."""

    is_finished: bool = False
    is_fresh: bool = False
    tree: State = None


@dataclass(frozen=True)
class PaneTrigger(Trigger):
    """Runs a composable trigger, with the settings of panes; times are microseconds."""

    root: ComposableTrigger
    accumulation: AccumulationMode = "accumulating"
    on_time_behavior: PaneBehavior = "fire_always"
    closing_behavior: PaneBehavior = "fire_if_non_empty"
    allowed_lateness: int = 0

    @property
    def reads_elements(self) -> bool:
        return reads_elements(*all_flink_triggers(self.root))

    @property
    def _has_flink_triggers(self) -> bool:
        return next(all_flink_triggers(self.root), None) is not None

    def is_finished(self, context: TriggerContext) -> bool:
        """Return whether the window of the context takes no more rows."""
        held = self._held(context)
        return held is not None and held.is_finished

    def on_element(self, element: Value, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        held, moment = self._opened(window, context)
        if not moment.end_reached:
            context.register_event_time_timer(window.max_timestamp)
        if self._has_flink_triggers:
            moment.leaf_timers.note_end(moment.end_reached)
        tree = self.root.add(held.tree, element, timestamp, "", moment)
        return self._evaluated(_WindowState(False, True, tree), moment, Firing())

    def on_event_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Call the tree at the window's end and at the times of Flink's triggers; release the rest at cleanup."""
        held, moment = self._opened(window, context)
        if held.is_finished:
            return TriggerResult.CONTINUE
        is_end = time == window.max_timestamp and not moment.leaf_timers.has_passed_end
        is_closing = time == self._cleanup_time(window)
        if is_end and self._has_flink_triggers:
            moment.leaf_timers.note_end(True)
        for path, trigger in self._called(time, held, moment, event_time=True):
            if fires(trigger, trigger.on_event_time(time, window, moment.at(path))):
                moment.answers.add(path)
        result = TriggerResult.CONTINUE
        if is_end or moment.answers:
            may_be_empty = is_end and self.on_time_behavior == "fire_always" and self.root.waits_for_end
            result = self._evaluated(held, moment, Firing(is_end, is_closing, may_be_empty))
        if is_closing and result is TriggerResult.CONTINUE:
            result = self._closed(self._held(context) or held, moment, is_end)
        return result

    def on_processing_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Call the tree at a time that it waits for; other times are of timers that no longer matter."""
        held, moment = self._opened(window, context)
        if held.is_finished:
            return TriggerResult.CONTINUE
        for path, trigger in self._called(time, held, moment, event_time=False):
            if fires(trigger, trigger.on_processing_time(time, window, moment.at(path))):
                moment.answers.add(path)
        if moment.answers or time in self.root.due_times(held.tree):
            return self._evaluated(held, moment, Firing())
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return all(trigger.can_merge() for trigger in all_flink_triggers(self.root))

    def on_merge(self, window: Window, context: MergeContext) -> None:
        """Merge the trees of the windows; a finished one lends its interval to a live one, and no more."""
        context.merge_reducing_state(_STATE, self._merged)
        held, moment = self._opened(window, context)
        if held.is_finished:
            return
        moment.leaf_timers.clear()
        if self._has_flink_triggers:
            moment.leaf_timers.note_end(moment.end_reached)
        for path, trigger in self.root.flink_triggers(held.tree, ""):
            trigger.on_merge(window, LeafMergeContext(context.prefixed(path), moment, path))
        context.value_state(_STATE).update(held._replace(tree=self.root.settled(held.tree, "", moment)))
        if not moment.end_reached:
            context.register_event_time_timer(window.max_timestamp)

    def begin(self, window: Window, context: MergeContext) -> None:
        """Begin with a new tree, whose rows no pane has shown."""
        context.value_state(_STATE).update(_WindowState(is_fresh=True))
        if window.max_timestamp > context.current_watermark:
            context.register_event_time_timer(window.max_timestamp)

    def clear(self, window: Window, context: TriggerContext) -> None:
        _, moment = self._opened(window, context)
        for time in moment.processing_times:
            context.delete_processing_time_timer(time)
        moment.processing_times.clear()
        self.root.forget("", moment)
        moment.leaf_timers.clear()
        context.delete_event_time_timer(window.max_timestamp)
        context.value_state(_STATE).clear()

    @property
    def uses_processing_time(self) -> bool:
        return waits_for_clock(self.root)

    def check_window(self, window: Window) -> None:
        for trigger in all_flink_triggers(self.root):
            trigger.check_window(window)

    # What is known of a window.

    def _held(self, context: TriggerContext) -> _WindowState | None:
        held: _WindowState | None = context.value_state(_STATE).get()
        return held

    def _opened(self, window: Window, context: TriggerContext) -> tuple[_WindowState, Moment]:
        held, end = self._held(context), window.max_timestamp
        state = held or _WindowState()
        moment = Moment(
            window,
            context,
            end <= context.current_watermark,
            LeafTimers(context, end),
            event_times=frozenset((end, self._cleanup_time(window))),
            processing_times=set(self.root.due_times(state.tree)),
        )
        return state, moment

    def _called(self, time: int, held: _WindowState, moment: Moment, event_time: bool) -> list[tuple[str, Trigger]]:
        """Return those of Flink's triggers that wait for a timer, with their paths, and note that it has fired."""
        timers, present = moment.leaf_timers, self.root.flink_triggers(held.tree, "")
        called = [each for each in present if timers.belongs_to(each[0], time, event_time)]
        timers.fire(time, event_time)
        return called

    def _cleanup_time(self, window: Window) -> int:
        return Lateness(self.allowed_lateness, is_event_time=True).cleanup_time(window.max_timestamp)

    def _merged(self, left: _WindowState, right: _WindowState) -> _WindowState:
        if left.is_finished or right.is_finished:
            return right if left.is_finished else left
        return _WindowState(False, left.is_fresh or right.is_fresh, self.root.merged(left.tree, right.tree))

    # Firing.

    def _evaluated(self, held: _WindowState, moment: Moment, firing: Firing) -> TriggerResult:
        """Call the tree once, and fire if it is ready, unless the pane is empty and may be left out."""
        if not self.root.is_ready(held.tree, "", moment):
            self._keep(held, moment)
            return TriggerResult.CONTINUE
        tree, is_finished = self.root.fired(held.tree, "", moment)
        if is_finished:
            self.root.forget("", moment)
        if not held.is_fresh and not firing.may_be_empty:
            self._keep(_WindowState(is_finished, False, None if is_finished else tree), moment)
            return TriggerResult.PURGE if is_finished else TriggerResult.CONTINUE
        self._keep(_WindowState(is_finished, False, None if is_finished else tree), moment)
        return self._fired(moment, firing._replace(is_last=firing.is_last or is_finished), is_finished)

    def _closed(self, held: _WindowState, moment: Moment, is_end: bool) -> TriggerResult:
        """Release what an unfinished window still holds, at cleanup."""
        if held.is_finished or not (held.is_fresh or self.closing_behavior == "fire_always"):
            return TriggerResult.CONTINUE
        self._keep(held._replace(is_fresh=False), moment)
        return self._fired(moment, Firing(is_on_time=is_end, is_last=True, may_be_empty=True), False)

    def _fired(self, moment: Moment, firing: Firing, is_finished: bool) -> TriggerResult:
        moment.context.announce(firing)
        purges = is_finished or self.accumulation == "discarding"
        return TriggerResult.FIRE_AND_PURGE if purges else TriggerResult.FIRE

    def _keep(self, held: _WindowState, moment: Moment) -> None:
        moment.context.value_state(_STATE).update(held)


def all_flink_triggers(node: ComposableTrigger) -> Iterator[Trigger]:
    if isinstance(node, FlinkTrigger):
        yield node.trigger
    for child in node.children:
        yield from all_flink_triggers(child)


def waits_for_clock(node: ComposableTrigger) -> bool:
    if isinstance(node, AfterProcessingTime) or any(each.uses_processing_time for each in all_flink_triggers(node)):
        return True
    return any(waits_for_clock(child) for child in node.children)
