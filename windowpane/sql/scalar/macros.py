"""DuckDB macros with PostgreSQL's meaning: arguments out of range are refused, not bent. NULL in, NULL out."""

from __future__ import annotations

from windowpane.errors import (
    DivisionByZeroError,
    InvalidTextError,
    InvalidValueError,
    OutOfRangeError,
    SqlRunError,
    UnsupportedValueError,
)
from windowpane.sql.values.text_values import FALSE, FLOAT, TRUE, WHOLE, text_literal


def _macro(head: str, body: str) -> str:
    return f"CREATE OR REPLACE TEMP MACRO windowpane_{head} AS {body}"


def refused(message: str, kind: type[SqlRunError] = InvalidValueError) -> str:
    """Return SQL, of type text, that fails with an error when a row reaches it."""
    return f"windowpane_refused('{kind.__name__}', {message})"


_SPACE = "E' \\t\\n\\r\\f\\v'"
_FLOAT = text_literal(rf"(?i)\s*{FLOAT}\s*")
_WHOLE = text_literal(rf"\s*{WHOLE}\s*")
_OVERFLOW = refused("'value out of range: overflow'", OutOfRangeError)
_NEGATIVE_LENGTH = refused("'negative substring length not allowed'")
_NO_POSITION = refused("'field position must not be zero'")
_MONTHS_OF_WINDOWS = refused("'the size of a window has months, which have no fixed length'")
_EMPTY_WINDOWS = refused("'the size of a window must be greater than zero'")
_NULL_CHARACTER = refused("'null character not permitted'")
_NEGATIVE_ROOT = refused("'cannot take square root of a negative number'")
_LOG_OF_ZERO = refused("'cannot take logarithm of zero'")
_LOG_OF_NEGATIVE = refused("'cannot take logarithm of a negative number'")
_UNDERFLOW = refused("'value out of range: underflow'", OutOfRangeError)
_POWER_OF_ZERO = refused("'zero raised to a negative power is undefined'")
_COMPLEX_POWER = refused("'a negative number raised to a non-integer power yields a complex result'")
_NO_DIVISOR = refused("'division by zero.'", DivisionByZeroError)


def _invalid(kind: str) -> str:
    return refused(f"""'invalid input syntax for type ' || {kind} || ': "' || x || '".'""", InvalidTextError)


_LONG_INTERVAL = refused("'interval out of range: its hours are more than 2562047'", UnsupportedValueError)
_NO_YEAR = refused("'date field value out of range: there is no year 0'", OutOfRangeError)
_NO_ARRAY = refused("'cannot get array length of a jsonb ' || windowpane_jsonb_type(j)")
_NO_SCALAR = refused("'cannot cast jsonb ' || windowpane_jsonb_type(j) || ' to type ' || wanted")
_ENDLESS = refused("'cannot subtract infinite dates'")
_NO_SHIFT = refused("'numeric out of range: a shift of ' || bits || ' bits by ' || n", OutOfRangeError)
_NO_DATE = refused("'date out of range'", OutOfRangeError)
_NO_BOOLEAN = _invalid("'boolean'")
_TOO_LARGE = refused("""'"' || x || '" is out of range for type ' || kind""", OutOfRangeError)

LONGEST = 2**28
"""The bytes of the longest text that ``repeat`` and its like make of short ones; PostgreSQL makes none of more than ``2**30``."""
LONG = 2**19
"""Longer results are added up for the rows that are computed together, so that those of shorter ones have a gigabyte at most."""


def _short(argument: str, kind: str, size: str, shown: str) -> str:
    """Return an argument, refused where the result would be too long: DuckDB computes no call on one that fails.

    Around the call, a CASE is too late: the optimizer computes what is constant in it first.
    """
    message = f"'requested length too large: ' || {shown} || ' bytes, where {LONGEST} are the most. Ask for a shorter text'"
    refusal = f"CAST({refused(message, OutOfRangeError)} AS {kind})"
    return f"CASE WHEN {size} > {LONGEST} THEN {refusal} WHEN {in_room(size)} THEN {argument} END"


def in_room(size: str) -> str:
    """Return a condition that holds, or fails where a result of so many bytes finds no room beside those of other rows."""
    return f"CASE WHEN {size} > {LONG} THEN windowpane_room(CAST({size} AS BIGINT)) ELSE 0 END >= 0"


_REPEATED = "(strlen(s) * CAST(greatest(times, 0) AS BIGINT))"
_PADDED = "(CAST(size AS BIGINT) * strlen(fill) // nullif(length(fill), 0))"
_REPLACED = "strlen(s) + (strlen(new) - strlen(old)) * ((strlen(s) - strlen(replace(s, old, ''))) // nullif(strlen(old), 0))"


def _pad(name: str) -> str:
    """Return ``lpad`` or ``rpad``; a size is of characters, and a fill may have several bytes for each."""
    size = _short("size", "INTEGER", f"CASE WHEN s IS NOT NULL THEN greatest({_PADDED}, strlen(s)) END", _PADDED)
    return _macro(
        f"{name}(s, size, fill)",
        "CASE WHEN fill IS NULL THEN NULL WHEN fill = '' OR size <= 0 THEN left(s, greatest(size, 0) + 0 * size) "
        f"ELSE {name}(s, {size}, fill) END",
    )


def _replace() -> str:
    """Return ``replace``; what is replaced is counted only where the result can be too long."""
    new = _short("new", "VARCHAR", _REPLACED, f"'more than {LONGEST}'")
    guarded = f"CASE WHEN strlen(s) * strlen(new) > {LONGEST} THEN {new} ELSE new END"
    return _macro("replace(s, old, new)", f"replace(s, old, {guarded})")


MACROS = (
    # --- text
    _macro("substring_from(s, start)", "substring(s, greatest(start, 1) + 0 * start)"),
    _macro(
        "substring(s, start, count)",
        f"CASE WHEN s IS NULL OR start IS NULL THEN NULL WHEN count < 0 THEN {_NEGATIVE_LENGTH} "
        "ELSE substring(s, greatest(start, 1), "
        "CASE WHEN CAST(start AS BIGINT) + count <= 1 THEN 0 ELSE "
        "least(CAST(start AS BIGINT) + count, 2147483647) - greatest(start, 1) END + 0 * count + 0 * start) END",
    ),
    _pad("lpad"),
    _pad("rpad"),
    _macro("repeat(s, times)", f"repeat(s, {_short('times', 'INTEGER', _REPEATED, _REPEATED)})"),
    _replace(),
    _macro(
        "split_part(s, sign, place)",
        f"CASE WHEN s IS NULL OR sign IS NULL THEN NULL WHEN place = 0 THEN {_NO_POSITION} "
        "WHEN sign = '' THEN CASE WHEN place IN (1, -1) THEN s ELSE '' || left(s, 0) END ELSE split_part(s, sign, place) END",
    ),
    _macro("chr(code)", f"CASE WHEN code <= 0 THEN {_NULL_CHARACTER} ELSE chr(code) END"),
    _macro(
        "overlay(s, new, start, count)",
        f"CASE WHEN s IS NULL OR new IS NULL OR count IS NULL THEN NULL WHEN start <= 0 THEN {_NEGATIVE_LENGTH} "
        "ELSE left(s, start - 1) || new || substring(s, greatest(start + count, 1)) END",
    ),
    # DuckDB makes a capital letter of ß that neither PostgreSQL nor RisingWave knows.
    _macro(
        "upper(s)",
        "CASE WHEN contains(s, 'ß') THEN array_to_string([upper(part) FOR part IN string_split(s, 'ß')], 'ß') ELSE upper(s) END",
    ),
    # DuckDB's keeps an accent behind its letter; a text without a longer character is as many bytes.
    _macro(
        "reverse(s)",
        "CASE WHEN strlen(s) = length(s) THEN reverse(s) ELSE array_to_string(list_reverse(string_split(s, '')), '') END",
    ),
    _macro(
        "initcap(s)",
        "coalesce(list_aggregate([windowpane_upper(w[1]) || lower(w[2:]) "
        "FOR w IN regexp_extract_all(s, '[\\pL\\pN]+|[^\\pL\\pN]+')], 'string_agg', ''), '') || left(s, 0)",
    ),
    _macro(
        "jsonb_type(j)",
        "CASE WHEN json_type(j) IN ('UBIGINT', 'BIGINT', 'DOUBLE', 'HUGEINT') THEN 'number' "
        "WHEN json_type(j) = 'VARCHAR' THEN 'string' ELSE lower(json_type(j)) END",
    ),
    # --- jsonb: an object or array as text has spaces
    _macro(
        "jsonb_string(j, path)",
        "CASE WHEN json_type(j, path) IN ('OBJECT', 'ARRAY') THEN windowpane_jsonb_text(CAST(json_extract(j, path) AS VARCHAR)) "
        "ELSE json_extract_string(j, path) END",
    ),
    _macro(
        "jsonb_length(j)",
        f"CASE WHEN json_type(j) <> 'ARRAY' THEN CAST({_NO_ARRAY} AS INTEGER) ELSE CAST(json_array_length(j) AS INTEGER) END",
    ),
    _macro(
        "jsonb_scalar(j, wanted)",
        "CASE WHEN j IS NULL OR json_type(j) = 'NULL' THEN NULL WHEN windowpane_jsonb_type(j) = wanted THEN CAST(j AS VARCHAR) "
        f"ELSE {_NO_SCALAR} END",
    ),
    # --- casts of text
    _macro(
        "whole(x, kind)",
        f"CASE WHEN x IS NULL OR regexp_full_match(x, {_WHOLE}) THEN trim(x, {_SPACE}) ELSE {_invalid('kind')} END",
    ),
    _macro(
        "taken_whole(x, y, kind)",
        "CASE WHEN TRY_CAST(x AS DOUBLE) <> trunc(TRY_CAST(x AS DOUBLE)) OR regexp_full_match(CAST(x AS VARCHAR), "
        f"'[^eE]*[.][0-9]*[1-9][0-9]*') THEN CAST({_invalid('kind')} AS BIGINT) ELSE y END",
    ),
    _macro("listed(x, kind)", f"CASE WHEN x IS NULL OR starts_with(x, '[') THEN x ELSE {_invalid('kind')} END"),
    _macro("clock(x, kind)", f"CASE WHEN NOT contains(x, ':') THEN {_invalid('kind')} ELSE x END"),
    _macro(
        "float(x, kind)",
        f"CASE WHEN x IS NULL OR regexp_full_match(x, {_FLOAT}) THEN trim(x, {_SPACE}) ELSE {_invalid('kind')} END",
    ),
    _macro(
        "finite(x, y, kind)",
        f"CASE WHEN isinf(y) AND NOT contains(lower(x), 'inf') THEN CAST({_TOO_LARGE} AS DOUBLE) ELSE y END",
    ),
    _macro(
        "boolean(x)",
        f"CASE WHEN lower(trim(x, {_SPACE})) IN {TRUE} THEN TRUE WHEN lower(trim(x, {_SPACE})) IN {FALSE} THEN FALSE "
        f"WHEN x IS NOT NULL THEN CAST({_NO_BOOLEAN} AS BOOLEAN) END",
    ),
    # --- integers: bits that leave on the left are lost, as in two's complement
    _macro("wrapped(x, size)", "(x % size + size + size // 2) % size - size // 2"),
    _macro(
        "shift_left(x, n, bits)",
        f"CASE WHEN x IS NOT NULL AND (n < 0 OR n >= bits) THEN CAST({_NO_SHIFT} AS HUGEINT) ELSE "
        "windowpane_wrapped(CAST(x AS HUGEINT) * (CAST(1 AS HUGEINT) << CAST(n AS INTEGER)), CAST(1 AS HUGEINT) << bits) END",
    ),
    _macro(
        "shift_right(x, n, bits)",
        f"CASE WHEN x IS NOT NULL AND (n < 0 OR n >= bits) THEN CAST({_NO_SHIFT} AS HUGEINT) "
        "ELSE CAST(x >> CAST(n AS INTEGER) AS HUGEINT) END",
    ),
    # --- doubles
    _macro(
        "sqrt(x)",
        f"CASE WHEN x < 0 THEN CAST({_NEGATIVE_ROOT} AS DOUBLE) ELSE sqrt(x) END",
    ),
    _macro(
        "positive(x)",
        f"CASE WHEN x = 0 THEN CAST({_LOG_OF_ZERO} AS DOUBLE) WHEN x < 0 THEN CAST({_LOG_OF_NEGATIVE} AS DOUBLE) ELSE x END",
    ),
    _macro(
        "exp(x)",
        f"CASE WHEN isinf(exp(x)) AND NOT isinf(x) THEN CAST({_OVERFLOW} AS DOUBLE) "
        f"WHEN exp(x) = 0 AND NOT isinf(x) THEN CAST({_UNDERFLOW} AS DOUBLE) ELSE exp(x) END",
    ),
    _macro(
        "pow(x, y)",
        f"CASE WHEN x = 0 AND y < 0 THEN CAST({_POWER_OF_ZERO} AS DOUBLE) "
        "WHEN x < 0 AND NOT isinf(x) AND NOT isinf(y) AND y <> trunc(y) THEN "
        f"CAST({_COMPLEX_POWER} AS DOUBLE) "
        f"WHEN isinf(pow(x, y)) AND NOT isinf(x) AND NOT isinf(y) THEN CAST({_OVERFLOW} AS DOUBLE) "
        f"WHEN pow(x, y) = 0 AND x <> 0 AND NOT isinf(x) AND NOT isinf(y) THEN CAST({_UNDERFLOW} AS DOUBLE) ELSE pow(x, y) END",
    ),
    _macro(
        "within(x, low, high)",
        "CASE WHEN x < low OR x > high THEN 'NaN'::DOUBLE ELSE x END",
    ),
    # --- times
    _macro(
        "years_floor(x, years)",
        "CASE WHEN NOT isfinite(x) THEN x "
        "ELSE date_trunc('year', x) - to_years(CAST((((year(x) - 1) % years) + years) % years AS INTEGER)) END",
    ),
    # PostgreSQL's dates; DuckDB has some more, and days beyond its last one come round to its first.
    _macro(
        "date(x)",
        "CASE WHEN isfinite(x) AND x NOT BETWEEN DATE '4714-11-24 (BC)' AND DATE '5874897-12-31' "
        f"THEN CAST({_NO_DATE} AS DATE) ELSE x END",
    ),
    _macro(
        "days_between(x, y)",
        f"CASE WHEN NOT isfinite(x) OR NOT isfinite(y) THEN CAST({_ENDLESS} AS INTEGER) ELSE CAST(x - y AS INTEGER) END",
    ),
    # There is no year zero: year -1 is 1 BC, which DuckDB counts as 0.
    _macro(
        "year(y)",
        f"CASE WHEN y = 0 THEN CAST({_NO_YEAR} AS BIGINT) WHEN y < 0 THEN y + 1 ELSE y END",
    ),
    # The fields of a NULL that is written in the query are doubles to DuckDB.
    _macro("interval_months(i)", "CAST(datepart('year', i) * 12 + datepart('month', i) AS BIGINT)"),
    _macro(
        "interval_micros(i)",
        "CAST(datepart('hour', i) * 3600000000 + datepart('minute', i) * 60000000 + datepart('microsecond', i) AS BIGINT)",
    ),
    # The interval of the same length whose days are fewer than 30 and whose clock is below 24 hours, if there is one.
    _macro(
        "interval_length(i)",
        "((windowpane_interval_months(i) * 30 + datepart('day', i))::HUGEINT * 86400000000 + windowpane_interval_micros(i))",
    ),
    _macro(
        "interval_value(i)",
        "CASE WHEN abs(windowpane_interval_length(i)) // 2592000000000 > 2147483647 THEN i "
        "ELSE to_months(CAST(windowpane_interval_length(i) // 2592000000000 AS INTEGER)) "
        "+ to_days(CAST(windowpane_interval_length(i) % 2592000000000 // 86400000000 AS INTEGER)) "
        "+ to_microseconds(CAST(windowpane_interval_length(i) % 86400000000 AS BIGINT)) END",
    ),
    _macro(
        "interval_of(parts)",
        "to_months(CAST(parts[1] AS INTEGER)) + to_days(CAST(parts[2] AS INTEGER)) + to_microseconds(parts[3])",
    ),
    # Months and days that are not whole spill into days and microseconds, as in PostgreSQL; like RisingWave's they are rounded
    # to a microsecond first, halves to the even number: doubles know of no tenth of a month.
    _macro("rounded_days(days)", "round_even(days * 86400000000, 0) / 86400000000"),
    _macro("spilled_days(months)", "windowpane_rounded_days(30 * (months - trunc(months)))"),
    _macro("clock_days(months, days)", "days - trunc(days) + windowpane_spilled_days(months) % 1"),
    _macro(
        "spilled(months, days, micros)",
        "to_months(CAST(trunc(months) AS INTEGER)) + to_days(CAST(trunc(days) + trunc(windowpane_spilled_days(months)) "
        "+ trunc(windowpane_clock_days(months, days)) AS INTEGER)) + to_microseconds(CAST("
        "round_even(micros + 86400000000 * (windowpane_clock_days(months, days) % 1), 0) AS BIGINT))",
    ),
    _macro(
        "whole_interval(months, days, micros)",
        "windowpane_spilled(windowpane_rounded_days(30 * months) / 30, windowpane_rounded_days(days), micros)",
    ),
    _macro(
        "scale_interval(i, f)",
        "windowpane_whole_interval(windowpane_interval_months(i) * f, datepart('day', i) * f, windowpane_interval_micros(i) * f)",
    ),
    _macro(
        "divide_interval(i, f)",
        f"CASE WHEN i IS NULL THEN NULL WHEN f = 0 THEN CAST({_NO_DIVISOR} AS INTERVAL) ELSE windowpane_whole_interval("
        "windowpane_interval_months(i) / f, datepart('day', i) / f, windowpane_interval_micros(i) / f) END",
    ),
    _macro(
        "offset(seconds)",  # of times that are older than time zones it has seconds
        "CASE WHEN seconds < 0 THEN '-' ELSE '+' END || lpad(CAST(abs(seconds) // 3600 AS VARCHAR), 2, '0') || ':' "
        "|| lpad(CAST(abs(seconds) // 60 % 60 AS VARCHAR), 2, '0') "
        "|| CASE WHEN seconds % 60 = 0 THEN '' ELSE ':' || lpad(CAST(abs(seconds) % 60 AS VARCHAR), 2, '0') END",
    ),
    # An hour after a time that clocks show twice is an hour later: only months and days go by the calendar.
    _macro(
        "shift(x, i, zone)",
        "CASE WHEN windowpane_interval_months(i) = 0 AND datepart('day', i) = 0 THEN x ELSE timezone(zone, timezone(zone, x) "
        "+ (to_months(CAST(windowpane_interval_months(i) AS INTEGER)) + to_days(CAST(datepart('day', i) AS INTEGER)))) END "
        "+ to_microseconds(windowpane_interval_micros(i))",
    ),
    _macro(
        "size_of_windows(i)",
        f"CASE WHEN windowpane_interval_months(i) <> 0 THEN CAST({_MONTHS_OF_WINDOWS} AS INTERVAL) "
        f"WHEN epoch(i) <= 0 THEN CAST({_EMPTY_WINDOWS} AS INTERVAL) ELSE i END",
    ),
    _macro(
        "interval_text(i)",
        "windowpane_interval_shown(windowpane_interval_months(i), datepart('day', i), windowpane_interval_micros(i))",
    ),
    # Arrow counts nanoseconds, in 64 bits, and DuckDB wraps what does not fit.
    _macro(
        "interval_out(i)",
        "CASE WHEN windowpane_interval_micros(i) NOT BETWEEN -9223372036854775 AND 9223372036854775 "
        f"THEN CAST({_LONG_INTERVAL} AS INTERVAL) ELSE i END",
    ),
    _macro(
        "double_text(x)",
        "CASE x WHEN 'inf' THEN 'Infinity' WHEN '-inf' THEN '-Infinity' WHEN 'nan' THEN 'NaN' WHEN '-nan' THEN 'NaN' ELSE "
        "regexp_replace(regexp_replace(x, '\\.0$', ''), '^(-?)(\\d)\\.?(\\d*)e-05$', '\\10.0000\\2\\3') END",
    ),
    # --- sums of pairs of numbers: those that are not finite make NaN, of one pair, too
    _macro("pair_sum(s, nothing)", f"CASE WHEN isinf(s) THEN CAST({_OVERFLOW} AS DOUBLE) ELSE s + nothing END"),
    # --- arrays
    _macro("nth_least(a, q)", "list_sort(a)[CAST(floor((len(a) - 1) * q) AS BIGINT) + 1]"),
    _macro("item(a, n)", "CASE WHEN n > 0 THEN a[n] END"),
    _macro(
        "slice(a, low, high)", "CASE WHEN low IS NOT NULL AND high IS NOT NULL THEN a[greatest(low, 1):greatest(high, 0)] END"
    ),
    _macro(
        "quoted_item(e)",
        "CASE WHEN e IS NULL THEN 'NULL' WHEN e = '' OR upper(e) = 'NULL' OR regexp_matches(e, '[{}\",\\\\\\s]') "
        "THEN '\"' || replace(replace(e, '\\', '\\\\'), '\"', '\\\"') || '\"' ELSE e END",
    ),
)
