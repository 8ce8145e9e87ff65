"""Where rows belong: the number by which a row is in a bucket, and in a page there, as SQL over its keys."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import cycle

from windowpane.sql.bind.scope import Column
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.expressions.types import BOOLEAN, DATE, is_integer
from windowpane.sql.expressions.written import has_spellings, in_one_spelling

_ORDERED = ("timestamp", "timestamptz", "integer")
"""The types of keys by which rows may lie, the best first: a batch has rows of few times."""

_WHOLE = (*_ORDERED, "date", "boolean")
"""The types of keys that are hashed as numbers: 92,000 rows by an integer take 5 ms, by the MD5 of its text 60 ms."""

_VALUE_BITS, _HASH_BITS = 40, 24
"""Of the number that says where a row belongs: its value's lower bits, above so many of the hash."""

_PRIME = 4_294_967_291
"""Hashes of numbers are remainders by it, the largest prime below 2**32."""

_FACTORS = (2_654_435_761, 2_246_822_519, 3_266_489_917)
"""What numbers are multiplied by, those of the first key, the second, and so on: as in xxHash, primes below 2**32."""


def place_sql(keys: Sequence[Column], orders: Sequence[str | None]) -> str:
    """Return the number that says where a row belongs, as SQL: equal keys have equal ones.

    Rows lie in the order of a time or an integer among the keys, where there is one, and then by a hash of all keys: keys of one
    time, or numbered one after the other, are those that a batch has, and share pages.

    Args:
        keys: the columns that it is made of.
        orders: by what type each of these is ordered, see ``orders_of``: by a time lie the rows, or else by an integer.
    """
    hashed = _hash_sql(keys, [order in _WHOLE for order in orders])
    leading = next((orders.index(order) for order in _ORDERED if order in orders), None)
    return hashed if leading is None else _ordered_sql(keys[leading], hashed)


def _hash_sql(keys: Sequence[Column], are_numbers: Sequence[bool]) -> str:
    """Return a hash of columns as SQL: equal keys have equal hashes, under any version of DuckDB; NULL is a value.

    Args:
        keys: the columns.
        are_numbers: for each whether it is hashed as a number, not by its text.
    """
    if not keys:
        return "0::UBIGINT"
    texts = [f"coalesce({_hashed_text(key)}, chr(0))" for key, is_number in zip(keys, are_numbers, strict=True) if not is_number]
    by_text = [f"windowpane_text_hash(concat_ws(chr(31), {', '.join(texts)}))"] if texts else []
    numbers = [key for key, is_number in zip(keys, are_numbers, strict=True) if is_number]
    if not numbers:
        return by_text[0]
    hashed = [
        f"CAST({_whole_sql(key)} & {2**63 - 1} AS UBIGINT) % {_PRIME}::UBIGINT * {factor}::UBIGINT"
        for key, factor in zip(numbers, cycle(_FACTORS), strict=False)
    ]
    return f"({reduce(lambda one, other: f'xor({one}, {other})', [*hashed, *by_text])} % {_PRIME}::UBIGINT)"


def orders_of(*inputs: Sequence[Column]) -> list[str | None]:
    """Return the type by which values of each key are ordered in all inputs; ``None`` where they have several."""
    kinds = [{_order(key) for key in keys} for keys in zip(*inputs, strict=True)]
    return [kind.pop() if len(kind) == 1 else None for kind in kinds]


def _order(key: Column) -> str:
    """Return the type by which values of a key are ordered: one for all integers, for they are compared with each other."""
    return "integer" if is_integer(key.type) else key.type.name


def _ordered_sql(key: Column, hashed: str) -> str:
    """Return a number that rises with a key, as SQL, and with the hash among equal ones; it begins anew every 2**40."""
    upper = f"CAST({_whole_sql(key)} & {2**_VALUE_BITS - 1} AS UBIGINT) * {2**_HASH_BITS}::UBIGINT"
    return f"({upper} + {hashed} % {2**_HASH_BITS}::UBIGINT)"


def _whole_sql(key: Column) -> str:
    """Return a key as a whole number, as SQL: a time as microseconds; 0 where it is NULL or infinite."""
    value = quoted(key.id)
    if is_integer(key.type) or key.type == BOOLEAN:
        return f"coalesce(CAST({value} AS BIGINT), 0)"
    whole = f"CAST({value} - DATE '1970-01-01' AS BIGINT)" if key.type == DATE else f"epoch_us({value})"
    return f"coalesce(CASE WHEN isfinite({value}) THEN {whole} END, 0)"


def _hashed_text(key: Column) -> str:
    value = in_one_spelling(quoted(key.id), key.type)
    text = f"CAST({value} AS VARCHAR)"
    return f"replace({text}, '-nan', 'nan')" if has_spellings(key.type) else text
