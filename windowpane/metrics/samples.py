"""Samples: what one batch of a query says of each metric."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from windowpane.metrics.registry import METRICS, OPERATOR, Metric


class Sample(NamedTuple):
    """One figure: the metric, the values of its labels, and the figure."""

    metric: Metric
    labels: tuple[str, ...]
    value: float

    @property
    def text(self) -> str:
        """The metric with its labels, but for the query, as Prometheus shows it."""
        pairs = zip(self.metric.labels[1:], self.labels[1:], strict=True)
        return f"{self.metric.name}{{{','.join(f'{name}={json.dumps(value)}' for name, value in pairs)}}}"


def samples_of(progress: Mapping[str, Any], operators: Mapping[str, Mapping[str, Any]], query: str = "") -> Iterator[Sample]:
    """Yield the samples of a batch.

    Args:
        progress: the progress of the batch, as Spark gives it.
        operators: the counters of its operators.
        query: the name of the query.
    """
    for metric in METRICS:
        if metric.labels[:2] == OPERATOR:
            for name, counters in operators.items():
                value = _of_counters(metric.source, counters)
                if value is not None:
                    yield Sample(metric, (query, name, *([] if metric.label is None else [metric.label])), value)
        else:
            for stage, value in _of_progress(metric.source, progress):
                yield Sample(metric, (query, *stage), value)
    yield from _of_stores(progress, list(operators), query)


def _of_counters(source: str, counters: Mapping[str, Any]) -> float | None:
    whole, _, part = source.partition(" - ")
    if whole not in counters or (part and part not in counters):
        return None
    value = counters[whole]
    if isinstance(value, str):
        is_instant = value.endswith("Z")  # else it is never, or in no calendar
        return _instant(value).timestamp() if is_instant else math.inf
    return float(value - (counters[part] if part else 0))


def _of_progress(source: str, progress: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], float]]:
    if source == "batchId":
        yield (), 1.0
    elif source == "eventTime.watermark":
        watermark, now = (progress.get("eventTime") or {}).get("watermark"), progress.get("timestamp")
        if watermark is not None and now is not None and not str(watermark).startswith("1970-01-01T00:00:00"):
            yield (), (_instant(now) - _instant(watermark)).total_seconds()
    elif source.startswith("durationMs."):
        stages = progress.get("durationMs") or {}
        name = source.removeprefix("durationMs.")
        for stage, took in stages.items():
            if name in ("*", stage):
                yield ((stage,) if name == "*" else ()), took / 1000
    elif (value := progress.get(source)) is not None and value == value:
        yield (), float(value)


def _of_stores(progress: Mapping[str, Any], names: list[str], query: str) -> Iterator[Sample]:
    """Yield the size of Spark's stores; Spark lists them from the last operator to the first."""
    metric = next(each for each in METRICS if each.source == "stateOperators.memoryUsedBytes")
    stores = [each for each in progress.get("stateOperators") or [] if each["operatorName"].startswith("transformWithState")]
    if len(stores) == len(names):
        for name, store in zip(names, reversed(stores), strict=True):
            yield Sample(metric, (query, name, metric.label or ""), float(store["memoryUsedBytes"]))


def _instant(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(str(text).replace("Z", "+00:00"))
