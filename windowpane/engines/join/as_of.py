"""The engine of joins as of an instant: one search in the versions of each key, sorted by time.

Left rows wait until their match is final. Of the right rows, the versions, those are held that a left row to come can match:
those after the last time that a left row may still have, and one *anchor* for each key, the last version until then. A tombstone
hides older versions, and matches nothing itself; as an anchor it is held, too, so that an older version which arrives late does
not bring its key back. Left rows that the watermark has made final are matched before the batch's rows are taken, so that a late
version does not change them.

Of versions of one key and time the later row of the table counts: the last to arrive, or the one with the largest ``sequence``,
by which rows are sorted as they are taken. Where NULLs are skipped, a version has the last values of those before it
(``filled_versions``); versions are held as they arrived, since one may still come between, and an anchor is held filled.

State: pages ``l`` of left rows and ``r`` of versions, by time, of which a batch reads the first ones, up to the last time that
can be final; and pages ``a`` of anchors, by key, of which it reads those of the keys that it needs an anchor of. A version moves
to the anchors once no left row to come is older. An anchor that is too old is dropped when its page is read, at the latest when
half of the page is too old; until then it is counted as held, and matches nothing.

Where left rows are emitted at once (``updates``), a batch reads all of them that wait, and their versions, since a version may
correct any of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Mask
from windowpane.engines.batch.late_rows import DROPPED
from windowpane.engines.join.batch import Held, JoinBatch, Rows, fulfilling
from windowpane.engines.join.paged import BESIDE, ORDER, PLACE, SidePages, hashes_of, integers
from windowpane.engines.join.program import JoinProgram
from windowpane.engines.join.versions import NOTHING, Shown, are_live, filled_versions, sequence_ranks, versions_among
from windowpane.engines.rows import appearing
from windowpane.engines.spec import BucketEngine
from windowpane.errors import MistakeError, present
from windowpane.hidden_columns import TIME
from windowpane.kernels.ranges import Places, moved
from windowpane.state.blob_store import BlobStore
from windowpane.state.hash_pages import PageSummary
from windowpane.windowing.expressions import Side
from windowpane.windowing.joins import AsOfMatch
from windowpane.windowing.lateness import horizon
from windowpane.windowing.outputs import CHANGE_TYPE
from windowpane.windowing.times import MAX, MIN, add_clamped

_ANY_TIME = MAX - 1
"""Rows up to it are read key by key."""


class _Candidates(NamedTuple):
    """For each left row the version before it and the one after it, -1 where there is none."""

    before: Integers
    after: Integers


class _AsOfBatch(JoinBatch):
    kept_beside = BESIDE

    def __init__(self, engine: BucketEngine[JoinProgram], store: BlobStore) -> None:
        super().__init__(engine, store)
        if not isinstance(self.program.match, AsOfMatch):
            raise MistakeError("the engine refuses other joins")
        self._match = self.program.match
        left, right = self.columns("left"), self.columns("right")
        self.side_pages = {
            "left": SidePages(self.store, "l", left, 0, _counted),
            "right": SidePages(self.store, "r", right, 0, _counted),
        }
        self._anchors = SidePages(self.store, "a", right, None, self._anchors_due)
        self._limits = [limit for limit in (self._match.tolerance, self._match.retain) if limit is not None]

    def read_held(self, arrived: dict[Side, pa.Table]) -> None:
        """Read what may be final, the versions that it may match, the anchors of the same keys, and where new rows go."""
        late = horizon(self.watermark, self.program.allowed_lateness)
        until = self._matched_until(late)
        left = self._read("left", arrived["left"], _ANY_TIME if self.program.updates else late)
        right = self._read("right", arrived["right"], until)
        anchors = self._read_anchors([left, right, *(table for table in arrived.values() if table.num_rows)], until)
        self.rows = {"left": Rows(left, left.num_rows), "right": Rows(pa.concat_tables([anchors, right]), 0)}
        self.rows["right"].new = self.rows["right"].table.num_rows
        self._shown: Shown | None = None
        if self.program.updates:
            matched = self._matched(np.arange(left.num_rows), self._best()[1])
            self._shown = Shown(self._versions(), matched, self.program.right.passed, self.program.pads_left)

    def _read(self, side: Side, arrived: pa.Table, until: int) -> pa.Table:
        pages = self.side_pages[side]
        first = pages.until(until) if until != MIN else np.zeros(0, np.int64)
        return pages.read(np.concatenate([first, self.landing(side, arrived)]))

    def _read_anchors(self, tables: Sequence[pa.Table], until: int) -> pa.Table:
        """Return the anchors of the keys of rows up to a time; those that are too old are left out."""
        pages = self._anchors.pages
        wanted = [np.array(pages.due(self._since(self.watermark)), np.int64)]
        for table in tables:
            orders = integers(table[ORDER])[integers(table[TIME]) <= until]
            wanted.append(self._anchors.landing(hashes_of(orders)))
        anchors = self._anchors.read(np.arange(len(pages)) if until == MAX else np.concatenate(wanted))
        since = self._since(self.before)
        for limit in self._limits:
            anchors = anchors.filter(pa.array(integers(anchors[TIME]) > add_clamped(since, -limit)))
        at = anchors.schema.get_field_index(PLACE)
        return anchors.set_column(at, BESIDE.field(PLACE), pa.array(-2 - integers(anchors[PLACE])))

    def write_held(self) -> Held:
        if self._shown is not None:
            self._correct(np.arange(self.rows["left"].table.num_rows), self._best()[1])
        right = self.rows["right"].table
        place, orders = integers(right[PLACE]), integers(right[ORDER])
        is_anchor = (place < -1) | (integers(right[TIME]) <= self._since(self.watermark))
        at_home = np.where(place < -1, -2 - place, np.where(is_anchor, -1, place))
        orders = np.where(is_anchor, hashes_of(orders), orders)
        for name, values in ((PLACE, at_home), (ORDER, orders)):
            right = right.set_column(right.schema.get_field_index(name), BESIDE.field(name), pa.array(values))
        self.side_pages["left"].write(self.rows["left"].table)
        self.side_pages["right"].write(right.filter(pa.array(~is_anchor)))
        self._anchors.write(right.filter(pa.array(is_anchor)))
        lefts, versions, anchors = self.side_pages["left"].pages, self.side_pages["right"].pages, self._anchors.pages
        size = lefts.byte_size + versions.byte_size + anchors.byte_size
        return Held(lefts.live, versions.live + anchors.live, size)

    def _anchors_due(self, page: pa.Table) -> PageSummary:
        if not self._limits:
            return PageSummary(MAX, page.num_rows)
        ends = moved(integers(page[TIME]), min(self._limits))
        return PageSummary(int(np.partition(ends, len(ends) // 2)[len(ends) // 2]), page.num_rows)

    def _matched_until(self, late: int) -> int:
        """Return the time of the last version that may match rows that are final at ``late``, or that are shown before."""
        if self.program.updates:
            return MAX if late == MAX else _ANY_TIME
        if self._match.direction == "backward" or late in (MIN, MAX):
            return late
        return MAX if self._match.tolerance is None else add_clamped(late, self._match.tolerance)

    def _since(self, watermark: int) -> int:
        """Return the time until which one version of each key is enough."""
        late = horizon(watermark, self.program.allowed_lateness)
        if self._match.direction == "backward" or self._match.tolerance is None or late == MIN:
            return late
        return add_clamped(late, -self._match.tolerance)

    def take(self) -> None:
        if self._shown is not None:
            left = self.rows["left"]
            self._shown.take(left.table.num_rows - left.new)
        if self._match.sequence is not None:
            right = self.rows["right"]
            ranks = sequence_ranks(right.table, self._match.sequence)
            self.rows["right"] = Rows(right.table.take(pa.array(np.argsort(ranks, kind="stable"))), 0)
        for of in self.rows.values():
            of.new = of.table.num_rows

    def arriving(self, side: Side, table: pa.Table) -> pa.Table:
        return super().arriving(side, versions_among(table))

    def late(self, side: Side, table: pa.Table, is_late: Mask) -> pa.Table:
        """Report late rows; a late version that is not older than those held of its key is taken, for left rows to come."""
        if side == "left" or self._match.direction != "backward":
            rows = table.filter(pa.array(is_late))
            self.report_late(side, rows)
            return table.filter(pa.array(~is_late))
        is_older = self._is_older(table, is_late)
        rows = table.filter(pa.array(is_late))
        self.report_late(side, rows, **{DROPPED: pa.array(is_older[is_late])})
        return table.filter(pa.array(~is_older))

    def _is_older(self, table: pa.Table, is_late: Mask) -> Mask:
        """Return which late versions nothing will match: without a key, older than the anchor of it, or too old for an anchor.

        A late version that is taken becomes the anchor.
        """
        begin = max((add_clamped(self.horizon, -limit) for limit in self._limits), default=MIN - 1)
        late = table.filter(pa.array(is_late))
        held = self.rows["right"].table.select(late.column_names)
        held = held.filter(pa.array(np.isin(hashes_of(integers(held[ORDER])), hashes_of(integers(late[ORDER])))))
        both = pa.concat_tables([held, late])
        ranks = sequence_ranks(both, self._match.sequence)
        rows = list(zip(self._version_codes(both).tolist(), integers(both[TIME]).tolist(), ranks.tolist(), strict=True))
        anchors: dict[int, tuple[int, int]] = {}
        for code, *place in rows[: held.num_rows]:
            if place[0] <= self.horizon:
                anchors[code] = max((place[0], place[1]), anchors.get(code, (MIN, 0)))
        older = np.zeros(late.num_rows, np.bool_)
        for row, (code, time, rank) in enumerate(rows[held.num_rows :]):
            older[row] = code < 0 or time <= begin or (time, rank) < anchors.get(code, (MIN, 0))
            if not older[row]:
                anchors[code] = time, rank
        found = np.zeros(table.num_rows, np.bool_)
        found[is_late] = older
        return found

    def _version_codes(self, versions: pa.Table) -> Integers:
        names = dict(zip(self.program.right.keys, self.program.left.keys, strict=True))
        named = versions.rename_columns([names.get(name, name) for name in versions.column_names])
        return self.codes(named, versions.slice(0, 0))[0]

    def _versions(self) -> pa.Table:
        """Return the versions with the values that they are joined with."""
        right = self.rows["right"]
        if not self._match.skips_nulls:
            return right.table
        order = np.lexsort((right.times, codes := self._version_codes(right.table)))
        # The sequence is the version's own: an anchor is compared by it with versions that come late.
        names = [name for name in self.program.right.columns.names if name != self._match.sequence]
        return filled_versions(right.table, order, codes, names)

    def settle(self) -> None:
        late = horizon(self.watermark, self.program.allowed_lateness)
        left, right = self.rows["left"], self.rows["right"]
        if left.table.num_rows and late != MIN:
            found, chosen = self._best()
            final = self._final(left.times, found, right.times, late)
            if self._shown is None:
                self._match_final(final, chosen)
            else:
                self._correct(np.flatnonzero(final), chosen)
                self._shown.keep(~final)
            self.rows["left"] = left.kept(~final)
        if late != MIN:
            self.rows["right"] = self._anchored(late).kept(self._needed(late))

    # What a left row is joined with.

    def _best(self) -> tuple[_Candidates, Integers]:
        """Return the candidates of each left row, and the one that is chosen, -1 for none."""
        left, right = self.rows["left"], self.rows["right"]
        left_codes, right_codes = self.codes(left.table, right.table)
        found = self._candidates(left_codes, left.times, Places.of(right_codes, right.times), right.times)
        return found, self._chosen(left.times, found, right.times)

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
        left = self.rows["left"]
        rows = np.flatnonzero(final)
        lefts = rows[self._matched(rows, chosen) != NOTHING]
        versions = self._versions().take(pa.array(chosen[lefts]))
        self.emit_joined(left.table.take(pa.array(lefts)), versions, left.times[lefts])
        if self.program.pads_left:
            final[lefts] = False
            self.emit_joined(left.table.filter(pa.array(final)), None, left.times[final])
            final[lefts] = True

    def _matched(self, rows: Integers, chosen: Integers) -> Integers:
        """Return the version that left rows match: the chosen one, unless it is a tombstone or fails the condition."""
        left, right = self.rows["left"], self._versions()
        found = chosen[rows]
        places = np.flatnonzero(found >= 0)
        places = places[are_live(right)[found[places]]]
        if self._match.tolerance_of is not None:
            tolerances = pc.fill_null(left.table[self._match.tolerance_of].cast(pa.int64()), MAX).to_numpy()[rows[places]]
            distances = np.abs(left.times[rows[places]] - self.rows["right"].times[found[places]])
            places = places[distances <= tolerances]
        places = places[fulfilling(self.program, rows[places], found[places], left.table, right)]
        matched = np.full(len(rows), NOTHING)
        matched[places] = found[places]
        return matched

    def _correct(self, rows: Integers, chosen: Integers) -> None:
        shown = present(self._shown, "left rows are emitted at once")
        left, right = self.rows["left"], self._versions()
        changes = shown.changes(rows, right, self._matched(rows, chosen))
        if not changes.words:
            return
        is_alone, words = changes.versions == NOTHING, pa.array(changes.words, pa.string())
        appears = appearing(words)
        self.count("pairs", int((appears & ~is_alone).sum()))
        self.count("padded", int((appears & is_alone).sum()))
        versions = pa.concat_tables([shown.versions, right]).take(pa.array(changes.versions, mask=is_alone))
        lefts = left.table.take(pa.array(changes.lefts))
        self.put(lefts, versions, left.times[changes.lefts], **{CHANGE_TYPE: words})

    # What is held of the right side.

    def _anchored(self, late: int) -> Rows:
        """Return the held versions, of which those that are old enough for an anchor have the values they are joined with."""
        right = self.rows["right"]
        if not self._match.skips_nulls or late == MAX or not right.table.num_rows:
            return right
        is_newer = right.times > self._since(self.watermark)
        both = pa.concat_tables([self._versions(), right.table])
        chosen = np.arange(right.table.num_rows) + np.where(is_newer, right.table.num_rows, 0)
        return Rows(both.take(pa.array(chosen)), right.new)

    def _needed(self, late: int) -> Mask:
        right, since = self.rows["right"], self._since(self.watermark)
        if late == MAX or not right.table.num_rows:
            return np.zeros(right.table.num_rows, np.bool_)
        times = right.times
        needed = times > since
        codes = self._version_codes(right.table)
        order = np.lexsort((times, codes))
        old = order[~needed[order]]
        is_last = np.append(codes[old][1:] != codes[old][:-1], True) if len(old) else np.zeros(0, np.bool_)
        anchors = old[is_last]
        kept = codes[anchors] >= 0
        for limit in self._limits:
            kept &= times[anchors] > add_clamped(since, -limit)
        needed[anchors[kept]] = True
        needed[codes < 0] = False
        return needed


def _counted(page: pa.Table) -> PageSummary:
    return PageSummary(MIN, page.num_rows)


class JoinAsOfEngine(BucketEngine[JoinProgram]):
    name = "join_asof"
    reason = "the version of a time is found by search in versions sorted by key and time"
    state = "left rows that wait, and of each key the versions that a left row to come can match"
    holds: ClassVar = {"l": "left rows", "r": "versions", "a": "last versions"}
    batch = _AsOfBatch

    @classmethod
    def serves(cls, program: JoinProgram) -> bool:
        return isinstance(program.match, AsOfMatch)
