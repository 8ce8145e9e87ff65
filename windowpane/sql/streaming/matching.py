"""Row patterns in plans: the pattern engines, on the rows of a view as they arrive, or on all rows of a query.

In a view state is kept as blobs, and the watermark is that of the event time below the pattern. A batch takes its rows first and
then the watermark: rows that another operator emitted as the watermark passed them are not late. A query has all rows, in the
order that DuckDB sorts them in, and the watermark MAX; event time counts there only if the pattern asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa

from windowpane.engines.patterns.program import TIMEOUTS, PatternProgram
from windowpane.engines.program import MAIN, Upstream
from windowpane.engines.protocol import Clock as EngineClock
from windowpane.engines.protocol import Engine
from windowpane.errors import MissingEventTimeError, MistakeError
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.planning.engines import make_engine, with_engine
from windowpane.planning.patterns.binding import bound_spec, measure_types
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.nodes import Match, Node, Scan, changed_plan, compile_plan
from windowpane.sql.streaming.clock import Clock
from windowpane.sql.streaming.deltas import WEIGHT, Delta, Rows
from windowpane.sql.streaming.operators import Blobs, Deltas, OnBlobs, settled_inputs
from windowpane.sql.streaming.over import arrow_types
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.over.spec import OrderColumn
from windowpane.windowing.patterns.values import MatchTime
from windowpane.windowing.times import MAX, MIN

_FOREVER = EngineClock(MAX, 0)


def pattern_program(node: Match, storage: Storage, *, is_sorted: bool = False) -> PatternProgram:
    """Return the program of a node; where its rows come sorted, their order is that of arrival."""
    columns = arrow_types(storage, node.input)
    columns = pa.schema([field for field in columns if field.name in node.reads])
    spec, time = bound_spec(node.spec, columns), node.time or ""
    kind = columns.field(time).type if time else pa.int64()
    ties = () if is_sorted else node.order[1:]
    order = tuple(OrderColumn(each.column, each.descending, nulls_first=each.nulls_first) for each in ties)
    measures = measure_types(spec, columns, kind)
    program = PatternProgram(
        spec, node.partition, columns, measures, node.shown, time or columns.names[0], order, upstream=Upstream.WINDOW
    )
    return with_engine(program)


class Matching(OnBlobs):
    """A row pattern in a view; all keys are one bucket."""

    def __init__(self, node: Match, storage: Storage, blobs: Blobs, clock: Clock) -> None:
        self._node, self._storage, self._blobs, self._clock = node, storage, blobs, clock
        self._program = pattern_program(node, storage)
        self._engine: Engine = make_engine(self._program)

    def run(self, deltas: Deltas, *, initial: bool) -> Delta | None:
        """Take rows in, and return the matches that the watermark decides."""
        node, time = self._node, self._node.time
        if time is None:
            raise MistakeError("a pattern in a view has an event time")
        (batch,) = settled_inputs(node, self._storage, deltas)
        timed = f"(SELECT * FROM {batch} WHERE {quoted(time)} IS NOT NULL)"  # a row without a time is never final
        rows = [] if batch is None else [_rows(self._storage, self._program, node, timed, time)]
        limit = self._clock.of(node.input.watermarks[time])
        reached = None if limit is None else self._storage.value(f"SELECT epoch_us({limit})")
        output = self._engine.run(self._blobs, rows, EngineClock(MIN if reached is None else int(reached) - 1, 0))
        self._blobs.save()
        result = _result(self._storage, node, output.tables, f", 1::INT AS {quoted(WEIGHT)}")
        return None if result is None else Delta(result, Rows.INSERTED)

    def forget(self) -> None:
        super().forget()
        self._engine = make_engine(self._program)


def matched(node: Node, storage: Storage, keep: Callable[[str], None] | None = None) -> Node:
    """Return a plan of a query with the results of its patterns as relations.

    Args:
        node: the plan.
        storage: where it runs.
        keep: takes the name of each of these relations, which are there until the transaction ends.

    Raises:
        MissingEventTimeError: a row has no time, and the pattern asks for it.
        SkipTargetError: a match has no row to go on at.
        PatternLimitError: the search for one match takes too many steps.
    """

    def of_node(each: Node) -> Node:
        if not isinstance(each, Match):
            return each
        name = _all_matches(each, storage)
        if keep is not None:
            keep(name)
        ids = tuple(column.id for column in each.columns)
        return Scan(each.columns, each.key, True, {}, relation=name, stored=ids, storage=name)

    return changed_plan(node, of_node)


def _all_matches(node: Match, storage: Storage) -> str:
    """Return the relation of the matches in all rows of a node's input."""
    program = pattern_program(node, storage, is_sorted=True)
    asks = node.spec.within is not None or any(isinstance(measure.value, MatchTime) for measure in node.spec.measures)
    rows = _rows(storage, program, node, f"({compile_plan(node.input)})", node.time if asks else None)
    if rows[TIME].null_count:
        raise MissingEventTimeError(None, "a pattern with WITHIN or MATCH_ROWTIME goes")
    output = make_engine(program).run(MemoryBlobStore(), [rows], _FOREVER)
    name = _result(storage, node, output.tables, "")
    if name is None:
        empty = ", ".join(column.item("NULL") for column in node.columns)
        return storage.temporary(f"SELECT {empty} LIMIT 0")
    return name


def _rows(storage: Storage, program: PatternProgram, node: Match, relation: str, time: str | None) -> pa.Table:
    """Return rows in order, as engines take them."""
    columns = ", ".join(map(quoted, program.columns.names))
    at = "CAST(0 AS BIGINT)" if time is None else f"epoch_us({quoted(time)})"
    order = [*(item.sql for item in node.order), *map(quoted, node.input.key)]
    sorted_by = f" ORDER BY {', '.join(order)}" if order else ""
    table = storage.arrow(f"SELECT {columns}, {at} AS {quoted(TIME)} FROM {relation}{sorted_by}")
    count = table.num_rows
    table = table.append_column(PARTITION, pa.array([0] * count, pa.int32()))
    return table.append_column(POSITION, pa.array(range(count), pa.int64()))


def _result(storage: Storage, node: Match, tables: Iterable[tuple[int, pa.Table]], extra: str) -> str | None:
    """Return the relation of what an engine emitted, ``None`` for nothing."""
    found = []
    for number, table in tables:
        if number in (MAIN, TIMEOUTS) and table.num_rows:
            if node.timed_out is not None:
                table = table.append_column(node.timed_out, pa.array([number == TIMEOUTS] * table.num_rows))
            found.append(table)
    if not found:
        return None
    items = ", ".join(each.item(quoted(each.id)) for each in node.columns)
    with storage.reading(pa.concat_tables(found)) as given:
        return storage.temporary(f"SELECT {items}{extra} FROM {given}")
