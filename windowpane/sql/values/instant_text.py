"""Texts as dates and timestamps: what PostgreSQL and RisingWave accept and DuckDB does not, or takes for something else.

DuckDB wants the offset right behind the time and the era before it, knows time zones by names of ICU, in which ``PST`` has
summer time and ``BST`` is in Asia, and for a timestamp without time zone ignores any word behind the time. A text of the plain
form passes as it is; all others are brought into it here, or refused.
"""

from __future__ import annotations

import re

from windowpane.errors import UnsupportedValueError
from windowpane.sql.expressions.types import DATE, TIMESTAMP, SqlType
from windowpane.sql.scalar.macros import refused

_OFFSETS = {
    "z": "+00", "utc": "+00", "gmt": "+00", "zulu": "+00", "est": "-05", "edt": "-04", "cst": "-06", "cdt": "-05",
    "mst": "-07", "mdt": "-06", "pst": "-08", "pdt": "-07", "cet": "+01", "cest": "+02", "bst": "+01", "jst": "+09",
    "msk": "+03",
}  # fmt: skip
"""PostgreSQL's abbreviations of time zones ("Default" set), those in wide use."""

_DATE = r"\d{1,7}[-/]\d{1,2}[-/]\d{1,2}"
_TIME = r"\d{1,2}:\d{1,2}(?::\d{1,2}(?:\.\d*)?)?"
_OFFSET = r"[+-](?:0?\d|1[0-5])(?::[0-5]\d(?::[0-5]\d)?)?"
_NO_OFFSET = rf"({_TIME})([+-](?:1[6-9]|[2-9]\d|\d+:[6-9]).*)$"
"""PostgreSQL's offsets are shorter than 16 hours."""
_PLAIN = rf"(?:{_DATE}(?:[ T]+{_TIME}(?:{_OFFSET}|Z)?)?|\d+-\d+-\d+ \(BC\).*|-?infinity|epoch)"

_FINER = r"\.\d{6}\d*[1-9]"
"""A part of a second finer than a microsecond."""
_TOO_FINE = refused(
    "'a timestamp holds microseconds, and ' || t || ' is finer: cut the text with left(..., 26)'", UnsupportedValueError
)

NO_ZONE = " no zone: "
"""Put before a word that is no zone, so that DuckDB refuses the text."""

_ERA = rf"(?i)^({_DATE})(.*?)\s+BC$"
_YEAR_OF_OUR_LORD = r"(?i)\s+AD$"
_SPACE = rf"({_TIME})\s+([+-]\d)"
_DIGITS = rf"({_TIME}[+-]\d\d)(\d\d)$"
_ZONE = rf"(?i)({_TIME})\s*([a-z][a-z0-9_+-]*(?:/[a-z0-9_+-]+)*)$"


def _spelled(text: str) -> str:
    """Return SQL that brings a text, as SQL, into the form that DuckDB reads; a zone by an unknown word stays, and fails."""
    sql = f"trim({text}, ' \t\n\r')"
    sql = f"regexp_replace({sql}, '{_YEAR_OF_OUR_LORD}', '')"
    sql = f"regexp_replace({sql}, '{_ERA}', '\\1 (BC)\\2')"
    sql = f"regexp_replace({sql}, '{_SPACE}', '\\1\\2')"
    sql = f"regexp_replace({sql}, '{_DIGITS}', '\\1:\\2')"
    sql = f"regexp_replace({sql}, '({_TIME}[+-])(\\d)$', '\\10\\2')"  # RE2 has groups of one digit: 1, then 0
    sql = f"regexp_replace({sql}, '{_NO_OFFSET}', '\\1{NO_ZONE}\\2')"
    for name, offset in _OFFSETS.items():
        sql = f"regexp_replace({sql}, '(?i)({_TIME})\\s*{name}$', '\\1{offset}')"
    sql = f"regexp_replace({sql}, '{_ZONE}', '\\1 \\2')"
    return f"regexp_replace({sql}, '(?i)({_TIME}) ([a-z0-9_+-]+)$', '\\1{NO_ZONE}\\2')"


INSTANT_MACROS = (
    "CREATE OR REPLACE TEMP MACRO windowpane_instant(t) AS "
    f"(CASE WHEN regexp_full_match(t, '{_PLAIN}') THEN t ELSE {_spelled('t')} END)",
    "CREATE OR REPLACE TEMP MACRO windowpane_micros(t) AS "
    f"(CASE WHEN length(t) > 20 AND regexp_matches(t, '{_FINER}') THEN {_TOO_FINE} ELSE windowpane_instant(t) END)",
)
"""How a text is read; the second for a timestamp without time zone, of which RisingWave keeps the nanoseconds."""


def instant_sql(text: str, kind: SqlType) -> str:
    """Return a text, as SQL, cast to a date or timestamp.

    A zone by its name is looked up for a timestamp without time zone, too, which has no other use for it.
    """
    spelled = f"windowpane_{'micros' if kind == TIMESTAMP else 'instant'}({text})"
    if kind == DATE:
        return f"CAST(CAST({spelled} AS TIMESTAMP) AS DATE)"
    return f"CAST({spelled} AS {kind.duckdb})"


def instant_literal(literal: str, text: str, kind: SqlType) -> str:
    """Return a literal, and the same as SQL, cast to a date or timestamp: unchanged where DuckDB reads it."""
    is_plain = re.fullmatch(_PLAIN, literal) is not None and (kind != TIMESTAMP or re.search(_FINER, literal) is None)
    return f"CAST({text} AS {kind.duckdb})" if is_plain else instant_sql(text, kind)
