"""What the columnar engines share: which programs they can run at all, and the grouped fold of their aggregates."""

from __future__ import annotations

import pyarrow as pa

from windowpane.engines.program import TIME, Program
from windowpane.engines.rows import python_keys, python_rows
from windowpane.errors import MissingTimestampError
from windowpane.kernels.grouped_fold import GroupedFold
from windowpane.kernels.partial_aggregates import columnar


def common_refusal(program: Program) -> str | None:
    """Return why no columnar engine of built-in aggregates can run a program, ``None`` if one may."""
    if not program.aggregates or program.processes_results:
        return "the function is no plain list of built-in aggregates"
    if not all(_is_plain_key(field.type) for field in program.keys):
        return "a key column has a type that Arrow does not group as Spark does"
    return None if fold_of(program) is not None else "an aggregate has no columnar form for its argument"


def fold_of(program: Program) -> GroupedFold | None:
    """Return the fold of a program's aggregates, ``None`` if one of them has no columnar form."""
    found = []
    for number, (_, aggregate, slots) in enumerate(program.aggregates):
        kind = program.value_types.field(slots[0]).type if slots else None
        found.append(columnar(aggregate, f"__windowpane_{number}_", slots, kind))
    parts = tuple(part for part in found if part is not None)
    return GroupedFold(parts) if parts and len(parts) == len(found) else None


def refuse_null_times(program: Program, rows: pa.Table) -> None:
    """Refuse a row without an event time, by name.

    Raises:
        MissingTimestampError: there is one.
    """
    if not rows[TIME].null_count:
        return
    row = rows.slice(rows[TIME].is_null().to_pylist().index(True), 1)
    key = python_keys(row, program.key_columns)[0]
    raise MissingTimestampError(program.spec.assigner, key, python_rows(row.select(program.values))[0])


def _is_plain_key(kind: pa.DataType) -> bool:
    tests = (pa.types.is_signed_integer, pa.types.is_string, pa.types.is_binary, pa.types.is_boolean, pa.types.is_date32)
    return any(test(kind) for test in (*tests, pa.types.is_timestamp, pa.types.is_decimal128))
