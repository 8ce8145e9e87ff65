"""Random calls of functions on values of the types that they take, at the edges of these, and now and then on any others."""

# ruff: noqa: E501 - functions and values are data

from __future__ import annotations

import random
from collections.abc import Sequence

_NUMBERS = """
count sum avg min max stddev var_pop bit_xor first_value last_value any_value approx_count_distinct row_number rank ntile lag lead nth_value percent_rank
abs ceil floor trunc round sign sqrt cbrt exp ln log log10 power sin cos tan cot asin acos atan atan2 sinh acosh degrees radians pi mod div gcd lcm greatest
least coalesce nullif to_hex chr to_timestamp from_unixtime generate_series range make_date make_time make_timestamp repeat
"""
_TEXTS = """
upper lower initcap length octet_length bit_length substring left right position strpos trim btrim ltrim rtrim replace reverse repeat lpad rpad translate
overlay split_part starts_with regexp_match regexp_replace regexp_count regexp_split_to_array md5 ascii concat concat_ws to_date to_timestamp string_agg
min max coalesce nullif greatest regexp_matches regexp_split_to_table encode decode
"""
_TIMES = """
date_trunc extract date_part to_char age now date_format timestampdiff timestampadd year second min max lag coalesce greatest date_bin tumble_start
to_timestamp_ltz session_start generate_series count array_agg nullif avg sum
"""
_ARRAYS = """
array_length cardinality array_ndims array_lower array_upper array_append array_prepend array_cat array_remove array_replace array_position array_positions
array_distinct array_sort array_reverse array_min array_max array_sum array_contains array_to_string unnest array_agg min count generate_subscripts coalesce
"""
_OTHERS = """
jsonb_typeof jsonb_array_length jsonb_array_elements jsonb_object_keys count max coalesce array_agg string_agg bool_and bool_or every arg_min arg_max mode
percentile_cont tumble hop cumulate session proctime grouping nothing_of_the_kind
"""
FAMILIES: Sequence[tuple[Sequence[str], Sequence[str], Sequence[str]]] = (
    (
        _NUMBERS.split(),
        ("id", "k", "v", "n", "d", "f", "k::smallint", "n::numeric(5, 2)", "v * v * v * v", "n / 3", "-n"),
        (
            "0", "-1", "3", "32767::smallint", "2147483647", "-2147483648", "9223372036854775807", "99999999999999999999999999999999999999",
            "0.00000000000000000000001", "3e38::real", "1e-45::real", "1.7e308::float8", "'NaN'::real", "'Infinity'::numeric", "'-inf'::float8",
            "'NaN'::numeric", "-0.0::float8", "1.5", "NULL", "NULL::numeric",
        ),
    ),
    (
        _TEXTS.split(),
        ("s", "s", "k", "s || s", "repeat(s, 100)", "k::text", "substring(s FROM 2)"),
        (
            "''", "'%'", "'('", "'[a'", "'\\'", "'é\U0001f600'", "'e\u0301'", "'YYYY'", "'hex'", "1", "-1", "0", "2147483647", "NULL", "'one'", "'9999-99-99'",
            "'[[:alpha:]]+'", "'(a|b)*c'", "'o{99999}'", "'\\1\\2'", "'$1'", "'g'", "'zz'", "chr(1114111)", f"'{'x' * 5000}'",
        ),
    ),
    (
        _TIMES.split(),
        ("at", "z", "dt", "tm", "iv", "at + iv", "z - z", "dt + tm", "iv * 1.5"),
        (
            "'hour'", "'century'", "'nothing'", "'epoch'", "INTERVAL '1 day'", "INTERVAL '178000000 years'", "INTERVAL '-1.5 months'", "INTERVAL '0'",
            "'infinity'::timestamp", "'-infinity'::date", "'infinity'::timestamptz", "'4713-01-01 BC'::timestamp", "'294276-12-31 23:59:59.999999'::timestamptz",
            "'0001-01-01'::date", "'5874897-12-31'::date", "'24:00'::time", "'YYYY-DDD HH24:MI:SS.US'", "'Q J TZ'", "NULL", "0", "1",
            "INTERVAL '-9223372036854775808 microseconds'", "'Europe/Zurich'",
        ),
    ),
    (
        _ARRAYS.split(),
        ("a", "a", "a || a", "ARRAY[k, id]", "ARRAY[s]", "a[1:1]", "array_agg(k)"),
        (
            "1", "0", "-1", "NULL", "2147483647", "ARRAY[]::int[]", "ARRAY[NULL]::int[]", "ARRAY[ARRAY[1], ARRAY[2]]", "'{{1,2},{3,4}}'::int[][]",
            "'{NULL,\"NULL\"}'::text[]", "','", "''", "ARRAY[n]", "ARRAY[at]",
        ),
    ),
    (
        _OTHERS.split(),
        ("j", "j", "b", "j -> 'a'", "j ->> 'a'", "by", "by || by", "k = 1", "n > d", "s = 'one'", "t", "ROW(k, s)"),
        (
            "'null'::jsonb", "'[1,[2,{}]]'::jsonb", "'{\"a\":1e400}'::jsonb", "'1e-400'::jsonb", "'\"\\u0000\"'::jsonb", "'{}'::jsonb", "NULL", "true",
            "'\\xff'::bytea", "0", "'a'", "NULL::jsonb", "ROW(1, 'a')",
        ),
    ),
)  # fmt: skip
"""Functions, expressions over columns, and values, by the type that they are of."""
FUNCTIONS = tuple(sorted({name for functions, _, _ in FAMILIES for name in functions}))
_KINDS = ("int", "bigint", "numeric", "numeric(5, 2)", "real", "double precision", "text", "date", "time", "timestamp", "timestamptz", "interval", "jsonb", "int[]")  # fmt: skip


def statement(random: random.Random, others: Sequence[str]) -> str:
    """Return a statement that computes a call; ``others`` are values of any kind, which stand in it now and then."""
    item = _call(random, others, 2)
    over = random.choice(["", "", "", "", "", " OVER (PARTITION BY k ORDER BY id)", " FILTER (WHERE b)"])
    query = f"SELECT {item}{over} AS x FROM t LEFT JOIN m ON m.a[1] = t.k"
    view = f"CREATE MATERIALIZED VIEW of{random.randrange(10**6)} AS {query}"
    into = f"INSERT INTO t (id, s) SELECT id + 100, ({item})::text FROM t LEFT JOIN m ON m.a[1] = t.k"
    return random.choice(
        [query, query, view, view, into, f"SELECT id FROM t LEFT JOIN m ON m.a[1] = t.k WHERE ({item}) IS NOT NULL"]
    )


def _call(random: random.Random, others: Sequence[str], depth: int) -> str:
    functions, columns, values = random.choice(FAMILIES)
    count, arguments = random.choice((1, 1, 1, 2, 2, 3)), []
    for place in range(count):
        what = random.random()
        if what < 0.45:
            arguments.append(random.choice(columns if place == 0 or what < 0.2 else values))
        elif what < 0.85:
            arguments.append(random.choice(values))
        elif what < 0.92 and depth:
            arguments.append(_call(random, others, depth - 1))
        elif what < 0.96:
            arguments.append(f"({random.choice(columns)})::{random.choice(_KINDS)}")
        else:
            arguments.append(random.choice(others))
    if random.random() < 0.15:
        return f"{arguments[0]} {random.choice(('+', '-', '*', '/', '%', '||', '=', '<', '^', '~'))} {arguments[-1]}"
    return f"{random.choice(functions)}({', '.join(arguments)})"
