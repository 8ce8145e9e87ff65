"""What the changes of rows amount to: in mode update those of a batch, in mode close those of rows that wait.

The net changes of a batch delete or insert each key at most once, by the rules of ``operators.over.consolidation``. The change of
a key with one is taken as it is; only keys with several are given to the reference, one by one. In mode close all changes of a
row have its time, so they leave the sort buffer together, and are applied then, by the rules of ``operators.over.sort_buffer``.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.arrays.columns import flat
from windowpane.arrays.python_values import calendar_numbers
from windowpane.engines.over.program import OverProgram
from windowpane.engines.rows import appearing, python_rows, python_values, refuse_other_words
from windowpane.errors import InconsistentChangeError, UnrepresentableValueError
from windowpane.hidden_columns import PARTITION, POSITION, hidden
from windowpane.kernels.keys.ordered_codes import has_codes, ordered_codes
from windowpane.kernels.over.sorting import equal_neighbours, key_sorting_codes, partition_numbers, sorting_codes
from windowpane.kernels.packed_order import lexical_order
from windowpane.operators.over.consolidation import Report, consolidate
from windowpane.operators.over.row_forms import RowForms
from windowpane.windowing.outputs import APPEARING, CHANGE_TYPE, INSERT

_AT = hidden("at")


def net_changes(program: OverProgram, rows: pa.Table, report: Report) -> tuple[pa.Table, pa.Table]:
    """Return the rows that a batch deletes, and those that it inserts; ``report`` takes changes that cannot be."""
    appears = np.ones(rows.num_rows, np.bool_)
    if CHANGE_TYPE in rows.column_names:
        refuse_other_words(rows, program.columns.names)
        appears = appearing(rows[CHANGE_TYPE])
    repeated = _repeated([flat(rows[name]) for name in program.spec.key], rows.num_rows)
    inserted, deleted = np.flatnonzero(appears & ~repeated), np.flatnonzero(~appears & ~repeated)
    if repeated.any():
        more_deleted, more_inserted = _merged(program, rows, np.flatnonzero(repeated), report)
        inserted, deleted = np.append(inserted, more_inserted), np.append(deleted, more_deleted)
    return _some(rows, deleted), _some(rows, inserted)


def _some(rows: pa.Table, places: Integers) -> pa.Table:
    return rows.slice(0, len(places)) if len(places) in (0, rows.num_rows) else rows.take(pa.array(places))


def _repeated(key: list[pa.Array], rows: int) -> Mask:
    for column in key:
        if has_codes(column.type) and not column.null_count:
            ordered = np.sort(ordered_codes(column))
            if (ordered[1:] != ordered[:-1]).all():
                return np.zeros(rows, np.bool_)
    numbers = partition_numbers(key, rows)
    return np.bincount(numbers, minlength=1)[numbers] > 1


def _merged(program: OverProgram, rows: pa.Table, repeated: Integers, report: Report) -> tuple[Integers, Integers]:
    some = rows.take(pa.array(repeated)).append_column(_AT, pa.array(repeated))
    if PARTITION in some.column_names:
        some = some.sort_by([(PARTITION, "ascending"), (POSITION, "ascending")])
    words = some[CHANGE_TYPE].to_pylist() if CHANGE_TYPE in some.column_names else [INSERT] * some.num_rows
    some = _as_python_can(some.select([*program.columns.names, _AT]))
    key, same = RowForms(some.schema, program.spec.key).frozen, RowForms(some.schema, program.columns.names).same
    changes = consolidate(list(zip(words, python_rows(some), strict=True)), key, same, report)
    deleted = [change.before[_AT] for change in changes if change.before is not None]
    inserted = [change.after[_AT] for change in changes if change.after is not None]
    return np.array(deleted, np.int64), np.array(inserted, np.int64)


def _as_python_can(rows: pa.Table) -> pa.Table:
    """Return rows that are only compared, with numbers for instants that Python cannot hold: infinity, far years, 24:00."""
    for place, field in enumerate(rows.schema):
        kind = _with_numbers(field.type)
        if kind != field.type and not _can_hold(rows[field.name]):
            rows = rows.set_column(place, field.with_type(kind), rows[field.name].cast(kind))
    return rows


def _can_hold(column: pa.ChunkedArray) -> bool:
    if pa.types.is_time(column.type):
        return False  # 24:00 would be 0:00
    if calendar_numbers(column) is not None:
        return True
    try:
        return python_values("", column) is not None
    except UnrepresentableValueError:
        return False


def _with_numbers(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return pa.int64()
    if pa.types.is_list(kind):
        return pa.list_(_with_numbers(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_numbers(field.type)) for field in kind])
    return pa.int32() if pa.types.is_date32(kind) else kind


def in_arrival_order(program: OverProgram, rows: pa.Table) -> pa.Table:
    """Return a batch as the buffer takes it: with its change types, in order of arrival, unless every row is an insert."""
    if program.append_only:
        return rows
    if CHANGE_TYPE not in rows.column_names:
        rows = rows.append_column(CHANGE_TYPE, pa.repeat(INSERT, rows.num_rows))
    refuse_other_words(rows, program.columns.names)
    return rows.sort_by([(PARTITION, "ascending"), (POSITION, "ascending")]) if PARTITION in rows.column_names else rows


def sorting_words(program: OverProgram, rows: pa.Table) -> list[Integers]:
    spec = program.spec
    ordered = sorting_codes(flat(rows[spec.order_names[0]]), spec.order_by[0])
    return [*ordered, *(codes for name in spec.key for codes in key_sorting_codes(flat(rows[name])))]


def in_window_order(program: OverProgram, rows: pa.Table, words: list[Integers], report: Report) -> pa.Table:
    """Return released rows, which are in order of arrival, with their changes applied, sorted by ORDER BY and key."""
    identity = [*words, partition_numbers([flat(rows[name]) for name in program.spec.partition_by], rows.num_rows)]
    order = lexical_order(identity)
    group = np.append(0, np.cumsum(~equal_neighbours(identity, order)))[: len(order)]
    changes = rows[CHANGE_TYPE].take(pa.array(order)).to_pylist() if CHANGE_TYPE in rows.column_names else [INSERT] * len(order)
    appears = np.array([word in APPEARING for word in changes], np.bool_)
    plain = appears & (np.bincount(group, minlength=1)[group] == 1)
    kept = plain.copy()
    last: dict[int, int | None] = {}
    for at in np.flatnonzero(~plain).tolist():
        waits = last.get(int(group[at])) is not None
        if waits == bool(appears[at]):
            row = python_rows(rows.slice(int(order[at]), 1).select(program.columns.names))[0]
            reason = "it waits already" if waits else "it does not wait, or no longer"
            report(InconsistentChangeError(changes[at], row, reason))
        last[int(group[at])] = at if appears[at] else None
    kept[[at for at in last.values() if at is not None]] = True
    return rows.take(pa.array(order[kept]))
