"""Arrow reads row groups of Parquet files, each in the task that Spark would have read it.

Spark cuts large files, and its tasks read the row groups that their part begins: it knows how many rows there are, and reads
none of their columns. Of every ``_ROWS_A_PLACE`` rows it hands Python one, by its file and number; that place names the row
groups around it, so every one is read once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote

import pyarrow as pa

from windowpane.errors import PatternNameError, UnreadableFileError
from windowpane.kernels.conditions import holds
from windowpane.kernels.keys.coded_texts import CODED, is_coded
from windowpane.spark.sources.file_names import START_AGAIN, is_pattern
from windowpane.spark.stages.types import TIMESTAMP, TIMESTAMP_NTZ
from windowpane.windowing.expressions import Expression, Name

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData, ParquetFile
    from pyspark.sql import DataFrame

SWITCH = "spark.windowpane.files.readInArrow"  # Setting of the session; ``false`` leaves all files to Spark

_ROWS_A_PLACE = 1 << 16
_BYTES_A_CODED_TEXT = 10  # A column with so many bytes a row, its dictionary included, mostly holds codes
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_PLAIN = (*_INTEGERS, pa.string(), pa.binary(), pa.bool_(), pa.float32(), pa.float64(), pa.date32(), TIMESTAMP)
"""Types of values in structs, which are read as they are; instants of 96 bits are read without a zone, so they are none."""


def places(files: DataFrame, *, is_exact: bool = False) -> DataFrame:
    """Return the places in a stream of files, as (``path``, ``row``): a row in so many, by its number in its file.

    The last column of ``files`` says which file a row is of; no other is read. Where it ``is_exact``, equal places meet in one
    task, which reads each once: Spark lists files more than once beside one whose name it takes for a pattern.
    """
    of_file = f"`{files.columns[-1]}`"
    kept = files.where(f"{of_file}.row_index % {_ROWS_A_PLACE} = 0")
    found = kept.selectExpr(f"{of_file}.file_path AS path", f"{of_file}.row_index AS row")
    return found.repartition("path", "row") if is_exact else found


@dataclass(frozen=True)
class RowFilter:
    condition: Expression
    schema: pa.Schema

    def mask(self, columns: Sequence[pa.ChunkedArray | pa.Array], rows: int) -> pa.Array:
        return holds(self.condition, lambda column: columns[self.schema.get_field_index(cast(Name, column).name)], rows)


@dataclass(frozen=True)
class ParquetColumns:
    schema: pa.Schema  # the columns
    # those whose texts are read as ``kernels.keys.coded_texts`` has them where a file holds them so
    coded: frozenset[str] = frozenset()
    sources: Mapping[str, str] = field(default_factory=dict)  # the names that columns have in the files, where these are others
    filter: RowFilter | None = None  # which rows are read, ``None`` for all
    # one of the files whose name Spark takes for a pattern; then all places that are equal come to one task
    odd: str | None = None
    takes_any_name: bool = False  # whether a name that comes later doubles nothing

    def narrowed(self, columns: Sequence[str], coded: frozenset[str] = frozenset()) -> ParquetColumns:
        return replace(self, schema=pa.schema([self.schema.field(name) for name in columns]), coded=coded)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Read the row groups of one partition; the next is read while one is encoded."""
        with ThreadPoolExecutor(1) as ahead:
            waiting: Future[pa.Table] | None = None
            for read in self._groups(batches):
                following = ahead.submit(read)
                if waiting is not None:
                    yield waiting.result()
                waiting = following
            if waiting is not None:
                yield waiting.result()

    def _groups(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Callable[[], pa.Table]]:
        file: _File | None = None
        read = set[tuple[str, int]]()
        for batch in batches:
            for encoded, row in zip(batch["path"].to_pylist(), batch["row"].to_pylist(), strict=True):
                path = unquote(encoded)  # Spark writes a URI
                if (path, row) in read:
                    continue
                read.add((path, row))
                if not self.takes_any_name and is_pattern(path):
                    raise PatternNameError(path, START_AGAIN)
                if file is None or file.path != path:
                    with _naming_the_file(path):
                        file = _File.opened(path, self)
                for group in file.groups_at.get(row, ()):
                    yield partial(file.read, group)

    def refusal(self, sample: str, columns: Sequence[str]) -> str | None:
        try:
            _checked(_parquet(sample), self.narrowed(columns))
        except (pa.ArrowException, OSError, ValueError) as error:
            return f"in {sample}, {error}"
        return None


@dataclass(frozen=True)
class _File:
    path: str  # as Hadoop writes it
    file: ParquetFile  # it, opened
    wanted: ParquetColumns  # what is read of it; ``coded`` are the columns that it holds so
    names: Mapping[str, str | None]  # the name in the file of each column, ``None`` if it has none
    tested: Mapping[str, str | None]  # the same of the columns that the filter reads

    @classmethod
    def opened(cls, path: str, wanted: ParquetColumns) -> _File:
        file = _parquet(local_path(path))
        if "=" in path.rpartition("/")[0]:
            raise ValueError("a folder with '=' in its name holds values of a column, which Spark reads")
        names, tested = _checked(file, wanted)
        coded = frozenset(name for name in wanted.coded if _are_coded(file, names[name]))
        if coded:
            file = _parquet(local_path(path), [name for name in map(names.get, coded) if name is not None], file.metadata)
        return cls(path, file, replace(wanted, coded=coded), names, tested)

    @cached_property
    def groups_at(self) -> Mapping[int, Sequence[int]]:
        """Return the row groups that a place names: those whose first place it is, and those behind it without one."""
        found: defaultdict[int, list[int]] = defaultdict(list)
        begins = 0
        for group in range(self.file.num_row_groups):
            ends = begins + self.file.metadata.row_group(group).num_rows
            before, first = begins // _ROWS_A_PLACE, -(-begins // _ROWS_A_PLACE)
            found[_ROWS_A_PLACE * (first if first * _ROWS_A_PLACE < ends else before)].append(group)
            begins = ends
        return found

    def read(self, group: int) -> pa.Table:
        """Read a row group: first what the filter reads, the other columns where it holds for any row."""
        wanted, rows = self.wanted, self.file.metadata.row_group(group).num_rows
        kinds = [CODED if each.name in wanted.coded else each.type for each in wanted.schema]
        with _naming_the_file(self.path):
            if wanted.filter is None:
                return self._columns(self._held([group], self.names), self.names, kinds, rows)
            tested = self._held([group], self.tested)
            kept = wanted.filter.mask(self._columns(tested, self.tested, wanted.filter.schema.types, rows).columns, rows)
            if not kept.true_count:
                return self._columns(self._held([], self.names), self.names, kinds, 0)
            more = self._held([group], {name: held for name, held in self.names.items() if held not in tested.column_names})
            held = pa.table([*tested.columns, *more.columns], [*tested.column_names, *more.column_names])
            found = self._columns(held, self.names, kinds, rows)
            return found if kept.true_count == rows else found.filter(kept)

    def _held(self, groups: list[int], names: Mapping[str, str | None]) -> pa.Table:
        """Return columns of row groups as the file holds them, without those that it does not have."""
        return self.file.read_row_groups(groups, list(dict.fromkeys(name for name in names.values() if name is not None)))

    @staticmethod
    def _columns(held: pa.Table, names: Mapping[str, str | None], kinds: Sequence[pa.DataType], rows: int) -> pa.Table:
        columns = [_column(held, name, kind, rows) for name, kind in zip(names.values(), kinds, strict=True)]
        return pa.table(columns, list(names))


def local_path(path: str) -> str:
    """Return the path of a file on the local file system, given as Hadoop writes it: ``file:/a`` or ``file:///a``."""
    return path.removeprefix("file:").removeprefix("//")


@contextmanager
def _naming_the_file(path: str) -> Iterator[None]:
    """Raise errors of reading with the file, and what to do."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        failure = ValueError(f"{error} (with {SWITCH}=false, Spark reads the files)")
        raise UnreadableFileError(path, "parquet", failure) from error


def _checked(file: ParquetFile, wanted: ParquetColumns) -> tuple[dict[str, str | None], dict[str, str | None]]:
    """Return the names in the file of the columns that are wanted, and of those that the filter reads."""
    described = file.metadata.metadata or {}
    if any(key in described for key in _LEGACY) or described.get(b"org.apache.spark.version", b"9").startswith((b"2.", b"3.0")):
        raise ValueError("a Spark before 3.1, or its calendar, wrote the file")
    names = {each.name: _name(file, wanted.sources.get(each.name, each.name), each.type) for each in wanted.schema}
    tested = () if wanted.filter is None else wanted.filter.schema
    return names, {each.name: _name(file, each.name, each.type) for each in tested}


def _name(file: ParquetFile, column: str, kind: pa.DataType) -> str | None:
    """Return the name in the file of a column, ``None`` if it has none."""
    alike = [name for name in file.schema_arrow.names if name.lower() == column.lower()]
    if len(alike) > 1:
        raise ValueError(f"the columns {alike} differ in case only")
    for name in alike:
        found = file.schema_arrow.field(name).type
        if _way(found, kind) is None:
            raise ValueError(f"column {name!r} is {found} there, {kind} in the schema")
    return alike[0] if alike else None


def _column(table: pa.Table, name: str | None, kind: pa.DataType, rows: int) -> pa.ChunkedArray | pa.Array:
    if name is None:
        return pa.nulls(rows, kind)
    column = table[name]
    if kind == CODED:
        return column if is_coded(column) else column.cast(CODED.value_type)
    for step in _way(column.type, kind) or ():
        column = column.cast(step)
    return column


def _parquet(path: str, coded: Sequence[str] = (), metadata: FileMetaData | None = None) -> ParquetFile:
    """Open a file, some of its texts coded; ``metadata`` are its own, where they were read already."""
    from pyarrow.parquet import ParquetFile  # a tenth of a second, which a worker that reads no Parquet need not wait

    return ParquetFile(path, coerce_int96_timestamp_unit="us", pre_buffer=True, read_dictionary=coded, metadata=metadata)


def _are_coded(file: ParquetFile, name: str | None) -> bool:
    """Whether all row groups of a file hold the texts of a column once each, as far as its size shows.

    A writer gives that up, and writes the texts themselves, where too many differ; the file does not say whether it did.
    Arrow codes texts that are written out, which takes longer than to group them as texts.
    """
    if name is None or file.schema_arrow.field(name).type not in (pa.string(), CODED):
        return False
    held = file.metadata
    at = next(number for number in range(held.num_columns) if held.schema.column(number).path == name)
    groups = [held.row_group(number).column(at) for number in range(held.num_row_groups)]
    return all(
        group.has_dictionary_page and group.total_uncompressed_size <= _BYTES_A_CODED_TEXT * group.num_values for group in groups
    )


def _way(found: pa.DataType, wanted: pa.DataType) -> tuple[pa.DataType, ...] | None:
    """Return the casts that give Spark's values of a column, ``None`` where Spark reads it otherwise, or refuses it."""
    if found == wanted and (not pa.types.is_nested(found) or _is_plain_struct(wanted)):
        return ()
    if pa.types.is_dictionary(found) or pa.types.is_large_string(found):
        inner = found.value_type if pa.types.is_dictionary(found) else found
        return (wanted,) if wanted == pa.string() and inner in (pa.string(), pa.large_string()) else None
    if pa.types.is_timestamp(found) and found.unit in ("ms", "us"):
        if wanted == TIMESTAMP:
            return (pa.timestamp("us", found.tz), pa.int64(), TIMESTAMP)  # Spark takes wall times as they are in UTC
        return (TIMESTAMP_NTZ,) if wanted == TIMESTAMP_NTZ and found.tz is None else None
    if found in _INTEGERS and wanted in _INTEGERS:
        return (wanted,) if _INTEGERS.index(found) < _INTEGERS.index(wanted) else None
    return (wanted,) if (found, wanted) == (pa.float32(), pa.float64()) else None


def _is_plain_struct(kind: pa.DataType) -> bool:
    """Whether a struct of a schema holds nothing but values that Arrow reads as they are, and structs of them.

    What Spark has as a type of its own and Arrow as a struct (a variant) is marked by metadata of the fields.
    """
    if not pa.types.is_struct(kind) or not kind.num_fields or len({field.name.lower() for field in kind}) < kind.num_fields:
        return False
    return all(
        not field.metadata and (_is_plain_struct(field.type) if pa.types.is_struct(field.type) else _is_plain(field.type))
        for field in kind
    )


def _is_plain(kind: pa.DataType) -> bool:
    return kind in _PLAIN or pa.types.is_decimal128(kind)
