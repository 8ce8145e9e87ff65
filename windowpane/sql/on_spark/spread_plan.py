"""A plan that is spread over Spark: its inputs, its stages as the Spark room runs them, and its results.

Rows of sources enter it where they are read, on the tasks; change sets bring the changes of all other relations. The watermark of
a source is the view's own: each task reports how far its rows advance it, to every bucket of the stage that takes them, and to
the driver, which sends it to the tasks of the next batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windowpane.errors import MistakeError
from windowpane.hidden_columns import PARTITION
from windowpane.sql.catalog.entries import TableInfo
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.nodes import Node, Scan, every_node
from windowpane.sql.on_spark.change_log import ToFiles
from windowpane.sql.on_spark.change_sets import CLOCK, clock_of, clock_table, is_initial, opened
from windowpane.sql.on_spark.ingest import is_replayable
from windowpane.sql.on_spark.node_engine import NodeEngine
from windowpane.sql.on_spark.programs.groups import StreamedGroups
from windowpane.sql.on_spark.programs.groups_below import GROUPS
from windowpane.sql.on_spark.programs.query import streamed_groups, watermark_of
from windowpane.sql.on_spark.rowwise import Rowwise
from windowpane.sql.on_spark.source_rows import Made, Progress, SourceRows, later
from windowpane.sql.on_spark.stages import HASH, INPUT, STAGE, Flow, Stages, cut
from windowpane.sql.streaming.deltas import WEIGHT
from windowpane.windowing.times import MIN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TIMES = ("timestamp", "timestamptz")


def read_directly(node: Node, tables: Mapping[str, TableInfo]) -> frozenset[str]:
    """Return the sources whose rows enter a plan where they are read; change sets bring the rows of all others.

    They also bring those of a source whose watermark a view that is read has, too: there would be two watermarks of one name.
    """
    scans = [each for each in every_node(node) if isinstance(each, Scan)]
    inherited = {base for scan in scans for mark in scan.watermarks.values() for base, _ in mark.parts if base != scan.relation}
    found = {scan.relation for scan in scans if scan.relation in tables} - inherited
    return frozenset(name for name in found if _is_readable(tables[name]))


def _is_readable(table: TableInfo) -> bool:
    """Whether tasks can read the rows of a table: a source that can be read again, whose rows depend on no clock or other row."""
    relation, watermark = table.relation, table.watermark
    return (
        relation.kind == "source"
        and "connector" in table.options
        and is_replayable(table)
        and table.has_row_id
        and not table.reads_clock
        and (watermark is None or watermark.type.name in _TIMES)
    )


@dataclass(frozen=True)
class Direct:
    """The sources that a view reads itself: perhaps none."""

    tables: Mapping[str, TableInfo]
    rows: Callable[[TableInfo, Any], Any]
    exchange: Any
    groups: StreamedGroups | None = None


def spread(node: Node, direct: Direct, spark: SparkSession, change_sets: DataFrame | None, received: Path) -> Any:
    """Return the changes that the plan emits, as a DataFrame of ``FILES``."""
    from windowpane.spark.queries import staged

    plan = cut(node)
    alone = _alone(plan, direct)
    has_state = direct.groups is None or not direct.groups.closes  # else each node gets all rows of a window in one batch
    stages = []
    for numbers in plan.together:
        engine = partial(NodeEngine, [(number, plan.stages[number]) for number in numbers])
        stages.append(staged.Stage(_inlets(plan, numbers, alone), HASH, engine, has_state))
    result = [
        staged.Inlet(
            None if number is None else plan.set_of(number), Rowwise(flows, done=frozenset(alone)), relations=_relations(flows)
        )
        for number, flows in by_stage(plan.result)
    ]
    entrances = Counter(relation for flows in _entrances(plan) for relation in flows)
    entries = _entries(node, entrances, alone, direct, spark, change_sets, received)
    return staged.staged(entries, stages, result, STAGE, ToFiles(direct.exchange))


def _alone(plan: Stages, direct: Direct) -> dict[str, str]:
    """Return the queries of the sources that enter a plan in one place: they run with what reads the rows."""
    groups = None if direct.groups is None else direct.groups.scan.relation
    places = [(flows, stage.place_sql(index)) for stage in plan.stages for index, flows in enumerate(stage.inputs)]
    found: dict[str, list[str]] = {}
    for flows, place in (*places, (plan.result, None)):
        for flow in flows:
            if flow.stage is None and flow.source in direct.tables and flow.source != groups:
                found.setdefault(flow.source, []).append(flow.query(place))
    return {source: queries[0] for source, queries in found.items() if len(queries) == 1}


def _entrances(plan: Stages) -> Iterator[set[str]]:
    """Yield the relations whose changes enter a plan, for each place where some do."""
    for flows in (*(flows for stage in plan.stages for flows in stage.inputs), plan.result):
        yield {flow.source for flow in flows if flow.stage is None}


def _entries(
    node: Node,
    entrances: Mapping[str, int],
    alone: Mapping[str, str],
    direct: Direct,
    spark: SparkSession,
    change_sets: DataFrame | None,
    received: Path,
) -> list[Any]:
    """Return where parts enter; ``entrances`` says in how many places changes of a relation enter the plan."""
    from windowpane.spark.queries import staged
    from windowpane.spark.sources import arrow_rows, connectors

    sources = {name: SourceRows(table, direct.exchange) for name, table in direct.tables.items()}
    parts = ChangeSetParts(sources, direct.exchange, received)
    entries = [] if change_sets is None else [staged.Entry(change_sets, parts)]
    for name, table in direct.tables.items():
        if direct.groups is not None and name == direct.groups.scan.relation:
            if entrances[GROUPS] != 1:
                raise MistakeError("a second one would be a second operator")
            made = streamed_groups(direct.groups, table, direct.rows(table, spark), direct.exchange)
            entries.append(staged.Entry(made, GroupParts(sources, direct.groups, direct.exchange), GROUPS))
            continue
        scans = [each for each in every_node(node) if isinstance(each, Scan) and each.relation == name]
        columns = sources[name].needed(column for scan in scans for column in scan.stored)
        rows, once = direct.rows(table, spark), entrances[name] == 1
        rows = arrow_rows.read_columns(rows, columns) if once else connectors.numbered(rows, columns, PARTITION)
        entries.append(staged.Entry(rows, SourceParts(sources, name, direct.exchange, alone.get(name)), name))
    return entries


def _inlets(plan: Stages, together: Sequence[int], alone: Collection[str]) -> list[Any]:
    """Return what flows into stages that run together from elsewhere; their inputs are numbered one behind the other."""
    from windowpane.spark.queries import staged

    inputs = [(stage, index) for stage in (plan.stages[number] for number in together) for index in range(len(stage.inputs))]
    return [
        staged.Inlet(
            None if number is None else plan.set_of(number),
            Rowwise(flows, stage.place_sql(index), frozenset(alone)),
            place,
            _relations(flows),
        )
        for place, (stage, index) in enumerate(inputs)
        for number, flows in by_stage(stage.inputs[index])
        if number not in together
    ]


def _relations(flows: Sequence[Flow]) -> frozenset[str]:
    return frozenset(flow.source for flow in flows)


def by_stage(flows: Sequence[Flow]) -> Iterator[tuple[int | None, tuple[Flow, ...]]]:
    for number in dict.fromkeys(flow.stage for flow in flows):
        yield number, tuple(flow for flow in flows if flow.stage == number)


@dataclass(frozen=True)
class SourceParts:
    """Makes parts of the rows of a source, on a task.

    Args:
        query: what its rows become, over changes ``INPUT``, where they enter the plan in one place; ``None`` where they stay.
    """

    sources: Mapping[str, SourceRows]
    name: str
    exchange: Any
    query: str | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.Table]]:
        """Yield the changes that the rows of one partition are, and then the watermarks."""
        source, begin = self.sources[self.name], Progress.of(self.exchange.published())
        reached: int | None = None
        changes = f"SELECT *, 1::INTEGER AS {quoted(WEIGHT)} FROM {INPUT}"
        made = Made({}, changes if self.query is None else self.query.replace(INPUT, f"({changes})"))
        for taken in source.taken(batches, made, begin):
            if taken.split is None:  # of others the watermark is the least over partitions, which the driver knows behind a batch
                reached = later(reached, taken.reached)
            yield self.name, taken.rows
        yield CLOCK, _clock(self.sources, begin.at(self.name, reached))


@dataclass(frozen=True)
class GroupParts:
    """Takes the results of a window program, on a task: changes of groups, and the watermark under which they were emitted."""

    sources: Mapping[str, SourceRows]
    groups: StreamedGroups
    exchange: Any

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.Table]]:
        """Yield the changes of the groups in one partition, and then the watermarks, which all its buckets have reported."""
        from windowpane.spark.stages.blobs import unpack
        from windowpane.spark.stages.messages import reported

        begin, reached = Progress.of(self.exchange.published()), None
        for batch in batches:
            for blob in batch["blob"]:
                table = unpack(blob.as_py())
                moves = reported(table)
                if moves is None:
                    yield GROUPS, table
                elif moves.after > MIN:
                    reached = later(reached, watermark_of(self.groups, moves.after))
        yield CLOCK, _clock(self.sources, begin.at(self.groups.scan.relation, reached))


@dataclass(frozen=True)
class ChangeSetParts:
    """Takes the parts of a change set, on a task.

    Args:
        sources: those that the view reads itself; their watermarks in the change set are not the view's.
    """

    sources: Mapping[str, SourceRows]
    exchange: Any
    received: Path

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.Table]]:
        """Yield relations and their changes; files of changes are read here."""
        from windowpane.spark.queries.staged import parts_of

        for relation, part in parts_of(batches):
            if relation == CLOCK:
                watermarks = {name: value for name, value in clock_of(part).items() if name not in self.sources}
                self.exchange.report(watermarks, "change set")
                yield CLOCK, _clock(self.sources, Progress.of(self.exchange.published()), watermarks, initial=is_initial(part))
                continue
            for table in opened(part, self.received):
                yield relation, table


def _clock(
    sources: Mapping[str, SourceRows], begin: Progress, change_set: Mapping[str, str] | None = None, *, initial: bool = False
) -> pa.Table:
    """Return all watermarks that a task knows: of a source the later one, of another relation that of the change set."""
    reached = {name: sources[name].watermark(micros) for name, micros in begin.reached.items()}
    ages = dict(begin.reached) | dict.fromkeys(change_set or {}, 1)
    return clock_table({**begin.others, **reached, **(change_set or {})}, initial=initial, ages=ages)
