"""The base class of all errors."""

from __future__ import annotations

from typing import Any, Self

_ROOM = "windowpane.errors"


class WindowpaneError(Exception):
    """Base class of all errors of windowpane."""

    __module__ = _ROOM

    def __init_subclass__(cls, **options: Any) -> None:
        """Have tracebacks, and with them Spark's messages, name the module that users import an error from."""
        super().__init_subclass__(**options)
        if cls.__module__.startswith(f"{_ROOM}."):
            cls.__module__ = _ROOM

    def located(self, **place: object) -> Self:
        """Add where it happened (key, element, window) to the message, once, and return the error."""
        if not getattr(self, "_located", False):
            where = ", ".join(f"{name} {value!r}" for name, value in place.items())
            self.args = (f"{self.args[0]} [{where}]" if where else self.args[0], *self.args[1:])
            self._located = True
        return self
