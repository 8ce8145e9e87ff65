"""Sources of files: every flush takes in the files that are new, each one chunk, in the order of their names.

DuckDB reads a file at once. One that it cannot read so, of a format of texts, is read row by row: see ``windowpane.malformed``.

Which files were taken is kept in ``windowpane.files``, in the transaction that takes them, so no file counts twice. Its rows
are deleted with their table. It is read once, and again after a transaction that was rolled back.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from glob import glob, has_magic
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from windowpane.connectors.object_stores import Location, is_remote
from windowpane.errors import MalformedRowError, SqlNameError, SqlRunError, StoreError, UnreadableFileError, UnsupportedSqlError
from windowpane.hidden_columns import ORIGIN
from windowpane.malformed import MalformedRow, csv_cells, csv_delimiter, json_cells, json_documents
from windowpane.sql.catalog.entries import TableInfo
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.embedded.tables import TableWriter
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.expressions.types import SqlType
from windowpane.sql.failures.duck_words import in_words
from windowpane.sql.failures.malformed_rows import MalformedRows, found_in, text_rows
from windowpane.sql.numerics.conversions import taken
from windowpane.sql.parse.connector_options import (
    MALFORMED,
    check_kafka,
    check_local,
    check_policy,
    known_connector,
    refuse_other_options,
)
from windowpane.sql.parse.positions import Place
from windowpane.sql.values.text_values import text_literal

READERS = {"parquet": "read_parquet", "json": "read_json", "csv": "read_csv"}
BY_ROWS = ("json", "csv")
"""Formats whose files are read row by row where DuckDB cannot read one at once."""
_NEEDED = dict.fromkeys(READERS, ("path",))
_SPARK_ONLY = ("delta", "rate", "socket")


def check_options(options: Mapping[str, str], place: Place) -> None:
    """Refuse options that a source cannot be made from."""
    if not options:
        return
    connector = options.get("connector", "")
    if connector in _SPARK_ONLY:
        message = (
            f"connector {connector!r} without Spark is not supported. Open the session with Session(spark=...), or windowpane "
            f"sql --spark; {', '.join(READERS)} read files here, and kafka reads topics."
        )
        raise place.error(UnsupportedSqlError, message)
    if connector == "kafka":
        check_kafka(options, place)
        return
    known_connector(options, {**_NEEDED, "kafka": ()}, place)
    refuse_other_options(options, ("path", *((MALFORMED,) if connector in BY_ROWS else ())), place)
    check_policy(options, place)
    if not is_remote(options["path"]):
        check_local(options["path"], place)


def check_is_there(path: str, place: Place) -> None:
    """Refuse a path that names nothing; of a pattern, the folder in which it begins."""
    if is_remote(path):
        Location(path).paths()
        return
    known = Path(path)
    while has_magic(str(known)) and not known.exists():  # a name may have such characters
        known = known.parent
    if not known.exists():
        raise place.error(SqlNameError, f"path = {path!r}: there is no {str(known)!r}. Make the folder first, or mend the path.")


class TakenFiles:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._held: dict[str, set[str]] | None = None
        self._new: list[tuple[str, str]] = []

    def of(self, table: str) -> set[str]:
        if self._held is None:
            self._held = {}
            for name, path in self._storage.run("SELECT relation, path FROM windowpane.files"):
                self._held.setdefault(name, set()).add(path)
        return self._held.setdefault(table, set())

    def add(self, table: str, path: str) -> None:
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
        self._held = None
        self._new.clear()


def take_new_files(
    storage: Storage,
    info: TableInfo,
    writer: TableWriter,
    files: TakenFiles,
    passed_over: Container[str] = (),
    by_rows: Container[str] = (),
) -> None:
    """Insert the rows of new files, but not of those that are skipped.

    Raises:
        UnreadableFileError: a file is not of the format, or its values do not fit the columns.
        MalformedRowError: a row cannot be read, and malformed rows of the source are to be an error.
    """
    connector = info.options.get("connector")
    if connector is None:
        return
    taken = files.of(info.relation.name)
    columns = tuple(column.name for column in info.relation.visible if column.name not in info.generated)
    types = {column.name: column.type for column in info.relation.columns}
    new = [path for path in sorted(_files(info.options["path"])) if path not in taken and path not in passed_over]
    for path in new:
        read = {column: types[column] for column in columns}
        with _on_this_machine(info.options["path"], path) as local:
            try:
                if path in by_rows:
                    _take_by_rows(storage, info, writer, (path, local), read)
                else:
                    writer.append((_query(storage, connector, local, read), columns), info)
            except MalformedRowError as error:
                error.path = path
                raise
            except (SqlRunError, StoreError, duckdb.Error) as error:
                raise UnreadableFileError(path, connector, _said(error, local, path)) from error
        files.add(info.relation.name, path)


def _query(storage: Storage, connector: str, path: str, types: Mapping[str, SqlType]) -> str:
    numerics = [name for name, kind in types.items() if kind.name == "numeric"]
    as_text = ", ".join(f"{text_literal(name)}: 'VARCHAR'" for name in numerics)
    # As doubles, which DuckDB would take for them, long numbers of a CSV file lose digits.
    options = f", types = {{{as_text}}}" if connector == "csv" and numerics else ""
    source = f"{READERS[connector]}({text_literal(path)}{options})"
    held = {row[0]: row[1] for row in storage.run(f"DESCRIBE FROM {source}")} if numerics else {}
    items = [taken(quoted(name), held.get(name, ""), kind) for name, kind in types.items()]
    listed = ", ".join(f"{item} AS {quoted(name)}" for item, name in zip(items, types, strict=True))
    return f"SELECT {listed} FROM {source}"


@contextmanager
def _on_this_machine(source: str, path: str) -> Iterator[str]:
    """Yield the path of a file that DuckDB can read: of one on an object store that of a copy."""
    if not is_remote(path):
        yield path
        return
    location = Location(source)
    with TemporaryDirectory(prefix="windowpane-file-") as folder:
        local = f"{folder}/{path.rpartition('/')[2]}"
        Path(local).write_bytes(location.read(location.path(path)))
        yield local


def _take_by_rows(
    storage: Storage, info: TableInfo, writer: TableWriter, paths: tuple[str, str], types: Mapping[str, SqlType]
) -> None:
    """Insert the rows of a file of texts, of its path as it is shown and as it is here, and note what is malformed."""
    path, local = paths
    name, connector, content = info.relation.name, info.options["connector"], Path(local).read_bytes()
    nested = nested_columns(types) if connector == "json" else []
    if connector == "json":
        cells = json_cells(json_documents(content), list(types), nested)
    else:
        cells = csv_cells(content, list(types), csv_delimiter(content, list(types)))
    if cells.absent:
        raise SqlRunError(f"its heading has no column {cells.absent[0]!r}")
    casts = {column: cast_of_text(column, kind, column in nested) for column, kind in types.items()}
    most = MalformedRows(storage).most(name)
    rows = text_rows(info, casts, beside={ORIGIN}, most=most)
    misread = [MalformedRow(name, f"{path}, {each.position}", None, each.value, each.reason) for each in cells.misread]
    found = found_in(misread, most)
    rows.refuse(found)
    arrived = storage.temporary_from(cells.table(rows.policy))
    with storage.trying():
        found = found.and_more(rows.found(storage, arrived, f"{path}, "), most)
        writer.append((rows.lenient(arrived), tuple(types)), info)
    MalformedRows(storage).note(name, found)


_NESTED = ("JSON", "STRUCT", "MAP")


def nested_columns(types: Mapping[str, SqlType]) -> list[str]:
    """Return the columns whose cells are JSON in a row of JSON."""
    return [name for name, kind in types.items() if kind.duckdb.startswith(_NESTED) or kind.duckdb.endswith("]")]


def cast_of_text(column: str, kind: SqlType, is_json: bool) -> str:
    return taken(f"CAST({quoted(column)} AS JSON)" if is_json else quoted(column), "VARCHAR", kind)


def _said(error: Exception, local: str, path: str) -> Exception:
    """Return what DuckDB said about a file, without its advice."""
    said = str(error.__cause__ or error).replace(local, path)
    lines = str(in_words(said) or said).partition("Possible")[0].split("\n")
    return ValueError(" ".join(line.strip() for line in lines if line.strip()).rstrip("."))


def _files(pattern: str) -> list[str]:
    if is_remote(pattern):
        location = Location(pattern)
        return [location.address(each) for each in location.paths(may_be_empty=True)]
    path = Path(pattern)
    if path.is_dir():
        return [str(file) for file in path.rglob("*") if file.is_file() and not file.name.startswith((".", "_"))]
    return glob(pattern)
