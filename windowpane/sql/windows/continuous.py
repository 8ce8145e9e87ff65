"""INSERT INTO ... SELECT runs once. In Flink it is continuous, so where a stream is read or a sink written, it is refused.

A stream is a source, a table with a connector or with a watermark, or a plain view over one; a window table function with a
DESCRIPTOR is Flink's, too. Over other tables and materialized views the statement copies rows once, as in PostgreSQL.
"""

from __future__ import annotations

from sqlglot import exp

from windowpane.errors import UnsupportedSqlError
from windowpane.sql.catalog.entries import Catalog, SinkInfo, TableInfo
from windowpane.sql.catalog.questions import tables_in
from windowpane.sql.catalog.relations import PlainView
from windowpane.sql.parse.statements import Insert

_INSTEAD = (
    "INSERT runs once, on the rows there are now. For a continuous job, write CREATE MATERIALIZED VIEW name AS SELECT ..., or "
    "CREATE SINK name AS SELECT ... WITH (connector = ...)."
)


def refuse_pipeline(statement: Insert, catalog: Catalog) -> None:
    """Refuse an INSERT that is a continuous job in Flink.

    Raises:
        UnsupportedSqlError: it writes into a sink, or its query reads a stream; with the statements that are continuous.
    """
    what = _why_continuous(statement, catalog)
    if what is not None:
        place = statement.place
        raise place.error(UnsupportedSqlError, f"INSERT INTO {statement.table!r}, {what}, is not supported. {_INSTEAD}")


def _why_continuous(statement: Insert, catalog: Catalog) -> str | None:
    target = catalog.entries.get(statement.table)
    if isinstance(target, SinkInfo):
        return "which is a sink"
    if not statement.query.find(exp.Select):
        return None
    if isinstance(target, TableInfo) and target.options:
        return "which has a connector, from a SELECT"
    stream = _stream_in(statement.query, catalog)
    return None if stream is None else f"from a SELECT over {stream}"


def _stream_in(query: exp.Expr, catalog: Catalog) -> str | None:
    """Return the first stream that a query reads, in words."""
    if any(str(call.this).upper() == "DESCRIPTOR" for call in query.find_all(exp.Anonymous)):
        return "windows of Flink's"
    for name in sorted(tables_in(query)):
        entry = catalog.entries.get(name)
        if isinstance(entry, PlainView):
            found = _stream_in(entry.query, catalog)
            if found is not None:
                return found
        elif isinstance(entry, TableInfo) and (entry.options or entry.watermark or entry.relation.kind == "source"):
            return f"the stream {name!r}"
    return None
