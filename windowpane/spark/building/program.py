"""BuiltProgram: encoded rows -> the rows that an operator emits, the same for every kind of operator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from windowpane.engines.protocol import Engine
from windowpane.errors import UndeclaredSideOutputError
from windowpane.spark.building.outputs import Output
from windowpane.spark.internals.shared_workers import shared_workers
from windowpane.spark.queries.settings import choose_settings
from windowpane.spark.queries.worker_python import check_worker_python
from windowpane.spark.stages import bounded, encode, process
from windowpane.spark.stages.wire import Wire, counter_columns, wire_of


def operate(
    encoded: Any,
    make_engine: Callable[[], Engine],
    wire: Wire,
    *,
    time_mode: str | None,
    delay: int = 0,
    counted_as: str | None = None,
) -> Any:
    """Return what an engine on buckets makes of encoded rows.

    Args:
        encoded: a DataFrame of ``encode.SCHEMA``.
        make_engine: makes the engine.
        wire: how its outputs travel.
        time_mode: Spark's time mode for a stream; ``None`` for static rows, which need no state of Spark's.
        delay: microseconds by which the operator's watermark stays behind Spark's.
        counted_as: the name of the counters in the query's progress, ``None`` for none.
    """
    check_worker_python(encoded.sparkSession)
    grouped = encoded.groupBy(encode.BUCKET)
    if time_mode is None:
        return grouped.applyInArrow(bounded.bounded_processor(make_engine, wire), wire.spark_schema)
    choose_settings(encoded.sparkSession)
    processor = process.BucketProcessor(make_engine, wire, time_mode, delay)
    with shared_workers(encoded.sparkSession):
        rows = grouped.transformWithStateInPandas(processor, wire.spark_schema, "append", time_mode)
    return rows if counted_as is None else rows.observe(counted_as, *counter_columns())


class BuiltProgram(ABC):
    """The outputs of a program on a DataFrame."""

    @property
    @abstractmethod
    def outputs(self) -> Mapping[str, Output]:
        """The outputs by name, ``main`` among them."""

    @abstractmethod
    def rows(self, wire: Wire) -> Any:
        """Return the rows of the last operator, as they travel by ``wire``."""

    @cached_property
    def blobs(self) -> Any:
        """The rows of the last operator, every output as blobs: what is small to keep while several sinks read it."""
        return self.rows(Wire())

    @cached_property
    def wired(self) -> tuple[Any, Wire]:
        """The rows of the last operator, main rows as columns where they can be, and how they travel."""
        main = self.outputs["main"]
        wire = wire_of(main.arrow, main.spark)
        return (self.rows(wire) if wire.main is not None else self.blobs), wire

    def named(self, name: str) -> Output:
        """Return output ``name``; refuse a name nobody declared."""
        if name not in self.outputs:
            raise UndeclaredSideOutputError(name, [other for other in self.outputs if other != "main"])
        return self.outputs[name]
