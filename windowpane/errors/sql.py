"""Errors of SQL: of statements, of what they compute, and of stores."""

from __future__ import annotations

from typing import Self

from windowpane.errors.base import WindowpaneError


class SqlError(WindowpaneError, ValueError):
    """A statement was refused; ``line`` and ``column`` say where in the text, counted from 1."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.line = line
        self.column = column


class SqlSyntaxError(SqlError):
    """The text is not SQL."""


class UnsupportedSqlError(SqlError):
    """A construct of SQL that windowpane does not run; the message names the nearest one that it does."""


class SqlNameError(SqlError, LookupError):
    """A table, column, function or window that does not exist, or exists twice."""


class SqlTypeError(SqlError, TypeError):
    """An operator or function that has no meaning for the types it was given."""


class SqlRunError(WindowpaneError):
    """A statement was understood and failed while it ran; nothing of it was kept."""


class DivisionByZeroError(SqlRunError, ZeroDivisionError):
    """A number was divided by zero; in a view the quotient is NULL instead."""

    def __init__(self, message: str = "division by zero.") -> None:
        super().__init__(message)


class OutOfRangeError(SqlRunError, OverflowError):
    """A value, or what was computed, is out of the range of its type."""


class UnsupportedValueError(OutOfRangeError):
    """A value that other databases have and no type here holds: NaN and infinity of numeric, intervals of very many hours."""


class InvalidValueError(SqlRunError, ValueError):
    """An argument that a function or operator has no result for, such as a pattern that is none."""


class InvalidTextError(InvalidValueError):
    """A text that is no value of the type it was cast to."""

    @classmethod
    def of(cls, kind: str, value: str) -> Self:
        """Return the error of a text that is no value of a type.

        Args:
            kind: PostgreSQL's name of the type.
            value: the text.
        """
        return cls(f'invalid input syntax for type {kind}: "{value}".')


class OutOfMemoryError(SqlRunError, MemoryError):
    """A statement needs more memory than there is."""


class ResultSizeError(OutOfMemoryError):
    """The result of a query is larger than ``max_result_size``; ``most`` has its bytes, ``rows`` how many were read by then."""

    def __init__(self, most: int, rows: int) -> None:
        super().__init__(
            f"the result has more than {most:,} bytes, after {rows:,} rows, and max_result_size allows no more at once. "
            "Read it in parts with Session.stream, ask for less (LIMIT, GROUP BY), or raise the bound: SET max_result_size = "
            "'4GB', where 0 is no bound."
        )
        self.most, self.rows = most, rows


class StaleViewError(WindowpaneError):
    """A statement was run and kept, but some views could not follow: they show the rows of their last good flush."""

    def __init__(self, failures: dict[str, str]) -> None:
        lines = [f"  {name}: {reason}" for name, reason in failures.items()]
        super().__init__(
            "views that could not be brought up to date; all others were, and the changes are kept:\n" + "\n".join(lines) + "\n"
            "Such a view keeps the rows of its last good flush. Mend the rows that it reads, and the next FLUSH catches up, or "
            "drop it. SHOW ERRORS lists the values."
        )
        self.failures = failures


class UnexpectedError(WindowpaneError):
    """Something failed that should not: a mistake of windowpane's, to be reported with the statement."""

    def __init__(self, statement: str, error: BaseException) -> None:
        first = str(error).split("\n")[0]
        super().__init__(
            f"{type(error).__name__}: {first}. This is a mistake of windowpane's, not of yours: please report it, with the "
            "statement and the tables it names. Nothing of the statement was kept, and the session can be used further. It was: "
            f"{statement}"
        )
        self.statement = statement


class UnsupportedStoreError(WindowpaneError):
    """A store that a session of this mode, with Spark or without, cannot open."""

    def __init__(self, store: str, reason: str) -> None:
        super().__init__(f"store {store!r}: {reason}")


class StoreVersionError(WindowpaneError):
    """A store was written by another version of windowpane, which planned its views, or stored their rows, in another way."""

    def __init__(self, store: str, differences: dict[str, tuple[str | None, str | None]]) -> None:
        lines = [f"  {part}: was {was or 'not kept'}\n    is {now}" for part, (was, now) in differences.items()]
        super().__init__(
            f"store {store!r} was written by another version of windowpane:\n" + "\n".join(lines) + "\nOpen it with that "
            "version, or CREATE everything in a new store and INSERT the rows of the tables, which are plain tables of this "
            "DuckDB file, in schema main. Nothing was changed."
        )
        self.store, self.differences = store, differences


class StoreError(WindowpaneError):
    """A store cannot be reached, or refuses what is written to it."""

    def __init__(self, store: str, reason: str) -> None:
        super().__init__(f"store {store}: {reason}")
        self.store, self.reason = store, reason


class ChangedViewSchemaError(WindowpaneError):
    """A store holds a table of that name with other columns; a view never changes the schema of what is stored."""

    def __init__(self, table: str, differences: dict[str, tuple[str | None, str | None]]) -> None:
        lines = [f"  {name}: stored {was or 'absent'}, view {now or 'absent'}" for name, (was, now) in differences.items()]
        super().__init__(
            f"table {table!r} of the store has other columns than the view:\n" + "\n".join(lines) + "\nDrop or rename the "
            "stored table, or give the view another name; nothing was written."
        )
        self.differences = differences
