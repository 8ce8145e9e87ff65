"""Kind ``pattern`` as SQL: the query of a vector as a MATCH_RECOGNIZE, over all rows in a SELECT, and step by step in a view.

A row carries the watermark of its step, and a row that only moves the watermark stands before those of each step. What never ends
on a stream is left to the SELECT; of the watermark MAX, a view has one far away, which ends what is bounded.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from verify.conformance.kinds.pattern import FIELDS
from verify.conformance.reading.fields import require_known
from verify.conformance.reading.patterns import pattern_tree
from verify.conformance.reading.vectors import Case
from verify.conformance.replay.verdicts import Difference, Options
from windowpane.errors import NeverClosesError, SkipTargetError, StaleViewError, UnboundedStateError
from windowpane.sql import Session
from windowpane.windowing.patterns import tree
from windowpane.windowing.patterns.tree import Pattern, first_variables

_TABLE = (
    "CREATE TABLE rows_of (id bigint, k varchar, ts bigint, t varchar, v bigint, at timestamp, reached timestamp{}) APPEND ONLY"
)
_WATERMARK = ", WATERMARK FOR at AS reached"
_OPERATORS = {"=": "=", "<>": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "-": "-", "and": "AND", "or": "OR"}
ROWS = {
    "one": "ONE ROW PER MATCH",
    "all": "ALL ROWS PER MATCH",
    "all omit empty": "ALL ROWS PER MATCH OMIT EMPTY MATCHES",
    "all unmatched": "ALL ROWS PER MATCH WITH UNMATCHED ROWS",
}
_FAR = 10**15

Results = dict[str, list[list[Any]]]


def replay(case: Case, options: Options) -> list[Difference]:
    """Run the query of a vector over all rows, and as a view over its steps; with ``restart`` the view is opened anew at each."""
    require_known(case.body, FIELDS, "pattern")
    return [*_of_all_rows(case), *_of_steps(case, options)]


def query_text(query: Mapping[str, Any], source: str) -> str:
    """Return a query of the vectors as SQL over a relation."""
    is_one = query["rows"] == "one"
    keys = [quoted(name) for name in query["partition_by"]]
    names = [f"m{number}" for number in range(len(query["measures"]))]
    shown = [*(keys if is_one else ["id"]), *names, *(["timed_out"] if query["timeouts"] else [])]
    by = f"PARTITION BY {', '.join(keys)} " if keys else ""
    order = ", ".join(["at", *map(quoted, query["order_by"][1:])])
    measures = ", ".join(
        f"{_value(value, final and not is_one)} AS {name}"
        for (_, value, final), name in zip(query["measures"], names, strict=True)
    )
    rows = ROWS[query["rows"]] + (" SHOW TIMEOUT MATCHES" if query["timeouts"] else "")
    to, *variable = query["skip"]
    skip = f"{to.upper()}{''.join(f' {quoted(name)}' for name in variable)}"
    within = "" if query["within"] is None else f" WITHIN INTERVAL '{query['within']} microseconds'"
    subsets = ", ".join(f"{quoted(name)} = ({', '.join(map(quoted, of))})" for name, of in (query["subset"] or {}).items())
    define = ", ".join(f"{quoted(name)} AS {_value(condition)}" for name, condition in query["define"].items())
    return (
        f"SELECT {', '.join(shown)} FROM {source} MATCH_RECOGNIZE ({by}ORDER BY {order}"
        f"{f' MEASURES {measures}' if measures else ''} "
        f"{rows} AFTER MATCH SKIP {skip} PATTERN ({written(pattern_tree(_with_quotes(query['pattern'])))}){within}"
        f"{f' SUBSET {subsets}' if subsets else ''}{f' DEFINE {define}' if define else ''}) AS found"
    )


def _of_all_rows(case: Case) -> Iterator[Difference]:
    late = {each for step in case.get("input") for each in step["late"]}
    rows = [row for step in case.get("input") for row in step["rows"] if row[0] not in late]
    with Session(":memory:") as session:
        session.run(_TABLE.format(""))
        _insert(session, rows, None)
        query = query_text(case.body, "rows_of")
        yield from _compared("all rows", case, case.get("steps"), lambda: _results(session, query, case))


def _of_steps(case: Case, options: Options) -> Iterator[Difference]:
    with tempfile.TemporaryDirectory() as folder:
        yield from _of_view(case, f"{folder}/state.duckdb" if options.restart else ":memory:", options.restart)


def _of_view(case: Case, store: str, restarts: bool) -> Iterator[Difference]:
    session = Session(store)
    try:
        session.run(_TABLE.format(_WATERMARK))
        source = "(SELECT * FROM rows_of WHERE id IS NOT NULL) AS given"
        try:
            session.run(f"CREATE MATERIALIZED VIEW found AS {query_text(case.body, source)} EMIT ON WINDOW CLOSE")
        except (NeverClosesError, UnboundedStateError):
            return
        answers = case.get("steps")
        for number, step in enumerate(case.get("input")):
            watermark = step["watermark"]
            if watermark == "MAX" or (watermark or 0) >= _FAR:
                if case.get("within") is None:
                    return
                watermark = _FAR
            so_far = answers[: number + 1]
            if restarts and number:
                session.close()
                session = Session(store)

            def run(step: Any = step, watermark: Any = watermark, session: Session = session) -> Results:
                if watermark is not None:
                    _insert(session, [[None, None, watermark + 1, None, None]], watermark + 1)
                _insert(session, step["rows"], None if watermark is None else watermark + 1)
                session.run("FLUSH")
                return _results(session, "SELECT * FROM found", case)

            differences = list(_compared(f"view, step {number}", case, so_far, run, answers[number:]))
            yield from differences
            if differences or any("error" in each for each in so_far):
                return
    finally:
        session.close()


def _compared(
    where: str, case: Case, answers: Sequence[Any], run: Any, later: Sequence[Any] | None = None
) -> Iterator[Difference]:
    fails = any("error" in answer for answer in answers)
    try:
        got = run()
    except (SkipTargetError, StaleViewError) as error:
        if not any("error" in answer for answer in [*answers, *(later or [])]):
            yield Difference(where, "no error", str(error))
        return
    if fails:
        yield Difference(where, "an error", "none")
        return
    for name in ("match", "timeout"):
        wanted = [row for answer in answers for row in answer.get(name, [])]
        if Counter(map(repr, got[name])) != Counter(map(repr, wanted)):
            yield Difference(f"{where}: {name}", wanted, got[name])


def _results(session: Session, query: str, case: Case) -> Results:
    found: Results = {"match": [], "timeout": []}
    is_whole = not case.get("partition_by") and case.get("rows") == "one"
    for row in session.query(query).rows():
        values, name = list(row), "match"
        if case.get("timeouts"):
            name = "timeout" if values.pop() else "match"
        values = [int(value) if hasattr(value, "as_tuple") else value for value in values]
        found[name].append([None, *values] if is_whole else values)
    return found


def _insert(session: Session, rows: Sequence[Sequence[Any]], reached: int | None) -> None:
    if rows:
        at = "NULL" if reached is None else _instant(reached)
        written = (f"({', '.join(map(constant, row))}, {_instant(row[2])}, {at})" for row in rows)
        session.run(f"INSERT INTO rows_of VALUES {', '.join(written)}")


def _instant(micros: int) -> str:
    return f"(TIMESTAMP '1970-01-01 00:00:00' + {micros} * INTERVAL '1 microsecond')"


def constant(value: object) -> str:
    """Return a value as a literal of SQL."""
    return "NULL" if value is None else "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def quoted(name: str) -> str:
    """Return a name that SQL takes as it is written."""
    return f'"{name}"'


def _with_quotes(node: Any) -> Any:
    """Return the tree of a pattern with its names as SQL keeps them."""
    if isinstance(node, list) and node and node[0] in ("var", "pass", "absent"):
        return [node[0], *map(quoted, node[1:])]
    return [_with_quotes(part) for part in node] if isinstance(node, list) else node


def written(pattern: Pattern) -> str:
    """Return a pattern as text; what is passed over and no beginning of what follows is written with ``!``."""
    if not isinstance(pattern, tree.Sequence):
        return str(pattern)
    parts = list(pattern.parts)
    for number, part in enumerate(parts[:-1]):
        if isinstance(part, tree.Passing):
            first, _ = first_variables(parts[number + 1])
            parts[number] = tree.Passing(part.until, tuple(name for name in part.until if name not in first))
    return str(tree.Sequence(tuple(parts)))


def _value(node: list[Any], is_final: bool = False) -> str:
    final = "FINAL " if is_final else ""
    match node:
        case ["const", value]:
            return constant(value)
        case ["col", variable, column]:
            return f"{final}LAST({_column(variable, column)})" if is_final else _column(variable, column)
        case ["first" | "last" as end, variable, column, offset]:
            return f"{final}{end.upper()}({_column(variable, column)}{f', {offset}' if offset else ''})"
        case ["prev" | "next" as way, inner, rows]:
            return f"{way.upper()}({_value(inner)}, {rows})"
        case ["agg", name, variable, column]:
            return f"{final}{name.upper()}({_column(variable, column)})"
        case ["classifier", variable]:
            return f"{final}CLASSIFIER({'' if variable is None else quoted(variable)})"
        case ["match_number"]:
            return "MATCH_NUMBER()"
        case ["not", value]:
            return f"(NOT {_value(value, is_final)})"
        case ["is_null", value]:
            return f"({_value(value, is_final)} IS NULL)"
        case ["is_not_true", value]:
            return f"(({_value(value, is_final)}) IS NOT TRUE)"
        case [operator, left, right]:
            return f"({_value(left, is_final)} {_OPERATORS[operator]} {_value(right, is_final)})"
    raise ValueError(f"no expression: {node}")


def _column(variable: str | None, column: str) -> str:
    return quoted(column) if variable is None else f"{quoted(variable)}.{quoted(column)}"
