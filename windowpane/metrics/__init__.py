"""Metrics of the queries of a session: for Prometheus, and for OpenTelemetry where it is installed.

``registry`` says which metrics there are, ``samples`` what a batch says of each, ``prometheus`` and ``telemetry`` where they go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowpane.errors import MissingExtraError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windowpane.metrics.prometheus import Served


def serve(spark: SparkSession, port: int = 9187, host: str = "127.0.0.1") -> Served:
    """Serve the metrics of all queries of a session over HTTP, as text for Prometheus.

    A ``StreamingQueryListener`` takes the progress of each batch, so a query is not slowed. Where OpenTelemetry is installed,
    each batch is a span besides, and its figures are the attributes.

    Args:
        spark: the session.
        port: the port; 0 for a free one.
        host: the address; say ``"0.0.0.0"`` for scrapes from other machines.

    Returns:
        What serves them, with ``port`` and ``close()``.

    Raises:
        MissingExtraError: ``prometheus_client`` is not installed.

    Example:
        >>> served = wp.metrics.serve(spark, port=9187)
    """
    try:
        from windowpane.metrics.prometheus import Served
    except ModuleNotFoundError as error:
        if error.name != "prometheus_client":
            raise
        raise MissingExtraError("prometheus_client", "metrics") from None
    return Served(spark, port, host)
