"""The entries of a catalog: tables, plain views, materialized views and sinks, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from windowpane.errors import MistakeError, present
from windowpane.sql.bind.late_rows import STAMP
from windowpane.sql.catalog.relations import PlainView, Relation
from windowpane.sql.dml.conflicts import OVERWRITE, OnConflict
from windowpane.sql.embedded.storage import as_part
from windowpane.sql.expressions.expr import Expr, quoted
from windowpane.sql.expressions.types import SqlType, is_float, is_instant
from windowpane.sql.nodes import Node
from windowpane.sql.streaming.job import Job
from windowpane.sql.values.intervals import length
from windowpane.windowing.intervals import Interval

ROW_ID = "_row_id"
"""The hidden key of a table that declares none."""


_OF_SINK = "query of sink "


def query_of_sink(sink: str) -> str:
    """Return the name of the view behind a sink that has a query of its own."""
    return _OF_SINK + sink


def sink_of_query(view: str) -> str | None:
    """Return the sink that a view belongs to, ``None`` for a view that users made."""
    return view.removeprefix(_OF_SINK) if view.startswith(_OF_SINK) else None


_BESIDE = "replacement of "


def beside(view: str) -> str:
    """Return the name of the view that is built beside another one, to take its place."""
    return _BESIDE + view


def replaced_by(view: str) -> str | None:
    """Return the view whose place another one will take, ``None`` for all others."""
    return view.removeprefix(_BESIDE) if view.startswith(_BESIDE) else None


def shown_name(view: str) -> str:
    """Return what to call a view in messages: one behind a sink by the sink, a new one by the view whose place it takes."""
    view = replaced_by(view) or view
    sink = sink_of_query(view)
    return view if sink is None else f"sink {sink}"


@dataclass(frozen=True)
class TableWatermark:
    """The watermark of a table: the column it is about, and the expression that makes it from the stored columns of a row."""

    column: str
    type: SqlType
    value: Expr

    @property
    def reached(self) -> str:
        """The watermark that rows make, as SQL over them."""
        return self._latest(self.value.sql)

    @property
    def latest(self) -> str:
        """The latest value of its column, as SQL over rows."""
        return self._latest(quoted(self.column))

    def _latest(self, sql: str) -> str:
        """Return the largest of values, as SQL: a row at infinity makes no other one late."""
        has_infinity = is_instant(self.type) or is_float(self.type)
        return f"max({sql})" + f" FILTER (WHERE isfinite({sql}))" * has_infinity

    @property
    def delay(self) -> int | None:
        """Microseconds that it stays behind the column, ``None`` where it is made in another way."""
        if self.value.is_column:
            return 0
        behind = self.value.parts[1].value if self.value.operator == "-" and self.value.parts[0].is_column else None
        return None if not isinstance(behind, Interval) or behind.days < 0 or behind.micros < 0 else length(behind)


@dataclass(frozen=True)
class TableInfo:
    """A table or source.

    Args:
        defaults: values of columns that INSERT leaves out.
        generated: expressions over the other columns, by stored name.
        conflict: what happens to a row whose key the table has.
    """

    relation: Relation
    defaults: Mapping[str, Expr] = field(default_factory=dict)
    generated: Mapping[str, Expr] = field(default_factory=dict)
    watermark: TableWatermark | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    conflict: OnConflict = OVERWRITE

    @property
    def pending(self) -> str:
        """The table of changes that wait for the next flush."""
        return f"windowpane_state.{quoted('pending/' + as_part(self.relation.name))}"

    @property
    def has_row_id(self) -> bool:
        """Whether its rows are identified by a hidden number."""
        return self.relation.key == (ROW_ID,)

    @property
    def reads_clock(self) -> bool:
        return any(value.reads_clock for value in self.generated.values())

    @property
    def generated_sql(self) -> str:
        return ", ".join(f"{value.sql} AS {quoted(name)}" for name, value in self.generated.items())

    @property
    def keeps_late_rows(self) -> bool:
        """Whether rows below its watermark are kept, for queries to judge."""
        return STAMP in self.relation.types

    def on_time(self, rows: str, limit: str | None) -> str:
        """Return the rows of a chunk that are taken, as SQL; where late ones are, with the watermark before the chunk.

        Args:
            rows: the chunk, a relation.
            limit: the watermark before it, as SQL; ``None`` while there is none.
        """
        if self.keeps_late_rows:
            return f"(SELECT *, CAST({limit or 'NULL'} AS {self.relation.types[STAMP]}) AS {quoted(STAMP)} FROM {rows})"
        if self.watermark is None or limit is None:
            return rows
        return f"(SELECT * FROM {rows} WHERE {quoted(self.watermark.column)} >= {limit})"

    def late(self, limit: str | None) -> str:
        """Return the number of late rows of a chunk, as SQL over its rows; arguments are those of ``on_time``."""
        if self.watermark is None or limit is None:
            return "0"
        return f"count(*) - count(*) FILTER (WHERE {quoted(self.watermark.column)} >= {limit})"


@dataclass(frozen=True)
class ViewInfo:
    """A materialized view.

    Args:
        relation: how queries see it.
        ids: how its stored columns are named in the plan.
        reads: the stored relations whose changes it takes.
        names: the names in its query, plain views among them.
        strict: whether an expression that fails is an error of it; otherwise it is NULL.
        job: its operators, where they run in the session.
    """

    relation: Relation
    node: Node
    ids: Mapping[str, str]
    text: str
    reads: frozenset[str]
    names: frozenset[str] = frozenset()
    strict: bool = False
    job: Job | None = None

    @property
    def operators(self) -> Job:
        return present(self.job, "the session runs its views")


@dataclass(frozen=True)
class SinkInfo:
    name: str
    source: str
    options: Mapping[str, str]
    text: str
    malformed_of: str = ""
    """The source whose malformed rows it has, where it has such."""


@dataclass(frozen=True)
class IndexInfo:
    """An index: a name on columns of a relation, of no effect on how queries run."""

    name: str
    relation: str
    columns: tuple[str, ...]
    text: str


Entry = TableInfo | ViewInfo | PlainView | SinkInfo | IndexInfo


def read_by(entry: Entry) -> frozenset[str]:
    """Return the names that an entry reads; of a view plain views among them."""
    if isinstance(entry, ViewInfo):
        return entry.reads | entry.names
    if isinstance(entry, SinkInfo):
        return frozenset({entry.source, entry.malformed_of} - {""})
    if isinstance(entry, PlainView):
        return entry.reads
    return frozenset() if isinstance(entry, TableInfo) else frozenset([entry.relation])


class Catalog:
    """The entries of a session, in the order they were created."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.instead: dict[str, Relation] = {}
        """What names mean to queries while views are planned that take the place of others."""

    def find(self, name: str) -> Relation | PlainView | None:
        if name in self.instead:
            return self.instead[name]
        entry = self.entries.get(name)
        if isinstance(entry, TableInfo | ViewInfo):
            return entry.relation
        return entry if isinstance(entry, PlainView) else None

    def relation(self, name: str) -> Relation:
        entry = self.entries[name]
        if not isinstance(entry, TableInfo | ViewInfo):
            raise MistakeError("the name is that of a table or view")
        return entry.relation

    def view(self, name: str) -> ViewInfo:
        entry = self.entries[name]
        if not isinstance(entry, ViewInfo):
            raise MistakeError("the name is that of a materialized view")
        return entry

    def names(self) -> list[str]:
        found = [name for name, entry in self.entries.items() if not isinstance(entry, SinkInfo | IndexInfo)]
        return [name for name in found if sink_of_query(name) is None and replaced_by(name) is None]

    def tables(self) -> list[TableInfo]:
        return [entry for entry in self.entries.values() if isinstance(entry, TableInfo)]

    def views(self) -> list[ViewInfo]:
        """Return materialized views; each follows those it reads."""
        return [entry for entry in self.entries.values() if isinstance(entry, ViewInfo)]

    def sinks(self) -> list[SinkInfo]:
        return [entry for entry in self.entries.values() if isinstance(entry, SinkInfo)]

    def indexes(self, relation: str) -> list[IndexInfo]:
        return [entry for entry in self.entries.values() if isinstance(entry, IndexInfo) and entry.relation == relation]

    def kind(self, name: str) -> str | None:
        entry = self.entries.get(name)
        if isinstance(entry, TableInfo):
            return entry.relation.kind
        if isinstance(entry, ViewInfo):
            return "materialized view"
        if isinstance(entry, IndexInfo):
            return "index"
        return None if entry is None else "view" if isinstance(entry, PlainView) else "sink"
