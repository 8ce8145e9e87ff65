"""What the operator of a node keeps, as JSON beside its state: for people who look at it, where there is no plan and no session.

A table of state, in a store or in pages, says its columns, its key, and the condition on its rows that a watermark makes true:
that by which ``freeing`` and the operators remove them. Nodes that an engine runs say the program, as the headers of engines do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from windowpane.errors import present
from windowpane.planning.description.programs import of_over, of_patterns
from windowpane.sql.bind.scope import Column
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.nodes import (
    Aggregate,
    ClockStamp,
    CloseSort,
    Fold,
    Join,
    Match,
    Node,
    Over,
    Project,
    Scan,
    SessionWindows,
    TemporalFilter,
    Watermark,
    every_node,
)
from windowpane.sql.streaming.distinct_values import VALUES
from windowpane.sql.streaming.folding import ROWS
from windowpane.sql.streaming.freeing import WITNESSES, ended
from windowpane.sql.streaming.matching import pattern_program
from windowpane.sql.streaming.operators import keys_of
from windowpane.sql.streaming.over import closing_program, over_program
from windowpane.sql.streaming.physical import ALONE, CONSTANT, FOLDED, FOLDED_WITH_ROWS, KEYED, STAMPED, TOP, Physical, physical
from windowpane.sql.streaming.temporal import settled_where

REACHED = "{reached}"
"""Stands in a condition for the watermark of the relations, or for the clock, in microseconds."""

_INSTANTS = {"timestamp": "TIMESTAMP", "timestamptz": "TIMESTAMPTZ", "date": "DATE"}


@dataclass(frozen=True)
class KeptColumn:
    """A column of state: its name there, the one that people know, and its DuckDB type."""

    id: str
    name: str
    type: str


@dataclass(frozen=True)
class KeptTable:
    """A table of state.

    Args:
        name: what its name in a store ends with.
        holds: what its rows are, for people.
        key: the columns by which rows are kept, by their names in state.
        columns: its columns.
        time: the column with the event time, ``None`` where there is none.
        ended: what holds of a row once ``REACHED`` has made it useless, as SQL; empty where nothing does, ``None`` where it
            follows no instant.
        by: what reaches it.
        until: what else ends a row, in words; empty for nothing.
        rows: the rows with what ``ended`` asks of them, as SQL over ``{rows}``.
        added: the columns that this adds to them.
        partners: what a row that is useless by ``ended`` may still wait for, in words; empty for nothing.
    """

    name: str
    holds: str
    key: tuple[str, ...]
    columns: tuple[KeptColumn, ...]
    time: str | None = None
    ended: str | None = ""
    by: str = "the watermark"
    until: str = ""
    rows: str = "{rows}"
    added: tuple[KeptColumn, ...] = ()
    partners: str = ""

    @property
    def pages(self) -> str:
        """What its pages on Spark are named by: the number of the input, or behind these that of an argument's values."""
        if self.name.startswith(VALUES):
            return str(1 + int(self.name.removeprefix(VALUES)))
        return self.name if self.name.isdecimal() else "0"

    @classmethod
    def of(cls, parts: Mapping[str, Any]) -> KeptTable:
        """Return it as JSON has it."""
        columns, added = (tuple(KeptColumn(**each) for each in parts[name]) for name in ("columns", "added"))
        return cls(**{**parts, "key": tuple(parts["key"]), "columns": columns, "added": added})


def kept_by(node: Node, storage: Storage, *, paged: bool = False) -> dict[str, Any]:
    """Return what the operator of a node keeps, as JSON has it; nothing where it keeps nothing.

    Args:
        node: the node.
        storage: where types are looked up.
        paged: whether its state is in pages, as on Spark.
    """
    how = physical(node, storage, paged=paged)
    said = {"node": node.label, "detail": node.detail, "follows": sorted(_base_watermarks(node))}
    if isinstance(node, Match):
        pattern = pattern_program(node, storage)
        return {**said, "program": of_patterns(pattern, pattern.spec.conditions), "names": _names(node.input)}
    found = over_program(node, storage) if isinstance(node, Over) and not node.closes else None
    if isinstance(node, Over) and (node.closes or found is not None):
        program = closing_program(node, storage) if node.closes else present(found, "it is there, or the node closes")
        return {**said, "program": of_over(program), "names": _names(node)}
    tables = [asdict(each) for each in _tables(node, how, whole=not paged)]
    return {**said, "tables": tables} if tables else {}


def _tables(node: Node, how: Physical, *, whole: bool) -> Iterator[KeptTable]:
    if how in (ALONE, CONSTANT) or not how.state:
        return
    if isinstance(node, Aggregate) and how in (FOLDED, FOLDED_WITH_ROWS):
        yield from _groups(node)
        if how is FOLDED_WITH_ROWS:
            yield from _inputs(node, how, whole)
    elif isinstance(node, ClockStamp):
        stamp = node.columns[-1]
        columns = (*_columns([node.input.column(name) for name in node.input.key]), *_columns([stamp]))
        yield KeptTable("0", how.state, node.input.key, columns, stamp.id, until=STAMPED.until)
    else:
        yield from _inputs(node, how, whole)
        if how is TOP:
            (rows,) = _inputs(node, how, whole)
            yield replace(rows, name="top", holds="the top of each partition")


def _inputs(node: Node, how: Physical, whole: bool) -> Iterator[KeptTable]:
    """Yield the tables of the rows of inputs."""
    clock = _Reached(node)
    conditions = _ended(node, clock, whole)
    sides = ("left", "right") if len(node.inputs) == 2 else ("",)
    for index, (source, side) in enumerate(zip(node.inputs, sides, strict=True)):
        if isinstance(node, Join) and node.by_arrival and not index:
            continue  # rows of the left side are joined, and not kept
        columns, rows, added = _columns(source.columns), "{rows}", tuple[KeptColumn, ...]()
        if isinstance(node, SessionWindows):
            time = quoted(node.time)
            rows = f"(SELECT * FROM ({node.sql('{rows}')}) UNION ALL BY NAME SELECT * FROM {{rows}} WHERE {time} IS NULL)"
            added = _columns(node.columns[-2:])
        yield KeptTable(
            str(index),
            f"rows of the {side} side" if side else "rows" if how in (FOLDED_WITH_ROWS, KEYED, TOP) else how.state,
            _key(node, index),
            columns,
            _time(source, [column.id for column in source.columns]),
            None if clock.is_lost else conditions[index],
            "the clock" if isinstance(node, TemporalFilter) else "the watermark",
            _until(node, how, source),
            rows,
            added,
            ", and no partner of it stays" if whole and isinstance(node, Join) and index in WITNESSES.get(node.kind, ()) else "",
        )


def _ended(node: Node, clock: _Reached, whole: bool) -> list[str]:
    if isinstance(node, TemporalFilter):
        return [settled_where(node, clock.at("TIMESTAMPTZ"))]
    if isinstance(node, CloseSort):
        limits = [(name, clock.of(node.watermarks[name])) for name in node.by]
        return [" OR ".join(f"{quoted(name)} < {limit}" for name, limit in limits)]
    return ended(node, clock, whole=whole)


def _until(node: Node, how: Physical, source: Node) -> str:
    is_by_time = isinstance(node, TemporalFilter | CloseSort)
    ends = [how.until] if how.until and not is_by_time else []
    return ", or ".join([*ends, *([] if source.append_only else ["it is deleted"])])


def _groups(node: Aggregate) -> Iterator[KeptTable]:
    """Yield the table of folded groups, and those of the values of calls with DISTINCT."""
    clock = _Reached(node)
    (condition,) = ended(node, clock)
    groups = _columns([node.column(group) for group in node.groups])
    partials = dict[str, KeptColumn]()
    for index, fold in enumerate(node.folds):
        if fold is not None:
            said = _said(node, fold)
            name = said if said not in partials else f"{said} {index}"
            if fold.function != "count":
                partials[name] = KeptColumn(f"a{index}", name, fold.kept)
                name = f"values in {name}"
            partials[name] = KeptColumn(f"n{index}", name, "BIGINT")
    until = "" if node.input.append_only else "its rows are deleted"
    made = KeptTable(
        "folded",
        "groups",
        node.groups,
        (*groups, KeptColumn(ROWS, "rows", "BIGINT"), *partials.values()),
        _time(node.input, node.groups),
        None if clock.is_lost else condition,
        until=until,
    )
    yield made
    arguments = dict.fromkeys(fold.argument for fold in node.folds if fold is not None and fold.counts_values)
    for number, argument in enumerate(arguments):
        value = node.input.column(str(argument))
        column = KeptColumn("windowpane_value", _written(node.input, value.id), value.type.duckdb)
        yield replace(made, name=f"{VALUES}{number}", holds=f"distinct values of {column.name}", columns=(*groups, column))


def _said(node: Aggregate, fold: Fold) -> str:
    """Return what a partial result is of, in words."""
    of = "*" if fold.argument is None else _written(node.input, fold.argument)
    only = "" if fold.condition is None else f" where {_written(node.input, fold.condition)}"
    kind = "sum" if fold.function == "avg" else fold.function
    return f"{kind}({'DISTINCT ' if fold.distinct else ''}{of}){only}"


def _written(node: Node, column_id: str) -> str:
    """Return a column by its name, a computed one as the query has it, without a cast that the binder has added."""
    items = zip(node.columns, node.items, strict=True) if isinstance(node, Project) else ()
    expr = next((item for column, item in items if column.id == column_id), node.column(column_id).expr)
    while expr.operator == "CAST" and not expr.written:
        expr = expr.parts[0]
    return expr.shown({column.id: column.name or column.id for source in node.inputs or (node,) for column in source.columns})


def _key(node: Node, index: int) -> tuple[str, ...]:
    if isinstance(node, TemporalFilter):
        return ()
    return node.by if isinstance(node, CloseSort) else keys_of(node, index)


def _columns(columns: Sequence[Column]) -> tuple[KeptColumn, ...]:
    """Return columns of a plan; of several with one name each has its id."""
    names = [column.name for column in columns]
    return tuple(
        KeptColumn(column.id, column.name if names.count(column.name) == 1 and column.name else column.id, column.type.duckdb)
        for column in columns
    )


def _names(node: Node) -> dict[str, str]:
    return {each.id: each.name for each in _columns(node.columns)}


def _time(source: Node, ids: Sequence[str]) -> str | None:
    """Return the first of some columns that has a watermark, and so is an event time."""
    found = (name for name in ids if name in source.watermarks and source.column(name).type.name in _INSTANTS)
    return next(found, None)


def _base_watermarks(node: Node) -> dict[str, str | None]:
    """Return the relations whose watermarks a node can follow, with the names of the types of these where a scan says them."""
    found: dict[str, str | None] = {}
    for scan in (each for each in every_node(node) if isinstance(each, Scan)):
        for name, mark in scan.watermarks.items():
            for relation, sql in mark.parts:
                found[relation] = scan.column(name).type.name if sql == "{w}" else found.get(relation)
    return found


class _Reached:
    """A clock whose watermarks are all ``REACHED``: the conditions on them are asked for."""

    def __init__(self, node: Node) -> None:
        self._types = _base_watermarks(node)
        self.is_lost = False

    def of(self, watermark: Watermark) -> str:
        """Return the watermark of a column as SQL over ``REACHED``."""
        parts = []
        for relation, sql in watermark.parts:
            kind = self._types.get(relation) or "timestamp"
            self.is_lost |= kind not in _INSTANTS
            parts.append(sql.replace("{w}", self.at(_INSTANTS.get(kind, "TIMESTAMP"))))
        return parts[0] if len(parts) == 1 else f"least({', '.join(parts)})"

    def at(self, kind: str) -> str:
        """Return the instant as SQL."""
        return f"CAST(make_timestamp({REACHED}) AS {kind})"
