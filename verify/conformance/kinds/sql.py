"""Kind ``sql``: statements in order on a session, queries compared with the rows they should give.

Errors are compared as such: what matters is that the statement is refused. Queries on RisingWave's own catalog and state tables
are left out. Rows are compared as PostgreSQL prints them; in order where the query has an ORDER BY, rows that tie in any order.
"""

from __future__ import annotations

import shutil
import tempfile
from typing import Any

from verify.conformance.reading.fields import Json, NotUnderstoodError
from verify.conformance.reading.vectors import Case
from verify.conformance.replay.verdicts import Difference, Options
from verify.row_order import row_key, same_but_for_ties
from windowpane.errors import WindowpaneError
from windowpane.sql import Result, Session

_INTERNAL = ("rw_catalog", "__internal", "${", "pg_catalog", "information_schema")


def replay(case: Case, options: Options, spark: Any = None) -> list[Difference]:
    """Return how the answers of a session, with Spark or without, differ from those of a case."""
    differences: list[Difference] = []
    with Replayed(spark, options.restart) as session:
        for name, value in (case.get("session") or {}).items():
            session.run(f"SET {name} = '{value}'")
        for statement in case.get("setup") or []:
            session.run(statement)
        for number, step in enumerate(case.get("steps")):
            differences += _step(session, step, f"step {number} (line {step.get('line')})")
            session.restart()
    return differences


class Replayed:
    """A session under test; ``restart`` closes it and opens another one on the same store, if restarts are chosen."""

    def __init__(self, spark: Any, restarts: bool) -> None:
        """Open a session."""
        self._spark, self._restarts = spark, restarts
        self._folder = tempfile.mkdtemp(prefix="windowpane-conformance-")
        self._store = f"{self._folder}/views.duckdb" if restarts else ":memory:"
        self._settings: list[str] = []
        self._session = Session(spark, self._store)

    def run(self, text: str) -> None:
        """Run statements."""
        self._session.run(text)
        if text.split(maxsplit=1)[0].upper() == "SET":
            self._settings.append(text)

    def query(self, text: str) -> Result:
        """Run one statement and return its outcome."""
        return self._session.query(text)

    def restart(self) -> None:
        """Go on with a session of its own, with the same settings."""
        if self._restarts:
            self._session.close()
            self._session = Session(self._spark, self._store)
            for text in self._settings:
                self._session.run(text)

    def __enter__(self) -> Replayed:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the session and remove its store."""
        self._session.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _step(session: Replayed, step: Json, where: str) -> list[Difference]:
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


def _refused(session: Replayed, text: str, where: str) -> list[Difference]:
    try:
        session.run(text)
    except WindowpaneError:
        return []
    return [Difference(where, "refused", f"accepted: {text}")]


def _compared(session: Replayed, step: Json, where: str) -> list[Difference]:
    result = session.query(step["query"])
    got, expected = result.text_rows(), step["expect"]
    if step.get("sorted") or not step.get("has_order_by"):
        got, expected = sorted(got, key=row_key), sorted(expected, key=row_key)
    elif same_but_for_ties(got, expected, result.order_keys()):
        return []
    return [] if got == expected else [Difference(where, expected, got)]
