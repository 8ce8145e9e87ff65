"""Sources of files: every flush takes in the files that are new, each one chunk, in the order of their names.

The values of CSV and JSON are texts until their columns cast them: what DuckDB would take them for, "10:00" for a time and "1.50"
for a double, changes them. A file that is not read at once, of JSON by Arrow and of CSV by DuckDB, is cut into texts row by row:
see ``windowpane.malformed``.

Which files were taken is kept in ``windowpane.files``, in the transaction that takes them, so no file counts twice. Its rows
are deleted with their table. It is read once, and again after a transaction that was rolled back.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from glob import glob, has_magic
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa
from pyarrow.parquet import read_schema

from windowpane.connectors.object_stores import Location, is_remote
from windowpane.errors import (
    MalformedRowError,
    SqlNameError,
    SqlRunError,
    SqlSyntaxError,
    StoreError,
    UnreadableFileError,
    UnsupportedSqlError,
)
from windowpane.hidden_columns import ORIGIN
from windowpane.malformed import Cells, MalformedRow, Misread, csv_cells, csv_delimiter, json_cells, json_documents
from windowpane.sql.catalog.entries import TableInfo
from windowpane.sql.catalog.relations import StoredColumn
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.embedded.tables import TableWriter
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.expressions.types import DIGITS, SqlType, held_as
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
from windowpane.sql.values.json_lines import read_lines
from windowpane.sql.values.text_values import text_literal

TEXTS = ("json", "csv")
"""Formats of texts, whose files are read row by row where they are not read at once."""
_NEEDED = dict.fromkeys(("parquet", *TEXTS), ("path",))
_PIECE = 50_000  # Documents whose cells are Python's at a time
_SPARK_ONLY = ("delta", "rate", "socket")


def check_options(options: Mapping[str, str], place: Place) -> None:
    """Refuse options that a source cannot be made from."""
    if not options:
        return
    connector = options.get("connector", "")
    if connector in _SPARK_ONLY:
        message = (
            f"connector {connector!r} without Spark is not supported. Open the session with Session(spark=...), or windowpane "
            f"sql --spark; {', '.join(_NEEDED)} read files here, and kafka reads topics."
        )
        raise place.error(UnsupportedSqlError, message)
    if connector == "kafka":
        check_kafka(options, place)
        return
    known_connector(options, {**_NEEDED, "kafka": ()}, place)
    refuse_other_options(options, ("path", *((MALFORMED,) if connector in TEXTS else ())), place)
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


def columns_of_files(storage: Storage, path: str, place: Place) -> tuple[StoredColumn, ...]:
    """Return the columns of files of Parquet: those of the first one, under their names there.

    Raises:
        SqlSyntaxError: there is no file yet, or a column is of a type that SQL does not have.
    """
    first = min(_files(path), default=None)
    if first is None:
        message = f"path = {path!r}: there is no file yet to take columns from. Write the columns behind the name of the source."
        raise place.error(SqlSyntaxError, message)
    with _on_this_machine(path, first) as local:
        held = storage.run(f"DESCRIBE FROM read_parquet({text_literal(local)})")
        long = _too_long(local)
    kinds = {name: held_as(kind) for name, kind, *_ in held if name not in long}
    for name, kind, *_ in held:
        if kinds.get(name) is None:
            kind = long.get(name, kind)
            message = f"column {name!r} of {first!r} is of type {kind}. Write the columns behind the source's name, without it."
            raise place.error(SqlSyntaxError, message)
    return tuple(StoredColumn(name, kind) for name, kind in kinds.items() if kind is not None)


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
    types = info.relation.types
    new = [path for path in sorted(_files(info.options["path"])) if path not in taken and path not in passed_over]
    for path in new:
        read = {column: types[column] for column in columns}
        with _on_this_machine(info.options["path"], path) as local:
            try:
                query = None if path in by_rows else _query(storage, connector, local, read)
                if query is None:
                    _take_by_rows(storage, info, writer, (path, local), read)
                else:
                    writer.append((query, columns), info)
            except MalformedRowError as error:
                error.path = path
                raise
            except (SqlRunError, StoreError, duckdb.Error, pa.ArrowException) as error:
                raise UnreadableFileError(path, connector, _said(error, local, path)) from error
        files.add(info.relation.name, path)


def _too_long(path: str) -> dict[str, pa.DataType]:
    """Return the columns of a file of Parquet with more digits than ``numeric`` has: DuckDB reads them as some near double."""
    return {field.name: field.type for field in read_schema(path) if _digits(field.type) > DIGITS}


def _digits(kind: pa.DataType) -> int:
    inner = max((_digits(kind.field(number).type) for number in range(kind.num_fields)), default=0)
    return max(inner, kind.precision if pa.types.is_decimal(kind) else 0)


def _query(storage: Storage, connector: str, path: str, types: Mapping[str, SqlType]) -> str | None:
    """Return the query of a file's rows, ``None`` where it is to be read row by row. No type of a value is guessed."""
    if connector == "json":
        found = read_lines(_content(path), types)
        if found is None:
            return None
        source = storage.temporary_from(found)
    elif connector == "csv":
        delimiter = csv_delimiter(_heading(path), list(types))
        source = f"read_csv({text_literal(path)}, delim = {text_literal(delimiter)}, {_AS_TEXT})"
    else:
        source = f"read_parquet({text_literal(path)})"
    held = {row[0].lower(): row[1] for row in storage.run(f"DESCRIBE FROM {source}")}
    asked = {name.lower() for name in types}
    for name, long in _too_long(path).items() if connector == "parquet" else ():
        if name.lower() in asked:
            raise SqlRunError(f"column {name!r} is of type {long}, and numbers of SQL have {DIGITS} digits")
    items = [f"{taken(quoted(name), held.get(name.lower(), ''), kind)} AS {quoted(name)}" for name, kind in types.items()]
    return f"SELECT {', '.join(items)} FROM {source}"


_AS_TEXT = "header = true, skip = 0, all_varchar = true, quote = '\"', escape = '\"', comment = ''"
_LONGEST_HEADING = 1 << 20


def _heading(path: str) -> bytes:
    return _content(path, _LONGEST_HEADING).partition(b"\n")[0]


def _content(path: str, most: int | None = None) -> bytes:
    """Return what is in a file, or its first bytes; compressed where its name says so, as DuckDB reads it."""
    with pa.input_stream(path, compression="detect") as file:
        return bytes(file.read(most))


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
    name, connector, content = info.relation.name, info.options["connector"], _content(local)
    nested = nested_columns(types) if connector == "json" else []
    casts = {column: cast_of_text(column, kind, column in nested) for column, kind in types.items()}
    most = MalformedRows(storage).most(name)
    rows = text_rows(info, casts, beside={ORIGIN}, most=most)
    pieces, misread = list[pa.Table](), list[Misread]()
    for cells in _pieces(connector, content, list(types), nested):
        if cells.absent:
            raise SqlRunError(f"its heading has no column {cells.absent[0]!r}")
        pieces.append(cells.table(rows.policy))
        misread += cells.misread
    found = found_in([MalformedRow(name, f"{path}, {each.position}", None, each.value, each.reason) for each in misread], most)
    rows.refuse(found)
    arrived = storage.temporary_from(pa.concat_tables(pieces))
    with storage.trying():
        found = found.and_more(rows.found(storage, arrived, f"{path}, "), most)
        writer.append((rows.lenient(arrived), tuple(types)), info)
    MalformedRows(storage).note(name, found)


def _pieces(connector: str, content: bytes, columns: Sequence[str], nested: Sequence[str]) -> Iterator[Cells]:
    """Yield the cells of a file: of JSON some documents at a time, whose values take many times the room of their texts."""
    if connector == "csv":
        yield csv_cells(content, columns, csv_delimiter(content, columns))
        return
    documents = json_documents(content)
    yield json_cells(islice(documents, _PIECE), columns, nested)
    for first in documents:
        yield json_cells(chain([first], islice(documents, _PIECE - 1)), columns, nested)


_NESTED = ("JSON", "STRUCT", "MAP")


def nested_columns(types: Mapping[str, SqlType]) -> list[str]:
    """Return the columns whose cells are JSON in a row of JSON."""
    return [name for name, kind in types.items() if kind.duckdb.startswith(_NESTED) or kind.duckdb.endswith("]")]


def cast_of_text(column: str, kind: SqlType, is_json: bool) -> str:
    return taken(f"CAST({quoted(column)} AS JSON)", "JSON", kind) if is_json else taken(quoted(column), "VARCHAR", kind)


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
