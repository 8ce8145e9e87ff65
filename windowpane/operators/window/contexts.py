"""What users' code meets: the contexts that it is handed, thin views on key and window, and the scope of its calls."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

from windowpane.arrays.values import Value
from windowpane.errors import MistakeError, PerWindowStateError, UserFunctionError, WindowpaneError
from windowpane.operators.window.contents import merged_states
from windowpane.operators.window.timer_service import TimerService
from windowpane.state.keyed import KeyedState
from windowpane.windowing.outputs import OutputTag
from windowpane.windowing.panes import Firing
from windowpane.windowing.triggers.base import Reduce, ReducingState, ValueState
from windowpane.windowing.windows import Window


class UserCode:
    """The scope of calls of one part of a program: its trigger, its evictor, its function.

    Scopes of different parts nest: an error has the name of the innermost.

    Example:
        >>> with trigger_code.of(window):
        ...     result = trigger.on_element(value, timestamp, window, context)
    """

    __slots__ = ("_part", "_state", "_window")

    def __init__(self, part: object, state: KeyedState) -> None:
        self._part = part
        self._state = state
        self._window: Window | None = None

    def of(self, window: Window | None) -> Self:
        """Return the scope of a call that concerns ``window``, ``None`` where there is none yet."""
        self._window = window
        return self

    def __enter__(self) -> None:
        """Begin the call."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End it.

        Raises:
            UserFunctionError: it raised an error that is not one of windowpane's.
        """
        if isinstance(error, Exception) and not isinstance(error, WindowpaneError):
            raise UserFunctionError(self._part, self._state.current_key, self._window, error) from error


TRIGGER_PREFIX = "trigger/"
WINDOW_PREFIX = "function/"
GLOBAL_PREFIX = "global/"


class NamedState:
    """A value, or a value that grows by a reduce function, under (current key, window, name)."""

    __slots__ = ("_address", "_reduce", "_state")

    def __init__(self, state: KeyedState, window: Window | None, name: str, reduce: Reduce | None = None) -> None:
        self._state = state
        self._address = state.address(window, name)
        self._reduce = reduce

    def get(self) -> Value:
        return self._state.get_at(self._address)

    def update(self, value: object) -> None:
        if value is None:
            self.clear()
        else:
            self._state.put_at(self._address, value)

    def add(self, value: object) -> None:
        held = self.get()
        if self._reduce is None:
            raise MistakeError("it is a reducing state")
        self.update(value if held is None else self._reduce(held, value))

    def clear(self) -> None:
        if self.get() is not None:
            self._state.put_at(self._address, None)


class OperatorTriggerContext:
    """The trigger's view: clocks, timers, and state under the window itself (not its state window)."""

    def __init__(self, state: KeyedState, timers: TimerService, prefix: str = TRIGGER_PREFIX) -> None:
        self._state = state
        self._timers = timers
        self._prefix = prefix
        self._children: dict[str, OperatorTriggerContext] = {}
        self.window: Window | None = None
        self.merged: Sequence[Window] = ()
        self._firing: Firing | None = None

    def announce(self, firing: Firing) -> None:
        self._firing = firing

    def announced(self) -> Firing | None:
        """Return what was announced of the last firing, once."""
        firing, self._firing = self._firing, None
        return firing

    def at(self, window: Window, merged: Sequence[Window] = ()) -> OperatorTriggerContext:
        """Return this context, now speaking of ``window`` (the result of merging ``merged``)."""
        self.window = window
        self.merged = merged
        return self

    @property
    def current_watermark(self) -> int:
        return self._timers.watermark

    @property
    def current_processing_time(self) -> int:
        return self._timers.processing_time

    def register_event_time_timer(self, time: int) -> None:
        self._timers.register_event_time(time, self._state.current_key_bytes, self.window)

    def register_processing_time_timer(self, time: int) -> None:
        self._timers.register_processing_time(time, self._state.current_key_bytes, self.window)

    def delete_event_time_timer(self, time: int) -> None:
        self._timers.delete_event_time(time, self._state.current_key_bytes, self.window)

    def delete_processing_time_timer(self, time: int) -> None:
        self._timers.delete_processing_time(time, self._state.current_key_bytes, self.window)

    def value_state(self, name: str) -> ValueState:
        return NamedState(self._state, self.window, self._prefix + name)

    def reducing_state(self, name: str, reduce: Reduce) -> ReducingState:
        return NamedState(self._state, self.window, self._prefix + name, reduce)

    def merge_reducing_state(self, name: str, reduce: Reduce) -> None:
        """Combine the state of the merged windows into that of the current one."""
        target = NamedState(self._state, self.window, self._prefix + name)
        sources = [NamedState(self._state, window, self._prefix + name) for window in self.merged if window != self.window]
        values = [source.get() for source in sources]
        for source in sources:
            source.clear()
        if any(value is not None for value in values):
            target.update(merged_states(target.get(), values, reduce))

    def prefixed(self, prefix: str) -> OperatorTriggerContext:
        """Return a context of the same window with its own state names."""
        child = self._children.get(prefix)
        if child is None:
            child = self._children[prefix] = OperatorTriggerContext(self._state, self._timers, self._prefix + prefix)
        if self.window is None:
            raise MistakeError("a window is at hand")
        return child.at(self.window, self.merged)


class SideOutput(Protocol):
    """Takes what a function writes to a side output."""

    def __call__(self, tag: OutputTag, window: Window, value: object) -> None:
        """Emit ``value``."""


class OperatorProcessContext:
    """The function's view: window, clocks, state, side outputs."""

    def __init__(self, state: KeyedState, timers: TimerService, merges: bool, side_output: SideOutput) -> None:
        self._state = state
        self._timers = timers
        self._merges = merges
        self._side_output = side_output
        self._window: Window | None = None

    def at(self, window: Window) -> OperatorProcessContext:
        self._window = window
        return self

    @property
    def window(self) -> Window:
        if self._window is None:
            raise MistakeError("a window is at hand")
        return self._window

    @property
    def current_watermark(self) -> int:
        return self._timers.watermark

    @property
    def current_processing_time(self) -> int:
        return self._timers.processing_time

    def window_state(self, name: str) -> ValueState:
        if self._merges:
            raise PerWindowStateError(self._state.current_key, self._window)
        return NamedState(self._state, self._window, WINDOW_PREFIX + name)

    def global_state(self, name: str) -> ValueState:
        return NamedState(self._state, None, GLOBAL_PREFIX + name)

    def output(self, tag: OutputTag, value: object) -> None:
        self._side_output(tag, self.window, value)
