"""Python workers that live long: what a batch frees, the next one takes again, and what is imported is never garbage.

Batches of a million rows allocate and free arrays of many megabytes all the time. Given back to the system, each comes as fresh
pages that the kernel zeroes first: two fifths of the processor time of an OVER engine. So in workers glibc keeps what is freed,
up to a bound, and Arrow allocates from glibc, too. Elsewhere than on Linux with glibc nothing is changed.

PySpark's daemon collects garbage after every task, while the next stage begins: 50 ms of processor time to look at a hundred
thousand objects of imported modules, which are none. So the objects that exist when a worker starts its first batch are left out
of it.

What the stages of every query need can be imported before the first of them runs: by our daemon, once for all workers, or by a
job that warms them up.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pyarrow as pa

from windowpane.errors import WindowpaneError

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
_KEPT_BYTES = 1 << 30
_GROWN_BY = 64 << 20
_LARGEST_ON_HEAP = 32 << 20
"""glibc takes no higher value."""

_NEEDED = ("pyspark.worker", "pandas", "pyarrow.compute", "windowpane.spark.stages.encode", "windowpane.spark.stages.process")


def import_needed() -> None:
    for module in _NEEDED:
        importlib.import_module(module)


@cache
def prepare_worker() -> None:
    """Prepare this process for many batches; once is enough."""
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
