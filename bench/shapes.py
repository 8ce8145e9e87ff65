"""Other shapes of users' rows: keys, values and aggregates of the types that the cases of ``user_rows`` leave out.

Fewer batches than those: what is looked for is a type or an aggregate that costs more here than in native Spark. No dependencies
but DuckDB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bench.programs import CHECK, TEXT_KEY
from bench.user_rows import NAME, SOME, USER_CASES, UserCase

_COUNTRY = f"'country ' || {SOME} % 60 AS country"
_PERSON = "md5((k % 50000)::VARCHAR) AS person"
_AT = "unix_seconds(window_end) % 100003 * 31"
_MOD = "% 2147483647"
_WIDE = 36
_GOAL = (1, 1)
_BATCHES = 8
_LIST = "coalesce(aggregate({}, 0L, (total, each) -> total + crc32(each)), 0)"
"""Adds up the elements of a list, in any order."""

OWN_FUNCTION = UserCase(
    ("name",),
    (f"'{TEXT_KEY}' || k AS name", "price"),
    "name string, price bigint",
    {},
    CHECK.replace("k *", f"cast(substr(name, {len(TEXT_KEY) + 1}) as bigint) *").format(end="unix_millis(window_end)"),
)
"""The rows of ``Program(text_keys=True)``, with its checksum: a function of the user's own makes n, s and m."""


def _shape(keys: str, columns: tuple[str, ...], schema: str, aggregates: Mapping[str, tuple[Any, ...]], check: str) -> UserCase:
    return UserCase(
        tuple(keys.split()), columns, schema, aggregates, f"({_AT} + {check}) {_MOD}", goal=_GOAL, batches=_BATCHES, sizes=(10,)
    )


SHAPES = {
    "keys: a number and a text": _shape(
        "shop city",
        ("(k % 5000)::INTEGER AS shop", f"'city ' || {SOME} % 20 AS city", "price"),
        "shop int, city string, price bigint",
        {"n": ("count",), "s": ("sum", "price"), "m": ("max", "price")},
        "n * 104729 + s * 31 + m + shop * 7 + crc32(city)",
    ),
    "keys: a date, a time and a boolean": _shape(
        "day born paid",
        (
            "DATE '2024-01-01' + (k % 20000)::INTEGER AS day",
            "TIMESTAMPTZ '2000-01-01 00:00:00+00' + INTERVAL 1 MILLISECOND * (k % 50) AS born",
            f"{SOME} % 3 = 0 AS paid",
            "price",
        ),
        "day date, born timestamp, paid boolean, price bigint",
        {"n": ("count",), "s": ("sum", "price"), "m": ("max", "price")},
        "n * 104729 + s * 31 + m + unix_date(day) * 7 + unix_millis(born) % 100003 + if(paid, 1, 0)",
    ),
    "keys: a struct": _shape(
        "place",
        (f"{{'city': 'city ' || (k % 5000), 'floor': ({SOME} % 3)::INTEGER}} AS place", "price"),
        "place struct<city: string, floor: int>, price bigint",
        {"n": ("count",), "s": ("sum", "price"), "m": ("max", "price")},
        "n * 104729 + s * 31 + m + crc32(place.city) + place.floor",
    ),
    "doubles with NaN": _shape(
        "name",
        (NAME, f"CASE WHEN {SOME} % 50 = 0 THEN 'NaN'::DOUBLE WHEN {SOME} % 20 > 0 THEN price / 7 END AS x"),
        "name string, x double",
        {"n": ("count", "x"), "s": ("sum", "x"), "lo": ("min", "x"), "hi": ("max", "x"), "a": ("avg", "x")},
        "n * 104729 + crc32(name)"
        + "".join(
            f" + coalesce(cast(round(nanvl({each}, -2) * {factor}) as bigint), 5)"
            for each, factor in (("s", 7), ("lo", 7), ("hi", 7), ("a", 1.2345))  # none of these ends near a half
        ),
    ),
    "decimals of 38 digits": _shape(
        "name",
        (NAME, f"(price || '000007.' || lpad(({SOME})::VARCHAR, 20, '0'))::DECIMAL(38, 20) AS price"),
        "name string, price decimal(38,20)",
        {"s": ("sum", "price"), "m": ("max", "price"), "lo": ("min", "price"), "n": ("count", "price")},
        "n * 104729 + crc32(name) + crc32(cast(s as string)) + crc32(cast(m as string)) + crc32(cast(lo as string))",
    ),
    "40 columns of which three are used": _shape(
        "name",
        (
            NAME,
            "price",
            *(
                f"'{number} ' || price AS t{number}" if number % 2 else f"price + {number} AS t{number}"
                for number in range(_WIDE + 1)
            ),
        ),
        ", ".join(
            ("name string, price bigint", *(f"t{number} {'string' if number % 2 else 'bigint'}" for number in range(_WIDE + 1)))
        ),
        {"n": ("count",), "s": ("sum", "price"), "m": ("max", "price")},
        "n * 104729 + s * 31 + m + crc32(name)",
    ),
    "half of the rows, by a filter": replace(
        _shape(
            "name",
            (NAME, "price", f"['click', 'view', 'buy', NULL][CAST(1 + {SOME} % 4 AS INTEGER)] AS kind"),
            "name string, price bigint, kind string",
            {"n": ("count",), "s": ("sum", "price"), "m": ("max", "price")},
            "n * 104729 + s * 31 + m + crc32(name)",
        ),
        where="kind IN ('click', 'buy')",
    ),
    "all rows of one key": _shape(
        "name",
        ("'the only one' AS name", "price"),
        "name string, price bigint",
        {"n": ("count",), "s": ("sum", "price"), "m": ("max", "price")},
        "n * 104729 + s * 31 + m + crc32(name)",
    ),
    "exact count of distinct texts": _shape(
        "country",
        (_COUNTRY, _PERSON),
        "country string, person string",
        {"u": ("count_distinct", "person")},
        "u * 31 + crc32(country)",
    ),
    "collect_list of texts": _shape(
        "country",
        (_COUNTRY, _PERSON),
        "country string, person string",
        {"l": ("collect_list", "person")},
        f"crc32(country) + size(l) * 31 + {_LIST.format('l')}",
    ),
    "arg_max of texts": _shape(
        "name",
        (NAME, _PERSON, f"({SOME} >> 1)::BIGINT AS place"),
        "name string, person string, place bigint",
        {"last": ("arg_max", "person", "place"), "first": ("arg_min", "person", "place")},
        "crc32(name) + crc32(last) + crc32(first) * 31",
    ),
    "early results by text": replace(
        _shape(
            "name",
            (NAME, "price"),
            "name string, price bigint",
            {"n": ("count",), "s": ("sum", "price"), "m": ("max", "price")},
            "n * 104729 + s * 31 + m + crc32(name)",
        ),
        sizes=(60,),
        early=True,
    ),
    "approximate median": _shape(
        "country",
        (_COUNTRY, "price"),
        "country string, price bigint",
        {"q": ("approx_quantile", "price", 0.5), "n": ("count",)},
        "n * 31 + if(n < 1000 or q between 4500 and 5500, 1, 0)",
    ),
}

OWN_FUNCTIONS = "own functions"
ROWS_OF_USERS: Mapping[str, UserCase] = {**USER_CASES, **SHAPES, OWN_FUNCTIONS: OWN_FUNCTION}
"""Every case on rows like users', by the name that a task gives."""
