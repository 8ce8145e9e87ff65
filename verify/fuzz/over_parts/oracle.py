"""DuckDB as the oracle of OVER windows: the SQL of a spec, evaluated on whole input.

Row order ties are broken by a position made beforehand, peers are rows of one dense rank. Where DuckDB's own windows cannot say
what is meant (peers excluded from a ROWS frame whose ties are ordered), a correlated subquery over positions does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import duckdb
import pyarrow as pa

from verify.fuzz.over_parts.inputs import Row
from windowpane.windowing.frames import Bound, Exclude, Frame, Offset, Units
from windowpane.windowing.intervals import Interval
from windowpane.windowing.over.spec import OverCall, OverSpec

_PEERS = frozenset({Exclude.GROUP, Exclude.TIES})
_RENAMED = {
    "collect_list": "list",
    "collect_set": "list",
    "first": "list",
    "last": "list",
    "any_value": "list",
    "arg_max": "arg_max_null",
    "arg_min": "arg_min_null",
    "quantile": "quantile_cont",
    "count_distinct": "count",
}
_IN_ORDER = frozenset({"list", "string_agg", "first_value", "last_value", "nth_value"})
_ELEMENT = {"first": 1, "any_value": 1, "last": -1}
"""Aggregates of arrival: the first or last of the list of values, for DuckDB's own take no FILTER."""

_OF_DOUBLES = frozenset({"median", "quantile"})
"""Aggregates that give a double here, and there what they are given."""


class Oracle:
    """Evaluates OVER windows by DuckDB on one thread."""

    def __init__(self) -> None:
        self._duckdb = duckdb.connect(config={"threads": 1})

    def rows(self, spec: OverSpec, outputs: Sequence[str], table: pa.Table) -> list[Row]:
        """Return the input rows with the values of the calls under ``outputs``.

        One query a call: DuckDB 2.0 gives varying answers where several framed calls share the sort of one SELECT.
        """
        self._duckdb.register("input", table)
        rows: list[Row] = sorted(table.to_pylist(), key=lambda row: tuple(row[name] for name in spec.key))
        for name, call in zip(outputs, spec.calls, strict=True):
            values = self._query(query(replace(spec, calls=(call,)), name))
            rows = [row | value for row, value in zip(rows, values, strict=True)]
        return rows

    def _query(self, text: str) -> list[Row]:
        result: pa.Table = self._duckdb.sql(text).to_arrow_table()
        rows: list[Row] = result.to_pylist()
        return rows


def query(spec: OverSpec, output: str) -> str:
    """Return the SQL of a window of one call over the table ``input``: its values under ``output``, by key."""
    [call] = spec.calls
    order, keys = ", ".join(_order(spec)), [f"{name} ASC NULLS LAST" for name in spec.key]
    place = f"row_number() OVER ({_partition(spec)} ORDER BY {', '.join([*_order(spec), *keys])})"
    group = f"dense_rank() OVER ({_partition(spec)} ORDER BY {order})" if order else "1"
    numbered = f"SELECT *, {place} AS pos, {group} AS grp FROM input"
    start = _session_start(call.frame, spec) if call.frame is not None and call.frame.gap is not None else "0"
    started = f"SELECT *, {start} AS starts FROM numbered"
    base = f"SELECT *, sum(starts) OVER ({_partition(spec)} ORDER BY pos) AS session FROM started"
    ctes = f"WITH numbered AS ({numbered}), started AS ({started}), base AS ({base})"
    return f"{ctes} SELECT {_call(call, spec)} AS {output} FROM base AS i ORDER BY {', '.join(spec.key)}"


def _partition(spec: OverSpec, alias: str = "") -> str:
    return f"PARTITION BY {', '.join(alias + name for name in spec.partition_by)}" if spec.partition_by else ""


def _order(spec: OverSpec) -> list[str]:
    return [str(column) for column in spec.order_by]


# --- calls ---------------------------------------------------------------------------------------------


def _call(call: OverCall, spec: OverSpec) -> str:
    name = call.function
    if name in ("row_number", "ntile"):
        return f"{name}({call.offset if name == 'ntile' else ''}) OVER ({_partition(spec)} ORDER BY pos)"
    if call.is_numbering:
        return f"{name}() OVER ({_partition(spec)} ORDER BY grp)"
    if call.frame is None:
        nulls = " IGNORE NULLS" if call.ignore_nulls else ""
        text = f"{name}({call.arguments[0]}, {call.offset}, {_literal(call.default)}{nulls})"
        return f"{text} OVER ({_partition(spec)} ORDER BY pos)"
    return _framed(call, call.frame, spec)


def _framed(call: OverCall, frame: Frame, spec: OverSpec) -> str:
    if frame.units is Units.ROWS and frame.exclude in _PEERS:
        return _finished(call, _subquery(call, frame, spec))
    if frame.units is Units.SESSION:
        partition = ", ".join([*spec.partition_by, "session"])
        window = f"PARTITION BY {partition} ORDER BY grp ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
        return _finished(call, f"{_function(call)} OVER ({window} EXCLUDE {frame.exclude.value})")
    return _finished(call, f"{_function(call)} OVER ({_partition(spec)} {_window(frame, spec)} EXCLUDE {frame.exclude.value})")


def _window(frame: Frame, spec: OverSpec) -> str:
    order = "pos" if frame.units is Units.ROWS else ", ".join(_order(spec)) if frame.has_range_offset else "grp"
    return f"ORDER BY {order} {frame.units.value} BETWEEN {_bound(frame.start)} AND {_bound(frame.end)}"


def _bound(bound: Bound) -> str:
    side = bound.side.name.replace("_", " ")
    return side if bound.offset is None else f"{_offset(bound.offset)} {side}"


def _offset(offset: Offset) -> str:
    if isinstance(offset, Interval):
        return f"INTERVAL '{offset.months} months {offset.days} days {offset.micros} microseconds'"
    return str(offset)


def _function(call: OverCall, alias: str = "") -> str:
    """The function with its arguments; those whose result depends on the order of rows say that order."""
    name = _RENAMED.get(call.function, call.function)
    cast = "::DOUBLE" if call.function in _OF_DOUBLES else ""
    arguments = [alias + column + cast for column in call.arguments] or ["*"]
    parameters = dict(call.parameters)
    extra = {"quantile_cont": "q", "string_agg": "separator"}.get(name)
    arguments += [] if extra is None else [_literal(parameters[extra])]
    arguments += [str(call.offset)] if name == "nth_value" else []
    distinct = "DISTINCT " if call.distinct or call.function in ("count_distinct", "collect_set") else ""
    in_order = f" ORDER BY {alias}pos" if name in _IN_ORDER and not distinct else ""
    nulls = " IGNORE NULLS" if call.ignore_nulls else ""
    return f"{name}({distinct}{', '.join(arguments)}{in_order}{nulls}){_filter(call, alias)}"


def _filter(call: OverCall, alias: str) -> str:
    conditions = [] if call.filter is None else [alias + call.filter]
    conditions += [f"{alias}{call.arguments[0]} IS NOT NULL"] if _skips_nulls(call) else []
    return f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""


def _skips_nulls(call: OverCall) -> bool:
    """Whether the aggregate here passes over NULLs where DuckDB's does not."""
    return call.function in ("collect_list", "collect_set") or bool(dict(call.parameters).get("ignore_nulls"))


def _finished(call: OverCall, text: str) -> str:
    """The aggregate as it is here: of no values an empty list, of decimals an average with four more places."""
    if call.function == "avg" and call.arguments == ("d",):
        return f"({text})::DECIMAL(14, 6)"
    if call.function in _ELEMENT:
        return f"({text})[{_ELEMENT[call.function]}]"
    return f"coalesce({text}, [])" if call.function in ("collect_list", "collect_set") else text


# --- what windows of DuckDB cannot say -----------------------------------------------------------------


def _subquery(call: OverCall, frame: Frame, spec: OverSpec) -> str:
    same = [f"j.{name} IS NOT DISTINCT FROM i.{name}" for name in spec.partition_by]
    bounds = [("j.pos >=", frame.start), ("j.pos <=", frame.end)]
    same += [f"{sign} i.pos + {bound.steps}" for sign, bound in bounds if not bound.is_unbounded]
    same.append("j.grp <> i.grp" if frame.exclude is Exclude.GROUP else "(j.grp <> i.grp OR j.pos = i.pos)")
    conditions = " AND ".join(same)
    if call.is_aggregate:
        return f"(SELECT {_function(call, 'j.')} FROM base AS j WHERE {conditions})"
    column, number = f"j.{call.arguments[0]}", {"first_value": 1, "last_value": -1}.get(call.function, call.offset)
    nulls = f" FILTER (WHERE {column} IS NOT NULL)" if call.ignore_nulls else ""
    return f"(SELECT list({column} ORDER BY j.pos){nulls}[{number}] FROM base AS j WHERE {conditions})"


def _session_start(frame: Frame, spec: OverSpec) -> str:
    """Whether a row starts a session, as 0 or 1."""
    assert frame.gap is not None, "the frame is a session"
    name, descending = spec.order_by[0].name, spec.order_by[0].descending
    previous = f"lag({name}) OVER ({_partition(spec)} ORDER BY pos)"
    seam = f"{name} <= {previous} - " if descending else f"{name} >= {previous} + "
    nulls = f"(({name} IS NULL) <> ({previous} IS NULL))"
    return f"CASE WHEN pos = 1 OR {nulls} OR coalesce({seam}{_offset(frame.gap)}, false) THEN 1 ELSE 0 END"


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
