"""What a plan is cut into: flows of changes, stages, and which of these run together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from windowpane.sql.bind.scope import Column
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.nodes import Aggregate, CloseSort, Join, Node, Over, TopN
from windowpane.sql.on_spark.stages.layout import orders_of, place_sql
from windowpane.sql.streaming.deltas import WEIGHT
from windowpane.sql.streaming.operators import keys_of

INPUT = '"windowpane input"'
"""The name by which the query of a flow reads rows."""

STAGE = "windowpane stage"
"""The source of rows that come from an earlier stage."""

HASH = "windowpane_h"
"""The column of the number that says where a row belongs: to which bucket, and to which page there."""


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

    def query(self, place: str | None) -> str:
        """Return the query with the number that says where a row belongs behind its columns, ``None`` for none."""
        return f"SELECT *{'' if place is None else f', {place} AS {HASH}'} FROM ({self.sql})"

    def then(self, sql: str, unchanged: Mapping[str, str] | None = None) -> Flow:
        """Return it with a further step, behind which some columns are unchanged still."""
        return replace(self, sql=sql, unchanged=unchanged or {})


@dataclass(frozen=True)
class Stage:
    """A node with state, and the changes that flow into each of its inputs.

    Args:
        spread: which of the keys rows are spread by, by their numbers, where the stage runs with others; ``None`` for all.
        orders: by what type each of these is ordered in all stages that run together, see ``orders_of``.
    """

    node: Node
    inputs: tuple[tuple[Flow, ...], ...]
    spread: tuple[int, ...] | None = None
    orders: tuple[str | None, ...] | None = None

    @property
    def keys(self) -> tuple[tuple[Column, ...], ...]:
        """The columns of each input by which its rows are spread; none: all rows are one bucket."""
        sources = enumerate(self.node.inputs)
        return tuple(tuple(source.column(name) for name in self._spread_names(index)) for index, source in sources)

    def place_sql(self, index: int) -> str:
        """Return the number that says where a row of an input belongs, as SQL: equal keys have equal ones."""
        keys = self.keys
        return place_sql(keys[index], orders_of(*keys) if self.orders is None else self.orders)

    def place_of(self, keys: Sequence[Column]) -> str:
        """Return the number that says where a row belongs that is kept by other keys than those of an input, as SQL."""
        return place_sql(keys, orders_of(keys))

    def spread_below(self, flow: Flow, index: int, below: Stage) -> tuple[int, ...] | None:
        """Return by which of its keys, by their numbers, rows of an input are spread as in the stage that they flow from.

        ``None`` where they are not: a row of the result may be in another bucket than those it is made of, or rows of one key in
        several.
        """
        there = below.spread_columns()
        if not there or isinstance(self.node, CloseSort):
            return None
        here = [flow.unchanged.get(name) for name in self._names(index)]
        found = [next((number for number, column in enumerate(here) if column in columns), None) for columns in there]
        numbers = tuple(number for number in found if number is not None)
        return numbers if len(numbers) == len(there) else None

    def spread_columns(self) -> list[set[str]]:
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
        together: the numbers of those that run together; what flows from such a set is what its last one emits.
    """

    stages: tuple[Stage, ...]
    result: tuple[Flow, ...]
    together: tuple[tuple[int, ...], ...]

    def set_of(self, stage: int) -> int:
        return next(number for number, stages in enumerate(self.together) if stage in stages)

    def readers(self, stage: int) -> set[int | None]:
        """Return the sets that take what a stage emits, and ``None`` if it flows into the result."""
        inputs = [(self.set_of(number), flows) for number, each in enumerate(self.stages) for flows in each.inputs]
        return {place for place, flows in [*inputs, (None, self.result)] if any(flow.stage == stage for flow in flows)}

    def others(self, stages: Collection[int]) -> list[int]:
        return [number for number in range(len(self.stages)) if number not in stages]

    def with_one_for(self, same: Mapping[int, int]) -> Stages:
        """Return the plan without some stages, in place of each of which an equal one runs."""
        kept = self.others(same)

        def moved(flows: Sequence[Flow]) -> tuple[Flow, ...]:
            return tuple(self._moved(flow, same, kept) for flow in flows)

        stages = [self.stages[number] for number in kept]
        stages = [replace(stage, inputs=tuple(map(moved, stage.inputs))) for stage in stages]
        return Stages(tuple(stages), moved(self.result), alone(len(stages)))

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
            flow.sql.replace(INPUT, f"(SELECT {items}, {quoted(WEIGHT)} FROM {INPUT})"),
            {arriving: names[other] for arriving, other in flow.unchanged.items()},
        )


def alone(stages: int) -> tuple[tuple[int, ...], ...]:
    return tuple((number,) for number in range(stages))


def column_types(columns: Sequence[Column]) -> tuple[tuple[str, str], ...]:
    return tuple((column.id, column.type.duckdb) for column in columns)
