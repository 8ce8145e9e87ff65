"""Metrics for Prometheus: a registry of its client, which listeners fill and a small server shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, start_http_server

from windowpane.metrics.registry import METRICS, Kind
from windowpane.metrics.samples import samples_of
from windowpane.metrics.telemetry import Spans
from windowpane.spark.internals.counted import counted
from windowpane.spark.internals.listening import listen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class Served:
    """The metrics of a session, as long as it is not closed.

    Attributes:
        port: where they are served.
    """

    def __init__(self, spark: SparkSession, port: int, host: str) -> None:
        self._registry = CollectorRegistry()
        self._metrics: dict[str, Any] = {}
        for each in METRICS:
            if each.name not in self._metrics:
                self._metrics[each.name] = _made(each.name, each.kind, each.help, each.labels, self._registry)
        self._spans = Spans.where_installed()
        self._server, self._thread = start_http_server(port, host, self._registry)
        self.port = int(self._server.server_port)
        self._stop_listening = listen(spark, self.take)

    def take(self, progress: Any) -> None:
        operators = counted(progress)
        name = str(progress["name"] or progress["id"])
        samples = list(samples_of(progress, operators, name))
        for sample in samples:
            of = self._metrics[sample.metric.name].labels(*sample.labels)
            if sample.metric.kind is Kind.COUNTER:
                of.inc(max(sample.value, 0))
            elif sample.metric.kind is Kind.GAUGE:
                of.set(sample.value)
            else:
                of.observe(sample.value)
        if self._spans is not None:
            self._spans.take(progress, name, samples)

    def text(self) -> str:
        return str(generate_latest(self._registry).decode())

    def close(self) -> None:
        self._stop_listening()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _made(name: str, kind: Kind, text: str, labels: tuple[str, ...], registry: CollectorRegistry) -> Any:
    if kind is Kind.HISTOGRAM:
        return Histogram(name, text, labels, buckets=_SECONDS, registry=registry)
    return {Kind.COUNTER: Counter, Kind.GAUGE: Gauge}[kind](name, text, labels, registry=registry)
