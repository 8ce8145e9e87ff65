"""Random row patterns as SQL: the program of kind ``patterns`` as a MATCH_RECOGNIZE over all of its rows.

What SQL has no words for is left out: measures of variables that are not in the pattern; and the whole query, where a condition
is such, or computes with numbers, whose types are others there.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

from verify.conformance.kinds.pattern_in_sql import ROWS, constant, quoted, written
from windowpane.engines.patterns.program import TIMEOUTS, PatternProgram
from windowpane.engines.program import MAIN
from windowpane.errors import PatternError, SkipTargetError
from windowpane.sql import Session
from windowpane.windowing.expressions import Constant, Expression, Operation
from windowpane.windowing.patterns.text import parse_pattern
from windowpane.windowing.patterns.tree import looked_for, variables
from windowpane.windowing.patterns.values import Aggregated, Classifier, MatchNumber, MatchTime, Moved, Picked

_SIGNS = {"&": "AND", "|": "OR", "==": "=", "!=": "<>", "is distinct from": "IS DISTINCT FROM"}
_SIGNS |= {sign: sign for sign in ("<", "<=", ">", ">=")}
_EPOCH = dt.datetime(1970, 1, 1)

Found = tuple[int, tuple[Any, ...]]
"""The number of an output, and the values of a row."""


class UnsaidError(Exception):
    """SQL has no words for it."""


class Query(NamedTuple):
    """A query over the table ``drawn``, the numbers of the measures that it has, and whether its last column marks timeouts."""

    text: str
    measures: Sequence[int]
    has_timeouts: bool


def differences(program: PatternProgram, rows: Sequence[tuple[Any, ...]], expected: Sequence[Found]) -> Iterator[str]:
    """Yield how the query over some rows (key, at, kind, value) differs from what the matcher gives for them."""
    try:
        query = query_of(program)
        found = _results(query, rows)
    except (UnsaidError, SkipTargetError):
        return
    given = len(program.keys if program.spec.rows == "one" else program.passed)
    places = [*range(given), *(given + number for number in query.measures)]
    wanted = [(number, tuple(row[place] for place in places)) for number, row in expected if query.has_timeouts or number == MAIN]
    if Counter(found) != Counter(wanted):
        yield f"{query.text}: the matcher {sorted(wanted, key=repr)}, SQL {sorted(found, key=repr)}"


def query_of(program: PatternProgram) -> Query:
    """Return a program as a query.

    Raises:
        UnsaidError: SQL has no words for it.
    """
    spec, pattern = program.spec, written(program.spec.pattern)
    named = frozenset((*variables(spec.pattern), *looked_for(spec.pattern)))
    subsets = {name: of & named for name, of in spec.subsets.items() if of & named}
    names, to = named | subsets.keys(), spec.after_match
    try:
        is_said = parse_pattern(pattern) == spec.pattern and (to.variable is None or to.variable in names)
    except PatternError:
        is_said = False
    if not is_said:
        raise UnsaidError
    has_timeouts, is_one = spec.has_timeouts and spec.rows == "one", spec.rows == "one"
    define = ", ".join(f"{name} AS {_value(of, names)}" for name, of in spec.conditions.items() if name in named)
    measures = {}
    for number, measure in enumerate(spec.measures):
        if _is_of(measure.value, names):
            measures[number] = f"{_value(measure.value, names, measure.is_final and not is_one)} AS {measure.name}"
    if not measures:
        raise UnsaidError
    keys = ", ".join(map(quoted, program.keys))
    order = [
        f"{each.name}{' DESC' if each.descending else ''} NULLS {'FIRST' if each.nulls_first else 'LAST'}"
        for each in program.order_by
    ]
    shown = [*map(quoted, program.keys if is_one else program.passed), *(spec.measures[number].name for number in measures)]
    within = "" if spec.within is None else f" WITHIN INTERVAL '{spec.within} microseconds'"
    of = "".join(f" SUBSET {name} = ({', '.join(sorted(of))})" for name, of in subsets.items())
    text = (
        f"SELECT {', '.join([*shown, *(['timed_out'] if has_timeouts else [])])} FROM drawn MATCH_RECOGNIZE ("
        f"{f'PARTITION BY {keys} ' if keys else ''}ORDER BY {', '.join(['at', *order, 'id'])} "
        f"MEASURES {', '.join(measures.values())} {ROWS[spec.rows]}{' SHOW TIMEOUT MATCHES' if has_timeouts else ''} "
        f"AFTER MATCH SKIP {to.to.upper()} {to.variable or ''} PATTERN ({pattern})"
        f"{within}{of}{f' DEFINE {define}' if define else ''})"
    )
    return Query(text, list(measures), has_timeouts)


@cache
def _session() -> Session:
    session = Session(":memory:")
    session.run(
        'CREATE TABLE drawn (id int, "key" text, at timestamp, kind text, "value" bigint, rate double precision AS '
        'CASE WHEN "value" = 3 THEN \'NaN\'::double precision ELSE "value" END)'
    )
    return session


def _results(query: Query, rows: Sequence[tuple[Any, ...]]) -> list[Found]:
    session = _session()
    session.run("DELETE FROM drawn")
    instant = "TIMESTAMP '1970-01-01' + {} * INTERVAL '1 microsecond'"
    values = [
        f"({number}, {constant(key)}, {instant.format(at)}, {constant(kind)}, {constant(value)})"
        for number, (key, at, kind, value) in enumerate(rows)
    ]
    if values:
        session.run(f'INSERT INTO drawn (id, "key", at, kind, "value") VALUES {", ".join(values)}')
    session.run("FLUSH")
    found = []
    for row in session.query(query.text).rows():
        *cells, is_timeout = row if query.has_timeouts else (*row, False)
        found.append((TIMEOUTS if is_timeout else MAIN, tuple(map(_plain, cells))))
    return found


def _plain(cell: Any) -> Any:
    """Return a cell as the matcher has it: instants are microseconds, and sums of whole numbers such."""
    if isinstance(cell, dt.datetime):
        return (cell - _EPOCH) // dt.timedelta(microseconds=1)
    return int(cell) if isinstance(cell, Decimal) else cell


def _is_of(value: Expression, names: Collection[str]) -> bool:
    of = value.of if isinstance(value, Moved) else value
    variable = of.variable if isinstance(of, Picked | Aggregated | Classifier) else None
    return variable is None or variable in names


def _value(value: Expression, names: Collection[str], is_final: bool = False) -> str:
    if not _is_of(value, names):
        raise UnsaidError
    final = "FINAL " if is_final else ""
    match value:
        case Constant(each) if each is None or isinstance(each, str | int):
            return constant(each)
        case Operation("is not null", (operand,)):
            return f"({_value(operand, names)} IS NOT NULL)"
        case Operation(sign, (left, right)) if sign in _SIGNS:
            return f"({_value(left, names)} {_SIGNS[sign]} {_value(right, names)})"
        case Picked(end, variable, column, offset):
            return f"{final}{end.upper()}({_column(variable, column)}, {offset})"
        case Moved(of, rows):
            return f"{final}{'PREV' if rows < 0 else 'NEXT'}({_value(of, names)}, {abs(rows)})"
        case Aggregated(variable, columns, _, name):
            counted = _column(variable, columns[0]) if columns else "*" if variable is None else f"{variable}.id"
            return f"{final}{name.upper()}({counted})"
        case Classifier(variable):
            return f"upper({final}CLASSIFIER({variable or ''}))"
        case MatchNumber():
            return "MATCH_NUMBER()"
        case MatchTime():
            return "MATCH_ROWTIME()"
    raise UnsaidError


def _column(variable: str | None, column: str) -> str:
    return quoted(column) if variable is None else f"{variable}.{quoted(column)}"
