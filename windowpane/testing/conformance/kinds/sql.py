"""Kind ``sql``: statements in order on an embedded session, queries compared with the rows they should give.

Errors are compared as such: what matters is that the statement is refused. Queries on RisingWave's own catalog and state tables
are left out. Rows are compared as PostgreSQL prints them; in order where the query has an ORDER BY, rows that tie in any order.
"""

from __future__ import annotations

from typing import Any

from windowpane.errors import WindowpaneError
from windowpane.sql import Session
from windowpane.testing.conformance.fields import Json, NotUnderstoodError
from windowpane.testing.conformance.vectors import Case
from windowpane.testing.conformance.verdicts import Difference, Options

_INTERNAL = ("rw_catalog", "__internal", "${", "pg_catalog", "information_schema")


def replay(case: Case, options: Options) -> list[Difference]:
    """Return how a session's answers differ from those of a case."""
    differences: list[Difference] = []
    with Session(":memory:") as session:
        for name, value in (case.get("session") or {}).items():
            session.run(f"SET {name} = '{value}'")
        for statement in case.get("setup") or []:
            session.run(statement)
        for number, step in enumerate(case.get("steps")):
            differences += _step(session, step, f"step {number} (line {step.get('line')})")
    return differences


def _step(session: Session, step: Json, where: str) -> list[Difference]:
    text = step.get("sql") or step.get("query") or ""
    if "let" in step or step.get("internal") or any(mark in text for mark in _INTERNAL):
        if "expect_error" in step or "sql" in step:
            raise NotUnderstoodError("reads RisingWave's own catalog")
        return []
    if step.get("flush"):
        session.run("FLUSH")
        return []
    if "expect_error" in step:
        return _refused(session, text, where)
    if "query" in step:
        return _compared(session, step, where)
    if "sql" not in step:
        raise NotUnderstoodError(f"step {sorted(step)} is not understood")
    session.run(text)
    return []


def _refused(session: Session, text: str, where: str) -> list[Difference]:
    try:
        session.run(text)
    except WindowpaneError:
        return []
    return [Difference(where, "refused", f"accepted: {text}")]


def _compared(session: Session, step: Json, where: str) -> list[Difference]:
    result = session.query(step["query"])
    got, expected = result.text_rows(), step["expect"]
    if step.get("sorted") or not step.get("has_order_by"):
        got, expected = sorted(got, key=_key), sorted(expected, key=_key)
    elif _same_but_for_ties(got, expected, result.order_keys()):
        return []
    return [] if got == expected else [Difference(where, expected, got)]


def _key(row: list[Any]) -> list[tuple[bool, str]]:
    return [(cell is None, str(cell)) for cell in row]


def _same_but_for_ties(got: list[Any], expected: list[Any], keys: list[Any]) -> bool:
    """Whether the rows are the same, those with equal keys in any order."""
    if len(got) != len(expected):
        return False
    start = 0
    for index in range(1, len(got) + 1):
        if index == len(got) or keys[index] != keys[start]:
            if sorted(got[start:index], key=_key) != sorted(expected[start:index], key=_key):
                return False
            start = index
    return True
