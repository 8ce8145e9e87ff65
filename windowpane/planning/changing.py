"""Changing what runs: the program of a restart against the state in a checkpoint, before anything runs.

A checkpoint says which programs its buckets hold state of (``Held``). From that and the new program follow a report, part by
part, and the program as it goes on with the state: of a later generation where a cut parts old windows from new ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self, get_args

import pyarrow.compute as pc

from windowpane.arrays.instants import MAX, MIN, format_instant
from windowpane.arrays.values import JsonValue
from windowpane.engines.batch.header import HEADER, BucketHeader
from windowpane.engines.changes import (
    ACCEPTED,
    INCOMPLETE,
    SINCE,
    Accepts,
    Change,
    Description,
    Incomplete,
    Outcome,
    Verdict,
    Way,
    changes,
    cuts,
    differences,
    matched_calls,
    shown,
)
from windowpane.engines.changing import OfGeneration, first_start_above, has_one_window, last_end
from windowpane.engines.common.changed_calls import made_of
from windowpane.engines.common.columnar import fold_of
from windowpane.engines.common.held_panes import ELEMENTS, Wanted, WindowsEngine
from windowpane.engines.over.changed_calls import added_call
from windowpane.engines.over.program import OverProgram
from windowpane.engines.program import BucketProgram, Program, Upstream
from windowpane.engines.rolling.engine import RollingEngine
from windowpane.engines.rolling.growth import growth_of, places_in
from windowpane.engines.rolling.program import RollingProgram
from windowpane.errors import ChangedPlanError, InvalidSpecError, UnreadableDescriptionError, present
from windowpane.hidden_columns import END
from windowpane.planning.description.programs import read_back
from windowpane.planning.description.values import read
from windowpane.planning.engines import make_engine
from windowpane.state.blob_store import BlobStore

_TAKEN: Mapping[str, Verdict] = {"none": Verdict.SAME, "safe": Verdict.SAFE, "accept": Verdict.ACCEPT}


@dataclass(frozen=True)
class Behind:
    """What the program of now has open behind an instant: windows of keys, and the rows in them, ``None`` if no part counts."""

    windows: int
    rows: int | None

    @classmethod
    def of(cls, store: BlobStore, instant: int) -> Self:
        """Return what one bucket has.

        Raises:
            UnreadableDescriptionError: a part of the user's own that is not found by its name.
        """
        number = BucketHeader.of(present(store.get(HEADER), "a batch has run")).generation
        own = OfGeneration(store, number) if number else store
        program = read_back(BucketHeader.of(present(own.get(HEADER), "its program has run")).description)
        engine = make_engine(program)
        if not isinstance(program, Program) or not isinstance(engine, WindowsEngine):
            return cls(0, None)
        counts = [name for name, call, _ in program.aggregates if call.name == "count" and not call.arguments]
        found = [table.filter(pc.greater(table[END], instant)) for table in engine.held(own, Wanted(results=bool(counts)))]
        rows = [each[name].to_pylist() for each in found for name in (ELEMENTS, *counts[:1]) if not each[name].null_count]
        windows, is_told = sum(each.num_rows for each in found), has_one_window(program.spec.assigner, instant)
        is_told &= windows == sum(map(len, rows))
        return cls(windows, sum(map(sum, rows)) if is_told else None)

    @classmethod
    def together(cls, parts: Sequence[tuple[int, int | None]]) -> Self:
        """Return what several buckets have."""
        rows = [rows for _, rows in parts if rows is not None]
        return cls(sum(windows for windows, _ in parts), sum(rows) if len(rows) == len(parts) else None)


@dataclass(frozen=True)
class Held:
    """What the buckets of a checkpoint hold of one operator."""

    # the description of each program, and from where on windows are its own; the last one wrote the state
    generations: tuple[tuple[Description, int], ...]
    open_windows: int | None = None  # windows, or keys, that are in state; ``None`` if it is not known
    watermark: int | None = None  # the watermark that the next batch has, ``None`` if there is none yet
    latest: int | None = None  # the latest event time of rows so far, ``None`` if it is not known
    now: int | None = None  # the clock of the last batch, ``None`` if it is not known
    began: int | None = None  # where the history ends that the state began with, ``None`` if it began empty
    before: tuple[Description, ...] = ()  # the descriptions of programs before these that may have written what some bucket holds
    # the open windows of keys that end behind an instant, and how many rows they hold; ``None`` if that is not known
    behind: Callable[[int], Behind | None] | None = None

    @classmethod
    def of(cls, headers: Sequence[tuple[str, bytes]], watermark: int | None = None, latest: int | None = None) -> Self | None:
        """Return what headers, by the names of their blobs, say together; ``None`` if there are none."""
        found: dict[int, tuple[Description, int]] = {}
        open_windows, now, began, before = 0, MIN, list[int](), list[Description]()
        for name, blob in headers:
            header = BucketHeader.of(blob)
            now = max(now, header.processing_time)
            before.append(header.description)
            began += [] if header.cut is None else [header.cut]
            number = header.generation if name == "header" else int(name.split("/")[0])
            if name == "header":
                open_windows += header.open_windows
            if name == "header" or number not in found:
                begins = header.begins if name == "header" else found.get(number, ({}, header.begins))[1]
                found[number] = (header.description, begins)
        if not found:
            return None
        return cls(
            tuple(found[number] for number in sorted(found)),
            open_windows,
            watermark,
            latest,
            now,
            max(began, default=None),
            tuple(before),
        )


@dataclass(frozen=True)
class Lacking:
    """What the windows of a new program lack behind a cut that was set below the latest row so far."""

    latest: int  # the latest time of rows so far
    before: Behind | None  # what is open of the program before behind the cut, ``None`` if it is not known

    def __str__(self) -> str:
        """Say it in a line."""
        line = f"new windows up to {format_instant(self.latest)} lack the rows that came so far"
        if self.before is None:
            return line
        rows = "" if self.before.rows is None else f", at most {self.before.rows} rows"
        return f"{line}; of the program before {self.before.windows} windows of keys are open there{rows}"


@dataclass(frozen=True)
class Report:
    """What the restart of one operator changes."""

    parts: tuple[Change, ...] = ()  # the parts that differ
    cut: int | None = None  # where old windows end and new ones begin, ``None`` where nothing is cut
    # windows, or keys, that are in state; ``None`` if it is not known, or of a view, whose rows are stored
    open_windows: int | None = None
    # by the names of calls that are added when the last window ends that lacks rows of theirs
    complete: Mapping[str, str] = field(default_factory=dict)
    lacking: Lacking | None = None  # what windows behind an early cut lack

    @property
    def verdict(self) -> Verdict:
        """The greatest verdict of a part."""
        return max((each.outcome.verdict for each in self.parts), default=Verdict.SAME)

    def lines(self) -> list[str]:
        """Return it for people, a few lines for each part."""
        found = []
        for each in self.parts:
            was, now = (shown(each.part, value) or "absent" for value in (each.was, each.now))
            found.append(f"  {each.part}: was {was}, is {now}")
            found.append(f"    {each.outcome.verdict.name.lower()}: {each.outcome.effect}")
        if self.cut is not None and self.verdict is not Verdict.REFUSED:
            found.append(f"  cut: {format_instant(self.cut)}")
        if self.lacking is not None and self.verdict is not Verdict.REFUSED:
            found.append(f"  lacking: {self.lacking}")
        found += [f"  complete since {at}: {name}" for name, at in self.complete.items()]
        if self.parts and self.open_windows is not None:
            found.append(f"  open: {self.open_windows} windows or keys")
        return found

    def as_json(self) -> list[dict[str, JsonValue]]:
        """Return the parts as JSON."""
        return [
            {
                "part": each.part,
                "was": each.was,
                "is": each.now,
                "verdict": each.outcome.verdict.name.lower(),
                "effect": each.outcome.effect,
                "cut": self.cut if each.outcome.way is Way.CUT else None,
                "lacking": str(self.lacking) if self.lacking is not None and each.outcome.way is Way.CUT else None,
                "complete_since": self.complete.get(each.part.removeprefix("call ")) if each.was is None else None,
            }
            for each in self.parts
        ]


def continued(
    program: BucketProgram, held: Held, cut: int | None = None, incomplete: Incomplete = "null"
) -> tuple[BucketProgram, Report]:
    """Return a program as it goes on with the state in a checkpoint, and what that changes.

    Args:
        program: the new program.
        held: what the checkpoint holds.
        cut: where new windows begin, ``None`` for the first start of one above every event time so far.
        incomplete: what calls that are added give for windows that are open.

    Raises:
        InvalidSpecError: that is no such word.
    """
    if incomplete not in get_args(Incomplete):
        raise InvalidSpecError(f"incomplete={incomplete!r}: it is 'null' or 'partial'.")
    was, begins = held.generations[-1]
    if isinstance(program, Program):
        program = _complete_since(program, was)
    parts = _changes(program, was)
    accepted = {each.part for each in (*changes(was, _plain(program)), *parts) if _is_accepted(each)}
    if accepted or was.get(ACCEPTED):
        named = sorted(accepted | set(was.get(ACCEPTED, ())))
        program = replace(program, description={**program.description, ACCEPTED: named})
    if isinstance(program, OverProgram):
        others = [each for each in (*held.before, was) if each.get("calls") not in (None, program.description["calls"])]
        wrote = (read_back(each) for each in others if each["kind"] == "over")
        earlier = tuple(each for each in wrote if isinstance(each, OverProgram))
        program = replace(program, earlier=earlier) if earlier else program
    if not isinstance(program, Program):
        return program, Report(parts, None, held.open_windows)
    is_cut, lacking = any(each.outcome.way is Way.CUT for each in parts), None
    kept = held.generations if is_cut else held.generations[:-1]
    if is_cut:
        parts, begins = _cut(program, held, parts, cut)
        newest = _newest(program, held)
        if newest is not None and MIN < begins <= newest:
            lacking = Lacking(newest, None if held.behind is None else held.behind(begins))
    else:
        program, parts = _with_added(program, held, parts, cut, incomplete)
    is_refused = any(each.outcome.verdict is Verdict.REFUSED for each in parts)
    live = [] if is_refused else _live(program, held, kept, begins)
    parts = tuple(map(_without_wider, parts)) if live else parts
    report = Report(parts, begins if is_cut else None, held.open_windows, complete_since(program.description), lacking)
    if report.verdict is Verdict.REFUSED or not kept:
        return program, report
    return replace(program, generation=len(kept), begins=begins, earlier=tuple(live)), report


def differs(program: BucketProgram, held: Held) -> bool:
    """Whether a program is another than the one that wrote the state."""
    was = held.generations[-1][0]
    return bool(_changes(_complete_since(program, was) if isinstance(program, Program) else program, was))


def _plain(program: BucketProgram) -> JsonValue:
    return json.loads(json.dumps(program.description))


def _is_accepted(change: Change) -> bool:
    return change.outcome.verdict is Verdict.ACCEPT and change.outcome.way is Way.AS_IS


def _without_wider(change: Change) -> Change:
    """Refuse a wider type where an earlier program, of the narrow one, has windows to finish on the same rows."""
    types = [each.get("types") if isinstance(each, dict) else None for each in (change.was, change.now)]
    if None in types or types[0] == types[1]:
        return change
    reason = "windows before the cut hold the narrow type: widen it alone, before the cut or after these are over"
    return replace(change, outcome=Outcome(Verdict.REFUSED, reason))


def _live(program: Program, held: Held, kept: Sequence[tuple[Description, int]], begins: int) -> list[Program]:
    """Return the programs before one that may have windows to finish."""
    earlier = [_earlier(program, description, number, since) for number, (description, since) in enumerate(kept)]
    if not earlier:
        return []
    ends = [*(each.begins for each in earlier[1:]), begins]
    before_now = None if held.now in (None, MIN) else held.now - 1
    clock = held.watermark if program.spec.assigner.is_event_time else before_now
    later = [(*earlier[number + 1 :], program) for number in range(len(earlier))]
    at = MIN if clock is None else clock
    return [of for of, end, others in zip(earlier, ends, later, strict=True) if not _is_over((of, *others), end, at)]


def _changes(program: BucketProgram, was: Description) -> tuple[Change, ...]:
    found = changes(was, _plain(program))
    if found and isinstance(program, OverProgram):
        old, numbers = read_back(was), _added_calls(was, program.description)
        outcomes = {part: added_call(old, program, at) for part, at in numbers.items() if isinstance(old, OverProgram)}
        return tuple(replace(each, outcome=outcomes.get(each.part, each.outcome)) for each in found)
    lost = _lost_of_rolling(program, was) if found and isinstance(program, RollingProgram) else None
    if lost is None:
        return found
    fits = Outcome(Verdict.ACCEPT if lost else Verdict.SAFE, lost or "the state has what it needs")
    return tuple(replace(each, outcome=fits) for each in found)


def _lost_of_rolling(program: RollingProgram, was: Description) -> str | None:
    """Return what is lost of the state of rolling features, empty for nothing; ``None`` if it cannot be read."""
    if program.engine == RollingEngine.name:
        growth = growth_of(program, was)
        return None if growth is None else growth.lost
    return None if places_in(program, was) is None else ""


def _added_calls(was: Description, now: Description) -> dict[str, int]:
    """Return the numbers of calls that are new, by the names of their parts."""
    calls = now.get("calls", ())
    matched = matched_calls(was.get("calls", ()), calls)
    return {f"call {call['name']}": at for at, (call, number) in enumerate(zip(calls, matched, strict=True)) if number is None}


_UNKNOWN = "the latest event time so far is not known: say cut=, an instant above it"


def _with_added(
    program: Program, held: Held, parts: tuple[Change, ...], cut: int | None, incomplete: Incomplete
) -> tuple[Program, tuple[Change, ...]]:
    """Return a program whose new calls say from when on they are complete, and the parts, those safe that always are."""
    was = held.generations[-1][0]
    numbers = _added_calls(was, program.description)
    added = list(numbers)
    if not added or any(each.outcome.verdict is Verdict.REFUSED for each in parts):
        return program, parts
    fold, outcomes = present(fold_of(program), "its state is partials"), dict[str, Outcome]()
    if not _live(program, held, held.generations[:-1], held.generations[-1][1]):
        for part in added:
            if held.open_windows == 0:
                outcomes[part] = Outcome(Verdict.SAFE, "no window is open")
            elif made_of(program, fold, was, numbers[part]):
                outcomes[part] = Outcome(Verdict.SAFE, "it is made of what the state has of other calls")
    lacking = [part for part in added if part not in outcomes]
    first = _first_complete(program, held, cut)
    if lacking and first is None:
        outcomes |= dict.fromkeys(lacking, Outcome(Verdict.REFUSED, _UNKNOWN))
    elif lacking and incomplete == "partial":
        outcomes |= dict.fromkeys(lacking, Outcome(Verdict.ACCEPT, "of the rows from now on in windows that began before"))
    since = dict.fromkeys((numbers[part] for part in lacking), first)
    program = _complete_since(program, was, since, incomplete)
    return program, tuple(replace(each, outcome=outcomes.get(each.part, each.outcome)) for each in parts)


def _first_complete(program: Program, held: Held, cut: int | None) -> int | None:
    """Return the first start of windows none of whose rows have come, ``None`` if that is not known."""
    if not program.spec.assigner.has_ends and not program.spec.merges:
        return MAX
    latest = _newest(program, held)
    return cut if latest is None else latest + 1


def _newest(program: Program, held: Held) -> int | None:
    """Return the latest time so far by the clock of a program's windows, ``None`` if it is not known."""
    if not program.spec.assigner.is_event_time:
        return held.now
    return held.latest if held.latest is None or held.began is None else max(held.latest, held.began - 1)


def _complete_since(
    program: Program, was: Description, first: Mapping[int, int | None] | None = None, incomplete: Incomplete = "null"
) -> Program:
    """Return a program whose calls say from which start on they are complete: as before, or those of ``first`` by number."""
    before, calls, found = was.get("calls", ()), program.description.get("calls", ()), []
    for at, (call, number) in enumerate(zip(calls, matched_calls(before, calls), strict=True)):
        kept = {} if number is None else {part: before[number][part] for part in (SINCE, INCOMPLETE) if part in before[number]}
        if number is None and first and first.get(at) is not None:
            kept = {SINCE: first[at], **({INCOMPLETE: incomplete} if incomplete == "partial" else {})}
        found.append(call if not kept else {**call, **kept})
    return program if found == list(calls) else replace(program, description={**program.description, "calls": found})


def complete_since(description: Description) -> dict[str, str]:
    """Return by the names of calls that were added while windows were open when the last of these windows ends."""
    found = dict[str, str]()
    for each in (each for each in description.get("calls") or () if SINCE in each):
        end = each[SINCE]
        if cuts(description):
            end = last_end(read(description["assigner"]), end - 1)
        found[each["name"]] = "never" if end == MAX else format_instant(end)
    return found


def _cut(program: Program, held: Held, parts: tuple[Change, ...], cut: int | None) -> tuple[tuple[Change, ...], int]:
    """Return the parts, those refused that cannot be cut, and where the new windows begin."""
    was, begins = held.generations[-1]
    newest, reason = _newest(program, held), None
    if program.upstream is not Upstream.SOURCE:
        reason = "windows over the results of others cannot be cut"
    elif cut is None and newest is None and held.watermark is not None:
        reason = _UNKNOWN
    else:
        try:
            read_back(was)
        except UnreadableDescriptionError as error:
            reason = str(error)
    if reason is not None:
        refused = Outcome(Verdict.REFUSED, reason, Way.CUT)
        return tuple(replace(each, outcome=refused) if each.outcome.way is Way.CUT else each for each in parts), begins
    assigner = program.spec.assigner
    if cut is None:
        latest = max(MIN if newest is None else newest, begins - 1)
        return parts, MIN if latest == MIN else first_start_above(assigner, latest)
    first = max(cut, begins) if cut == MIN else max(first_start_above(assigner, cut - 1), begins)
    if newest is not None and first <= newest:
        lacking = "rows between the cut and the latest one so far are in old windows alone"
        found = [
            replace(each, outcome=Outcome(Verdict.ACCEPT, lacking, Way.CUT)) if each.outcome.way is Way.CUT else each
            for each in parts
        ]
        return tuple(found), first
    return parts, first


def _earlier(program: Program, description: Description, number: int, begins: int) -> Program:
    was = read_back(description)
    if not isinstance(was, Program):
        raise InvalidSpecError("a program of windows follows one of windows.")
    return replace(
        was,
        late_columns=program.late_columns,
        side_outputs=program.side_outputs,
        order_by=program.order_by,
        foresees_watermark=False,
        generation=number,
        begins=begins,
    )


def _is_over(programs: Sequence[Program], end: int, clock: int) -> bool:
    """Whether no window of the first program is open, and rows of before its end are late for the later ones, too."""
    last = [MIN if end == MIN else max(last_end(each.spec.assigner, end - 1), end) - 1 for each in programs]
    return all(each.spec.lateness.is_over(instant, clock) for each, instant in zip(programs, last, strict=True))


def check(reports: Sequence[Report], accepts: Accepts) -> None:
    """Refuse changes that a start does not take.

    Raises:
        InvalidSpecError: ``accepts`` is none of the words.
        ChangedPlanError: with the report, and the way out.
    """
    if accepts not in _TAKEN:
        raise InvalidSpecError(f"changes={accepts!r}: it is one of {', '.join(map(repr, _TAKEN))}.")
    verdict = max((each.verdict for each in reports), default=Verdict.SAME)
    if verdict > _TAKEN[accepts]:
        parts = differences([part for each in reports for part in each.parts])
        way = "" if verdict is Verdict.REFUSED else verdict.name.lower()
        raise ChangedPlanError(parts, [line for each in reports for line in each.lines()], accepted_by=way)
