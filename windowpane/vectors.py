"""Which vector instructions numpy sorts with: not those of AVX-512 on AMD's Zen 4, where AVX2 sorts five times as fast.

numpy takes the widest vectors that a processor has. Its sorts store what they part with compressing stores, which Zen 4 does in
microcode: a million integers take 62 ms instead of 11 ms (https://github.com/numpy/x86-simd-sort/issues/6). numpy reads what it
must not use from the environment, once, when it is first imported. So windowpane looks at the processor before that, and what is
started from here, Spark's JVM and its Python workers, inherits the variable. Whoever has set the variable is left alone.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import MutableMapping
from importlib.metadata import version
from pathlib import Path

VARIABLE = "NPY_DISABLE_CPU_FEATURES"

_CPUS = Path("/proc/cpuinfo")
_ONE_CPU = 1 << 12
"""Characters in which the first processor is described."""
_RENAMED = (2, 4)
"""The version of numpy that calls the instructions by their level."""


def choose_vectors(environment: MutableMapping[str, str] = os.environ, cpus: Path = _CPUS) -> None:
    """Keep a numpy that is imported from now on from using AVX-512 where its sorts are slow.

    Args:
        environment: where numpy looks.
        cpus: what Linux says of the processors; elsewhere nothing is changed.
    """
    if VARIABLE not in environment and "numpy" not in sys.modules and _is_zen_4(cpus):
        release = tuple(int(part) for part in version("numpy").split(".")[:2])
        environment[VARIABLE] = "X86_V4" if release >= _RENAMED else "AVX512_SKX"


def _is_zen_4(cpus: Path) -> bool:
    """Whether a processor is one of AMD's family 19h with AVX-512, which only its Zen 4 members have."""
    try:
        with cpus.open() as file:
            first = file.read(_ONE_CPU)
    except OSError:
        return False
    described = dict(re.findall(r"^(.*?)\s*: (.*)$", first, re.MULTILINE))
    is_family = described.get("vendor_id") == "AuthenticAMD" and described.get("cpu family") == str(0x19)
    return is_family and "avx512f" in described.get("flags", "").split()
