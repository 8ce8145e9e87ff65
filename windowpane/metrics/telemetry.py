"""Batches as spans of OpenTelemetry: each begins and ends with its batch, and has its figures as attributes. A query is none."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, Self

from windowpane.metrics.samples import Sample


class Spans:
    """Makes a span of each batch, by a tracer of the provider that the process has set."""

    def __init__(self, tracer: Any) -> None:
        self._tracer = tracer

    @classmethod
    def where_installed(cls) -> Self | None:
        """Return one where OpenTelemetry is installed, else ``None``."""
        try:
            from opentelemetry import trace
        except ModuleNotFoundError:
            return None
        return cls(trace.get_tracer("windowpane"))

    def take(self, progress: Any, query: str, samples: Sequence[Sample]) -> None:
        """Record a batch: it began at its timestamp, and took as long as all its stages together."""
        begin = dt.datetime.fromisoformat(str(progress["timestamp"]).replace("Z", "+00:00")).timestamp()
        took = (progress["durationMs"] or {}).get("triggerExecution", 0) / 1000
        attributes = {"windowpane.query": query, "windowpane.batch": progress["batchId"]}
        attributes |= {".".join((each.metric.name, *each.labels[1:])): each.value for each in samples}
        span = self._tracer.start_span("windowpane.batch", start_time=int(begin * 1e9), attributes=attributes)
        span.end(end_time=int((begin + took) * 1e9))
