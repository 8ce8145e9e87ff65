"""Makes the functions and macros of this room known to a DuckDB connection."""

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import Any, Final

import duckdb

from windowpane.sql.numerics.kernels import FUNCTIONS, strict
from windowpane.sql.scalar.kernels import KERNELS
from windowpane.sql.scalar.macros import MACROS

_WORD = re.compile(r"\bwindowpane_\w+")


def register(connection: duckdb.DuckDBPyConnection) -> None:
    """Register the functions; outside of a transaction, which could take them back."""
    create: Any = connection.create_function  # its types know enums where it takes their names
    for name, (kernel, result) in _functions().items():
        create(f"windowpane_{name}", kernel, None, result, type="arrow", null_handling="special")  # else none returns NULL


@cache
def _functions() -> dict[str, tuple[Any, Any]]:
    """Return the functions and the types of their results, with their signatures, which DuckDB reads at each opening."""
    numeric = {f"numeric_{name}": (strict(kernel), result) for name, (kernel, result) in FUNCTIONS.items()}
    functions: dict[str, tuple[Any, Any]] = {**numeric, **KERNELS}
    for kernel, _ in functions.values():
        kernel.__signature__ = inspect.signature(kernel, eval_str=True)
    return functions


class Macros:
    """The macros of one connection, to a database whose functions are registered: each is defined once a statement names it.

    A session needs few of them, and to define all takes longer than to open a store.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._defined: frozenset[str] = frozenset()
        self._before = self._defined

    def define(self, sql: str) -> None:
        """Define what a statement names, and what that is made of."""
        named = _named(sql) - self._defined
        if named:
            needed = frozenset().union(*(_NEEDED[name] for name in named)) - self._defined
            for name, macro in _BY_NAME.items():
                if name in needed:
                    self._connection.execute(macro)
            self._defined |= needed

    def begin(self) -> None:
        """Note that a transaction begins, which may take back what is defined in it."""
        self._before = self._defined

    def roll_back(self) -> None:
        """Forget what was defined in the transaction: its rollback has removed it."""
        self._defined = self._before


def _named(sql: str) -> frozenset[str]:
    return frozenset(_WORD.findall(sql)) & _BY_NAME.keys()


_BY_NAME: Final[dict[str, str]] = {_WORD.findall(macro)[0]: macro for macro in MACROS}
"""The macros by name; each follows those that it is made of."""
_NEEDED: Final[dict[str, frozenset[str]]] = {}
"""A macro and all that it is made of."""

for _name, _macro in _BY_NAME.items():
    _NEEDED[_name] = frozenset([_name]).union(*(_NEEDED[each] for each in _named(_macro) - {_name}))
