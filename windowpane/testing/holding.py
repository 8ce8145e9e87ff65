"""What harnesses hold, as a bucket of the reference engine: so it is looked into as a checkpoint is.

The state and timers of a window harness are copied into a store of blobs. Keys get the types that Arrow finds for their values;
results are values of any kind, and shown as texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from windowpane.arrays.values import JsonValue, Value
from windowpane.engines.batch.header import HEADER, BucketHeader
from windowpane.engines.batch.late_counts import Cell, LateCounts
from windowpane.engines.batch.own_watermark import OWN_WATERMARK, write_state
from windowpane.engines.program import MAIN, BucketProgram, Program
from windowpane.engines.registry import engine_named
from windowpane.errors import InvalidSpecError
from windowpane.inspect.buckets import Bucket
from windowpane.inspect.holders import WithoutBatches
from windowpane.state.blob_store import BlobStore
from windowpane.state.entries import MemoryEntries
from windowpane.state.keyed import KeyedState
from windowpane.state.memory import MemoryBlobStore
from windowpane.state.sorted_pages import SortedPages
from windowpane.testing.records import Emitted, Given, LateRecord, WatermarkRecord
from windowpane.windowing.functions import ProcessContext, ProcessWindowFunction
from windowpane.windowing.outputs import OutputTag
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.times import MIN
from windowpane.windowing.watermarks import Watermarks, WatermarkState

_WHY = "a harness runs the reference"
_RESULT = pa.schema([pa.field("result", pa.string())])


@dataclass(frozen=True)
class HeldByHarness(WithoutBatches):
    """One bucket, of the batch that a harness is in."""

    bucket: Bucket
    location: str = "a harness"
    query_id: str = "a harness"

    def operators(self) -> Sequence[int]:
        """Return the number of the only one."""
        return [self.bucket.operator]

    def programs(self, operator: int, batch: int) -> Iterator[Bucket]:
        """Yield the bucket."""
        yield self.bucket


class _Shown(ProcessWindowFunction):
    """A function of the user's, whose results are texts."""

    def __init__(self, function: ProcessWindowFunction) -> None:
        self._function = function

    def process(self, key: Value, context: ProcessContext, elements: Sequence[Value]) -> Iterable[Value]:
        return [{"result": repr(value)} for value in self._function.process(key, context, elements) or ()]


class _OfHarness(Program):
    """A program whose function may write to any side output: of a firing that is only looked at, nothing is emitted."""

    def output_of(self, tag: OutputTag) -> int | None:
        return MAIN + 1


def held_by_windows(
    spec: WindowSpec,
    entries: Sequence[MemoryEntries],
    clocks: tuple[int, int],
    history: Sequence[Given | Emitted],
    strategy: Watermarks | None,
    known: WatermarkState | None,
) -> HeldByHarness:
    """Return what a harness of windows holds.

    Args:
        spec: the windowed computation.
        entries: keyed state, and the timers of event time and processing time.
        clocks: the watermark and the processing time.
        history: what happened, in order.
        strategy: how the watermark is made, where it is made of elements.
        known: what is known of the watermark, likewise.

    Raises:
        InvalidSpecError: the keys have values of several types, for which a column has none.
    """
    store = MemoryBlobStore()
    for name, each in zip(("s", "e", "p"), entries, strict=True):
        pages = SortedPages(store, name)
        for key, value in each.scan(b""):
            pages.put(key, value)
        pages.flush()
    if known is not None and strategy is not None:
        store.put(OWN_WATERMARK, write_state(known, strategy.source))
    keys = _types_of_keys([key for key, _, _ in KeyedState(entries[0]).slots()])
    delay = strategy.delay if strategy is not None and strategy.of_each_key else None
    names = tuple(keys.names)
    shown = replace(spec, function=replace(spec.function, process=_Shown(spec.function.process)))
    program = _OfHarness(shown, keys, names, (), _RESULT, pa.timestamp("us", "UTC"), key_delay=delay)
    about: dict[str, JsonValue] = {"kind": "windows", "engine": program.engine, "program": repr(spec)}
    if spec.assigner.is_event_time:
        about |= {"event time": "timestamp"} | ({} if strategy is None else {"watermark delay": strategy.delay})
    watermark = MIN if delay is not None else clocks[0]
    return _held(program, store, BucketHeader(about, watermark, clocks[1], late=_late(history)))


def held_by_patterns(program: BucketProgram, store: MemoryBlobStore, engine: str) -> HeldByHarness:
    """Return what a harness of patterns holds."""
    blob = store.get(HEADER)
    header = BucketHeader({}) if blob is None else BucketHeader.of(blob)
    about = {"kind": "pattern", "engine": engine, "event time": getattr(program, "event_time", None)}
    return _held(program, store, replace(header, description=about))


def _held(program: BucketProgram, store: BlobStore, header: BucketHeader) -> HeldByHarness:
    return HeldByHarness(Bucket(0, 0, store, header, program, engine_named(header.description["engine"]), _WHY))


def _types_of_keys(keys: Sequence[Value]) -> pa.Schema:
    """Return key columns: one for values, one for each value of tuples, and none where all keys are that of ``window_all``."""
    if all(key is None for key in keys):
        return pa.schema([])
    rows = [key if isinstance(key, tuple) else (key,) for key in keys]
    if len({len(row) for row in rows}) > 1:
        raise InvalidSpecError(f"keys have {sorted({len(row) for row in rows})} values: all of one program have as many.")
    names = ["key"] if len(rows[0]) == 1 else [f"key_{number}" for number in range(1, len(rows[0]) + 1)]
    fields = []
    for name, values in zip(names, zip(*rows, strict=True), strict=True):
        try:
            fields.append(pa.field(name, pa.array(values).type))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            kinds = ", ".join(sorted({type(value).__name__ for value in values}))
            raise InvalidSpecError(f"values of the key are of several types, {kinds}: a column has one.") from None
    return pa.schema(fields)


def _late(history: Sequence[Given | Emitted]) -> list[Cell]:
    """Return the counters of late elements, each under the watermark that it came under."""
    counts, watermark, one = LateCounts(), MIN, np.ones(1, np.int64)
    for record in history:
        if isinstance(record, WatermarkRecord):
            watermark = max(watermark, record.watermark)
        elif isinstance(record, LateRecord):
            last = min((window.max_timestamp for window in record.windows_missed), default=record.timestamp)
            counts.note(one * record.timestamp, one * last, watermark, one, one * record.dropped, record.key)
    return counts.cells()
