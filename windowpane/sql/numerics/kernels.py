"""Functions of numerics on Arrow arrays: exact integers inside, one rounding at the end.

They are called with the rows of which no argument is NULL. Sources of the rules: PostgreSQL, "Mathematical Functions"; the
number of digits is RisingWave's.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from decimal import Context, Decimal
from functools import reduce
from math import isqrt
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.errors import (
    DivisionByZeroError,
    InvalidTextError,
    InvalidValueError,
    MistakeError,
    OutOfRangeError,
    UnsupportedValueError,
)
from windowpane.sql.expressions.types import DIGITS, EXACT_PLACES, QUOTIENT_PLACES, VARIANCE_PLACES
from windowpane.sql.numerics.placing import PRODUCT, ROUNDED, Placed, exact, numeric_text, out_of_range, rounded, significant

Kernel = Callable[..., pa.Array]

_SQUARE = (
    "numeric out of range: the square of a value has too many digits. Cast the argument to numeric(38, s) with fewer decimal "
    "places, or to double precision."
)
_WORD = 16
_WORKING = Context(prec=70)
_ROOT_PLACES = 60
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_PLAIN = f"^[+-]?[0-9]{{1,{DIGITS}}}([.][0-9]{{0,{EXACT_PLACES}}})?$"
_SPECIAL = re.compile(r"[+-]?(inf(inity)?|nan)", re.IGNORECASE)


def strict(kernel: Kernel) -> Kernel:
    """Return a function that is NULL where one of its arguments is, and else what ``kernel`` makes of the others."""

    def called(*columns: pa.ChunkedArray) -> pa.Array:
        if not any(column.null_count for column in columns):
            return kernel(*columns)
        valid = reduce(pc.and_, (pc.is_valid(column) for column in columns)).to_numpy()
        found = kernel(*(column.filter(valid) for column in columns))
        return found.take(pa.array(np.cumsum(valid) - 1, pa.int64(), mask=~valid))

    return called


def integers(column: pa.ChunkedArray | pa.Array) -> list[int]:
    """Return decimals, none of them NULL, as the integers of their last place."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    if not len(array):
        return []
    start = array.offset * _WORD
    data = memoryview(array.buffers()[1])[start : start + len(array) * _WORD].tobytes()
    of = int.from_bytes
    return [of(data[at : at + _WORD], sys.byteorder, signed=True) for at in range(0, len(data), _WORD)]


def decimals(values: Iterable[int | None], places: int) -> pa.Array:
    """Return integers of the last place as decimals."""
    listed = list(values)
    if None in listed:
        return pa.array([None if value is None else Decimal(value).scaleb(-places, _WORKING) for value in listed], _kind(places))
    data = b"".join([value.to_bytes(_WORD, sys.byteorder, signed=True) for value in listed if value is not None])
    return pa.Array.from_buffers(_kind(places), len(listed), [None, pa.py_buffer(data)])


def _kind(places: int) -> pa.DataType:
    return pa.decimal128(DIGITS, places)


def _texts(values: Iterable[int | None], places: int) -> pa.Array:
    shown = (None if value is None else f"{Decimal(value).scaleb(-places, _WORKING):f}" for value in values)
    return pa.array(list(shown), pa.string())


def _constant(column: pa.ChunkedArray) -> int:
    return int(column[0].as_py()) if len(column) else 0


def quotients(place: Placed, places: int) -> Kernel:
    """Return the function of quotients at a number of places; by zero they are NULL, or an error if that is refused."""
    return lambda left, right, refused: decimals(_quotients(left, right, refused, place), places)


def quotients_at(place_at: Callable[[int], Placed]) -> Kernel:
    """Return the function of quotients at a number of places that is an argument, a constant; they are text."""

    def kernel(left: pa.ChunkedArray, right: pa.ChunkedArray, refused: pa.ChunkedArray, places: pa.ChunkedArray) -> pa.Array:
        wanted = _constant(places)
        return _texts(_quotients(left, right, refused, place_at(wanted)), wanted)

    return kernel


def _cut(numerator: int, denominator: int) -> int:
    return numerator // denominator if numerator >= 0 else -(-numerator // denominator)


def _quotients(left: pa.ChunkedArray, right: pa.ChunkedArray, refused: pa.ChunkedArray, place: Placed) -> list[int | None]:
    more = right.type.scale - left.type.scale
    up, down = 10 ** max(more, 0), 10 ** max(-more, 0)
    divisors = integers(right)
    if 0 in divisors and _constant(refused):
        raise DivisionByZeroError
    return [
        place(one * up, other * down) if other > 0 else place(-one * up, -other * down) if other else None
        for one, other in zip(integers(left), divisors, strict=True)
    ]


def product(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.Array:
    """Return products that have at most 20 places; others are refused."""
    try:
        factors = (
            pc.cast(left, pa.decimal256(DIGITS, left.type.scale)),
            pc.cast(right, pa.decimal256(DIGITS - 1, right.type.scale)),
        )
        return pc.cast(pc.multiply(*factors), _kind(EXACT_PLACES))
    except pa.ArrowInvalid:  # what it is, is found out one by one
        pass
    return decimals(_products(left, right, PRODUCT), EXACT_PLACES)


def rounded_product(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.Array:
    """Return products of a quotient with 28 significant digits."""
    return decimals(_products(left, right, ROUNDED), QUOTIENT_PLACES)


def _products(left: pa.ChunkedArray, right: pa.ChunkedArray, place: Placed) -> list[int]:
    scale = 10 ** (left.type.scale + right.type.scale)
    return [place(one * other, scale) for one, other in zip(integers(left), integers(right), strict=True)]


def exactly(values: pa.ChunkedArray, places: pa.ChunkedArray) -> pa.Array:
    """Return numerics at a constant number of places, as text; those that have more are refused."""
    wanted, scale = _constant(places), 10**values.type.scale
    place = exact(wanted)
    return _texts([place(value, scale) for value in integers(values)], wanted)


def each_at(cut: Placed) -> Kernel:
    """Return the function of numerics each cut, or rounded, at its own number of places, perhaps negative, as text."""

    def kernel(values: pa.ChunkedArray, places: pa.ChunkedArray) -> pa.Array:
        scale = values.type.scale
        found = []
        for value, wanted in zip(integers(values), places.to_pylist(), strict=True):
            step = 10 ** (scale - max(min(int(wanted), scale), -DIGITS))
            found.append(cut(value, step) * step)
        return _texts(found, scale)

    return kernel


def parsed(values: pa.ChunkedArray) -> pa.Array:
    """Return texts and doubles as numerics; those with more than 20 places are refused."""
    texts = pc.utf8_trim_whitespace(_as_texts(values))
    if pc.all(pc.match_substring_regex(texts, _PLAIN)).as_py():
        try:
            # In two steps: Arrow does not see where a text has too many digits for decimal128, and they wrap.
            return pc.cast(pc.cast(texts, pa.decimal256(2 * DIGITS, EXACT_PLACES)), _kind(EXACT_PLACES))
        except pa.ArrowInvalid:  # what it is, is found out one by one
            pass
    return decimals([parse(value, PRODUCT) for value in texts.to_pylist()], EXACT_PLACES)


def parsed_at(values: pa.ChunkedArray, places: pa.ChunkedArray) -> pa.Array:
    """Return texts and doubles as numerics rounded to a constant number of places, as text."""
    wanted = _constant(places)
    place = rounded(wanted)
    return _texts([parse(value, place) for value in _as_texts(values).to_pylist()], wanted)


def taken(values: pa.ChunkedArray, places: pa.ChunkedArray, exactly: pa.ChunkedArray) -> pa.Array:
    """Return numbers and texts of a file as numerics of a constant number of places, as text; rounded, or exact if asked."""
    wanted = _constant(places)
    place = exact(wanted) if _constant(exactly) else rounded(wanted)
    texts = _as_texts(values) if _is_text(values.type) else pa.array([format(v, "f") for v in values.to_pylist()], pa.string())
    return _texts([parse(value, place) for value in texts.to_pylist()], wanted)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _as_texts(values: pa.ChunkedArray) -> pa.Array:
    """Return values as text; doubles with the 15 digits, reals with the 6, that PostgreSQL takes for a numeric."""
    if pa.types.is_floating(values.type):
        form = "{:.6g}" if pa.types.is_float32(values.type) else "{:.15g}"
        return pa.array([form.format(value) for value in values.to_pylist()], pa.string())
    return values.combine_chunks()


def parse(text: str, place: Placed) -> int:
    """Return a text as the integer of its last place."""
    stripped = text.strip()
    if _SPECIAL.fullmatch(stripped):
        raise UnsupportedValueError(f"numeric out of range: {stripped!r}. NaN and infinity are values of double precision only.")
    if not _NUMBER.fullmatch(stripped):
        raise InvalidTextError.of("numeric", text)
    value = Decimal(stripped)
    if value and value.adjusted() > 2 * DIGITS:
        raise OutOfRangeError(out_of_range(stripped, 0))
    if value and value.adjusted() < -2 * DIGITS:
        return place(1 if value > 0 else -1, 10 ** (2 * DIGITS))
    return place(*_fraction(value))


def _fraction(value: Decimal) -> tuple[int, int]:
    sign, digits, exponent = value.as_tuple()
    unscaled = int("".join(map(str, digits)))
    signed = -unscaled if sign else unscaled
    return (signed * 10 ** int(exponent), 1) if int(exponent) >= 0 else (signed, 10 ** -int(exponent))


def text(values: pa.ChunkedArray) -> pa.Array:
    return pa.array([numeric_text(value) for value in values.to_pylist()], pa.string())


def variance(*, sample: bool, root: bool) -> Kernel:
    """Return the variance, or its square root, of a sum, a sum of squares and their counts; NULL where there are too few values.

    In a view a square that does not fit is NULL: the counts differ then, and there is no variance of what is left.

    Source: PostgreSQL's ``numeric_stddev_internal``: (n * sum of squares - square of the sum) / (n * (n - 1)), or / n².
    """
    places = QUOTIENT_PLACES if root else VARIANCE_PLACES

    def kernel(sums: pa.ChunkedArray, squares: pa.ChunkedArray, counts: pa.ChunkedArray, squared: pa.ChunkedArray) -> pa.Array:
        if not counts.equals(squared):
            raise OutOfRangeError(_SQUARE)
        place = _root if root else significant(places)
        fine = max(2 * sums.type.scale, squares.type.scale)
        up, over = 10 ** (fine - 2 * sums.type.scale), 10 ** (fine - squares.type.scale)
        found: list[int | None] = []
        for total, square, count in zip(integers(sums), integers(squares), counts.to_pylist(), strict=True):
            least = count - 1 if sample else count
            spread = max(count * square * over - total * total * up, 0)  # squares of quotients are rounded
            found.append(place(spread, count * least * 10**fine) if least > 0 else None)
        return decimals(found, places)

    return kernel


def _root(numerator: int, denominator: int) -> int:
    return ROUNDED(isqrt(numerator * 10 ** (2 * _ROOT_PLACES) // denominator), 10**_ROOT_PLACES)


def root(values: pa.ChunkedArray) -> pa.Array:
    scale = 10**values.type.scale
    found = integers(values)
    if any(value < 0 for value in found):
        raise InvalidValueError("cannot take square root of a negative number.")
    return decimals([_root(value, scale) for value in found], QUOTIENT_PLACES)


def of_decimals(function: Callable[..., Decimal]) -> Kernel:
    """Return a function of Python's decimals as one of columns, with 28 significant digits."""

    def kernel(*columns: pa.ChunkedArray) -> pa.Array:
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        return decimals([_placed(function(*row)) for row in rows], QUOTIENT_PLACES)

    return kernel


def _placed(value: Decimal) -> int:
    if value and value.adjusted() > DIGITS:
        raise OutOfRangeError(out_of_range(f"{value:.6e}", QUOTIENT_PLACES))
    if value and value.adjusted() < -2 * DIGITS:
        return 0
    return ROUNDED(*_fraction(value))


def exponential(value: Decimal) -> Decimal:
    if value > 2 * DIGITS * 3:
        raise OutOfRangeError(out_of_range(f"exp({value:.6f})", QUOTIENT_PLACES))
    return Decimal(0) if value < -2 * DIGITS * 3 else value.exp(_WORKING)


def logarithm(value: Decimal) -> Decimal:
    return _positive(value).ln(_WORKING)


def logarithm_of_ten(value: Decimal) -> Decimal:
    return _positive(value).log10(_WORKING)


def logarithm_to(base: Decimal, value: Decimal) -> Decimal:
    divisor = _positive(base).ln(_WORKING)
    if not divisor:
        raise DivisionByZeroError
    return _WORKING.divide(_positive(value).ln(_WORKING), divisor)


def _positive(value: Decimal) -> Decimal:
    if value <= 0:
        raise InvalidValueError(f"cannot take logarithm of {'zero' if not value else 'a negative number'}.")
    return value


def power(base: Decimal, exponent: Decimal) -> Decimal:
    if not base and exponent < 0:
        raise InvalidValueError("zero raised to a negative power is undefined.")
    if base < 0 and exponent != int(exponent):
        raise InvalidValueError("a negative number raised to a non-integer power yields a complex result.")
    if not base:
        return Decimal(0) if exponent else Decimal(1)
    size = abs(base).log10(_WORKING) * exponent
    if size > 2 * DIGITS:
        raise OutOfRangeError(out_of_range(f"{numeric_text(base)} ^ {numeric_text(exponent)}", QUOTIENT_PLACES))
    return Decimal(0) if size < -2 * DIGITS else _WORKING.power(base, exponent)


def power_at(bases: pa.ChunkedArray, exponents: pa.ChunkedArray) -> pa.Array:
    """Return exact powers with a constant exponent that is a whole number, as text."""
    exponent, scale = _constant(exponents), bases.type.scale
    places = scale * exponent
    place = exact(places)
    return _texts([place(value**exponent, 10**places) for value in integers(bases)], places)


_QUOTIENT = f"DECIMAL({DIGITS}, {QUOTIENT_PLACES})"
_VARIANCE = f"DECIMAL({DIGITS}, {VARIANCE_PLACES})"
_EXACT = f"DECIMAL({DIGITS}, {EXACT_PLACES})"

FUNCTIONS: Final[dict[str, tuple[Kernel, str]]] = {
    "quotient": (quotients(ROUNDED, QUOTIENT_PLACES), _QUOTIENT),
    "quotient_at": (quotients_at(rounded), "VARCHAR"),
    "quotient_within": (quotients_at(significant), "VARCHAR"),
    "div": (quotients(_cut, 0), f"DECIMAL({DIGITS}, 0)"),
    "product": (product, _EXACT),
    "rounded_product": (rounded_product, _QUOTIENT),
    "exactly": (exactly, "VARCHAR"),
    "round_at": (each_at(rounded(0)), "VARCHAR"),
    "trunc_at": (each_at(_cut), "VARCHAR"),
    "parsed": (parsed, _EXACT),
    "parsed_at": (parsed_at, "VARCHAR"),
    "taken": (taken, "VARCHAR"),
    "text": (text, "VARCHAR"),
    "var_samp": (variance(sample=True, root=False), _VARIANCE),
    "var_pop": (variance(sample=False, root=False), _VARIANCE),
    "stddev_samp": (variance(sample=True, root=True), _QUOTIENT),
    "stddev_pop": (variance(sample=False, root=True), _QUOTIENT),
    "sqrt": (root, _QUOTIENT),
    "exp": (of_decimals(exponential), _QUOTIENT),
    "ln": (of_decimals(logarithm), _QUOTIENT),
    "log10": (of_decimals(logarithm_of_ten), _QUOTIENT),
    "log": (of_decimals(logarithm_to), _QUOTIENT),
    "power": (of_decimals(power), _QUOTIENT),
    "power_at": (power_at, "VARCHAR"),
}


def called(name: str, *arguments: str) -> str:
    if name not in FUNCTIONS:
        raise MistakeError("the function is registered")
    return f"windowpane_numeric_{name}({', '.join(arguments)})"
