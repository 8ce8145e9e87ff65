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


_DRIVER_WORKER = """
import builtins, pickle, sys
from types import SimpleNamespace
from windowpane.spark.stages.process import BucketProcessor
from windowpane.spark.stages.wire import Wire
processor = pickle.dumps(BucketProcessor(dict, Wire(), "None"))
print("before")
pickle.loads(processor)
print("in another process")
sys.modules["__main__"].__spec__ = SimpleNamespace(name="pyspark.sql.streaming.transform_with_state_driver_worker")
pickle.loads(processor)
print("Received UDF from JVM")
builtins.print("of the user")
"""


def test_the_driver_worker_says_nothing_to_the_users_console():
    done = subprocess.run([sys.executable, "-c", _DRIVER_WORKER], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["before", "in another process", "of the user"]
