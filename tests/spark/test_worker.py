"""What workers do once, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import gc, duckdb
from windowpane.spark.internals.worker import prepare_worker
prepare_worker()
once = gc.get_freeze_count()
prepare_worker()
held = [[]]; held.append(held); del held
print(once > 10_000, gc.get_freeze_count() == once, gc.collect() > 0)
"""


def test_what_is_imported_is_never_garbage_and_the_end_is_as_quiet_as_ever():
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "True"]
    assert done.stderr == ""
