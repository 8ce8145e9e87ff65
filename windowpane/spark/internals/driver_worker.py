"""The Python process beside the driver that Spark starts to plan a stateful operator: it imports nothing of windowpane.

Before the first batch, Spark runs ``init`` of the processor there, to see which state it declares, while the query waits. That a
processor has one map of blobs is known without importing the engines, Arrow and the user's functions, which takes half a second
of processor time; so a processor travels as bytes, and is unpickled where rows are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import StructType

_MODULE = "pyspark.sql.streaming.transform_with_state_driver_worker"  # That process, as a module that runs


def unpickled_on_workers(
    processor: StatefulProcessor, name: str, key_type: StructType, value_type: StructType
) -> StatefulProcessor:
    """Return a processor that does what ``processor`` does, which is unpickled only where rows are.

    The others are the name and the types of the one map state that its ``init`` declares.
    """
    # A class of a function is pickled with its code: a class of the module would make whoever unpickles it import windowpane. So
    # its methods name nothing but what they import and what pickle finds without windowpane.
    driver_worker = _MODULE

    class OnWorkers(StatefulProcessor):  # type: ignore[misc, unused-ignore]
        def __init__(self, pickled: bytes) -> None:
            self.pickled = pickled

        def __setstate__(self, state: dict[str, Any]) -> None:
            vars(self).update(state)
            if self.is_on_driver():
                # The process prints what it does to the user's console by ``print``, the whole user function among it, and has
                # no setting for it; what it prints before it has read the function stays.
                import sys

                vars(sys.modules["__main__"])["print"] = lambda *words, **options: None

        def is_on_driver(self) -> bool:
            import sys

            return getattr(getattr(sys.modules["__main__"], "__spec__", None), "name", None) == driver_worker

        def init(self, handle: Any) -> None:
            if self.is_on_driver():
                handle.getMapState(name, key_type, value_type)
                return
            import pickle

            self.processor = pickle.loads(self.pickled)
            self.processor.init(handle)

        def handleInputRows(self, key: object, rows: Iterator[Any], timerValues: object) -> Iterator[Any]:  # noqa: N802, N803
            yield from self.processor.handleInputRows(key, rows, timerValues)

        def handleExpiredTimer(self, key: object, timerValues: object, expiredTimerInfo: object) -> Iterator[Any]:  # noqa: N802, N803
            yield from self.processor.handleExpiredTimer(key, timerValues, expiredTimerInfo)

        def handleInitialState(self, key: object, initialState: object, timerValues: object) -> None:  # noqa: N802, N803
            self.processor.handleInitialState(key, initialState, timerValues)

        def close(self) -> None:
            if not self.is_on_driver():
                self.processor.close()

    # Spark's own serializer says in its words what cannot be pickled.
    return OnWorkers(CloudPickleSerializer().dumps(processor))  # type: ignore[no-untyped-call]
