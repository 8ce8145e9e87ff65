"""Counted: the counters of operators out of the progress of a query.

Spark has the metrics of a batch in its progress; that of a trigger without a batch has none. Spark Connect sends the metrics of a
batch with their schema.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from windowpane.arrays.values import Row, Value
from windowpane.engines.join.program import JOIN_COUNTERS, JoinCounters
from windowpane.engines.protocol import COUNTERS
from windowpane.engines.rolling.program import ROLLING_COUNTERS, RollingCounters
from windowpane.malformed import MALFORMED_ROWS, MOST_SHOWN, MalformedRow
from windowpane.spark.internals.plan_trees import UNREADABLE, listed

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_KINDS = (COUNTERS, JOIN_COUNTERS, ROLLING_COUNTERS)
_SIZES = {*JoinCounters.gauges, *RollingCounters.gauges, "watermark", "watermark_held_by", "complete_since"}
"""What is so at the end of a batch, and is not added up."""

_NOT_COUNTED = {MALFORMED_ROWS, "watermark", "watermark_held_by", "complete_since"}

Counters: TypeAlias = dict[str, Value]
"""The counters of one operator, by their names."""
CountersByName: TypeAlias = dict[str, Counters]

_STARTED: dict[str, Mapping[str, tuple[str, ...]]] = {}
"""By the id of a run: the counters of each operator, where no plan can be read (Connect)."""
_SEEN: dict[str, tuple[int, CountersByName]] = {}
"""By the id of a run: the last batch that was read, and the counters up to it."""
_LOCK = threading.Lock()


def note_operators(query: StreamingQuery, operators: Mapping[str, tuple[str, ...]]) -> None:
    _STARTED[str(query.runId)] = operators


def counted(query: StreamingQuery | Row) -> CountersByName:
    if isinstance(query, Mapping):
        return _of_batch(query)
    run = str(query.runId)
    with _LOCK:
        if run not in _SEEN:
            counters_of = _STARTED.get(run) or _in_plan(query)
            at_first = {name: dict.fromkeys((c for c in each if c not in _NOT_COUNTED), 0) for name, each in counters_of.items()}
            _SEEN[run] = (-1, at_first)
        last, found = _SEEN[run]
        batches = [(batch["batchId"], _of_batch(batch)) for batch in query.recentProgress]
        batches = [(number, counters) for number, counters in batches if counters] or _last_executed(query)
        for number, counters in batches:
            if number > last:
                last, found = number, _added(found, counters)
        _SEEN[run] = (last, found)
    return {name: dict(counters) for name, counters in found.items()}


def _added(found: Mapping[str, Counters], batch: Mapping[str, Counters]) -> CountersByName:
    total = {name: dict(counters) for name, counters in found.items()}
    for name, counters in batch.items():
        held = total.setdefault(name, {})
        for counter, value in counters.items():
            if counter == MALFORMED_ROWS:
                held[counter] = (*held.get(counter, ()), *value)[:MOST_SHOWN]
            else:
                held[counter] = value if counter in _SIZES else held.get(counter, 0) + value
    return total


def _of_batch(batch: Row) -> CountersByName:
    metrics = {}
    for name, row in batch["observedMetrics"].items():
        fields: Counters = row.asDict()
        if fields.keys() == {"schema", "values"}:  # a row of Spark Connect's
            fields = dict(zip((column["name"] for column in fields["schema"]["fields"]), fields["values"], strict=True))
        metrics[name] = _shown(fields)
    return {name: fields for name, fields in metrics.items() if _is_ours(fields)}


def _shown(fields: Counters) -> Counters:
    if MALFORMED_ROWS not in fields:
        return fields
    shown = fields[MALFORMED_ROWS]
    rows = [] if shown is None else json.loads(base64.b64decode(shown))
    return {**fields, MALFORMED_ROWS: tuple(MalformedRow(**row) for row in rows)}


def _is_ours(names: Iterable[str]) -> bool:
    return any(set(kind) <= set(names) for kind in _KINDS)


def _last_executed(query: StreamingQuery) -> list[tuple[int, CountersByName]]:
    """Return the last batch of a query, whose progress Spark no longer has; none where the execution cannot be read (Connect)."""
    try:
        batch = query._jsq.streamingQuery().lastExecution()
        metrics = batch.observedMetrics()
        rows = {name: metrics.get(name).get() for name in _in_plan(query) if metrics.contains(name)}
        found = {name: _shown({each: row.getAs(each) for each in row.schema().fieldNames()}) for name, row in rows.items()}
        return [(int(batch.currentBatchId()), found)] if found else []
    except UNREADABLE:
        return []


def _in_plan(query: StreamingQuery) -> dict[str, tuple[str, ...]]:
    """Return the counters of the operators in the plan of a query; none where it cannot be read."""
    try:
        plans = [query._jsq.streamingQuery().analyzedPlan()]
        found = {}
        while plans:
            plan = plans.pop()
            plans.extend(listed(plan.children()))
            if plan.nodeName() == "CollectMetrics":
                found[str(plan.name())] = tuple(str(metric.name()) for metric in listed(plan.metrics()))
    except UNREADABLE:
        return {}
    return {name: names for name, names in found.items() if _is_ours(names)}
