"""Rows of a batch for triggers that look at them: as the functions of the user see rows, and with errors that name them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from windowpane.engines.program import Program
from windowpane.engines.rows import python_keys, python_rows
from windowpane.errors import UserFunctionError, WindowpaneError
from windowpane.hidden_columns import TIME
from windowpane.windowing.times import MIN
from windowpane.windowing.windows import Window


class AskedRows:
    """The rows of a batch, by number."""

    def __init__(self, program: Program, rows: pa.Table) -> None:
        """Read them."""
        self.values = python_rows(rows.select(program.values))
        self.times: list[int] = rows[TIME].fill_null(MIN).to_pylist()
        self._program, self._rows = program, rows

    @contextmanager
    def asking(self, number: int, window: Window) -> Iterator[None]:
        """Hand a row to the trigger.

        Raises:
            UserFunctionError: a function of the user that the trigger calls raised.
        """
        try:
            yield
        except WindowpaneError:
            raise
        except Exception as error:
            key = python_keys(self._rows.slice(number, 1), self._program.key_columns)[0]
            raised = UserFunctionError(self._program.spec.trigger, key, window, error)
            raise raised.located(element=self.values[number]) from error
