"""A Delta table by deltalake, without a jar: files that tasks write and one commit that names them, or a merge by key.

A commit holds the number of its batch beside the id of its query (an application transaction of Delta's protocol). It is read
before a batch is written, and two that commit the same at once are a conflict for Delta itself, so a batch is in the table once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays.values import JsonValue, Row, Value
from windowpane.connectors.tables import by_file, compared, folded, plain_schema
from windowpane.errors import ConnectorError, DuplicateColumnError, MissingExtraError, present
from windowpane.state.pairs import NONE

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

WRITTEN = "path string, size bigint, partition string, stats string"
_WRITTEN = pa.schema([("path", pa.string()), ("size", pa.int64()), ("partition", pa.string()), ("stats", pa.string())])
_SHORTEST = 4  # Options of a store that are no longer, "true" and numbers, hide nothing
_WIDEST = 200  # Bounds that are longer are not kept


@dataclass(frozen=True)
class Table:
    uri: str  # a folder, or an object store's
    partition_by: tuple[str, ...] = ()  # of a table that is made
    evolve: bool = False  # whether columns that it lacks are added
    # options of the store, secrets among them
    storage: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        MissingExtraError.unless("delta", "deltalake")

    def __str__(self) -> str:
        return f"Delta table {self.uri!r}"

    def opened(self) -> DeltaTable | None:
        """Return the table as it is now, ``None`` where there is none."""
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError

        try:
            return DeltaTable(self.uri, storage_options=dict(self.storage))
        except TableNotFoundError:
            return None
        except (DeltaError, OSError) as error:
            raise self._failed(error) from None

    def _failed(self, error: BaseException) -> ConnectorError:
        """Return an error with all that the store says, which has neither colours nor secrets."""
        said = "; ".join(line.replace("\x1b[31m↳\x1b[0m", "").strip() for line in str(error).splitlines() if line.strip())
        for name, value in self.storage.items():
            is_place = any(part in name.lower() for part in ("endpoint", "region"))
            said = said if is_place or len(value) <= _SHORTEST else said.replace(value, "...")
        return ConnectorError(str(self), f"{said.rstrip('.')}. The batch is not in the table")

    def taken(self, query: str) -> int:
        """Return the last batch of a query that the table has."""
        there = self.opened()
        found = None if there is None else there.transaction_version(query)
        return NONE if found is None else int(found)

    def prepared(self, rows: pa.Schema, feed: bool = False) -> DeltaTable:
        """Return the table with the columns of the rows: made, with a feed of changes, or not; or compared where it is there."""
        from deltalake import DeltaTable, Schema

        there = self.opened()
        stored = [] if there is None else [each.name for each in there.schema().fields]
        DuplicateColumnError.refuse_alike(
            dict.fromkeys((*stored, *rows.names)),
            "Delta has no regard to case: give the rows' column another name, as in sinks.delta(...).select(b='A').",
            f"{self} would have",
        )
        if there is None:
            return DeltaTable.create(
                self.uri,
                schema=Schema.from_arrow(plain_schema(rows)),
                partition_by=list(self.partition_by),
                storage_options=dict(self.storage),
                configuration={"delta.enableChangeDataFeed": "true"} if feed else None,
                mode="ignore",
            )
        added = compared(str(self), pa.schema(there.schema().to_arrow()), rows, self.evolve)
        if added:
            there.alter.add_columns(list(Schema.from_arrow(plain_schema(added)).fields))
        return there

    def _commit(self, query: str, number: int) -> CommitProperties:
        from deltalake import CommitProperties, Transaction

        return CommitProperties(app_transactions=[Transaction(query, number)], max_commit_retries=15)

    def append(self, there: DeltaTable, files: Sequence[Row], query: str, number: int) -> None:
        """Commit a batch: the files that its tasks wrote."""
        from deltalake.exceptions import DeltaError
        from deltalake.transaction import AddAction

        now = int(time.time() * 1_000)
        actions: list[Value] = [
            AddAction(each["path"], each["size"], json.loads(each["partition"]), now, True, each["stats"]) for each in files
        ]
        by = list(there.metadata().partition_columns)
        try:
            there.create_write_transaction(actions, "append", there.schema(), by, commit_properties=self._commit(query, number))
        except DeltaError as error:
            raise self._failed(error) from None

    def merge(self, batches: Iterable[pa.RecordBatch], key: Sequence[str], query: str, number: int) -> int:
        """Merge a batch of changes, in this process; return how many keys it had."""
        from deltalake.exceptions import DeltaError

        there = present(self.opened(), "it was prepared")
        batches = list(batches)
        names = set(batches[0].schema.names) if batches else set()
        schema = plain_schema(each for each in pa.schema(there.schema().to_arrow()) if each.name in names)
        rows, deleted = folded(batches, schema, key) if batches else (schema.empty_table(), pa.array([], pa.bool_()))
        if not rows.num_rows:
            self.append(there, [], query, number)
            return 0
        source = rows.append_column(_DELETED, deleted)
        changed = {_quoted(name): f"s.{_quoted(name)}" for name in schema.names}
        try:
            (
                there.merge(
                    source,
                    predicate=_predicate(rows, key),
                    source_alias="s",
                    target_alias="t",
                    commit_properties=self._commit(query, number),
                )
                .when_matched_delete(predicate=f"s.{_DELETED}")
                .when_matched_update(updates=changed, predicate=f"NOT s.{_DELETED}")
                .when_not_matched_insert(updates=changed, predicate=f"NOT s.{_DELETED}")
                .execute()
            )
        except DeltaError as error:
            raise self._failed(error) from None
        return int(rows.num_rows)

    def compact(self, there: DeltaTable) -> None:
        there.optimize.compact()


_DELETED = "windowpane_deleted"


def _predicate(rows: pa.Table, key: Sequence[str]) -> str:
    """Return how rows meet those of the table; what the table has beside the range of the batch need not be read."""
    parts = []
    for name in key:
        column, same = rows[name], f"t.{_quoted(name)} = s.{_quoted(name)}"
        if column.null_count:
            same = f"({same} OR (t.{_quoted(name)} IS NULL AND s.{_quoted(name)} IS NULL))"
        elif pa.types.is_integer(column.type) or pa.types.is_string(column.type):
            least, most = (_literal(each) for each in pc.min_max(column).as_py().values())
            same += f" AND t.{_quoted(name)} >= {least} AND t.{_quoted(name)} <= {most}"
        parts.append(same)
    return " AND ".join(parts)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _literal(value: object) -> str:
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


@dataclass(frozen=True)
class FileWriter:
    """Writes the rows of a task as Parquet files beside the table; runs in tasks."""

    uri: str
    storage: Mapping[str, str] = field(repr=False)
    schema: pa.Schema
    partition_by: tuple[str, ...]
    batch: str  # what the names of files begin with

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in by_file(batches):
            for values, part in self._parts(rows.select(self.schema.names).cast(self.schema)):
                yield self._file(values, part)

    def _parts(self, rows: pa.Table) -> Iterator[tuple[dict[str, str | None], pa.Table]]:
        if not self.partition_by:
            yield {}, rows
            return
        by = list(self.partition_by)
        for values in rows.select(by).group_by(by).aggregate([]).to_pylist():
            chosen = None
            for name, value in values.items():
                same = pc.is_null(rows[name]) if value is None else pc.fill_null(pc.equal(rows[name], value), False)
                chosen = same if chosen is None else pc.and_(chosen, same)
            yield {name: _partition_text(value) for name, value in values.items()}, rows.filter(chosen).drop_columns(by)

    def _file(self, values: Mapping[str, str | None], rows: pa.Table) -> pa.RecordBatch:
        import pyarrow.parquet as pq
        from deltalake.fs import DeltaStorageHandler

        path = f"{self.batch}-{uuid4()}.parquet"  # values of partitions are in the commit: Delta needs no folders
        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink, compression="zstd")
        content = sink.getvalue().to_pybytes()
        # pyarrow hands buffers to streams in Python, and deltalake's takes bytes alone.
        out: Value = DeltaStorageHandler(self.uri, options=dict(self.storage))._handler.open_output_stream(path, None)
        out.write(content)
        out.close()
        found = [[path], [len(content)], [json.dumps(dict(values))], [json.dumps(_statistics(rows))]]
        return pa.RecordBatch.from_arrays(
            [pa.array(each, kind) for each, kind in zip(found, _WRITTEN.types, strict=True)], schema=_WRITTEN
        )


def _partition_text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f")
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, date) else str(value)


def _statistics(rows: pa.Table) -> dict[str, JsonValue]:
    """Return what Delta keeps of a file: the number of rows, and the bounds and NULLs of columns of numbers and texts."""
    least: dict[str, JsonValue] = {}
    most: dict[str, JsonValue] = {}
    for name in rows.column_names:
        kind = rows[name].type
        if pa.types.is_integer(kind) or pa.types.is_string(kind):
            bounds = pc.min_max(rows[name]).as_py()
            if bounds["min"] is not None and len(str(bounds["min"])) + len(str(bounds["max"])) < _WIDEST:
                least[name], most[name] = bounds["min"], bounds["max"]
    nulls = {name: rows[name].null_count for name in rows.column_names if not pa.types.is_nested(rows[name].type)}
    return {"numRecords": rows.num_rows, "minValues": least, "maxValues": most, "nullCount": nulls}
