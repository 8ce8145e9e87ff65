"""A plan cut into stages: nodes with state, one stage each, and between them what handles each row alone.

A stage runs on buckets of rows, spread by a hash of the columns by which its node can be computed apart: those of GROUP BY,
PARTITION BY, a join's keys. What handles rows alone (filters, projections, TUMBLE, HOP, CUMULATE, unions) runs where rows are, on
the way from one stage to the next, as one query of DuckDB.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property, reduce
from itertools import cycle

from windowpane.sql.bind.scope import Column
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.expressions.types import BOOLEAN, DATE, is_integer
from windowpane.sql.expressions.written import has_spellings, in_one_spelling
from windowpane.sql.nodes import Aggregate, CloseSort, Node, Scan, UnionAll, Values
from windowpane.sql.on_spark.change_sets import CLOCK
from windowpane.sql.optimize.conditions import ids_in
from windowpane.sql.streaming.deltas import WEIGHT
from windowpane.sql.streaming.folding import folds
from windowpane.sql.streaming.operators import LINEAR, keys_of

INPUT = '"windowpane input"'
"""The name by which the query of a flow reads rows."""

STAGE = "windowpane stage"
"""The source of rows that come from an earlier stage."""

HASH = "windowpane_h"
"""The column of the number that says where a row belongs: to which bucket, and to which page there."""

_WEIGHTED = f", {quoted(WEIGHT)}"

_ORDERED = ("timestamp", "timestamptz", "integer")
"""The types of keys by which rows may lie, the best first: a batch has rows of few times."""

_WHOLE = (*_ORDERED, "date", "boolean")
"""The types of keys that are hashed as numbers: 92,000 rows by an integer take 5 ms, by the MD5 of its text 60 ms."""

_VALUE_BITS, _HASH_BITS = 40, 24
"""Of the number that says where a row belongs: its value's lower bits, above so many of the hash."""

_PRIME = 4_294_967_291
"""Hashes of numbers are remainders by it, the largest prime below 2**32."""

_FACTORS = (2_654_435_761, 2_246_822_519, 3_266_489_917)
"""What numbers are multiplied by, those of the first key, the second, and so on: as in xxHash, primes below 2**32."""


class Places(Enum):
    """Where the rows of a view lie in the state, by the line that its kept plan has about it."""

    HASHED = ""
    """By a hash of the texts of all keys."""

    BY_VALUE = "Rows by the value of a key\n"
    """In the order of a time or an integer among the keys, where there is one, and then by that hash: keys of one time, or
    numbered one after the other, are those that a batch has, and share pages."""

    NUMBERED = "Rows by the value of a key, and hashes of numbers\n"
    """The same, but that numbers and times are hashed as numbers: what new views have."""


@dataclass(frozen=True)
class Flow:
    """Changes on their way into a stage, or into the result.

    Args:
        stage: the number of the stage that emits them, ``None`` where they are read from a change set or a source.
        source: the relation whose changes they are; ``CLOCK`` for rows written in the SQL text, which the first change set adds;
            ``STAGE`` for results of a stage.
        columns: (name, DuckDB type) of their columns, beside the weight.
        sql: the query that turns them into the changes that arrive, over ``INPUT``.
    """

    stage: int | None
    source: str
    columns: tuple[tuple[str, str], ...]
    sql: str

    def then(self, sql: str) -> Flow:
        """Return it with a further step."""
        return replace(self, sql=sql)


@dataclass(frozen=True)
class Stage:
    """A node with state, and the changes that flow into each of its inputs.

    Args:
        node: the node.
        inputs: for each of its inputs what flows into it.
        places: where rows lie in the state.
    """

    node: Node
    inputs: tuple[tuple[Flow, ...], ...]
    places: Places = Places.NUMBERED

    @property
    def keys(self) -> tuple[tuple[Column, ...], ...]:
        """The columns of each input by which its rows are spread; none: all rows are one bucket."""
        return tuple(tuple(source.column(name) for name in self._names(index)) for index, source in enumerate(self.node.inputs))

    def place_sql(self, index: int) -> str:
        """Return the number that says where a row of an input belongs, as SQL: equal keys have equal ones."""
        return self._place_sql(self.keys[index], self._orders)

    def place_of(self, keys: Sequence[Column]) -> str:
        """Return the number that says where a row belongs that is kept by other keys than those of an input, as SQL."""
        return self._place_sql(keys, _orders_of(keys))

    def _place_sql(self, keys: Sequence[Column], orders: Sequence[str | None]) -> str:
        """Return it for keys of which some have an order, see ``_orders_of``: by a time lie the rows, or else by an integer."""
        hashed = _hash_sql(keys, [order in _WHOLE and self.places is Places.NUMBERED for order in orders])
        leading = next((orders.index(order) for order in _ORDERED if order in orders), None)
        return hashed if leading is None or self.places is Places.HASHED else _ordered_sql(keys[leading], hashed)

    @cached_property
    def _orders(self) -> list[str | None]:
        return _orders_of(*self.keys)

    def _names(self, index: int) -> tuple[str, ...]:
        return self.node.inputs[0].key if isinstance(self.node, CloseSort) else keys_of(self.node, index)


@dataclass(frozen=True)
class Stages:
    """A plan in stages, each behind those it reads, and what flows from them into the result."""

    stages: tuple[Stage, ...]
    result: tuple[Flow, ...]


def cut(node: Node, places: Places = Places.NUMBERED) -> Stages:
    """Return a plan in stages; ``places`` are those of each."""
    stages: list[Stage] = []
    result = _flows(node, stages)
    return Stages(tuple(replace(stage, places=places) for stage in stages), tuple(result))


def _flows(node: Node, stages: list[Stage]) -> list[Flow]:
    if isinstance(node, Scan):
        kinds = tuple((name, column.type.duckdb) for name, column in zip(node.stored, node.columns, strict=True))
        return [Flow(None, node.relation, kinds, node.sql(INPUT, extra=_WEIGHTED))]
    if isinstance(node, Values):
        return [Flow(None, CLOCK, (), f"SELECT *, 1 AS {quoted(WEIGHT)} FROM ({node.sql()})")]
    if isinstance(node, UnionAll):
        return [
            flow.then(node.branch_sql(index, f"({flow.sql})", _WEIGHTED))
            for index, branch in enumerate(node.branches)
            for flow in _flows(branch, stages)
        ]
    inputs = tuple(tuple(_flows(source, stages)) for source in node.inputs)
    if isinstance(node, LINEAR):
        return [flow.then(node.sql(f"({flow.sql})", extra=_WEIGHTED)) for flow in inputs[0]]
    if isinstance(node, Aggregate) and (read := _read_alone(node)) is not None:
        inputs = (tuple(flow.then(_counted_sql(node, read, flow.sql)) for flow in inputs[0]),)
    stages.append(Stage(node, inputs))
    return [Flow(len(stages) - 1, STAGE, column_types(node.columns), f"SELECT * FROM {INPUT}")]


def _read_alone(node: Aggregate) -> list[str] | None:
    """Return the columns that folded groups read of their input, if rows with the same ones may travel as one; else ``None``.

    They are few beside the groups where all others are boolean, the conditions of FILTER. A sum takes each row by itself.
    """
    if not folds(node) or any(fold is not None and fold.function in ("sum", "avg") for fold in node.folds):
        return None
    read = set().union(*(ids_in(call) for call in node.calls)) - set(node.groups)
    others = [column for column in node.input.columns if column.id in read]
    return [*node.groups, *(column.id for column in others)] if all(column.type == BOOLEAN for column in others) else None


def _counted_sql(node: Aggregate, read: Sequence[str], rows: str) -> str:
    """Return changes with those as one that are the same to folded groups; what the groups do not read is NULL."""
    kept = [quoted(column.id) for column in node.input.columns if column.id in read]
    unread = [column for column in node.input.columns if column.id not in read]
    items = [*kept, *(f"CAST(NULL AS {column.type.duckdb}) AS {quoted(column.id)}" for column in unread)]
    by = f" GROUP BY {', '.join(kept)}" if kept else ""
    weight = f"CAST(sum({quoted(WEIGHT)}) AS INTEGER) AS {quoted(WEIGHT)}"
    return f"SELECT {', '.join([*items, weight])} FROM ({rows}){by} HAVING sum({quoted(WEIGHT)}) <> 0"


def spread_lines(plan: Stages) -> list[str]:
    """Return how a plan is spread over Spark, as lines."""
    if not plan.stages:
        return ["Spread over Spark: every row alone, where it is"]
    number = len(plan.stages)
    lines = [f"Spread over Spark in {number} stage{'' if number == 1 else 's'} on buckets of keys"]
    for index, stage in enumerate(plan.stages, start=1):
        keys = " and ".join(", ".join(key.name for key in keys) for keys in dict.fromkeys(stage.keys))
        lines.append(f"  stage {index}, {stage.node.label}: {f'by {keys}' if keys else 'one bucket, since it has no keys'}")
    return lines


def column_types(columns: Sequence[Column]) -> tuple[tuple[str, str], ...]:
    """Return columns as (id, DuckDB type)."""
    return tuple((column.id, column.type.duckdb) for column in columns)


def _hash_sql(keys: Sequence[Column], are_numbers: Sequence[bool]) -> str:
    """Return a hash of columns as SQL: equal keys have equal hashes, under any version of DuckDB; NULL is a value.

    Args:
        keys: the columns.
        are_numbers: for each whether it is hashed as a number, not by its text.
    """
    if not keys:
        return "0::UBIGINT"
    texts = [f"coalesce({_hashed_text(key)}, chr(0))" for key, is_number in zip(keys, are_numbers, strict=True) if not is_number]
    by_text = [f"md5_number_lower(concat_ws(chr(31), {', '.join(texts)}))"] if texts else []
    numbers = [key for key, is_number in zip(keys, are_numbers, strict=True) if is_number]
    if not numbers:
        return by_text[0]
    hashed = [
        f"CAST({_whole_sql(key)} & {2**63 - 1} AS UBIGINT) % {_PRIME}::UBIGINT * {factor}::UBIGINT"
        for key, factor in zip(numbers, cycle(_FACTORS), strict=False)
    ]
    return f"({reduce(lambda one, other: f'xor({one}, {other})', [*hashed, *by_text])} % {_PRIME}::UBIGINT)"


def _orders_of(*inputs: Sequence[Column]) -> list[str | None]:
    """Return the type by which values of each key are ordered in all inputs; ``None`` where they have several."""
    kinds = [{_order(key) for key in keys} for keys in zip(*inputs, strict=True)]
    return [kind.pop() if len(kind) == 1 else None for kind in kinds]


def _order(key: Column) -> str:
    """Return the type by which values of a key are ordered: one for all integers, for they are compared with each other."""
    return "integer" if is_integer(key.type) else key.type.name


def _ordered_sql(key: Column, hashed: str) -> str:
    """Return a number that rises with a key, as SQL, and with the hash among equal ones; it begins anew every 2**40."""
    upper = f"CAST({_whole_sql(key)} & {2**_VALUE_BITS - 1} AS UBIGINT) * {2**_HASH_BITS}::UBIGINT"
    return f"({upper} + {hashed} % {2**_HASH_BITS}::UBIGINT)"


def _whole_sql(key: Column) -> str:
    """Return a key as a whole number, as SQL: a time as microseconds; 0 where it is NULL or infinite."""
    value = quoted(key.id)
    if is_integer(key.type) or key.type == BOOLEAN:
        return f"coalesce(CAST({value} AS BIGINT), 0)"
    whole = f"CAST({value} - DATE '1970-01-01' AS BIGINT)" if key.type == DATE else f"epoch_us({value})"
    return f"coalesce(CASE WHEN isfinite({value}) THEN {whole} END, 0)"


def _hashed_text(key: Column) -> str:
    value = in_one_spelling(quoted(key.id), key.type)
    text = f"CAST({value} AS VARCHAR)"
    return f"replace({text}, '-nan', 'nan')" if has_spellings(key.type) else text
