"""Sources of files: every flush takes in the files that are new, each one chunk, in the order of their names.

Which files were taken is kept in ``windowpane.files``, in the transaction that takes them, so no file counts twice. Its rows
are deleted with their table. It is read once, and again after a transaction that was rolled back.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from glob import glob
from pathlib import Path

import duckdb

from windowpane.errors import SqlRunError, StoreError, UnreadableFileError, UnsupportedSqlError
from windowpane.sql.catalog.entries import TableInfo
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.embedded.tables import TableWriter
from windowpane.sql.expressions.expr import quoted, text_literal
from windowpane.sql.expressions.types import SqlType
from windowpane.sql.numerics.conversions import taken_numeric
from windowpane.sql.numerics.messages import numeric_message
from windowpane.sql.parse.connector_options import known_connector, refuse_other_options
from windowpane.sql.parse.positions import Place

READERS = {"parquet": "read_parquet", "json": "read_json", "csv": "read_csv"}
_NEEDED = dict.fromkeys(READERS, ("path",))
_SPARK_ONLY = ("delta", "kafka", "rate", "socket")


def check_options(options: Mapping[str, str], place: Place) -> None:
    """Refuse options that a source cannot be made from.

    Raises:
        SqlError: an unknown connector, or no path.
    """
    if not options:
        return
    connector = options.get("connector", "")
    if connector in _SPARK_ONLY:
        message = (
            f"connector {connector!r} without Spark is not supported. Open the session with Session(spark=...), or windowpane "
            f"sql --spark; {', '.join(READERS)} read files here."
        )
        raise UnsupportedSqlError(message, place.line, place.column)
    known_connector(options, _NEEDED, place)
    refuse_other_options(options, ("path",), place)


class TakenFiles:
    """The files that were taken, by table."""

    def __init__(self, storage: Storage) -> None:
        """Keep them in ``storage``."""
        self._storage = storage
        self._held: dict[str, set[str]] | None = None
        self._new: list[tuple[str, str]] = []

    def of(self, table: str) -> set[str]:
        """Return the files of a table."""
        if self._held is None:
            self._held = {}
            for name, path in self._storage.run("SELECT relation, path FROM windowpane.files"):
                self._held.setdefault(name, set()).add(path)
        return self._held.setdefault(table, set())

    def add(self, table: str, path: str) -> None:
        """Note that a file was taken."""
        self.of(table).add(path)
        self._new.append((table, path))

    def save(self) -> None:
        """Write what was noted, in the transaction that took the files."""
        if self._new:
            rows = ", ".join(f"({text_literal(table)}, {text_literal(path)})" for table, path in self._new)
            self._storage.run(f"INSERT INTO windowpane.files VALUES {rows}")
            self._new.clear()

    def drop(self, table: str) -> None:
        """Forget the files of a table that is dropped: a later table of its name takes them anew."""
        if self._held is not None:
            self._held.pop(table, None)
        self._new = [(name, path) for name, path in self._new if name != table]
        self._storage.run("DELETE FROM windowpane.files WHERE relation = ?", [table])

    def forget(self) -> None:
        """Read again what is stored."""
        self._held = None
        self._new.clear()


def take_new_files(
    storage: Storage, info: TableInfo, writer: TableWriter, files: TakenFiles, passed_over: Container[str] = ()
) -> None:
    """Insert the rows of new files, but not of those that are skipped.

    Raises:
        UnreadableFileError: a file is not of the format, or its values do not fit the columns.
    """
    connector = info.options.get("connector")
    if connector is None:
        return
    taken = files.of(info.relation.name)
    columns = tuple(column.name for column in info.relation.visible if column.name not in info.generated)
    types = {column.name: column.type for column in info.relation.columns}
    new = [path for path in sorted(_files(info.options["path"])) if path not in taken and path not in passed_over]
    for path in new:
        try:
            writer.append((_query(storage, connector, path, {column: types[column] for column in columns}), columns), info)
        except (SqlRunError, StoreError, duckdb.Error) as error:
            raise UnreadableFileError(path, connector, _said(error)) from error
        files.add(info.relation.name, path)


def _query(storage: Storage, connector: str, path: str, types: Mapping[str, SqlType]) -> str:
    """Return the rows of a file as the columns of the table."""
    numerics = [name for name, kind in types.items() if kind.name == "numeric"]
    as_text = ", ".join(f"{text_literal(name)}: 'VARCHAR'" for name in numerics)
    # As doubles, which DuckDB would take for them, long numbers of a CSV file lose digits.
    options = f", types = {{{as_text}}}" if connector == "csv" and numerics else ""
    source = f"{READERS[connector]}({text_literal(path)}{options})"
    held = {row[0]: row[1] for row in storage.run(f"DESCRIBE FROM {source}")} if numerics else {}
    items = [
        taken_numeric(quoted(name), held.get(name, ""), kind)
        if kind.name == "numeric"
        else f"CAST({quoted(name)} AS {kind.duckdb})"
        for name, kind in types.items()
    ]
    listed = ", ".join(f"{item} AS {quoted(name)}" for item, name in zip(items, types, strict=True))
    return f"SELECT {listed} FROM {source}"


def _said(error: Exception) -> Exception:
    """Return what DuckDB said about a file, without its advice."""
    said = str(error.__cause__ or error)
    lines = (numeric_message(said) or said).partition("Possible")[0].split("\n")
    return ValueError(" ".join(line.strip() for line in lines if line.strip()).rstrip("."))


def _files(pattern: str) -> list[str]:
    path = Path(pattern)
    if path.is_dir():
        return [str(file) for file in path.rglob("*") if file.is_file() and not file.name.startswith((".", "_"))]
    return glob(pattern)
