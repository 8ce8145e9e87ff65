"""Changing what runs: the program of a restart against the state in a checkpoint, before anything runs.

A checkpoint says which programs its buckets hold state of (``Held``). From that and the new program follow a report, part by
part, and the program as it goes on with the state: of a later generation where a cut parts old windows from new ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from windowpane.arrays.instants import MAX, MIN, format_instant
from windowpane.engines.batch.header import BucketHeader
from windowpane.engines.changes import (
    ACCEPTED,
    SINCE,
    Accepts,
    Change,
    Description,
    Outcome,
    Verdict,
    Way,
    changes,
    matched_calls,
    shown,
)
from windowpane.engines.changing import first_start_above
from windowpane.engines.program import Program, Upstream
from windowpane.engines.registry import AnyProgram
from windowpane.engines.rolling.growth import growth_of
from windowpane.engines.rolling.program import RollingProgram
from windowpane.errors import ChangedPlanError, InvalidSpecError, UnreadableDescriptionError, present
from windowpane.planning.description.programs import read_back

_TAKEN: Mapping[str, Verdict] = {"none": Verdict.SAME, "safe": Verdict.SAFE, "accept": Verdict.ACCEPT}


@dataclass(frozen=True)
class Held:
    """What the buckets of a checkpoint hold of one operator.

    Args:
        generations: the description of each program, and from where on windows are its own; the last one wrote the state.
        open_windows: windows, or keys, that are in state.
        watermark: the watermark that the next batch has, ``None`` if there is none yet.
        latest: the latest event time of rows so far, ``None`` if it is not known.
    """

    generations: tuple[tuple[Description, int], ...]
    open_windows: int = 0
    watermark: int | None = None
    latest: int | None = None

    @classmethod
    def of(cls, headers: Sequence[tuple[str, bytes]], watermark: int | None = None, latest: int | None = None) -> Self | None:
        """Return what headers, by the names of their blobs, say together; ``None`` if there are none."""
        found: dict[int, tuple[Description, int]] = {}
        open_windows = 0
        for name, blob in headers:
            header = BucketHeader.of(blob)
            number = header.generation if name == "header" else int(name.split("/")[0])
            if name == "header":
                open_windows += header.open_windows
            if name == "header" or number not in found:
                begins = header.begins if name == "header" else found.get(number, ({}, header.begins))[1]
                found[number] = (header.description, begins)
        if not found:
            return None
        return cls(tuple(found[number] for number in sorted(found)), open_windows, watermark, latest)


@dataclass(frozen=True)
class Report:
    """What the restart of one operator changes.

    Args:
        parts: the parts that differ.
        cut: where old windows end and new ones begin, ``None`` where nothing is cut.
        open_windows: windows, or keys, that are in state; ``None`` for a view, whose rows are stored.
    """

    parts: tuple[Change, ...] = ()
    cut: int | None = None
    open_windows: int | None = 0

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
        if self.parts and self.open_windows is not None:
            found.append(f"  open: {self.open_windows} windows or keys")
        return found

    def as_json(self) -> list[dict[str, Any]]:
        """Return the parts as JSON."""
        return [
            {
                "part": each.part,
                "was": each.was,
                "is": each.now,
                "verdict": each.outcome.verdict.name.lower(),
                "effect": each.outcome.effect,
                "cut": self.cut if each.outcome.way is Way.CUT else None,
            }
            for each in self.parts
        ]


def continued(program: AnyProgram, held: Held, cut: int | None = None) -> tuple[AnyProgram, Report]:
    """Return a program as it goes on with the state in a checkpoint, and what that changes.

    Args:
        program: the new program.
        held: what the checkpoint holds.
        cut: where new windows begin, ``None`` for the first start of one above every event time so far.
    """
    was, begins = held.generations[-1]
    if isinstance(program, Program):
        program = _complete_since(program, was)
    parts = _changes(program, was)
    generation = len(held.generations) - 1
    accepted = {each.part for each in parts if each.outcome.verdict is Verdict.ACCEPT and each.outcome.way is Way.AS_IS}
    if accepted or was.get(ACCEPTED):
        named = sorted(accepted | set(was.get(ACCEPTED, ())))
        program = replace(program, description={**program.description, ACCEPTED: named})
    if not isinstance(program, Program):
        return program, Report(parts, None, held.open_windows)
    if any(each.was is None and each.outcome.way is Way.AS_IS and each.part.startswith("call ") for each in parts):
        known = held.latest is not None and program.spec.assigner.is_event_time
        program = _complete_since(program, was, present(held.latest, "it is known") + 1 if known else MAX)
    kept = held.generations[:-1]
    is_cut = any(each.outcome.way is Way.CUT for each in parts)
    if is_cut:
        parts, begins = _cut(program, held, parts, cut)
        kept, generation = held.generations, generation + 1
    report = Report(parts, begins if is_cut else None, held.open_windows)
    if report.verdict is Verdict.REFUSED or not generation:
        return program, report
    earlier = [_earlier(program, description, number, since) for number, (description, since) in enumerate(kept)]
    ends = [*(each.begins for each in earlier[1:]), begins]
    watermark = MIN if held.watermark is None else held.watermark
    later = [(*earlier[number + 1 :], program) for number in range(len(earlier))]
    live = [of for of, end, others in zip(earlier, ends, later, strict=True) if not _is_over((of, *others), end, watermark)]
    return replace(program, generation=generation, begins=begins, earlier=tuple(live)), report


def _changes(program: AnyProgram, was: Description) -> tuple[Change, ...]:
    found = changes(was, json.loads(json.dumps(program.description)))
    if found and isinstance(program, RollingProgram) and growth_of(program, was) is not None:
        fits = Outcome(Verdict.SAFE, "the state has what it needs")
        return tuple(replace(each, outcome=fits) for each in found)
    return found


def _complete_since(program: Program, was: Description, first: int | None = None) -> Program:
    """Return a program whose calls say from which start on they are complete: as before, those that are new from ``first`` on."""
    before, calls = was.get("calls", ()), program.description.get("calls", ())
    numbers = zip(calls, matched_calls(before, calls), strict=True)
    since = [first if number is None else before[number].get(SINCE) for call, number in numbers]
    found = [call if each is None else {**call, SINCE: each} for call, each in zip(calls, since, strict=True)]
    return program if found == list(calls) else replace(program, description={**program.description, "calls": found})


def _cut(program: Program, held: Held, parts: tuple[Change, ...], cut: int | None) -> tuple[tuple[Change, ...], int]:
    """Return the parts, those refused that cannot be cut, and where the new windows begin."""
    was, begins = held.generations[-1]
    reason = None
    if program.upstream is not Upstream.SOURCE:
        reason = "windows over the results of others cannot be cut"
    elif cut is None and held.latest is None and held.watermark is not None:
        reason = "the latest event time so far is not known: say cut=, an instant above it"
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
        latest = max(MIN if held.latest is None else held.latest, begins - 1)
        return parts, MIN if latest == MIN else first_start_above(assigner, latest)
    first = max(cut, begins) if cut == MIN else max(first_start_above(assigner, cut - 1), begins)
    if held.latest is not None and first <= held.latest:
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


def _is_over(programs: Sequence[Program], end: int, watermark: int) -> bool:
    """Whether no window of the first program is open, and rows of before its end are late for the later ones, too."""
    return all(each.spec.lateness.is_over(max(_last_end(each, end), end) - 1, watermark) for each in programs)


def _last_end(program: Program, end: int) -> int:
    if end == MIN:
        return MIN + 1
    windows = program.spec.assigner.assign_windows(None, end - 1, None)  # type: ignore[arg-type]  # aligned windows read no context
    return max((window.end for window in windows if hasattr(window, "end")), default=end)


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
        parts = {each.part: (shown(each.part, each.was), shown(each.part, each.now)) for one in reports for each in one.parts}
        raise ChangedPlanError(parts, [line for each in reports for line in each.lines()], accepted_by=_way_out(verdict))


def _way_out(verdict: Verdict) -> str:
    return {Verdict.SAFE: "safe", Verdict.ACCEPT: "accept"}.get(verdict, "")
