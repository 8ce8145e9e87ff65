"""The engine of joins as of an instant: one search in the versions of each key, sorted by time.

Left rows wait until their match is final. Of the right rows, the versions, those are held that a left row to come can match:
those after the last time that a left row may still have, and one *anchor* for each key, the last version until then. A tombstone
hides what is older, and matches nothing itself. Left rows that the watermark has made final are matched before the batch's rows
are taken, so that a late version does not change them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Mask
from windowpane.engines.join.batch import JoinBatch, integers
from windowpane.engines.join.program import DROPPED, JoinProgram
from windowpane.engines.join.versions import versions_among
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.hidden_columns import TIME
from windowpane.kernels.joining.ranges import Places, moved
from windowpane.state.blob_store import BlobStore
from windowpane.windowing.changes import APPEARING, CHANGE_TYPE
from windowpane.windowing.expressions import Side
from windowpane.windowing.joins import AsOfMatch
from windowpane.windowing.lateness import horizon
from windowpane.windowing.times import MAX, MIN, add_clamped


def refusal(program: JoinProgram) -> str | None:
    """Return why this engine cannot run a program, ``None`` if it can."""
    return None if isinstance(program.match, AsOfMatch) else "it joins as of an instant"


class JoinAsOfEngine:
    """Runs joins as of an instant."""

    name = "join_asof"

    def __init__(self, program: JoinProgram) -> None:
        """Run ``program``."""
        self._program = program

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        """Run one batch of a bucket."""
        return _AsOfBatch(self._program, store).run(rows, clock)


class _Candidates(NamedTuple):
    """For each left row the version before it and the one after it, -1 where there is none."""

    before: Integers
    after: Integers


class _AsOfBatch(JoinBatch):
    kept_beside = pa.schema([])

    @property
    def _match(self) -> AsOfMatch:
        assert isinstance(self.program.match, AsOfMatch), "refusal"
        return self.program.match

    def take(self) -> None:
        for _, of in self.parts():
            of.new = of.table.num_rows

    def arriving(self, side: Side, table: pa.Table) -> pa.Table:
        """Leave out what an update replaces."""
        return versions_among(table)

    def late(self, side: Side, table: pa.Table, is_late: Mask) -> pa.Table:
        """Report late rows; a late version that is not older than what is held of its key is taken, for left rows to come."""
        if side == "left" or self._match.direction != "backward":
            gone = table.filter(pa.array(is_late))
            self.tell_late(side, gone, dropped=pa.repeat(True, gone.num_rows))
            return table.filter(pa.array(~is_late))
        is_older = self._is_older(table, is_late)
        rows = table.filter(pa.array(is_late))
        self.tell_late(side, rows, **{DROPPED: pa.array(is_older[is_late])})
        return table.filter(pa.array(~is_older))

    def _is_older(self, table: pa.Table, is_late: Mask) -> Mask:
        """Return which late versions nothing will match: those older than the anchor of their key, and those without a key.

        A late version that is taken becomes the anchor.
        """
        held = self.rows["right"].table
        late = table.filter(pa.array(is_late))
        both = pa.concat_tables([held, late])
        codes, _ = self.codes(both.rename_columns(self._as_left(both)), both.slice(0, 0))
        anchors: dict[int, int] = {}
        for code, time in zip(codes[: held.num_rows].tolist(), integers(held[TIME]).tolist(), strict=True):
            if time <= self.horizon:
                anchors[code] = max(time, anchors.get(code, time))
        older = np.zeros(late.num_rows, np.bool_)
        for row, (code, time) in enumerate(zip(codes[held.num_rows :].tolist(), integers(late[TIME]).tolist(), strict=True)):
            older[row] = code < 0 or time < anchors.get(code, MIN)
            if not older[row]:
                anchors[code] = time
        found = np.zeros(table.num_rows, np.bool_)
        found[is_late] = older
        return found

    def _as_left(self, table: pa.Table) -> list[str]:
        names = dict(zip(self.program.right.keys, self.program.left.keys, strict=True))
        return [names.get(name, name) for name in table.column_names]

    def close(self) -> None:
        late = horizon(self.watermark, self.program.allowed_lateness)
        left, right = self.rows["left"], self.rows["right"]
        if left.table.num_rows and late != MIN:
            left_codes, right_codes = self.codes(left.table, right.table)
            places = Places.of(right_codes, right.times)
            found = self._candidates(left_codes, left.times, places, right.times)
            final = self._final(left.times, found, right.times, late)
            self._match_final(final, self._chosen(left.times, found, right.times))
            self.rows["left"] = left.kept(~final)
        if late != MIN:
            self.rows["right"] = right.kept(self._needed(late))

    # What a left row is joined with.

    def _candidates(self, codes: Integers, times: Integers, places: Places, versions: Integers) -> _Candidates:
        """Return the candidates of left rows; of versions of one time the last to arrive."""
        match = self._match
        count = len(places.order)
        ends = places.before(codes, times, or_at=match.allow_exact)
        has_before = (ends > places.first(codes)) & (codes >= 0)
        starts = places.before(codes, times, or_at=not match.allow_exact)
        has_after = (starts < places.first(codes + 1)) & (codes >= 0)
        if not count:
            return _Candidates(np.full(len(codes), -1), np.full(len(codes), -1))
        before = places.order[np.maximum(ends - 1, 0)]
        next_times = versions[places.order[np.minimum(starts, count - 1)]]
        last_of_time = places.before(codes, next_times, or_at=True)
        after = places.order[np.clip(last_of_time - 1, 0, count - 1)]
        found = _Candidates(np.where(has_before, before, -1), np.where(has_after, after, -1))
        if match.tolerance is not None:
            near = moved(times, -match.tolerance) <= versions[found.before]
            far = versions[found.after] <= moved(times, match.tolerance)
            found = _Candidates(np.where(near, found.before, -1), np.where(far, found.after, -1))
        return found

    def _final(self, times: Integers, found: _Candidates, versions: Integers, late: int) -> Mask:
        """Return which left rows have their match for good, now that nothing until ``late`` is waited for any more."""
        match = self._match
        if match.direction == "backward" or late == MAX:
            final: Mask = times <= late
            return final
        until = np.full(len(times), MAX) if match.tolerance is None else moved(times, match.tolerance)
        if len(versions):
            until = np.where(found.after >= 0, np.minimum(until, versions[found.after]), until)
            if match.direction == "nearest":
                closer = moved(times, -1) + (times - versions[found.before])
                until = np.where(found.before >= 0, np.minimum(until, closer), until)
        reached: Mask = np.maximum(times, until) <= late
        return reached

    def _chosen(self, times: Integers, found: _Candidates, versions: Integers) -> Integers:
        """Return the version that each left row matches, -1 for none."""
        if self._match.direction == "backward":
            return found.before
        if self._match.direction == "forward":
            return found.after
        if not len(versions):
            return found.before
        back, ahead = times - versions[found.before], versions[found.after] - times
        is_ahead = (found.after >= 0) & ((found.before < 0) | (ahead < back))
        return np.where(is_ahead, found.after, found.before)

    def _match_final(self, final: Mask, chosen: Integers) -> None:
        left, right = self.rows["left"], self.rows["right"]
        lefts = np.flatnonzero(final & (chosen >= 0))
        lefts = lefts[self._is_live(right.table)[chosen[lefts]]]
        lefts = lefts[self.passing(lefts, chosen[lefts], left.table, right.table)]
        versions = right.table.take(pa.array(chosen[lefts]))
        self.emit(left.table.take(pa.array(lefts)), versions, left.times[lefts])
        if self.program.pads_left:
            final[lefts] = False
            self.emit(left.table.filter(pa.array(final)), None, left.times[final])
            final[lefts] = True

    # What is held of the right side.

    def _needed(self, late: int) -> Mask:
        """Return which versions a left row to come, or one that waits, can match."""
        match, right = self._match, self.rows["right"]
        since = late
        if match.direction != "backward" and match.tolerance is not None:
            since = add_clamped(late, -match.tolerance)
        if late == MAX or not right.table.num_rows:
            return np.zeros(right.table.num_rows, np.bool_)
        times = right.times
        needed = times > since
        codes, _ = self.codes(right.table.rename_columns(self._as_left(right.table)), right.table.slice(0, 0))
        order = np.lexsort((times, codes))
        old = order[~needed[order]]
        is_last = np.append(codes[old][1:] != codes[old][:-1], True) if len(old) else np.zeros(0, np.bool_)
        anchors = old[is_last]
        kept = codes[anchors] >= 0
        if match.direction == "backward":
            kept &= self._is_live(right.table)[anchors]  # of two neighbours of a left row a tombstone may be the nearer one
        for limit in (match.tolerance, match.retain):
            if limit is not None:
                kept &= times[anchors] > add_clamped(since, -limit)
        needed[anchors[kept]] = True
        needed[codes < 0] = False
        return needed

    def _is_live(self, table: pa.Table) -> Mask:
        """Return which versions are rows, and no tombstones."""
        if CHANGE_TYPE not in table.column_names:
            return np.ones(table.num_rows, np.bool_)
        live = pc.is_in(table[CHANGE_TYPE], pa.array(sorted(APPEARING)))
        mask: Mask = live.to_numpy(zero_copy_only=False)
        return mask
