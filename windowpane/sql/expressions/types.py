"""The types of SQL: PostgreSQL's names and conversions, each with the DuckDB type that holds its values.

``numeric`` has at most 38 digits, of which the binder knows how many are behind the point: 10 in a column declared without a
scale, up to 20 in sums and products, which are exact, and 28 in quotients. A value that does not fit is an error, never rounded;
a quotient has 28 significant digits. docs/decisions.md says why. Sources: PostgreSQL, "Data Types" and "Type Conversion";
RisingWave's ``numeric`` has at most 28 decimal places.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

NUMERIC_PLACES: Final = 10
"""Decimal places of a ``numeric`` declared without any."""
EXACT_PLACES: Final = 20
"""Most decimal places of a product, and of a numeric read from text: 18 digits before the point remain."""
QUOTIENT_PLACES: Final = 28
"""Decimal places of a quotient."""
VARIANCE_PLACES: Final = 18
"""Decimal places of a variance, which is a square: 20 digits before the point remain."""
COLLATIONS: Final = ("C", "POSIX")
"""Names of the order that texts have, by code point, as RisingWave knows them."""
_LONGEST_TEXT: Final = 2_147_483_647
"""The length of Flink's STRING, which is none."""
DIGITS: Final = 38
"""Digits of a ``numeric``."""


@dataclass(frozen=True)
class SqlType:
    """A type by its PostgreSQL name.

    Args:
        name: ``integer``, ``timestamp``, ...; arrays are named ``array``.
        scale: decimal places of a ``numeric``.
        whole: digits before the point that a ``numeric`` is known to need at most.
        open: a ``numeric`` declared without precision and scale.
    """

    name: str
    scale: int = 0
    whole: int = DIGITS
    element: SqlType | None = None
    open: bool = False

    @property
    def duckdb(self) -> str:
        if self.name == "numeric":
            return f"DECIMAL({DIGITS}, {self.scale})"
        if self.element is not None:
            return f"{self.element.duckdb}[]"
        return _KINDS[self.name][0]

    def __str__(self) -> str:
        if self.element is not None:
            return f"{self.element}[]"
        return next(iter(_KINDS[self.name][1]), self.name)


_KINDS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "unknown": ("VARCHAR", ()),
    "boolean": ("BOOLEAN", ("boolean", "bool")),
    "smallint": ("SMALLINT", ("smallint", "int2", "tinyint")),
    "integer": ("INTEGER", ("integer", "int", "int4", "serial")),
    "bigint": ("BIGINT", ("bigint", "int8")),
    "numeric": ("DECIMAL", ("numeric", "decimal")),
    "real": ("FLOAT", ("real", "float4")),
    "double": ("DOUBLE", ("double precision", "double", "float", "float8")),
    "varchar": ("VARCHAR", ("character varying", "varchar", "string", "text")),
    "bytea": ("BLOB", ("bytea", "bytes")),
    "date": ("DATE", ("date",)),
    "time": ("TIME", ("time without time zone", "time")),
    "timestamp": ("TIMESTAMP", ("timestamp without time zone", "timestamp")),
    "timestamptz": ("TIMESTAMPTZ", ("timestamp with time zone", "timestamptz", "timestamp_ltz", "timestampltz")),
    "interval": ("INTERVAL", ("interval",)),
    "jsonb": ("JSON", ("jsonb", "json")),
}
"""Each type: what DuckDB calls it, and its names in SQL, the one by which it is shown first."""

UNKNOWN = SqlType("unknown")
BOOLEAN = SqlType("boolean")
SMALLINT = SqlType("smallint")
INTEGER = SqlType("integer")
BIGINT = SqlType("bigint")
REAL = SqlType("real")
DOUBLE = SqlType("double")
VARCHAR = SqlType("varchar")
BYTEA = SqlType("bytea")
DATE = SqlType("date")
TIME = SqlType("time")
TIMESTAMP = SqlType("timestamp")
TIMESTAMPTZ = SqlType("timestamptz")
INTERVAL = SqlType("interval")
JSONB = SqlType("jsonb")
NUMERIC = SqlType("numeric", scale=NUMERIC_PLACES, whole=DIGITS - NUMERIC_PLACES, open=True)
VARIANCE = SqlType("numeric", scale=VARIANCE_PLACES, whole=DIGITS - VARIANCE_PLACES)
QUOTIENT = SqlType("numeric", scale=QUOTIENT_PLACES, whole=DIGITS - QUOTIENT_PLACES)

_INTEGERS = (SMALLINT, INTEGER, BIGINT)
_WHOLE_DIGITS = {"smallint": 5, "integer": 10, "bigint": 19}
_NUMBER_RANK = {"smallint": 1, "integer": 2, "bigint": 3, "numeric": 4, "real": 5, "double": 6}
_TIME_RANK = {"date": 1, "timestamp": 2, "timestamptz": 3}

_NAMES = {word: NUMERIC if name == "numeric" else SqlType(name) for name, (_, words) in _KINDS.items() for word in words}

SHOWN_IN_DUCKDB = {duckdb: words[0] for duckdb, words in _KINDS.values() if words}
"""How types are shown, by what DuckDB calls them."""


def numeric(scale: int, whole: int = DIGITS) -> SqlType:
    return SqlType("numeric", scale=scale, whole=min(whole, DIGITS - scale))


def array_of(element: SqlType) -> SqlType:
    return SqlType("array", element=element)


def innermost(kind: SqlType) -> SqlType:
    """Return the type of the elements of an array, of those of its elements, and so on; a type that is no array itself."""
    return kind if kind.element is None else innermost(kind.element)


def dimensions(kind: SqlType) -> int:
    return 0 if kind.element is None else 1 + dimensions(kind.element)


def named(name: str, arguments: tuple[int, ...] = ()) -> SqlType | None:
    """Return the type called ``name`` (lower case), ``None`` if there is none: a varchar has no length, or the largest."""
    if name.endswith("[]"):
        element = named(name[:-2].strip(), arguments)
        return None if element is None else array_of(element)
    found = _NAMES.get(name)
    if found == NUMERIC and arguments:
        return _declared(arguments[0], arguments[1] if len(arguments) > 1 else 0)
    if found == VARCHAR and arguments not in ((), (_LONGEST_TEXT,)):
        return None
    return found


def _declared(precision: int, scale: int) -> SqlType | None:
    return numeric(scale, precision - scale) if 1 <= precision <= DIGITS and scale <= precision else None


_HELD = {
    **{duckdb: SqlType(name) for name, (duckdb, words) in _KINDS.items() if words and name != "numeric"},
    **{f"TIMESTAMP_{unit}": TIMESTAMP for unit in ("S", "MS", "NS")},
    "TIMESTAMP WITH TIME ZONE": TIMESTAMPTZ,
    "TINYINT": SMALLINT,
    "UTINYINT": SMALLINT,
    "USMALLINT": INTEGER,
    "UINTEGER": BIGINT,
    "UBIGINT": numeric(0, 20),
    "HUGEINT": numeric(0),
    "UUID": VARCHAR,
}
"""The type of values by what DuckDB calls theirs: the narrowest that has room for all."""


def held_as(duckdb: str) -> SqlType | None:
    """Return the type that has room for values of one of DuckDB's, ``None`` if there is none; fields and maps are jsonb."""
    if duckdb.endswith("[]"):
        element = held_as(duckdb[:-2])
        return None if element is None else array_of(element)
    if duckdb.startswith(("STRUCT(", "MAP(")):
        return JSONB
    if duckdb.startswith("DECIMAL("):
        precision, scale = duckdb.removeprefix("DECIMAL(").removesuffix(")").split(",")
        return _declared(int(precision), int(scale))
    return _HELD.get(duckdb)


def as_declared(kind: SqlType) -> SqlType:
    """Return the type of a column made by ``AS query``: a numeric without a scale, if its digits have room there."""
    if kind.element is not None:
        return array_of(as_declared(kind.element))
    if kind.name == "numeric":
        return NUMERIC if kind.scale <= NUMERIC_PLACES else numeric(kind.scale)
    return named(str(kind)) or kind


def as_held(kind: SqlType) -> SqlType:
    """Return a type as its values are held: of a numeric its scale, not how many digits they need or how it was declared."""
    return replace(kind, whole=DIGITS, open=False, element=None if kind.element is None else as_held(kind.element))


def declaration(kind: SqlType) -> str:
    if kind.element is not None:
        return f"{declaration(kind.element)}[]"
    return f"numeric({kind.whole + kind.scale}, {kind.scale})" if kind.name == "numeric" and not kind.open else str(kind)


def is_integer(kind: SqlType) -> bool:
    return kind in _INTEGERS


def is_exact(kind: SqlType) -> bool:
    return is_integer(kind) or kind.name == "numeric"


def is_float(kind: SqlType) -> bool:
    return kind in (REAL, DOUBLE)


def is_number(kind: SqlType) -> bool:
    return kind.name in _NUMBER_RANK


def is_instant(kind: SqlType) -> bool:
    return kind.name in _TIME_RANK


def is_text(kind: SqlType) -> bool:
    """Whether it is text, or a literal whose type is still open."""
    return kind in (VARCHAR, UNKNOWN)


def as_numeric(kind: SqlType) -> SqlType:
    """Return the ``numeric`` that holds every value of an exact type."""
    return kind if kind.name == "numeric" else numeric(0, _WHOLE_DIGITS[kind.name])


def common(left: SqlType, right: SqlType) -> SqlType | None:
    """Return the type both convert to without a cast, as in CASE, UNION and comparisons; ``None`` if there is none."""
    if left == right or right == UNKNOWN:
        return left
    if left == UNKNOWN:
        return right
    if is_number(left) and is_number(right):
        return _wider_number(left, right)
    if is_instant(left) and is_instant(right):
        return max(left, right, key=lambda kind: _TIME_RANK[kind.name])
    if left.element is not None and right.element is not None:
        element = common(left.element, right.element)
        return None if element is None else array_of(element)
    return None


def _wider_number(left: SqlType, right: SqlType) -> SqlType:
    if is_exact(left) and is_exact(right):
        if "numeric" not in (left.name, right.name):
            return max(left, right, key=lambda kind: _NUMBER_RANK[kind.name])
        one, other = as_numeric(left), as_numeric(right)
        scale = max(one.scale, other.scale)
        return numeric(scale, max(one.whole, other.whole))
    return DOUBLE if DOUBLE in (left, right) else REAL


def comparison_type(left: SqlType, right: SqlType) -> SqlType | None:
    """Return the type in which both are compared, ``None`` if there is none: a real and an exact number as doubles."""
    shared = common(left, right)
    return DOUBLE if shared == REAL and (is_exact(left) or is_exact(right)) else shared
