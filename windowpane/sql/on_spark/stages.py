"""A plan cut into stages: nodes with state, one stage each, and between them what handles each row alone.

Stages whose rows stay in their bucket, as a Top-N by the key of the join below it, run together: one operator of Spark, without a
shuffle between them. Of equal stages whose results meet in one such operator, one runs.

A stage runs on buckets of rows, spread by a hash of the columns by which its node can be computed apart: those of GROUP BY,
PARTITION BY, a join's keys. What handles rows alone (filters, projections, TUMBLE, HOP, CUMULATE, unions) runs where rows are, on
the way from one stage to the next, as one query of DuckDB.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, reduce
from itertools import cycle

from windowpane.sql.bind.scope import Column
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.expressions.types import BOOLEAN, DATE, is_integer
from windowpane.sql.expressions.written import has_spellings, in_one_spelling
from windowpane.sql.nodes import (
    Aggregate,
    CloseSort,
    Filter,
    Join,
    Node,
    Over,
    Project,
    Scan,
    TimeWindows,
    TopN,
    UnionAll,
    Values,
)
from windowpane.sql.on_spark.change_sets import CLOCK
from windowpane.sql.optimize.conditions import ids_in
from windowpane.sql.optimize.equal_nodes import equal_nodes
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

    NUMBERED = "Rows by the value of a key, hashes of numbers, and nodes with equal keys together\n"
    """The same, but that numbers and times are hashed as numbers, and stages run together: what new views have."""


@dataclass(frozen=True)
class Flow:
    """Changes on their way into a stage, or into the result.

    Args:
        stage: the number of the stage that emits them, ``None`` where they are read from a change set or a source.
        source: the relation whose changes they are; ``CLOCK`` for rows written in the SQL text, which the first change set adds;
            ``STAGE`` for results of a stage.
        columns: (name, DuckDB type) of their columns, beside the weight.
        sql: the query that turns them into the changes that arrive, over ``INPUT``.
        unchanged: the columns of a stage that arrive as they are: their ids where they arrive, and in the stage.
    """

    stage: int | None
    source: str
    columns: tuple[tuple[str, str], ...]
    sql: str
    unchanged: Mapping[str, str] = field(default_factory=dict)

    def then(self, sql: str, unchanged: Mapping[str, str] | None = None) -> Flow:
        """Return it with a further step, behind which some columns are unchanged still."""
        return replace(self, sql=sql, unchanged=unchanged or {})


@dataclass(frozen=True)
class Stage:
    """A node with state, and the changes that flow into each of its inputs.

    Args:
        node: the node.
        inputs: for each of its inputs what flows into it.
        places: where rows lie in the state.
        spread: which of the keys rows are spread by, by their numbers, where the stage runs with others; ``None`` for all.
        orders: by what type each of these is ordered in all stages that run together, see ``_orders_of``.
    """

    node: Node
    inputs: tuple[tuple[Flow, ...], ...]
    places: Places = Places.NUMBERED
    spread: tuple[int, ...] | None = None
    orders: tuple[str | None, ...] | None = None

    @property
    def keys(self) -> tuple[tuple[Column, ...], ...]:
        """The columns of each input by which its rows are spread; none: all rows are one bucket."""
        sources = enumerate(self.node.inputs)
        return tuple(tuple(source.column(name) for name in self._spread_names(index)) for index, source in sources)

    def place_sql(self, index: int) -> str:
        """Return the number that says where a row of an input belongs, as SQL: equal keys have equal ones."""
        return self._place_sql(self.keys[index], self._orders if self.orders is None else self.orders)

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

    def keeps(self, flow: Flow, index: int, below: Stage) -> tuple[int, ...] | None:
        """Return by which of its keys, by their numbers, rows of an input are spread as in the stage that they flow from.

        ``None`` where they are not: a row of the result may be in another bucket than those it is made of, or rows of one key in
        several.
        """
        there = below.kept_keys()
        if not there or isinstance(self.node, CloseSort):
            return None
        here = [flow.unchanged.get(name) for name in self._names(index)]
        found = [next((number for number, column in enumerate(here) if column in columns), None) for columns in there]
        numbers = tuple(number for number in found if number is not None)
        return numbers if len(numbers) == len(there) else None

    def kept_keys(self) -> list[set[str]]:
        """Return for each key that rows are spread by the columns of the result that have its value; none if one has none."""
        sides = {"inner": (0, 1), "left": (0,), "right": (1,)}.get(self.node.kind, ()) if isinstance(self.node, Join) else (0,)
        if not isinstance(self.node, Aggregate | TopN | Over | Join) or not sides:
            return []
        names = [self._spread_names(side) for side in sides]
        return [set(columns) for columns in zip(*names, strict=True)]

    def _spread_names(self, index: int) -> tuple[str, ...]:
        names = self._names(index)
        return names if self.spread is None else tuple(names[number] for number in self.spread)

    def _names(self, index: int) -> tuple[str, ...]:
        return self.node.inputs[0].key if isinstance(self.node, CloseSort) else keys_of(self.node, index)


@dataclass(frozen=True)
class Stages:
    """A plan in stages, each behind those it reads, and what flows from them into the result.

    Args:
        stages: the stages.
        result: what flows from them into the result.
        together: the numbers of those that run together; what flows from such a set is what its last one emits.
    """

    stages: tuple[Stage, ...]
    result: tuple[Flow, ...]
    together: tuple[tuple[int, ...], ...]

    def place_of(self, stage: int) -> int:
        """Return the number of the set in which a stage runs."""
        return next(number for number, stages in enumerate(self.together) if stage in stages)

    def readers(self, stage: int) -> set[int | None]:
        """Return the sets that take what a stage emits, and ``None`` if it flows into the result."""
        inputs = [(self.place_of(number), flows) for number, each in enumerate(self.stages) for flows in each.inputs]
        return {place for place, flows in [*inputs, (None, self.result)] if any(flow.stage == stage for flow in flows)}

    def with_one_for(self, same: Mapping[int, int]) -> Stages:
        """Return the plan without some stages, in place of each of which an equal one runs."""
        kept = [number for number in range(len(self.stages)) if number not in same]

        def moved(flows: Sequence[Flow]) -> tuple[Flow, ...]:
            return tuple(self._moved(flow, same, kept) for flow in flows)

        stages = [self.stages[number] for number in kept]
        stages = [replace(stage, inputs=tuple(map(moved, stage.inputs))) for stage in stages]
        return Stages(tuple(stages), moved(self.result), _alone(len(stages)))

    def _moved(self, flow: Flow, same: Mapping[int, int], kept: Sequence[int]) -> Flow:
        if flow.stage is None:
            return flow
        number = same.get(flow.stage, flow.stage)
        if number == flow.stage:
            return replace(flow, stage=kept.index(number))
        columns, called = self.stages[number].node.columns, self.stages[flow.stage].node.columns
        names = {other.id: column.id for column, other in zip(columns, called, strict=True)}
        items = ", ".join(f"{quoted(name)} AS {quoted(other)}" for other, name in names.items())
        return Flow(
            kept.index(number),
            STAGE,
            column_types(columns),
            flow.sql.replace(INPUT, f"(SELECT {items}{_WEIGHTED} FROM {INPUT})"),
            {arriving: names[other] for arriving, other in flow.unchanged.items()},
        )


def cut(node: Node, places: Places = Places.NUMBERED) -> Stages:
    """Return a plan in stages; ``places`` are those of each."""
    stages: list[Stage] = []
    result = _flows(node, stages)
    plan = Stages(tuple(replace(stage, places=places) for stage in stages), tuple(result), _alone(len(stages)))
    return _with_shared(plan) if places is Places.NUMBERED else plan


def _alone(stages: int) -> tuple[tuple[int, ...], ...]:
    return tuple((number,) for number in range(stages))


def _with_shared(plan: Stages) -> Stages:
    """Return a plan whose stages run together where they can, and in which of equal stages one runs for all.

    It does where one set of stages takes what it emits: from there, a second reader would be a second operator of Spark.
    """
    same = equal_nodes([stage.node for stage in plan.stages])
    while True:
        shared = _together(plan.with_one_for(same))
        kept = [number for number in range(len(plan.stages)) if number not in same]
        apart = {number for number, stage in same.items() if len(shared.readers(kept.index(stage))) > 1}
        if not apart:
            return shared
        same = {number: stage for number, stage in same.items() if number not in apart}


def _together(plan: Stages) -> Stages:
    """Return a plan whose stages run together where they can."""
    found: dict[int, tuple[int, ...]] = {}
    stages = list(plan.stages)
    read = Counter(flow.stage for stage in stages for flows in stage.inputs for flow in flows)
    for number, stage in enumerate(stages):
        below, spread = _kept_from(stage, [None if read[each] > 1 else stages[each] for each in range(number)])
        found[number] = (*sorted(each for last in below for each in found.pop(last)), number)
        stages[number] = replace(stage, spread=spread)
    for numbers in found.values():
        orders = tuple(_orders_of(*(keys for number in numbers for keys in stages[number].keys)))
        for number in numbers:
            stages[number] = replace(stages[number], orders=orders)
    return replace(plan, stages=tuple(stages), together=tuple(found.values()))


def _kept_from(stage: Stage, stages: Sequence[Stage | None]) -> tuple[list[int], tuple[int, ...] | None]:
    """Return the stages whose results are in the bucket already where a stage takes them, and how it is spread then.

    ``stages`` are those before it, ``None`` for those that others read, too.

    Where it is spread by some of its keys alone, rows from elsewhere would come to fewer buckets: then none are.
    """
    below: list[int] = []
    spread: tuple[int, ...] | None = None
    for index, flows in enumerate(stage.inputs):
        flow = flows[0]
        source = None if flow.stage is None or len(flows) > 1 else stages[flow.stage]
        if flow.stage is not None and source is not None:
            kept = stage.keeps(flow, index, source)
            if kept is not None and spread in (None, kept):
                below, spread = [*below, flow.stage], kept
    is_coarser = len(set(spread or ())) < len(stage.keys[0])
    return (below, spread) if below and not (is_coarser and len(below) < len(stage.inputs)) else ([], None)


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
        return [flow.then(node.sql(f"({flow.sql})", extra=_WEIGHTED), _unchanged(node, flow.unchanged)) for flow in inputs[0]]
    if isinstance(node, Aggregate) and (read := _read_alone(node)) is not None:
        inputs = (tuple(flow.then(_counted_sql(node, read, flow.sql), flow.unchanged) for flow in inputs[0]),)
    stages.append(Stage(node, inputs))
    emitted = {column.id: column.id for column in node.columns}
    return [Flow(len(stages) - 1, STAGE, column_types(node.columns), f"SELECT * FROM {INPUT}", emitted)]


def _unchanged(node: Node, before: Mapping[str, str]) -> dict[str, str]:
    """Return which columns are unchanged behind a node that handles each row alone, of those that were before it."""
    if isinstance(node, Project):
        plain = {quoted(name): stage for name, stage in before.items()}
        return {column.id: plain[item] for item, column in zip(node.items, node.columns, strict=True) if item in plain}
    return dict(before) if isinstance(node, Filter | TimeWindows) else {}


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
    number = len(plan.together)
    lines = [f"Spread over Spark in {number} stage{'' if number == 1 else 's'} on buckets of keys"]
    for index, numbers in enumerate(plan.together, start=1):
        stages = [plan.stages[number] for number in numbers]
        labels = ", then ".join(stage.node.label for stage in stages)
        keys = " and ".join(dict.fromkeys(", ".join(key.name for key in keys) for stage in stages for keys in stage.keys))
        lines.append(f"  stage {index}, {labels}: {f'by {keys}' if keys else 'one bucket, since it has no keys'}")
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
