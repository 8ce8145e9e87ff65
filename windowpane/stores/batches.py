"""A numbered batch of changes, reduced to one row to write for each key, and the stores that take it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import duckdb
import pyarrow as pa

from windowpane.arrays.values import Value
from windowpane.errors import AbsentRowError, ChangedViewSchemaError, DuplicateColumnError, InvalidSpecError
from windowpane.state.pairs import NONE, Pair
from windowpane.windowing.outputs import CHANGE_TYPE, DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE

_WORDS = (INSERT, UPDATE_PREIMAGE, UPDATE_POSTIMAGE, DELETE)

IS_DELETED = "windowpane_gone"  # The column that says whether a row of ``Batch.by_key`` is to be deleted
NEEDS_ROW = "windowpane_needs"
"""The column that says whether the table must have the key of a row of ``Batch.by_key``: its changes take back more than they
bring, or begin by taking back."""


def quoted(name: str) -> str:
    """Return a name as SQL, which DuckDB and PostgreSQL quote alike."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Batch:
    """Changes for one table.

    Raises:
        DuplicateColumnError: names of columns differ by case alone.
        InvalidSpecError: a column of the key does not exist.
    """

    table: str  # name of the table
    key: tuple[str, ...]  # the columns that identify a row there; empty if there is at most one row
    changes: pa.Table  # rows, with ``_change_type`` if not all are inserts
    number: int  # of the batch; it rises from batch to batch of one source
    source: str  # the name that batches are numbered under
    is_whole: bool = False  # whether its rows are all rows: those that the table has are deleted
    # types of the store by column, in place of those that follow from Arrow's
    types: Mapping[str, str] = field(default_factory=dict)
    # what gives out the batches, and the table; ``None`` where nobody counts those that the table should have
    pair: Pair | None = None
    settled: int = NONE  # with a pair, the last batch that its giver knows to be taken

    def __post_init__(self) -> None:
        missing = [name for name in self.key if name not in self.columns.names]
        if missing:
            raise InvalidSpecError(f"the key of {self.table!r} names {', '.join(missing)}; there are {self.columns.names}.")
        DuplicateColumnError.refuse_alike(
            self.columns.names,
            "DuckDB, which merges changes, has no regard to case: give one another name, as in ChangeWriter(...).select(b='A').",
            f"the rows for table {self.table!r} have",
        )

    @property
    def columns(self) -> pa.Schema:
        return pa.schema([field for field in self.changes.schema if field.name != CHANGE_TYPE])

    def is_applied(self, taken: int) -> bool:
        """Whether a table has this batch whose last batch of the source is ``taken``."""
        if self.pair is None:
            return taken >= self.number
        return self.pair.has_begun(taken, self.settled, self.number)

    def refuse_absent(self, keys: Sequence[tuple[Value, ...]]) -> None:
        """Refuse changes that take back rows with these keys, which the table does not have."""
        if keys:
            raise AbsentRowError(self.table, dict(zip(self.key, keys[0], strict=False)))

    def by_key(self) -> pa.Table:
        """Return one row for each key that changes, the last one, with ``IS_DELETED`` and ``NEEDS_ROW``."""
        changes = self.changes
        if CHANGE_TYPE not in changes.column_names:
            changes = changes.append_column(CHANGE_TYPE, pa.repeat(INSERT, changes.num_rows))
        words = set(changes.column(CHANGE_TYPE).unique().to_pylist())
        unknown = words - set(_WORDS)
        if unknown:
            raise InvalidSpecError(
                f"{CHANGE_TYPE} of a change of {self.table!r} is {unknown.pop()!r}; the words are {', '.join(_WORDS)}."
            )
        names, by = ", ".join(map(quoted, self.columns.names)), ", ".join(map(quoted, self.key)) or "(0 + 0)"
        deleted = f"{CHANGE_TYPE} IN ('{DELETE}', '{UPDATE_PREIMAGE}')"
        numbered = f"SELECT *, {deleted} AS {IS_DELETED}, row_number() OVER () AS windowpane_n FROM changes"
        needs = "false"
        if words & {DELETE, UPDATE_PREIMAGE}:
            first = f"first_value({IS_DELETED}) OVER (PARTITION BY {by} ORDER BY windowpane_n)"
            needs = f"{first} OR sum(CASE WHEN {IS_DELETED} THEN -1 ELSE 1 END) OVER (PARTITION BY {by}) < 0"
        numbered = f"SELECT *, {needs} AS {NEEDS_ROW} FROM ({numbered})"
        with duckdb.connect() as connection:
            connection.register("changes", changes)
            ends_deleted = f"GROUP BY {by} HAVING arg_max({IS_DELETED}, windowpane_n) AND NOT bool_and({IS_DELETED})"
            if connection.sql(f"SELECT 1 FROM ({numbered}) {ends_deleted} LIMIT 1").fetchall():
                numbered = self._netted(numbered, by)
            # Both halves of an update may share a key or not: a row that this batch inserts is the one of its key behind it.
            query = (
                f"SELECT {names}, {IS_DELETED}, {NEEDS_ROW} FROM ({numbered}) "
                f"QUALIFY row_number() OVER (PARTITION BY {by} ORDER BY {IS_DELETED}, windowpane_n DESC) = 1"
            )
            return connection.sql(query).to_arrow_table()

    def _netted(self, numbered: str, by: str) -> str:
        """Return the changes without rows that were both inserted and deleted, of keys whose last change is a deletion.

        The deleted row may be one that was inserted before, as that of a session that fires and is merged away, or another one
        with its key, as where one row replaces another. A row inserted and deleted as it is written changes nothing.
        """
        last = f"arg_max({IS_DELETED}, windowpane_n) OVER (PARTITION BY {by})"
        written = ", ".join(f"CAST({quoted(name)} AS VARCHAR)" for name in self.columns.names)
        net = f"sum(CASE WHEN {IS_DELETED} THEN -1 ELSE 1 END) OVER (PARTITION BY {by}, {written})"
        latest = f"SELECT *, {last} AS windowpane_last FROM ({numbered})"
        counted = f"SELECT *, {net} AS windowpane_net FROM ({latest})"
        return (
            f"SELECT * FROM ({counted}) WHERE NOT windowpane_last OR (windowpane_net < 0 AND {IS_DELETED}) "
            f"OR (windowpane_net > 0 AND NOT {IS_DELETED})"
        )

    def check_schema(self, stored: Mapping[str, str], expected: Mapping[str, str]) -> None:
        """Refuse a table with other columns; both are types by name."""
        names = dict.fromkeys([*stored, *expected])
        differences = {name: (stored.get(name), expected.get(name)) for name in names if stored.get(name) != expected.get(name)}
        if differences:
            raise ChangedViewSchemaError(self.table, differences)


class Store(Protocol):
    """Tables that changelogs are applied to."""

    def apply(self, batch: Batch) -> bool:
        """Apply a batch to its table in one transaction; say whether it was new.

        The table is created if it does not exist. A batch whose number is not above the last one of its source changes nothing.

        Raises:
            AbsentRowError: a row is taken back that the table does not have; nothing was written, here and below.
            ChangedViewSchemaError: the table has other columns.
            MisplacedStateError: the batch names the one before it, and this is not the last one that the table has.
            StoreError: the store cannot be reached, or refuses what is written.
        """

    def taken(self, source: str) -> int:
        """Return the number of the last batch of a source, ``pairs.NONE`` if there is none."""

    def read(self, query: str) -> list[tuple[Value, ...]]:
        """Return the rows of a query on the store."""

    def close(self) -> None:
        """Close the connection."""
