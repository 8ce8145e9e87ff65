"""Memory of Python workers: what a batch frees, the next one takes again.

Batches of a million rows allocate and free arrays of many megabytes all the time. Given back to the system, each comes as fresh
pages that the kernel zeroes first: two fifths of the processor time of an OVER engine. So in workers glibc keeps what is freed,
up to a bound, and Arrow allocates from glibc, too. Elsewhere than on Linux with glibc nothing is changed.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

import pyarrow as pa

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
_KEPT_BYTES = 1 << 30
_GROWN_BY = 64 << 20
_LARGEST_ON_HEAP = 32 << 20
"""glibc takes no higher value."""


@cache
def keep_freed_memory() -> None:
    """Keep freed memory in this process; once is enough."""
    if not sys.platform.startswith("linux") or not hasattr(libc := ctypes.CDLL(None), "mallopt"):
        return
    for option, value in ((_MMAP_THRESHOLD, _LARGEST_ON_HEAP), (_TRIM_THRESHOLD, _KEPT_BYTES), (_TOP_PAD, _GROWN_BY)):
        libc.mallopt(option, value)
    pa.set_memory_pool(pa.system_memory_pool())
