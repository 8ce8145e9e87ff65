"""Between Arrow tables and the plain rows that users' functions take and return."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Mask
from windowpane.arrays import python_values as columns
from windowpane.arrays.misfits import misfit_of, reason_of
from windowpane.arrays.values import Row, Value
from windowpane.errors import InconsistentChangeError, MissingEventTimeError, OutputSchemaError, UnrepresentableValueError
from windowpane.hidden_columns import TIME
from windowpane.state.codec import encode_key
from windowpane.windowing.outputs import APPEARING, CHANGE_TYPE, CHANGE_TYPES


def python_values(name: str, column: pa.ChunkedArray) -> list[Value]:
    """Return a column as Python values.

    Raises:
        UnrepresentableValueError: a value Python has no type for (a timestamp after the year 9999), by name.
    """
    try:
        return columns.python_values(column)
    except (OverflowError, ValueError) as error:
        raise UnrepresentableValueError(name, _culprit(column), error) from error


def _culprit(column: pa.ChunkedArray) -> object:
    for scalar in column:
        try:
            scalar.as_py()
        except (OverflowError, ValueError):
            found = scalar.value if pa.types.is_temporal(column.type) else "a value"
            return f"{found} of type {column.type}"
    return column.type


def python_rows(table: pa.Table) -> list[dict[str, Value]]:
    names = table.column_names
    return columns.python_rows(names, [python_values(name, table[name]) for name in names], table.num_rows)


def refuse_missing_times(rows: pa.Table, keys: Sequence[str], who: str) -> None:
    """Refuse a row without an event time, by its key, where ``who`` needs one.

    Raises:
        MissingEventTimeError: there is one.
    """
    if rows[TIME].null_count:
        row = rows.slice(rows[TIME].is_null().to_pylist().index(True), 1)
        raise MissingEventTimeError(python_keys(row, keys)[0], who)


def appearing(words: pa.ChunkedArray | pa.Array) -> Mask:
    """Return of which changes of a changelog the row is there behind them."""
    found: Mask = pc.is_in(words, pa.array(sorted(APPEARING))).to_numpy(zero_copy_only=False)
    return found


def refuse_other_words(changes: pa.Table, names: Sequence[str]) -> None:
    """Refuse a change whose word is none of a changelog, by its columns.

    Raises:
        InconsistentChangeError: there is one.
    """
    is_known = pc.is_in(changes[CHANGE_TYPE], pa.array(sorted(CHANGE_TYPES)))
    if not pc.all(is_known).as_py():
        row = python_rows(changes.filter(pc.invert(is_known)).slice(0, 1).select([*names, CHANGE_TYPE]))[0]
        wanted = f"a change type is one of {', '.join(sorted(CHANGE_TYPES))}"
        raise InconsistentChangeError(repr(row.pop(CHANGE_TYPE)), row, wanted)


def python_keys(table: pa.Table, names: Sequence[str]) -> list[Value]:
    """Return the key of each row: ``None`` without key columns, the value itself for one, a tuple for several.

    Equal keys are spelled alike, whichever arrived first: one zero, and the entries of maps in order.
    """
    if not names:
        return [None] * table.num_rows
    columns = []
    for name in names:
        canonical = _canonical(table[name].type)
        values = python_values(name, table[name])
        columns.append(values if canonical is None else [canonical(value) for value in values])
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def _canonical(kind: pa.DataType) -> Callable[[Value], Value] | None:
    """Return what spells equal values of a type alike, ``None`` where they are anyway."""
    if pa.types.is_floating(kind):
        return lambda value: None if value is None else value + 0.0
    if pa.types.is_map(kind):
        key, item = (_canonical(each) or (lambda value: value) for each in (kind.key_type, kind.item_type))
        return lambda entries: entries and sorted(((key(k), item(v)) for k, v in entries), key=lambda pair: encode_key(pair[0]))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        element = _canonical(kind.value_type)
        return element and (lambda values: values and [element(value) for value in values])
    if pa.types.is_struct(kind):
        fields = {field.name: _canonical(field.type) for field in kind}
        if any(fields.values()):
            return lambda row: row and {name: (fields[name] or (lambda v: v))(value) for name, value in row.items()}
    return None


def key_values(key: Value, count: int) -> Sequence[Value]:
    """Return the values of the key columns of a key as ``python_keys`` makes it."""
    return (key,) if count == 1 else (key or ())


def output_table(
    output: str, schema: pa.Schema, rows: Iterable[tuple[Value, Value, Value]], given: Collection[str] = ()
) -> pa.Table:
    """Return the rows of one output, each with its key and window, as a table of ``schema``.

    A row may carry columns, too, that the output has from elsewhere: those that are ``given``.

    Raises:
        OutputSchemaError: a row leaves a column out, has one that the schema lacks, or a value that its column cannot hold.
    """
    emitted = list(rows)
    named = [_named(output, schema, given, *row) for row in emitted]
    return pa.table([_column(output, field, named, emitted) for field in schema], schema=schema)


def _named(output: str, schema: pa.Schema, given: Collection[str], row: object, key: object, window: object) -> Row:
    if hasattr(row, "asDict"):
        row = row.asDict()
    if isinstance(row, tuple | list) and len(row) == len(schema):
        return dict(zip(schema.names, row, strict=True))
    if not isinstance(row, Mapping):
        wanted = f"a dict with the columns {schema.names}"
        raise OutputSchemaError(output, f"expected {wanted}, got a {type(row).__name__}", row, key, window)
    unknown = [name for name in row if name not in schema.names and name not in given]
    if unknown:
        reason = f"columns {unknown} are not in the declared schema {schema.names}"
        raise OutputSchemaError(output, reason, row, key, window)
    left_out = [name for name in schema.names if name not in row]
    if left_out:
        reason = f"columns {left_out} of the declared schema are left out (return None where there is no value)"
        raise OutputSchemaError(output, reason, row, key, window)
    return row


def check_keys(keys: pa.Schema, names: Collection[str], rows: Iterable[tuple[Value, Value, Value]]) -> None:
    """Refuse a row of the main output that has another key than its own, which would not show; it may leave such columns out.

    Raises:
        OutputSchemaError: the value of such a column is not that of the key.
    """
    for row, key, window in rows:
        named = row.asDict() if hasattr(row, "asDict") else row
        if not isinstance(named, Mapping):
            continue
        for field, value in zip(keys, key_values(key, len(keys)), strict=True):
            if field.name in names and field.name in named and not _is_same(named[field.name], value, field):
                reason = f"key column {field.name!r} is {named[field.name]!r}, but the key is {value!r} (leave the column out)"
                raise OutputSchemaError("main", reason, row, key, window)


def _is_same(returned: object, value: object, field: pa.Field) -> bool:
    """Whether a value that a function returned for a key column is that of the key, as the column holds it."""
    if returned is value or returned == value:
        return True
    try:
        held = pa.table([pa.array([returned], field.type)], names=[field.name])
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return encode_key(python_keys(held, [field.name])[0]) == encode_key(value)


_WHOLE = frozenset({int, bool, type(None)})
"""Types of values without fractions, which need not be looked at one by one."""


def _column(output: str, field: pa.Field, named: Sequence[Row], emitted: Sequence[Value]) -> pa.Array:
    values = [row.get(field.name) for row in named]
    misfit = None if _WHOLE.issuperset(map(type, values)) else misfit_of(field.type)
    if misfit is not None:
        for value, row in zip(values, emitted, strict=True):
            if reason := reason_of(misfit, value):
                raise OutputSchemaError(output, f"column {field.name!r} is {field.type}, which {reason}", *row)
    try:
        return pa.array(values, field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        for value, row in zip(values, emitted, strict=True):
            try:
                pa.array([value], field.type)
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as cause:
                reason = f"column {field.name!r} is {field.type} and cannot hold {value!r} ({cause})"
                raise OutputSchemaError(output, reason, *row) from error
        raise
