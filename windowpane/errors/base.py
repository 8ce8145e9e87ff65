"""The base class of all errors."""

from __future__ import annotations

from typing import ClassVar, Self, TypeVar

_ROOM = "windowpane.errors"

T = TypeVar("T")


class WindowpaneError(Exception):
    """Base class of all errors of windowpane.

    Attributes:
        page: the page of the documentation that says more, of which the message tells; ``None`` where the message says all.
    """

    __module__ = _ROOM
    page: ClassVar[str | None] = None

    def __init_subclass__(cls, page: str | None = None, **options: object) -> None:
        """Have tracebacks, and with them Spark's messages, name the module that users import an error from.

        Args:
            page: a page of the documentation; that of the class above where none is given.
            options: those of other classes.
        """
        super().__init_subclass__(**options)
        cls.page = page or cls.page
        if cls.__module__.startswith(f"{_ROOM}."):
            cls.__module__ = _ROOM

    def __str__(self) -> str:
        """Return the message, and where more is said."""
        text = super().__str__()
        if self.page is None:
            return text
        between = "\n" if "\n" in text else " " if text.endswith(".") else ". "
        return f"{text}{between}More: docs/{self.page}"

    def located(self, **place: object) -> Self:
        """Add where it happened (key, element, window) to the message, once, and return the error."""
        if not getattr(self, "_located", False):
            where = ", ".join(f"{name} {value!r}" for name, value in place.items())
            self.args = (f"{self.args[0]} [{where}]" if where else self.args[0], *self.args[1:])
            self._located = True
        return self


class MistakeError(WindowpaneError):
    """Something that windowpane relies on does not hold: a mistake of windowpane's, to be reported with the program."""

    def __init__(self, claim: str) -> None:
        super().__init__(
            f"this should hold, and does not: {claim}. It is a mistake of windowpane's, not of yours: please report it, with the "
            "program and the traceback."
        )


def present(value: T | None, claim: str) -> T:
    """Return a value that cannot be ``None``.

    Args:
        value: the value.
        claim: why it cannot.

    Raises:
        MistakeError: it is ``None``.

    Example:
        >>> present(3, "the planner checked")
        3
    """
    if value is None:
        raise MistakeError(claim)
    return value
