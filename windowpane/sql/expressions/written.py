"""Equal values that are written differently: 0.0 and -0.0, 24:00 and 1 day, arrays of such. Other types write a value in one way.

Two rules of views hang on this. An inserted row and a deleted one cancel only if both are written the same: an UPDATE that turns
0.0 into -0.0 changes what ``d::text`` shows. And groups, which equal values fall into however they are written, show one of them:
zero without a sign, and as in PostgreSQL's ``justify_interval`` an interval whose days are fewer than 30 and whose clock is below
24 hours.

Source of the second rule: RisingWave's keys of groups, which hold normalized floats and justified intervals.
"""

from __future__ import annotations

from windowpane.sql.expressions.types import INTERVAL, SqlType, is_float


def has_spellings(kind: SqlType) -> bool:
    """Whether values of a type may be equal and written differently.

    Example:
        >>> from windowpane.sql.expressions.types import BIGINT, DOUBLE, array_of
        >>> has_spellings(BIGINT), has_spellings(array_of(DOUBLE))
        (False, True)
    """
    return has_spellings(kind.element) if kind.element is not None else kind == INTERVAL or is_float(kind)


def spelling(sql: str, kind: SqlType) -> str:
    """Return SQL that tells equal values of a type with spellings apart; every NaN is written the same."""
    if is_float(kind):
        return f"({sql} = 0 AND signbit({sql}))"
    return f"replace(CAST({sql} AS VARCHAR), '-nan', 'nan')"


def in_one_spelling(sql: str, kind: SqlType) -> str:
    """Return SQL of the value that stands for all that are equal to a value, ``sql`` itself if there are no others."""
    if not has_spellings(kind):
        return sql
    if kind.element is not None:
        return f"list_transform({sql}, lambda item: {in_one_spelling('item', kind.element)})"
    return f"({sql} + 0)" if is_float(kind) else f"windowpane_interval_value({sql})"
