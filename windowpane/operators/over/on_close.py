"""The OVER operator that emits on window close: each row is emitted once, in order, when all its frames are complete.

Rows wait in the sort buffer until the watermark has passed them, and leave it in order of time. Its entries: time (8 bytes, in
numeric order) | identity -> the pickled row; before them the partition, where each has a watermark of its own. Source:
RisingWave's EowcSort; its watermark w releases rows below w, this one rows at or below.

State layout, in the keyed state of a bucket, under each partition:

    tail    the rows that frames still need, in order; how many of them were emitted; the counters of numbering functions
    waits   present where a row has not been emitted yet: the partitions that the watermark may complete

Who may mutate: ``process``. Recovery: none, the entries are all there is. Invariants after each call: rows from the first that
were not emitted to the last are in the tail; so are the rows before it that a frame of theirs, or of a later row, can reach;
numbering keeps no row. Input has to arrive in order within a partition, as a sort buffer releases it. Source: RisingWave's EOWC
over-window operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa

from windowpane import pickles
from windowpane.arrays.values import Row, Value
from windowpane.errors import InconsistentChangeError, MissingOrderError
from windowpane.operators.over.complete_frames import Closing
from windowpane.operators.over.consolidation import Report
from windowpane.operators.over.functions import evaluator
from windowpane.operators.over.row_forms import RowForms
from windowpane.operators.over.row_order import RowOrder
from windowpane.operators.over.sorted_partition import SortedPartition
from windowpane.state.codec import encode_int64, encode_key
from windowpane.state.entries import Entries
from windowpane.state.keyed import KeyedState
from windowpane.windowing.outputs import APPEARING
from windowpane.windowing.over.spec import OverSpec, check_closes
from windowpane.windowing.times import MIN

_TAIL, _WAITS = "tail", "waits"


@dataclass(frozen=True, slots=True)
class Tail:
    rows: tuple[Row, ...] = ()
    emitted: int = 0
    numbers: RunningNumbers | None = None


class OverOnClose:
    def __init__(self, spec: OverSpec, columns: pa.Schema, outputs: pa.Schema, state: KeyedState) -> None:
        check_closes(spec)
        self._spec = spec
        self._order = RowOrder(spec, columns)
        self._partition = RowForms(columns, spec.partition_by)
        self._closings = [Closing(call, self._order) for call in spec.calls]
        named = list(zip(outputs.names, spec.calls, strict=True))
        self._calls = [(name, evaluator(call, columns)) for name, call in named if not call.is_numbering]
        self._numberings = [(name, call.function) for name, call in named if call.is_numbering]
        self._state = state

    def process(self, rows: Iterable[Row], closed: int = MIN, only: tuple[Value, ...] | None = None) -> list[Row]:
        """Take rows in order and return those that are complete now, in order within each partition.

        ``closed`` is the watermark in microseconds: it has passed the rows, and no row at or below it is still to come. Where
        each partition has its own, it is that of ``only`` one, which the rows are of.
        """
        arrived: dict[bytes, list[Row]] = {}
        for row in rows:
            if row[self._spec.order_names[0]] is None:
                raise MissingOrderError(self._spec.order_names[0], row)
            arrived.setdefault(encode_key(self._partition.spelled(row)), []).append(row)
        emitted = []
        for new in arrived.values():
            emitted += self._advance(self._partition.spelled(new[0]), new, closed)
        wanted = None if only is None else encode_key(only)
        for partition in self.waiting() if closed > MIN else ():
            if wanted is None or encode_key(partition) == wanted:
                emitted += self._advance(partition, [], closed)
        return emitted

    def waiting(self) -> list[Value]:
        return [partition for partition, _, name in self._state.slots() if name == _WAITS]

    def _load(self, partition: object) -> Tail:
        self._state.set_current_key(partition)
        return self._state.get(None, _TAIL) or Tail()

    def _advance(self, key: tuple[Value, ...], new: list[Row], closed: int) -> list[Row]:
        tail = self._load(key)
        partition = SortedPartition([*tail.rows, *new], self._order)
        index, numbers, emitted = tail.emitted, self._numbers(tail), []
        while index < len(partition.rows) and all(each.is_complete(partition, index, closed) for each in self._closings):
            numbers = numbers.next(tuple(partition.rows[index][name] for name in self._spec.order_names))
            emitted.append(self._result(partition, index, numbers))
            index += 1
        self._keep(partition, index, numbers, closed)
        return emitted

    def _numbers(self, tail: Tail) -> RunningNumbers:
        """Return the numbers of the last row that was emitted; where nobody asked for them so far, by the rows in state."""
        if tail.numbers is not None:
            return tail.numbers
        numbers = RunningNumbers()
        for row in tail.rows[: tail.emitted] if self._numberings else ():
            numbers = numbers.next(tuple(row[name] for name in self._spec.order_names))
        return numbers

    def _result(self, partition: SortedPartition, index: int, numbers: RunningNumbers) -> Row:
        values = {name: call(partition, index) for name, call in self._calls}
        return {**partition.rows[index], **values, **{name: numbers.of(function) for name, function in self._numberings}}

    def _keep(self, partition: SortedPartition, index: int, numbers: RunningNumbers, closed: int) -> None:
        start = min(closing.keep_from(partition, index, closed) for closing in self._closings)
        tail = Tail(tuple(partition.rows[start:]), index - start, numbers if self._numberings else None)
        self._state.put(None, _TAIL, None if not tail.rows and tail.numbers is None else tail)
        self._state.put(None, _WAITS, True if index < len(partition.rows) else None)


@dataclass(frozen=True, slots=True)
class RunningNumbers:
    """The numbers of the last row that was emitted: 0 before the first."""

    row_number: int = 0  # its position in the partition
    rank: int = 0  # the position of its first peer
    dense_rank: int = 0  # the number of its group of peers
    order: tuple[Value, ...] = ()  # its ORDER BY values

    def next(self, order: tuple[Value, ...]) -> RunningNumbers:
        number = self.row_number + 1
        if number > 1 and order == self.order:
            return RunningNumbers(number, self.rank, self.dense_rank, order)
        return RunningNumbers(number, number, self.dense_rank + 1, order)

    def of(self, function: str) -> int:
        return int(getattr(self, function))


@dataclass
class SortBuffer:
    entries: Entries
    identity: Callable[[Row], tuple[Value, ...]]
    order: Callable[[Row], Value]
    report: Report
    place: Callable[[Row], bytes] = lambda _: b""
    """What comes before the time in an address: the partition, where each has a watermark of its own."""

    def change(self, word: str, time: int, row: Row) -> None:
        """Take an entry of a changelog: rows that wait can still be updated and deleted."""
        address = self.place(row) + encode_int64(time) + encode_key(self.identity(row))
        is_here = self.entries.get(address) is not None
        if (word in APPEARING) == is_here:
            self.report(InconsistentChangeError(word, row, "it waits already" if is_here else "it does not wait, or no longer"))
        if word in APPEARING:
            self.entries.put(address, pickles.dumps(row))
        else:
            self.entries.delete(address)

    def release(self, watermark: int, place: bytes = b"") -> list[tuple[int, Row]]:
        due = list(self.entries.scan(place + encode_int64(MIN), place + encode_int64(watermark) + b"\xff"))
        released = [(_time(address[len(place) :]), pickles.loads(row)) for address, row in due]
        for address, _ in due:
            self.entries.delete(address)
        return sorted(released, key=lambda timed: (timed[0], self.order(timed[1])))


def _time(address: bytes) -> int:
    return int.from_bytes(address[:8], "big") - 2**63
