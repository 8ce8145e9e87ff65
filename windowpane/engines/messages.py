"""What a bucket of a program of windows is sent: rows, or what the combiner made of them.

Messages cross the shuffle as tables. Which one a table is follows from its columns, and is decided once, where
a batch begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from windowpane.hidden_columns import POSITION, ROWS


@dataclass(frozen=True)
class Positions:
    """Rows, each with its input partition and its position in it: the order of arrival is known."""

    table: pa.Table


@dataclass(frozen=True)
class Rows:
    """Rows that the combiner passed by, as folding them did not pay: nobody asks for their order."""

    table: pa.Table


@dataclass(frozen=True)
class Partials:
    """What the combiner made of rows, by key and slice or session; each is of as many rows as ``ROWS`` says."""

    table: pa.Table


Message = Rows | Partials | Positions


def message_of(table: pa.Table) -> Message:
    if ROWS in table.column_names:
        return Partials(table)
    return Positions(table) if POSITION in table.column_names else Rows(table)


def tables_of(messages: Iterable[Message], *kinds: type[Message]) -> list[pa.Table]:
    return [message.table for message in messages if isinstance(message, kinds)]
