"""Whole scripts: what they would do."""

from __future__ import annotations

from collections.abc import Iterator

from windowpane.sql.parse.positions import Text
from windowpane.sql.parse.reader import read_statement, split
from windowpane.sql.parse.statements import CreateTable, CreateView, Explain, Query
from windowpane.sql.session import Session


def explain_script(session: Session, text: str) -> Iterator[str]:
    """Yield how the views and queries of a script would run; relations are made in ``session``, rows are not.

    Raises:
        SqlError: a statement is refused.
    """
    for cursor in split(text):
        statement = read_statement(cursor)
        if isinstance(statement, CreateView | Query):
            yield statement.text.strip()
            yield from (f"  {row[0]}" for row in session.execute(Explain(statement.place, text, statement), Text(text)).rows())
            yield ""
        if isinstance(statement, CreateTable | CreateView):
            session.execute(statement, Text(text))
