"""The engine of interval joins: the pairs of a batch by search in sorted arrays.

Beside a row is stored whether it has matched. A left row is final once the watermark has passed the last time of any match,
and a right row likewise: then it is emitted, if it is unmatched and padded, and is held no longer. A row that is taken later is
above the watermark less the lateness, so it can reach no final row, and whatever it can reach is held.

State: pages ``l`` and ``r`` of the held rows, by spans of a quarter of the interval, or by keys alone where a column is the upper
bound. A batch reads the pages that its rows reach or are put into, and those with a row to pad. Rows that are final and need not
be padded stay until their page is read for something else, or is dropped as a whole; they are counted as held. Pairs are made
while they are read (``Pieces``), so those of a hot key are never in memory together.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Mask
from windowpane.arrays.columns import replaced
from windowpane.engines.join.batch import Held, JoinBatch, Rows, Tables, fulfilling
from windowpane.engines.join.paged import BESIDE, ORDER, SidePages, due_of, flags, hashes_of, integers
from windowpane.engines.join.program import JoinProgram
from windowpane.engines.program import MAIN
from windowpane.engines.spec import BucketEngine
from windowpane.errors import MistakeError
from windowpane.hidden_columns import TIME, hidden
from windowpane.kernels.ranges import Places, Ranges, moved
from windowpane.state.blob_store import BlobStore
from windowpane.state.hash_pages import PageSummary
from windowpane.windowing.expressions import SIDES, Side
from windowpane.windowing.joins import LEFT_ONLY, IntervalMatch
from windowpane.windowing.lateness import horizon
from windowpane.windowing.times import MAX, MIN

MATCHED = hidden("matched")


class _Met(NamedTuple):
    """Rows of both sides that meet, left ones from ``first_left`` on, right ones from ``first_right`` on, and their ranges."""

    ranges: Ranges
    first_left: int
    first_right: int
    left: pa.Table
    right: pa.Table

    def pairs(self) -> Iterator[tuple[Integers, Integers]]:
        for lefts, rights in self.ranges.pairs():
            yield lefts + self.first_left, rights + self.first_right


class _IntervalBatch(JoinBatch):
    kept_beside = pa.schema([pa.field(MATCHED, pa.bool_()), *BESIDE])

    def __init__(self, engine: BucketEngine[JoinProgram], store: BlobStore) -> None:
        super().__init__(engine, store)
        program, match = self.program, self.program.match
        if not isinstance(match, IntervalMatch):
            raise MistakeError("the engine refuses other joins")
        self._match = match
        span = None if match.upper_column else (match.upper - match.lower) // 4
        self._pads: dict[Side, bool] = {"left": program.pads_left, "right": program.pads_right}
        self._marks: dict[Side, bool] = {"left": program.pads_left or program.how in LEFT_ONLY, "right": program.pads_right}
        for side in SIDES:
            marks = MATCHED if self._marks[side] else None
            self.side_pages[side] = SidePages(store, side[0], self.columns(side), span, partial(self._summary, side), marks)
        was = self.header.description
        if any(was.get(part) != program.description.get(part) for part in ("match", "join")):
            self._rearrange(marks_left=self._marks["left"] and was.get("join") == "inner")

    def _rearrange(self, marks_left: bool) -> None:
        """Put held rows where other bounds have them; where the left ones were not marked so far, mark those that match."""
        held = {side: self.side_pages[side].rearranged() for side in SIDES}
        if marks_left and held["left"].num_rows:
            left, right = held["left"], held["right"]
            codes, others = self.codes(left, right)
            lowers = moved(integers(left[TIME]), self._match.lower)
            ranges = Ranges.of(codes, lowers, self._uppers(left), Places.of(others, integers(right[TIME])))
            matched = np.zeros(left.num_rows, np.bool_)
            for lefts, _ in self._fulfilling(_Met(ranges, 0, 0, left, right)):
                matched[lefts] = True
            held["left"] = replaced(left, MATCHED, pa.array(matched))
        for side in SIDES:
            self.side_pages[side].replace_all(held[side])

    def _summary(self, side: Side, page: pa.Table) -> PageSummary:
        finals = self._uppers(page) if side == "left" else moved(integers(page[TIME]), -self._match.lower)
        return PageSummary(due_of(finals, ~flags(page[MATCHED]) if self._pads[side] else None), page.num_rows)

    def read_held(self, arrived: dict[Side, pa.Table]) -> None:
        late = horizon(self.watermark, self.program.allowed_lateness)
        self._expired: dict[Side, list[int]] = {}
        for side in SIDES:
            pages, others = self.side_pages[side], arrived["right" if side == "left" else "left"]
            wanted = [self._reached(side, others), self.landing(side, arrived[side])]
            due = np.array(pages.pages.due(late) if late != MIN else [], np.int64)
            touched = np.unique(np.concatenate([*wanted, *([due] if self._pads[side] else [])]))
            self._expired[side] = [] if self._pads[side] else np.setdiff1d(due, touched).tolist()
            table = pages.read(touched)
            self.rows[side] = Rows(table, table.num_rows)

    def _reached(self, side: Side, others: pa.Table) -> Integers:
        if not others.num_rows:
            return np.zeros(0, np.int64)
        pages, match, times = self.side_pages[side], self._match, integers(others[TIME])
        hashes = hashes_of(integers(others[ORDER]))
        if match.upper_column:
            return pages.reached(hashes, times, times)
        if side == "left":
            return pages.reached(hashes, moved(times, -match.upper), moved(times, -match.lower))
        return pages.reached(hashes, moved(times, match.lower), moved(times, match.upper))

    def write_held(self) -> Held:
        for side, pages in self.side_pages.items():
            pages.drop(self._expired[side])
            pages.write(self.rows[side].table)
        left, right = (self.side_pages[side].pages for side in SIDES)
        return Held(left.live, right.live, left.byte_size + right.byte_size)

    def take(self) -> None:
        left, right = self.rows["left"], self.rows["right"]
        if left.new == left.table.num_rows and right.new == right.table.num_rows:
            return
        left_codes, right_codes = self.codes(left.table, right.table)
        lowers, uppers = moved(left.times, self._match.lower), self._uppers(left.table)
        matched = {"left": flags(left.table[MATCHED]), "right": flags(right.table[MATCHED])}
        # New left rows with held right ones; then all left rows with new right ones.
        for first, rows in ((left.new, slice(0, right.new)), (0, slice(right.new, None))):
            places = Places.of(right_codes[rows], right.times[rows])
            ranges = Ranges.of(left_codes[first:], lowers[first:], uppers[first:], places)
            self._meet(_Met(ranges, first, rows.start or 0, left.table, right.table), matched)
        for side, of in self.rows.items():
            of.table = replaced(of.table, MATCHED, pa.array(matched[side]))
            of.new = of.table.num_rows
        if self.program.how in LEFT_ONLY:
            self.rows["left"] = left.kept(~matched["left"])

    def _meet(self, met: _Met, matched: dict[str, Mask]) -> None:
        """Take the pairs of some rows: note which rows they are of, and emit them."""
        condition = self.program.condition is not None
        # Without a condition the ends of the ranges suffice, and pairs are made only where they are emitted.
        parts = (
            self._fulfilling(met)
            if condition
            else iter([(met.ranges.lefts + met.first_left, met.ranges.rights + met.first_right)])
        )
        total = 0
        for lefts, rights in parts:
            if self.program.how == "semi":
                found = np.unique(lefts)
                found = found[~matched["left"][found]]
                self.emit_joined(met.left.take(pa.array(found)), None, integers(met.left[TIME])[found])
            if self._marks["left"]:
                matched["left"][lefts] = True
            if self._marks["right"]:
                matched["right"][rights] = True
            total += len(lefts)
        if self.program.how in LEFT_ONLY:
            return
        self.count("pairs", total if condition else met.ranges.total)
        self.pieces.append(lambda: self._pairs(met))

    def _fulfilling(self, met: _Met) -> Iterator[tuple[Integers, Integers]]:
        for lefts, rights in met.pairs():
            found = fulfilling(self.program, lefts, rights, met.left, met.right)
            yield (lefts, rights) if found.all() else (lefts[found], rights[found])

    def _pairs(self, met: _Met) -> Tables:
        left_times, right_times = integers(met.left[TIME]), integers(met.right[TIME])
        for lefts, rights in self._fulfilling(met):
            if len(lefts):
                times = self._times(left_times[lefts], right_times[rights])
                yield MAIN, self.made(met.left.take(pa.array(lefts)), met.right.take(pa.array(rights)), times)

    def _times(self, lefts: Integers, rights: Integers) -> Integers:
        return {"max": np.maximum(lefts, rights), "left": lefts, "right": rights}[self.program.time_of]

    def _uppers(self, left: pa.Table) -> Integers:
        """Return until when the matches of left rows are; ``MIN`` for those that have none."""
        match, times = self._match, integers(left[TIME])
        if match.upper_column is None:
            return moved(times, match.upper)
        uppers = moved(integers(pc.fill_null(left[match.upper_column].cast(pa.int64()), MIN)), match.upper)
        return np.where(uppers < moved(times, match.lower), np.int64(MIN), uppers)

    def settle(self) -> None:
        late = horizon(self.watermark, self.program.allowed_lateness)
        left, right = self.rows["left"], self.rows["right"]
        uppers = self._uppers(left.table)
        left_final = uppers <= late if late != MIN or self._match.upper_column else np.zeros(len(uppers), np.bool_)
        ends = moved(right.times, -self._match.lower)
        right_final = np.full(len(ends), late == MAX) if late in (MIN, MAX) else ends <= late
        self._end("left", left_final, pads=self.program.pads_left)
        self._end("right", right_final, pads=self.program.pads_right)

    def _end(self, side: Side, final: Mask, pads: bool) -> None:
        rows = self.rows[side]
        if not final.any():
            return
        if pads:
            unmatched = rows.table.filter(pa.array(final & ~flags(rows.table[MATCHED])))
            of_left, times = side == "left", integers(unmatched[TIME])
            self.emit_joined(unmatched if of_left else None, None if of_left else unmatched, times)
        self.rows[side] = rows.kept(~final)


class JoinIntervalEngine(BucketEngine[JoinProgram]):
    name = "join_interval"
    reason = "pairs are found by search in rows sorted by key and time"
    state = "the rows of each side that a row to come can reach, and which of them have matched"
    holds: ClassVar = {"l": "left rows", "r": "right rows"}
    batch = _IntervalBatch

    @classmethod
    def serves(cls, program: JoinProgram) -> bool:
        return isinstance(program.match, IntervalMatch)
