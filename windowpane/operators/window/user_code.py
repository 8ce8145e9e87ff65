"""Calls of what users wrote: an error in one names the part that was called, the key and the window."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from windowpane.errors import UserFunctionError, WindowpaneError
from windowpane.state.keyed import KeyedState
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
