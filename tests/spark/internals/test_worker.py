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


_PICKLED = """
import pickle, sys
from pyspark import cloudpickle
from windowpane.spark.internals.driver_worker import unpickled_on_workers
from windowpane.spark.internals.blob_state import SparkBlobStore
from windowpane.spark.stages.process import BucketProcessor
from windowpane.spark.stages.wire import Wire
processor = unpickled_on_workers(BucketProcessor(dict, Wire(), "None"), *SparkBlobStore.DECLARED)
sys.stdout.buffer.write(cloudpickle.dumps(processor))
"""
_DRIVER_WORKER = """
import builtins, pickle, sys
from types import SimpleNamespace

class Handle:
    def getMapState(self, name, key, value):
        builtins.print(name, key.simpleString(), value.simpleString())

pickled = sys.stdin.buffer.read()
print("before")
pickle.loads(pickled)
print("in another process")
sys.modules["__main__"].__spec__ = SimpleNamespace(name="pyspark.sql.streaming.transform_with_state_driver_worker")
processor = pickle.loads(pickled)
print("Received UDF from JVM")
processor.init(Handle())
processor.close()
builtins.print("imported", [name for name in sys.modules if name.split(".")[0] in ("windowpane", "pyarrow", "pandas")])
"""


def test_the_driver_worker_declares_the_state_imports_nothing_and_prints_nothing_to_the_users_console():
    pickled = subprocess.run([sys.executable, "-c", _PICKLED], capture_output=True, check=True).stdout
    done = subprocess.run([sys.executable, "-c", _DRIVER_WORKER], input=pickled, capture_output=True, check=True)
    state = "blobs struct<name:string> struct<blob:binary>"
    assert done.stdout.decode().splitlines() == ["before", "in another process", state, "imported []"]
