"""Python workers that live long: what a batch frees, the next one takes again, and what is imported is never garbage.

Batches of a million rows allocate and free arrays of many megabytes all the time. Given back to the system, each comes as fresh
pages that the kernel zeroes first: two fifths of the processor time of an OVER engine. So in workers glibc keeps what is freed,
up to a bound, and Arrow allocates from glibc, too. Elsewhere than on Linux with glibc nothing is changed.

PySpark's daemon collects garbage after every task, while the next stage begins: 50 ms of processor time to look at a hundred
thousand objects of imported modules, which are none. So the objects that exist when a worker starts its first batch are left out
of it.

What the stages of every query need can be imported before the first of them runs: by our daemon, once for all workers, or by a
job that warms them up.

An executor keeps one daemon, with workers of its own, for each environment that functions need. Spark says in the environment
of other stages how tracebacks are to look, and leaves it out for ``transformWithState``: so there would be a second daemon, which
imports everything again while the first batch waits, and twice as many workers in memory (``shared_workers``).
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

from windowpane.errors import WindowpaneError
from windowpane.spark.internals.session import is_classic, setting

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import SparkSession

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
_KEPT_BYTES = 1 << 30
_GROWN_BY = 64 << 20
_LARGEST_ON_HEAP = 32 << 20  # glibc takes no higher value

NEEDED = (
    "windowpane.spark.building.program",  # ours first: it settles what numpy uses of a processor
    "windowpane.spark.stages.process",
    "pyspark.worker",
    "pandas",
    "pyarrow.compute",
)
"""The modules that the workers of every query import."""

GROUP = "windowpane.warm_up"
_MOST_CORES = 10_000
_LENDING = threading.RLock()

_TRACEBACKS = {
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "SPARK_SIMPLIFIED_TRACEBACK",
    "spark.sql.execution.pyspark.udf.hideTraceback.enabled": "SPARK_HIDE_TRACEBACK",
}


def import_needed() -> None:
    for module in NEEDED:
        importlib.import_module(module)


@cache
def prepare_worker() -> None:
    _keep_freed_memory()
    freeze_imported()


def freeze_imported() -> None:
    """Leave all objects of now out of garbage collection, but for that at the end of the process."""
    gc.freeze()
    atexit.register(gc.unfreeze)


def _keep_freed_memory() -> None:
    if not sys.platform.startswith("linux") or not hasattr(libc := ctypes.CDLL(None), "mallopt"):
        return
    for option, value in ((_MMAP_THRESHOLD, _LARGEST_ON_HEAP), (_TRIM_THRESHOLD, _KEPT_BYTES), (_TOP_PAD, _GROWN_BY)):
        libc.mallopt(option, value)
    pa.set_memory_pool(pa.system_memory_pool())


@contextmanager
def without_trace() -> Iterator[None]:
    """Raise errors of ours without their trace: the message says it all, in the text of Spark's exception."""
    try:
        yield
    except WindowpaneError as error:
        raise error.with_traceback(None) from None


@contextmanager
def shared_workers(spark: SparkSession) -> Iterator[None]:
    """Give the functions that are handed to Spark meanwhile the environment of those of other stages; not on Spark Connect.

    The dict itself stays as it is: batches of other queries read it in threads of their own.
    """
    if not is_classic(spark):
        yield
        return
    context = spark.sparkContext
    with _LENDING:
        before = context.environment
        lent = {name: "1" for of_session, name in _TRACEBACKS.items() if setting(spark, of_session) == "true"}
        context.environment = {**before, **lent}
        try:
            yield
        finally:
            context.environment = before


def warm_workers(spark: SparkSession) -> None:
    """Run a job whose tasks, one a core, import what the stages of a query need; a failure is logged and goes no further."""
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


def frame_of(table: pa.Table) -> pd.DataFrame:
    """Return a table of single chunks as a frame that PySpark's worker takes as it is, without a copy.

    PySpark puts each array, struct and map that a frame holds through a converter, value by value, by ``Series.apply``. What lies
    in Arrow already needs none, so its columns map to themselves.
    """
    import pandas as pd  # half a second, which the worker that only looks at a program on the driver need not wait

    column = _column_class()
    return pd.DataFrame({name: column(table[name].chunk(0)) for name in table.column_names}, copy=False)


@cache
def _column_class() -> Callable[[pa.Array], pd.api.extensions.ExtensionArray]:
    import pandas as pd

    class Converted(pd.arrays.ArrowExtensionArray):
        def map(self, mapper: object, na_action: object = None) -> Converted:
            """Return the values as they are, whatever would be made of each."""
            return self

    return Converted
