"""An Iceberg table by pyiceberg, without a jar: files that tasks write and one snapshot that names them, or a merge by key.

A commit sets a property of the table to the number of its batch, in one transaction with the snapshot. pyiceberg repeats a commit
that was overtaken by itself, which would commit a batch twice where the other one had it: here a commit that was overtaken is
begun anew, and the property is read again before.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.connectors.tables import by_file, compared, folded, keys_of, plain_schema
from windowpane.errors import ConnectorError, InvalidSpecError, MissingExtraError, present
from windowpane.state.pairs import NONE

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import Table as IcebergTable
    from pyiceberg.table import Transaction

WRITTEN = "path string"
_WRITTEN = pa.schema([("path", pa.string())])
_ATTEMPTS = 10


@dataclass(frozen=True)
class Table:
    name: str  # with its namespace: ``db.totals``
    # the name of a catalog that pyiceberg is configured with, or its properties, secrets among them
    catalog: str | Mapping[str, str] = field(repr=False, compare=False)
    evolve: bool = False  # whether columns that it lacks are added

    def __post_init__(self) -> None:
        MissingExtraError.unless("iceberg", "pyiceberg")
        if "." not in self.name:
            raise InvalidSpecError(f"table={self.name!r}: a table of Iceberg is in a namespace: 'db.{self.name}'.")

    def __str__(self) -> str:
        return f"Iceberg table {self.name!r}"

    def _catalog(self) -> Catalog:
        from pyiceberg.catalog import load_catalog

        if isinstance(self.catalog, str):
            return load_catalog(self.catalog)
        given = dict(self.catalog)
        return load_catalog(given.pop("name", "windowpane"), **given)

    def opened(self) -> IcebergTable | None:
        """Return the table as it is now, ``None`` where there is none."""
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        try:
            found = self._catalog().load_table(self.name)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        except Exception as error:
            raise ConnectorError(str(self), f"{type(error).__name__}: {str(error).splitlines()[0]}") from None
        found.metadata.properties["commit.retry.num-retries"] = "0"  # here alone: see above
        return found

    def taken(self, query: str) -> int:
        """Return the last batch of a query that the table has."""
        there = self.opened()
        return NONE if there is None else int(there.properties.get(_property(query), NONE))

    def prepared(self, rows: pa.Schema) -> IcebergTable:
        """Return the table with the columns of the rows: made where it is not there, compared where it is."""
        there = self.opened()
        columns = plain_schema(rows)
        if there is None:
            catalog = self._catalog()
            catalog.create_namespace_if_not_exists(self.name.rpartition(".")[0])
            catalog.create_table_if_not_exists(self.name, schema=columns)
            return present(self.opened(), "it was made")
        added = compared(str(self), columns_of(there), rows, self.evolve)
        if added:
            with there.update_schema() as update:
                update.union_by_name(pa.schema([*columns_of(there), *(columns.field(each.name) for each in added)]))
            return present(self.opened(), "it was changed")
        return there

    def takes_files(self, there: IcebergTable) -> bool:
        """Whether tasks can write its files: those of a partitioned table are of one partition each, which pyiceberg sees to."""
        return bool(there.spec().is_unpartitioned())

    def append(self, files: Sequence[str], query: str, number: int) -> None:
        """Commit a batch: the files that its tasks wrote."""

        def change(there: IcebergTable, transaction: Transaction, properties: dict[str, str]) -> None:
            if files:
                transaction.add_files(list(files), snapshot_properties=properties)

        self._commit(change, query, number)

    def merge(self, batches: Iterable[pa.RecordBatch], key: Sequence[str], query: str, number: int) -> int:
        """Merge a batch of changes, here, as a delete and an append; without a key as an append. Return how many rows it had."""
        batches = list(batches)
        there = present(self.opened(), "it was prepared")
        names = set(batches[0].schema.names) if batches else set()
        schema = pa.schema([each for each in columns_of(there) if each.name in names])
        if not key:
            rows = pa.Table.from_batches(batches).select(schema.names).cast(schema) if batches else schema.empty_table()
            self._commit(lambda there, change, said: change.append(rows, said) if rows.num_rows else None, query, number)
            return int(rows.num_rows)
        rows, deleted = folded(batches, schema, key)

        def change(there: IcebergTable, transaction: Transaction, properties: dict[str, str]) -> None:
            if not rows.num_rows:
                return
            matching = _in(rows, key[0])
            others = schema.empty_table()
            if len(key) > 1:
                found = there.scan(row_filter=matching)
                others = _without(found.to_arrow().select(schema.names).cast(schema), rows, key)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # where there is no row to delete
                transaction.delete(matching, snapshot_properties=properties)
            left = pa.concat_tables([others, rows.filter(pc.invert(deleted))])
            if left.num_rows:
                transaction.append(left, snapshot_properties=properties)

        self._commit(change, query, number)
        return int(rows.num_rows)

    def _commit(self, change: Change, query: str, number: int) -> None:
        from pyiceberg.exceptions import CommitFailedException, ValidationException

        name = _property(query)
        for attempt in range(_ATTEMPTS):
            there = self.opened()
            if there is None:
                raise ConnectorError(str(self), "it is not there any more. The batch is not in the table")
            if int(there.properties.get(name, NONE)) >= number:
                return
            transaction = there.transaction()
            try:
                change(there, transaction, {name: str(number)})
                transaction.set_properties({name: str(number)})
                transaction.commit_transaction()
                return
            except (CommitFailedException, ValidationException) as error:
                if attempt == _ATTEMPTS - 1:
                    raise ConnectorError(
                        str(self), f"{_ATTEMPTS} commits were overtaken by other writers: {error}. The batch is not in the table"
                    ) from None


Change: TypeAlias = "Callable[[IcebergTable, Transaction, dict[str, str]], None]"
"""What a commit does in a transaction of a table, which keeps these properties."""


def _property(query: str) -> str:
    return f"windowpane.{query}"


def columns_of(there: IcebergTable) -> pa.Schema:
    """Return the columns of a table without the numbers that Iceberg gives them."""
    return plain_schema(there.schema().as_arrow())


def _in(rows: pa.Table, name: str) -> BooleanExpression:
    from pyiceberg import expressions

    made: ModuleType = expressions  # its classes take names, which their types do not say
    values = pc.unique(rows[name]).to_pylist()
    found: BooleanExpression = made.In(name, [each for each in values if each is not None and each == each])
    if None in values:
        found = made.Or(found, made.IsNull(name))
    return made.Or(found, made.IsNaN(name)) if any(each != each for each in values) else found


def _without(rows: pa.Table, changed: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return the rows whose keys are not those of others."""
    keys = set(keys_of(changed, key))
    kept = [each not in keys for each in keys_of(rows, key)]
    return rows.filter(pa.array(kept, pa.bool_()))


@dataclass(frozen=True)
class FileWriter:
    """Writes the rows of a task as Parquet files of the table; runs in tasks."""

    table: Table
    schema: pa.Schema
    batch: str  # what the names of files begin with

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        there: IcebergTable | None = None
        for rows in by_file(batches):
            there = there or present(self.table.opened(), "it was prepared")
            yield self._file(there, rows.select(self.schema.names).cast(self.schema))

    def _file(self, there: IcebergTable, rows: pa.Table) -> pa.RecordBatch:
        import pyarrow.parquet as pq

        path = f"{there.location()}/data/{self.batch}-{uuid4()}.parquet"
        with there.io.new_output(path).create() as out:
            pq.write_table(rows, out, compression="zstd")
        return pa.RecordBatch.from_arrays([pa.array([path], pa.string())], schema=_WRITTEN)
