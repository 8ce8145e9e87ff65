"""What handles each row alone, on the tasks of Spark: DuckDB runs the query of every flow on the rows of the task."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import pyarrow as pa

from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.on_spark.change_sets import CLOCK, is_initial
from windowpane.sql.on_spark.stages import INPUT, Flow
from windowpane.sql.streaming.deltas import WEIGHT


@cache
def task_storage() -> Storage:
    """Return the DuckDB of this process, in memory: nothing stays in it from batch to batch."""
    storage = Storage(":memory:")
    storage.run("SET threads = 1")
    storage.try_always()
    return storage


def without_zone(rows: pa.Table, names: Container[str]) -> pa.Table:
    """Return rows whose instants in some columns are times in UTC, as DuckDB would cast them in a session of that zone.

    Its cast takes a tenth of a microsecond a row, for it looks up the rules of the zone; here the same numbers get another type.
    """
    for number, field in enumerate(rows.schema):
        if field.name in names and pa.types.is_timestamp(field.type) and field.type.unit == "us" and field.type.tz is not None:
            rows = rows.set_column(number, field.name, rows.column(number).cast(pa.int64()).cast(pa.timestamp("us")))
    return rows


@dataclass(frozen=True)
class Rowwise:
    """Turns parts of a change set, or changes from a stage, into the changes that arrive elsewhere.

    Args:
        hash: SQL of the hash that says where a row belongs, ``None`` where no hash is needed.
        done: the sources whose parts are what their query makes of them already.
    """

    flows: tuple[Flow, ...]
    hash: str | None = None
    done: frozenset[str] = frozenset()

    def __call__(self, source: str, table: pa.Table) -> Iterator[pa.Table]:
        """Yield the results on a part; tables may be empty."""
        if source in self.done:
            yield table
            return
        storage = task_storage()
        for flow in self.flows:
            if flow.source == source and (source != CLOCK or is_initial(table)):
                with storage.transaction():
                    yield self._run(storage, flow, table)

    def _run(self, storage: Storage, flow: Flow, table: pa.Table) -> pa.Table:
        query = flow.query(self.hash)
        if flow.source == CLOCK:
            return storage.arrow(query)
        with storage.reading(table) as name:
            return storage.arrow(f"WITH {INPUT} AS (SELECT {typed_items(flow.columns)} FROM {name}) {query}")


def typed(
    storage: Storage, tables: Iterable[pa.Table], columns: Sequence[tuple[str, str]], names: Sequence[str] | None = None
) -> str | None:
    """Keep changes until the transaction ends, with the types they have in plans, and return the name to read them by.

    Args:
        storage: where they are kept.
        tables: the changes, taken one table at a time.
        columns: (name in the tables, DuckDB type) of what is kept.
        names: what the columns are called there, ``None`` for the names in the tables.

    Returns:
        the name; ``None`` if there is no table.
    """
    return storage.temporary_of(tables, typed_items(columns, names))


def typed_items(columns: Sequence[tuple[str, str]], names: Sequence[str] | None = None) -> str:
    """Return the items of a SELECT that give changes the types they have in plans, and perhaps other names."""
    return cast_items([*columns, (WEIGHT, "INTEGER")], None if names is None else [*names, WEIGHT])


def cast_items(columns: Sequence[tuple[str, str]], names: Sequence[str] | None = None) -> str:
    """Return the items of a SELECT that give columns types, and perhaps other names."""
    called = zip(columns, names or [column for column, _ in columns], strict=True)
    return ", ".join(f"CAST({quoted(column)} AS {kind}) AS {quoted(name)}" for (column, kind), name in called)
