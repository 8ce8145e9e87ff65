"""Warm workers: a job whose tasks import what the stages of a query will need."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from windowpane.spark.internals.session import is_classic
from windowpane.spark.internals.worker import import_needed

GROUP = "windowpane.warm_up"

_MOST_CORES = 10_000


def warm_workers(spark: Any) -> None:
    try:
        if is_classic(spark):
            spark.sparkContext.setJobGroup(GROUP, "start Python workers")
        spark.range(_MOST_CORES).mapInArrow(imported, "id bigint").collect()
    except Exception as error:  # the session may have been stopped meanwhile, which is no failure
        logging.getLogger(__name__).info("the workers were not warmed up: %s", error)


def imported(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import_needed()
    for _ in batches:
        pass
    yield from ()
