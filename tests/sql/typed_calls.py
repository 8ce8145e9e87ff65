"""Random calls of functions on values of the types that they take, at the edges of these, and now and then on any others."""

# ruff: noqa: E501 - calls and values are data

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

ARGUMENTS: Mapping[str, Sequence[str]] = {
    "n": (
        "id", "k", "v", "n", "d", "f", "n", "v * v", "n / 3", "k::smallint", "n::numeric(5, 2)", "0", "-1", "3", "1.5", "32767::smallint", "2147483647",
        "-2147483648", "9223372036854775807", "-9223372036854775808", "99999999999999999999999999999999999999", "0.00000000000000000000001", "3e38::real",
        "1e-45::real", "1.7e308::float8", "5e-324::float8", "'NaN'::real", "'inf'::float8", "'-inf'::float8", "-0.0::float8", "NULL::int", "NULL::numeric", "0.5",
    ),
    "i": ("k", "id", "0", "1", "2", "-1", "40", "2147483647", "-2147483648", "NULL::int", "v::int"),
    "t": (
        "s", "s", "s", "k::text", "repeat(s, 100)", "substring(s FROM 2)", "''", "'%'", "'('", "'[a'", "'\\'", "'é\U0001f600'", "'e\u0301'", "'one'", "'[[:alpha:]]+'",
        "'(o)|(x)*'", "'o{99999}'", "'\\1\\2\\&'", "'$1'", "'g'", "'o'", "chr(1114111)", f"'{'x' * 5000}'", "NULL::text", "n::text", "at::text", "'a\tb\n'",
    ),
    "f": (
        "'YYYY-MM-DD'", "'YYYY-DDD HH24:MI:SS.US'", "'Q J TZ'", "'HH12 AM'", "'Mon FMDay'", "'yyyy-MM-dd HH:mm:ss.SSS'", "''", "'%Y'", "'IYYY-IW'", "s", "'SSSS'", "'CC BC'",
    ),
    "u": ("'hour'", "'century'", "'epoch'", "'week'", "'month'", "'microseconds'", "'decade'", "'nothing'", "'dow'", "s", "'timezone'", "'isoyear'"),
    "d": (
        "at", "z", "dt", "at", "at + iv", "'infinity'::timestamp", "'-infinity'::date", "'infinity'::timestamptz", "'4713-01-01 BC'::timestamp",
        "'294276-12-31 23:59:59.999999'::timestamptz", "'0001-01-01'::date", "'5874897-12-31'::date", "'10000-01-01'::timestamp", "NULL::timestamp", "z - iv",
    ),
    "v": (
        "iv", "iv", "at - at", "tm::interval", "iv * 1.5", "INTERVAL '1 day'", "INTERVAL '178000000 years'", "INTERVAL '-1.5 months'", "INTERVAL '0'",
        "INTERVAL '-9223372036854775808 microseconds'", "INTERVAL '2147483647 days'", "INTERVAL '-2147483648 months'", "NULL::interval",
    ),
    "m": ("tm", "'24:00'::time", "'00:00:00.000001'::time", "NULL::time", "at::time"),
    "a": (
        "a", "a", "a || a", "ARRAY[k, id]", "a[1:1]", "ARRAY[]::int[]", "ARRAY[NULL]::int[]", "NULL::int[]", "'{2147483647,-1,NULL}'::int[]",
        "array_remove(a, 1)", "ARRAY[s]", "'{NULL,\"NULL\"}'::text[]", "ARRAY[n]", "ARRAY[at]", "ARRAY[ARRAY[1], ARRAY[2]]", "ARRAY[j]", "ARRAY[d]", "ARRAY[b]",
    ),
    "e": ("k", "1", "NULL", "s", "n", "NULL::int", "2147483647", "at", "'x'"),
    "j": (
        "j", "j", "j -> 'a'", "'null'::jsonb", "'[1,[2,{}]]'::jsonb", "'{\"a\":1e400}'::jsonb", "'1e-400'::jsonb", "'{}'::jsonb", "NULL::jsonb", "'\"x\"'::jsonb",
        "'{\"é\":{\"\":[null]}}'::jsonb", "'[]'::jsonb", "'-0.0'::jsonb", "'{\"a\":1,\"a\":2}'::jsonb",
    ),
    "b": ("b", "k = 1", "n > d", "s = 'one'", "true", "NULL::boolean", "at < z", "a = a", "j = j", "iv > iv"),
    "y": ("by", "'\\xff'::bytea", "'\\x'::bytea", "NULL::bytea"),
}  # fmt: skip
"""Expressions and values by type: numbers, small integers, texts, formats, units, times, intervals, clocks, arrays, elements, JSON, conditions, bytes."""
_CALLS = """
abs(<n>); ceil(<n>); floor(<n>); trunc(<n>); round(<n>); round(<n>, <i>); trunc(<n>, <i>); sign(<n>); sqrt(<n>); cbrt(<n>); exp(<n>); ln(<n>); log(<n>); log10(<n>)
log(<n>, <n>); power(<n>, <n>); <n> ^ <n>; sin(<n>); cos(<n>); tan(<n>); cot(<n>); asin(<n>); acos(<n>); atan(<n>); atan2(<n>, <n>); sinh(<n>); cosh(<n>); acosh(<n>)
atanh(<n>); degrees(<n>); radians(<n>); mod(<n>, <n>); div(<n>, <n>); gcd(<n>, <n>); lcm(<n>, <n>); greatest(<n>, <n>); least(<n>, <n>, <n>); coalesce(<n>, <n>)
nullif(<n>, <n>); <n> + <n>; <n> - <n>; <n> * <n>; <n> / <n>; <n> % <n>; -<n>; <i> << <i>; <i> >> <i>; <i> & <i>; <i> | <i>; <i> # <i>; ~<i>; to_hex(<n>); chr(<i>)
<n>::int; <n>::smallint; <n>::bigint; <n>::numeric; <n>::numeric(5, 2); <n>::real; <n>::float8; <n>::text; <n>::boolean; <n> = <n>; <n> < <n>; <n> BETWEEN <n> AND <n>
upper(<t>); lower(<t>); initcap(<t>); length(<t>); octet_length(<t>); bit_length(<t>); substring(<t>, <i>); substring(<t>, <i>, <i>); left(<t>, <i>); right(<t>, <i>)
position(<t> IN <t>); strpos(<t>, <t>); trim(<t>); btrim(<t>, <t>); ltrim(<t>, <t>); rtrim(<t>); replace(<t>, <t>, <t>); reverse(<t>); repeat(<t>, <i>); lpad(<t>, <i>, <t>)
rpad(<t>, <i>, <t>); translate(<t>, <t>, <t>); overlay(<t> PLACING <t> FROM <i>); overlay(<t> PLACING <t> FROM <i> FOR <i>); split_part(<t>, <t>, <i>); starts_with(<t>, <t>)
regexp_match(<t>, <t>); regexp_replace(<t>, <t>, <t>); regexp_replace(<t>, <t>, <t>, 'g'); regexp_count(<t>, <t>); regexp_split_to_array(<t>, <t>); regexp_matches(<t>, <t>, 'g')
regexp_split_to_table(<t>, <t>); md5(<t>); ascii(<t>); concat(<t>, <n>, <b>); concat_ws(<t>, <t>, <d>); <t> || <t>; <t> || <n>; <t> LIKE <t>; <t> ILIKE <t>; <t> ~ <t>; <t> ~* <t>
<t> LIKE <t> ESCAPE <t>; <t>::int; <t>::numeric; <t>::date; <t>::timestamp; <t>::timestamptz; <t>::interval; <t>::jsonb; <t>::int[]; <t>::text[]; <t>::boolean; <t>::bytea; <t>::time
<t>::float8; <t>::varchar; string_agg(<t>, <t>); string_agg(<t>, <t> ORDER BY <n>); min(<t>); max(<t>); count(DISTINCT <t>); arg_max(<t>, <n>); first_value(<t> ORDER BY <n>)
date_trunc(<u>, <d>); date_trunc(<u>, <v>); date_part(<u>, <d>); date_part(<u>, <v>); extract(year FROM <d>); extract(epoch FROM <d>); extract(epoch FROM <v>); extract(hour FROM <m>)
extract(week FROM <d>); extract(millennium FROM <d>); to_char(<d>, <f>); to_date(<t>, <f>); to_timestamp(<n>); to_timestamp(<t>, <f>); make_date(<i>, <i>, <i>); make_time(<i>, <i>, <n>)
make_timestamp(<i>, <i>, <i>, <i>, <i>, <n>); <d> + <v>; <d> - <v>; <d> - <d>; <v> + <v>; <v> - <v>; <v> * <n>; <v> / <n>; -<v>; dt + <i>; dt - <i>; dt + <m>; <m> + <v>; <m> - <m>
<d> AT TIME ZONE 'Europe/Zurich'; <d> AT TIME ZONE <t>; <d>::date; <d>::timestamp; <d>::timestamptz; <d>::time; <d>::text; <v>::text; <v>::time; <m>::text; <m>::interval; <d> = <d>
<d> < <d>; <v> < <v>; <v> = <v>; date_format(<d>, <f>); timestampdiff(DAY, <d>, <d>); timestampadd(MONTH, <i>, <d>); year(<d>); second(<d>); date_bin(<v>, <d>, <d>)
tumble_start(<d>, <v>); floor(at TO HOUR); ceil(at TO DAY); to_timestamp_ltz(<n>, <i>); from_unixtime(<n>); age(<d>, <d>); min(<d>); max(<v>); sum(<v>); avg(<v>); count(DISTINCT <v>)
generate_series(<n>, <n>); generate_series(<i>, <i>, <i>); generate_series(<d>, <d>, <v>); range(<i>, <i>); unnest(<a>)
array_length(<a>, <i>); cardinality(<a>); array_ndims(<a>); array_lower(<a>, <i>); array_upper(<a>, <i>); array_append(<a>, <e>); array_prepend(<e>, <a>); array_cat(<a>, <a>)
array_remove(<a>, <e>); array_replace(<a>, <e>, <e>); array_position(<a>, <e>); array_positions(<a>, <e>); array_distinct(<a>); array_sort(<a>); array_reverse(<a>); array_min(<a>)
array_max(<a>); array_sum(<a>); array_contains(<a>, <e>); array_to_string(<a>, <t>); array_to_string(<a>, <t>, <t>); <a> || <e>; <a> || <a>; <e> = ANY (<a>); <e> < ALL (<a>); <a> = <a>
<a> < <a>; (<a>)[<i>]; (<a>)[<i>:<i>]; <a>::text; <a>::text[]; <a>::int[]; array_agg(<a>); array_agg(<e> ORDER BY <n>); array_agg(DISTINCT <e>); min(<a>); count(DISTINCT <a>)
jsonb_typeof(<j>); jsonb_array_length(<j>); jsonb_array_elements(<j>); jsonb_array_elements_text(<j>); jsonb_object_keys(<j>); <j> -> <t>; <j> ->> <t>; <j> -> <i>; <j> ->> <i>
<j> #> <a>; <j> #>> '{a,0}'; <j> ? <t>; <j> ?| <a>; <j> ?& <a>; <j> @> <j>; <j> <@ <j>; <j> || <j>; <j> - <t>; <j> - <i>; <j> - <a>; <j> #- <a>; jsonb_set(<j>, <a>, <j>, <b>)
jsonb_strip_nulls(<j>); jsonb_pretty(<j>); jsonb_build_array(<j>, <n>, <d>); jsonb_build_object(<t>, <j>, <n>, <a>); jsonb_object(<a>); jsonb_object(<a>, <a>); jsonb_object_agg(<t>, <j>)
jsonb_extract_path(<j>, <t>, <t>); jsonb_extract_path_text(<j>, <t>); <t> IS JSON; <a> @> <a>; <a> <@ <a>; <a> && <a>; <t> ^@ <t>; <j> = <j>; <j> < <j>; <j>::text; <j>::int; <j>::numeric; <j>::boolean; count(DISTINCT <j>); max(<j>); array_agg(<j>)
bool_and(<b>); bool_or(<b>); every(<b>); NOT <b>; <b> AND <b>; <b> OR <b>; <b> IS NOT TRUE; <b>::int; <b>::text; CASE WHEN <b> THEN <n> ELSE <n> END; coalesce(<b>, <b>); count(<b>)
<y> || <y>; octet_length(<y>); <y> = <y>; <y>::text; encode(<y>, 'hex'); decode(<t>, 'base64'); min(<y>); count(DISTINCT <y>); md5(<y>); length(<y>); substring(<y>, <i>, <i>)
sum(<n>); avg(<n>); min(<n>); max(<n>); count(DISTINCT <n>); stddev(<n>); var_pop(<n>); var_samp(<n>); bit_xor(<i>); bit_and(<i>); any_value(<n>); approx_count_distinct(<n>)
percentile_cont(0.5) WITHIN GROUP (ORDER BY <n>); percentile_disc(<n>) WITHIN GROUP (ORDER BY <n>); mode() WITHIN GROUP (ORDER BY <n>); sum(<n>) FILTER (WHERE <b>); sum(DISTINCT <n>)
sum(<n>) OVER (PARTITION BY k ORDER BY id); avg(<n>) OVER (PARTITION BY <n> ORDER BY id ROWS <i> PRECEDING); lag(<t>, <i>) OVER (PARTITION BY k ORDER BY id); ntile(<i>) OVER (PARTITION BY k ORDER BY <n>)
count(*) OVER (PARTITION BY <j> ORDER BY <v>); max(<a>) OVER (PARTITION BY <a> ORDER BY <n>); lead(<n>, 1, <n>) OVER (PARTITION BY <t> ORDER BY <d>); nth_value(<d>, <i>) OVER (PARTITION BY k ORDER BY <d>)
sum(<n>) OVER (PARTITION BY k ORDER BY <n> RANGE BETWEEN <n> PRECEDING AND CURRENT ROW); count(*) OVER (PARTITION BY k ORDER BY <d> RANGE BETWEEN <v> PRECEDING AND <v> FOLLOWING)
nothing_of_the_kind(<n>); ROW(<n>, <t>) = ROW(<n>, <t>); (<n>, <t>) < (<n>, <t>); (<n>, <t>) IN ((1, 'one'), (<n>, <t>)); <n> IN (<n>, <n>); <n> IS DISTINCT FROM <n>
"""
CALLS: Sequence[str] = tuple(call.strip() for line in _CALLS.strip().split("\n") for call in line.split(";"))
"""Calls with the types of their arguments in angle brackets."""
FUNCTIONS = tuple(sorted({call.split("(")[0] for call in CALLS if re.match(r"\w+\(", call)}))
_KINDS = ("int", "bigint", "numeric", "real", "double precision", "text", "date", "time", "timestamp", "timestamptz", "interval", "jsonb", "int[]", "bytea")  # fmt: skip
_GROUPING = re.compile(
    r"(sum|avg|min|max|count|stddev|var_\w+|bit_\w+|bool_\w+|every|string_agg|array_agg|arg_max|any_value|first_value|approx\w+|percentile\w+|mode)\("
)


def statement(random: random.Random, others: Sequence[str]) -> str:
    """Return a statement that computes a call; ``others`` are values of any kind, which stand in it now and then."""
    item = _call(random, others, 1)
    source = "FROM t LEFT JOIN m ON m.a[1] = t.k"
    if _GROUPING.match(item) and "OVER" not in item:
        query = random.choice([f"SELECT {item} AS x {source}", f"SELECT k, {item} AS x {source} GROUP BY k"])
        return random.choice([query, f"CREATE MATERIALIZED VIEW of{random.randrange(10**6)} AS {query}"])
    query = f"SELECT {item} AS x {source}"
    view = f"CREATE MATERIALIZED VIEW of{random.randrange(10**6)} AS {query}"
    others_of_it = [
        f"INSERT INTO t (id, s) SELECT id + 100, ({item})::text {source}",
        f"SELECT id {source} WHERE ({item}) IS NOT NULL",
        f"CREATE MATERIALIZED VIEW of{random.randrange(10**6)} AS SELECT ({item}) AS x, count(*) AS c {source} GROUP BY ({item})",
        f"UPDATE t SET v = 1 WHERE id IN (SELECT id {source} WHERE ({item}) IS NULL)",
        f"SELECT DISTINCT ({item}) AS x {source} ORDER BY x DESC LIMIT 2",
    ]
    return random.choice([query, query, view, view, *others_of_it])


def _call(random: random.Random, others: Sequence[str], depth: int) -> str:
    def argument(found: re.Match[str]) -> str:
        what = random.random()
        if what < 0.03:
            return random.choice(others)
        if what < 0.06:
            return f"({random.choice(ARGUMENTS[random.choice(list(ARGUMENTS))])})::{random.choice(_KINDS)}"
        if what < 0.12 and depth:
            return f"({_call(random, others, depth - 1)})"
        return random.choice(ARGUMENTS[found.group(1)])

    return re.sub(r"<([a-z])>", argument, random.choice(CALLS))
