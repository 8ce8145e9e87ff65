"""What a change of the program means for the state that another program wrote: a table of rules, part by part.

A verdict says what happens to results::

    same      nothing
    safe      each is one that the new program alone would give, or, of windows that were open, the old one
    accept    some are NULL or partial, or differ in shape: a person agrees first
    refused   the state cannot go on under the new program

and a way says how state gets there: it is read as it is, or *by a cut*: the old program finishes the windows that start before an
instant, the new one has those from there on (``engines.changing``). Descriptions are JSON, so this needs no class of a program.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Literal, NamedTuple, Self

from windowpane.arrays.values import JsonValue
from windowpane.windowing.aggregates import definition_of
from windowpane.windowing.times import format_micros

Accepts = Literal["safe", "accept", "none"]
"""Which changes a start takes: those that are safe, also those that someone accepts, or none."""

FORMAT = 1
"""The format of descriptions and of what engines keep."""

Description = Mapping[str, JsonValue]
"""The parts of a program by name, each JSON."""


SINCE = "complete since"
"""The part of a call that says from which start on its windows hold all rows for it: it was added while others were open."""

INCOMPLETE = "incomplete"
"""The part of such a call whose results before that are of the rows since it was added; without the part they are NULL."""

Incomplete = Literal["null", "partial"]
"""What an added call gives for windows that were open: NULL, or the result of the rows that came since."""


ACCEPTED = "accepted"
"""The part that names those whose change someone has accepted, as buckets learn it that are opened later."""


class Verdict(IntEnum):
    """What a change means for results, the least first."""

    SAME = 0
    SAFE = 1
    ACCEPT = 2
    REFUSED = 3


class Way(Enum):
    """How state goes on under the new program."""

    AS_IS = "as it is"
    CUT = "by a cut"


@dataclass(frozen=True)
class Outcome:
    """What a rule says of a part that differs."""

    verdict: Verdict  # what it means for results
    effect: str  # what happens to state and results
    way: Way = Way.AS_IS  # how state goes on


@dataclass(frozen=True)
class Change:
    """A part that differs: its name, what was, what is, and what that means."""

    part: str
    was: JsonValue
    now: JsonValue
    outcome: Outcome


Rule = Callable[[Description, Description, JsonValue, JsonValue], Outcome]
"""(the old description, the new one, the part as it was, as it is) -> what that means."""


def changes(was: Description, now: Description) -> tuple[Change, ...]:
    """Return the parts of two descriptions that differ, those of the old one first."""
    if was == now:
        return ()
    if was.get("kind") != now.get("kind"):
        parts = (was.get("kind"), now.get("kind"))
        return (Change("kind", *parts, Outcome(Verdict.REFUSED, "state of another kind of program")),)
    rules = RULES.get(now.get("kind", ""), {})
    found: list[Change] = []
    for part in dict.fromkeys([*was, *now]):
        before, after = was.get(part), now.get(part)
        if before == after or part in _UNCOMPARED:
            continue
        if part == "calls":
            found += _changed_calls(was, now)
        else:
            rule = rules.get(part, _refuse)
            found.append(Change(part, before, after, rule(was, now, before, after)))
    return tuple(found)


class ChangedColumns(NamedTuple):
    """Columns that are new since state was written, and those that are gone; of sides ``left.name``."""

    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()

    @classmethod
    def of(cls, was: frozenset[str], now: frozenset[str]) -> Self:
        """Return how columns differ."""
        return cls(now - was, was - now)

    def before(self, names: Iterable[str]) -> frozenset[str]:
        """Return the names of before, given those of now."""
        return frozenset(names) - self.added | self.removed


def changed_columns(was: Description, now: Description) -> tuple[ChangedColumns, ChangedColumns]:
    """Return the columns that differ: of rows, and of results that have columns of rows."""
    return ChangedColumns.of(_of_rows(was), _of_rows(now)), ChangedColumns.of(_of_results(was), _of_results(now))


def _of_rows(description: Description) -> frozenset[str]:
    parts = (("columns", ""), ("labels", ""), ("left columns", "left."), ("right columns", "right."))
    return frozenset(prefix + each["name"] for part, prefix in parts for each in description.get(part) or ())


def _of_results(description: Description) -> frozenset[str]:
    """Of a join these are not all columns of its rows."""
    if description["kind"] != "join":
        return _of_rows(description)
    return frozenset(f"{side}.{name}" for side in ("left", "right") for name in description["resolved"][f"{side} passed"])


def matched_calls(was: Sequence[JsonValue], now: Sequence[JsonValue]) -> tuple[int | None, ...]:
    """Return for each call the number of the old one that computes the same, ``None`` for a new one."""
    left = [(number, _computed(each)) for number, each in enumerate(was)]
    found: list[int | None] = []
    for each in now:
        number = next((number for number, computed in left if computed == _computed(each)), None)
        left = [pair for pair in left if pair[0] != number]
        found.append(number)
    return tuple(found)


_UNCOMPARED = ("resolved", ACCEPTED)
_NAMES = ("name", "reads", "type", "types", SINCE, INCOMPLETE)
"""What of a call does not say what it computes."""


def _computed(call: Description) -> str:
    return json.dumps({key: part for key, part in call.items() if key not in _NAMES}, sort_keys=True)


def _changed_calls(was: Description, now: Description) -> list[Change]:
    """Return calls that were added, removed, renamed, or read another type; each by its name."""
    before, after = was.get("calls") or [], now.get("calls") or []
    matched = matched_calls(before, after)
    found = []
    rules = CALL_RULES.get(now["kind"], _REFUSED_CALLS)
    removed = {call["name"]: call for number, call in enumerate(before) if number not in matched}
    for call, number in zip(after, matched, strict=True):
        if number is None:
            found.append(Change(f"call {call['name']}", removed.pop(call["name"], None), call, rules.added(was, now)))
            continue
        old = before[number]
        if old.get(SINCE) != call.get(SINCE):
            unknown = Outcome(Verdict.REFUSED, "only result.start(...) knows from when on it is complete")
            found.append(Change(f"call {call['name']}", old, call, unknown))
            continue
        if any(old.get(each) != call.get(each) for each in ("types", "type")):
            found.append(Change(f"call {call['name']}", old, call, rules.retyped(was, now, old, call)))
        elif old["name"] != call["name"]:
            found.append(Change(f"call {call['name']}", old, call, rules.renamed(was, now)))
    found += [Change(f"call {name}", call, None, rules.removed(was, now)) for name, call in removed.items()]
    kept = [number for number in matched if number is not None]
    if not found and kept != sorted(kept):
        names = ([each["name"] for each in before], [each["name"] for each in after])
        found.append(Change("order of calls", *names, rules.renamed(was, now)))
    return found


# As people read it.

_MICROSECONDS = frozenset({"allowed lateness", "retention", "step", "within", "watermark of each key", "watermark delay"})


def differences(found: Sequence[Change]) -> dict[str, tuple[str | None, str | None]]:
    """Return the parts that differ with their old and their new value as text; ``None`` where there was or is none."""
    return {each.part: (shown(each.part, each.was), shown(each.part, each.now)) for each in found}


def shown(part: str, value: object) -> str | None:
    """Return a part of a description as text, ``None`` for none."""
    if value is None:
        return None
    if part in _MICROSECONDS and isinstance(value, int):
        return format_micros(value)
    return _text(value) or "none"


def _text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if not isinstance(value, dict):
        return repr(value) if isinstance(value, bool | float) else str(value)
    if "function" in value and "parameters" in value:
        return _call_text(value)
    if "name" in value and "type" in value and "is" not in value:
        return f"{value['name']} {_text(value['type'])}"
    if "is" in value and "value" in value and len(value) == 2:
        return str(value["value"]).lower()
    if "is" in value:
        parts = [f"{name}={_text(part)}" for name, part in value.items() if name not in ("is", "name", "type", "by")]
        call = f"{value['is']}({', '.join(parts)})"
        return f"{value['name']} = {call}" if "name" in value else call
    if len(value) == 1:
        ((name, of),) = value.items()
        return _text(of) if name in ("function", "type", "float", "decimal") else f"{name}<{_text(of)}>"
    return json.dumps(value)


def _call_text(call: Description) -> str:
    parts = [*call["arguments"], *(f"{name}={_text(value)}" for name, value in call["parameters"])]
    window = "" if "window" not in call else f" over {_text(call['window'])}"
    condition = "" if call.get("condition") is None else f" where {call['condition']}"
    types = f" of {_text(call['types'])}" if call.get("types") else ""
    window += f" {_text(call['frame'])}" if call.get("frame") else ""
    return f"{call['name']} = {call['function']}({', '.join(parts)}){types}{window}{condition}"


# The rules.

ANOTHER_STATE = "its state cannot be read by the new program"


def _always(verdict: Verdict, effect: str) -> Callable[..., Outcome]:
    """Return the rule whose outcome depends on nothing."""
    return lambda *parts: Outcome(verdict, effect)


_refuse: Rule = _always(Verdict.REFUSED, ANOTHER_STATE)
_free: Rule = _always(Verdict.SAFE, "the state does not depend on it")


_PADDED = Outcome(Verdict.SAME, "rows in state have NULL in it")
"""A new column of the source is no change by itself; where a program has selected it, see ``_selected``."""


def _selected(rule: Rule) -> Rule:
    """Return a rule for columns that results show since they are selected: of a new one someone is asked."""

    def asked(was: Description, now: Description, before: JsonValue, after: JsonValue) -> Outcome:
        outcome = rule(was, now, before, after)
        return Outcome(Verdict.ACCEPT, outcome.effect) if outcome is _PADDED else outcome

    return asked


def _columns(was: Description, now: Description, before: JsonValue, after: JsonValue) -> Outcome:
    names = {each["name"] for each in before or ()}
    if list(before or ()) == [each for each in after or () if each["name"] in names]:
        return _PADDED
    return Outcome(Verdict.REFUSED, "rows in state lack it, or have it with another type")


def cuts(description: Description) -> bool:
    """Whether the windows of a program can be cut: by event time, each with a start and an end of its own."""
    assigner = description.get("assigner") or {}
    is_aligned = assigner.get("stagger", {"value": "ALIGNED"})["value"] == "ALIGNED"
    has_own_clocks = description.get("watermark of each key") is not None
    return assigner.get("is") in CUT_ASSIGNERS and is_aligned and not has_own_clocks and not description["panes"]["retracts"]


_BY_CLOCK = frozenset({"TumblingProcessingTimeWindows", "SlidingProcessingTimeWindows"})
CUT_ASSIGNERS = _BY_CLOCK | {
    "TumblingEventTimeWindows",
    "SlidingEventTimeWindows",
    "CumulateEventTimeWindows",
    "CalendarWindows",
}
"""Assigners whose windows have a start and an end by event time alone, or by the clock."""


def can_cut(was: Description, now: Description) -> bool:
    """Whether windows of one program can be followed by those of another, by the same clock."""
    clocks = {each["assigner"]["is"] in _BY_CLOCK for each in (was, now) if cuts(each)}
    return cuts(was) and cuts(now) and len(clocks) == 1


_OLD_FIRST = "windows that start before the cut are finished by the old program, the others are of the new one"


def _by_cut(was: Description, now: Description, before: object, after: object) -> Outcome:
    if can_cut(was, now):
        return Outcome(Verdict.SAFE, _OLD_FIRST, Way.CUT)
    return Outcome(Verdict.REFUSED, "only windows that have a start and an end, by the same clock, can be cut")


def _trigger(was: Description, now: Description, before: JsonValue, after: JsonValue) -> Outcome:
    if without_lateness(before) == without_lateness(after):
        return Outcome(Verdict.SAME, "it has the lateness of its windows")
    if can_cut(was, now):
        return Outcome(Verdict.ACCEPT, "windows that start before the cut fire as before, the others by the new one", Way.CUT)
    if was["engine"] == now["engine"] and _goes_on(before, after) and not _pieces(was) and not _pieces(now):
        return Outcome(Verdict.ACCEPT, "what it knows of open windows stays; the new size counts from the next row on")
    if begins_anew(was, now):
        return Outcome(Verdict.ACCEPT, "its timers and counts begin anew for open windows, whose contents come out when it fires")
    if was["engine"] == now["engine"] == "panes" and _is(_inner(before)) == "NeverTrigger":
        return Outcome(Verdict.REFUSED, "of windows that never fire no row is kept")
    return Outcome(Verdict.REFUSED, f"what the engine {was['engine']} keeps of its trigger is of no use to the new one")


def _inner(trigger: JsonValue) -> JsonValue:
    return trigger["inner"] if _is(trigger) == "PurgingTrigger" else trigger


def _is(part: JsonValue) -> str | None:
    return part.get("is") if isinstance(part, dict) else None


def _goes_on(before: JsonValue, after: JsonValue) -> bool:
    """Whether a trigger goes on with what another one keeps: of counts or distances of another size, or of one custom class."""
    one, other = _inner(before), _inner(after)
    if _is(before) != _is(after) or _is(one) != _is(other):
        return False
    size = {"CountTrigger": "max_count", "DeltaTrigger": "threshold"}.get(str(_is(one)))
    return ":" in str(_is(one)) or (size is not None and {**one, size: 0} == {**other, size: 0})


def _pieces(description: Description) -> int | None:
    """Return of how many elements each piece is in the state of panes with an evictor.

    ``None`` if it holds elements, 0 if partials of all elements: where nothing outlives a firing.
    """
    trigger, evictor = _inner(description["trigger"]), description["evictor"]
    if description["engine"] != "panes" or evictor is None:
        return None
    if evictor.get("max_count", evictor.get("window_size", 1)) <= 0:
        return 0
    if (_is(trigger), _is(evictor)) != ("CountTrigger", "CountEvictor"):
        return None
    length = math.gcd(max(1, trigger["max_count"]), evictor["max_count"])
    return None if evictor["do_evict_after"] or length == 1 else length


_BUILT_IN = frozenset(
    {
        "CountTrigger",
        "ContinuousEventTimeTrigger",
        "ContinuousProcessingTimeTrigger",
        "DeltaTrigger",
        "EachBatch",
        "EndOfStreamTrigger",
        "EventTimeTrigger",
        "NeverTrigger",
        "PaneTrigger",
        "ProcessingTimeTrigger",
        "ProcessingTimeoutTrigger",
    }
)
"""Triggers that may begin with windows whose rows another one has seen."""


def begins_anew(was: Description, now: Description) -> bool:
    """Whether open windows, global ones or sessions, are given a trigger that has not seen their rows."""
    before, after = without_lateness(was.get("trigger")), without_lateness(now.get("trigger"))
    if before == after or _goes_on(before, after) or was["engine"] != now["engine"] or can_cut(was, now):
        return False
    shows_panes = any(each["panes"]["shows_info"] or each["panes"]["retracts"] for each in (was, now))
    if shows_panes or _is(_inner(after)) not in _BUILT_IN:
        return False
    is_of_partials = _holds_partials(was) and _holds_partials(now)
    keeps_rows = now["assigner"]["is"] == "GlobalWindows" and _is(_inner(before)) != "NeverTrigger"
    is_here = now["engine"] == "sessions" or keeps_rows
    return _holds_elements(now) or (is_of_partials and is_here)


def _evictor(was: Description, now: Description, before: JsonValue, after: JsonValue) -> Outcome:
    if can_cut(was, now):
        return Outcome(Verdict.ACCEPT, "windows that start before the cut evict as before, the others by the new one", Way.CUT)
    kept = ("is", "do_evict_after")
    is_alike = before and after and all(before.get(part) == after.get(part) for part in kept)
    if is_alike and was["engine"] == now["engine"] and _pieces(was) == _pieces(now):
        return Outcome(Verdict.ACCEPT, "it evicts by the new size from the next row on; what it has evicted is gone")
    return Outcome(Verdict.REFUSED, "its state holds other rows than the new one needs")


def without_lateness(trigger: JsonValue) -> JsonValue:
    """Return a trigger without the lateness that one of panes is told of its program."""
    return {key: part for key, part in trigger.items() if key != "allowed_lateness"} if isinstance(trigger, dict) else trigger


def _watermark_of_each_key(was: Description, now: Description, before: object, after: object) -> Outcome:
    return _free(was, now, before, after) if before is not None and after is not None else _refuse(was, now, before, after)


_SESSIONS = frozenset({"EventTimeSessionWindows", "ProcessingTimeSessionWindows"})


def _assigner(was: Description, now: Description, before: JsonValue, after: JsonValue) -> Outcome:
    if before["is"] == after["is"] and after["is"] in _SESSIONS:
        if _gap_column(before) != _gap_column(after) and not (_holds_partials(was) and _holds_partials(now)):
            return Outcome(Verdict.REFUSED, "rows in state have the column of the gap, or lack it")
        return Outcome(Verdict.SAFE, "open sessions keep their end; rows from now on have the new gap")
    if before["is"] == after["is"] == "ClosedSessionWindows":
        return Outcome(Verdict.ACCEPT, "open sessions go on by the new rule; what rows that wait were asked stays as it was")
    return _by_cut(was, now, before, after)


def _gap_column(assigner: JsonValue) -> JsonValue:
    gap = assigner["gap"]
    return gap["column"] if isinstance(gap, dict) and gap.get("is") == "GapColumn" else None


def _lateness(was: Description, now: Description, before: JsonValue, after: JsonValue) -> Outcome:
    if now["assigner"] == was["assigner"] and (now["assigner"]["is"] == "GlobalWindows" or "Processing" in now["assigner"]["is"]):
        return Outcome(Verdict.SAFE, "no row is late for its windows")
    if was["engine"] == now["engine"] and now["assigner"]["is"] in _SESSIONS:
        if after < before and was["panes"]["retracts"]:
            return Outcome(Verdict.REFUSED, "what sessions have shown is kept until the longer one is over")
        return Outcome(Verdict.SAFE, "sessions that are over stay so; those beyond a shorter one are over at the next watermark")
    return _by_cut(was, now, before, after)


def _panes(was: Description, now: Description, before: JsonValue, after: JsonValue) -> Outcome:
    if can_cut(was, now):
        return Outcome(Verdict.ACCEPT, "windows that start before the cut say of their panes what they did", Way.CUT)
    return _refuse(was, now, before, after)


def _columns_of_windows(was: Description, now: Description, before: JsonValue, after: JsonValue) -> Outcome:
    if not after and _holds_partials(was) and _holds_partials(now):
        return Outcome(Verdict.SAFE, "the state holds none of them")
    return _columns(was, now, before, after)


WINDOWS: Mapping[str, Rule] = {
    "engine": _by_cut,
    "assigner": _assigner,
    "trigger": _trigger,
    "evictor": _evictor,
    "panes": _panes,
    "allowed lateness": _lateness,
    "watermark of each key": _watermark_of_each_key,
    **dict.fromkeys(("refinements", "watermark delay", "code", "results"), _free),
    "columns": _columns_of_windows,
}
OTHERS: Mapping[str, Rule] = {"code": _free, "columns": _columns, "labels": _columns, "results": _free}
OVER: Mapping[str, Rule] = {**OTHERS, "columns": _selected(_columns)}


def _fewer_columns(was: Description, now: Description, before: JsonValue, after: JsonValue) -> Outcome:
    """State holds columns by name: those that are gone are passed over, new ones are NULL."""
    types, names = {each["name"]: each for each in before}, {each["name"] for each in after}
    if any(types.get(each["name"], each) != each for each in after):
        return Outcome(Verdict.REFUSED, "rows in state have a column with another type")
    if names - types.keys():
        return _PADDED
    return Outcome(Verdict.SAFE, "it is left out of all results" if types.keys() - names else "the state has them by name")


_NOT_SHOWN = Outcome(Verdict.SAFE, "only late rows show it, which are not held")


def _columns_of_side(side: str) -> Rule:
    """Return the rule for the columns of rows of a side, which late rows may have more of than results."""
    selected = _selected(_fewer_columns)

    def rule(was: Description, now: Description, before: JsonValue, after: JsonValue) -> Outcome:
        shown = {*now["resolved"][f"{side} passed"]} - {each["name"] for each in before}
        outcome = selected(was, now, before, after)
        is_seen = shown or now["function"] is not None
        return outcome if outcome.verdict is not Verdict.ACCEPT or is_seen else _NOT_SHOWN

    return rule


_within = _always(Verdict.ACCEPT, "keys that were forgotten under the shorter one may stay so; from now on the new one counts")
_filled = _always(Verdict.ACCEPT, "windows that are filled stay so, keys that were forgotten too; from now on the new one counts")
_another_pattern = _always(Verdict.ACCEPT, "attempts that wait begin anew, over the rows that are kept; what came out stays")


def _columns_of_patterns(was: Description, now: Description, before: JsonValue, after: JsonValue) -> Outcome:
    """Rows that wait have what the old pattern asked of them; a column that is shown alone may be new, and NULL."""
    names = {each["name"] for each in before}
    missing = sorted({each["name"] for each in after if each["name"] not in names} & {*now["asks"]})
    if missing:
        return Outcome(Verdict.REFUSED, f"rows that wait lack {', '.join(missing)}, which the new pattern asks of them")
    return _fewer_columns(was, now, before, after)


def _no_more(was: Description, now: Description, before: JsonValue, after: JsonValue) -> Outcome:
    """What state remembers of each key may become less."""
    if after <= before:
        return Outcome(Verdict.SAFE, "it is left out of state from now on")
    return Outcome(Verdict.REFUSED, "state did not keep it")


def _only_rows(was: Description, now: Description, before: JsonValue, after: JsonValue) -> Outcome:
    """Rows that no variable takes may not be in state; ``None`` where all are."""
    if before is None or (after is not None and {*after} <= {*before}):
        return Outcome(Verdict.SAFE, "rows that no variable takes are left out of state from now on")
    return Outcome(Verdict.REFUSED, "rows that no variable of the old pattern takes are not in state, and the new one may ask")


def _lateness_of_patterns(was: Description, now: Description, before: JsonValue, after: JsonValue) -> Outcome:
    """Rows are searched in order, so none may come before one that is searched."""
    if (after or 0) < (before or 0):
        return Outcome(Verdict.SAFE, "rows that wait beyond the shorter one are searched at the next watermark")
    return Outcome(Verdict.REFUSED, "rows were searched that those to come would stand before")


PATTERNS: Mapping[str, Rule] = {
    "allowed lateness": _lateness_of_patterns,
    **dict.fromkeys(("pattern", "conditions", "subsets", "within", "after match"), _another_pattern),
    **dict.fromkeys(("code", "engine", "asks", "retain"), _free),
    **dict.fromkeys(("reach", "remembers keys"), _no_more),
    "columns": _columns_of_patterns,
    "only rows of": _only_rows,
}


def _bounds(was: Description, now: Description, before: JsonValue, after: JsonValue) -> Outcome:
    if not _is(before) == _is(after) == "IntervalMatch" or before["upper_column"] != after["upper_column"]:
        return Outcome(Verdict.REFUSED, "its state is arranged by how rows match")
    if before["lower"] <= after["lower"] and after["upper"] <= before["upper"]:
        return Outcome(Verdict.SAFE, "rows that are held meet those to come by the new bounds")
    return Outcome(Verdict.ACCEPT, "rows to come meet those that are held, and none that was freed under the old bounds")


def _how(was: Description, now: Description, before: object, after: object) -> Outcome:
    corrects = now["emit on"] == "update" or (_is(now["match"]) == "WindowMatch" and now["allowed lateness"])
    if (before, after) != ("inner", "left") or corrects:
        return Outcome(Verdict.REFUSED, "its state does not say which rows have matched")
    return Outcome(Verdict.ACCEPT, "left rows that are held come out without a match, too, also if what they matched was freed")


JOINS: Mapping[str, Rule] = {
    "match": _bounds,
    "join": _how,
    "code": _free,
    **{f"{side} columns": _columns_of_side(side) for side in ("left", "right")},
}
DEDUPLICATION: Mapping[str, Rule] = {"within": _within, "columns": _fewer_columns}
FILLING: Mapping[str, Rule] = {"until": _filled, "values": _filled, "allowed lateness": _free, "columns": _fewer_columns}
RULES: Mapping[str, Mapping[str, Rule]] = {
    "windows": WINDOWS,
    "over": OVER,
    "join": JOINS,
    "rolling": OTHERS,
    "labels": OTHERS,
    "deduplication": DEDUPLICATION,
    "filling": FILLING,
    "settling": {"columns": _fewer_columns},
    "patterns": PATTERNS,
}
"""By kind of program the parts that may differ; any other part that does is refused."""


@dataclass(frozen=True)
class CallRules:
    """What it means that calls are added, removed, or renamed and moved, or read an argument of another type."""

    added: Callable[[Description, Description], Outcome]
    removed: Callable[[Description, Description], Outcome]
    renamed: Callable[[Description, Description], Outcome]
    retyped: Rule = _refuse


def _calls_of_windows(verdict: Verdict, effect: str) -> Callable[[Description, Description], Outcome]:
    def rule(was: Description, now: Description) -> Outcome:
        same_engine = was["engine"] == now["engine"]
        holds = same_engine and _holds_partials(was) and _holds_partials(now)
        if holds and _is_ordered(was) == _is_ordered(now):
            return Outcome(verdict, effect)
        if can_cut(was, now):
            return Outcome(verdict, effect, Way.CUT)
        if verdict is Verdict.SAFE and same_engine and _holds_elements(now) and was["evictor"] is now["evictor"] is None:
            return Outcome(verdict, effect)
        if holds:
            return Outcome(Verdict.REFUSED, "its windows do not say in which order their rows came, as one of the calls needs")
        return Outcome(Verdict.REFUSED, f"the state of the engine {was['engine']} holds the calls together")

    return rule


def _retyped(was: Description, now: Description, before: JsonValue, after: JsonValue) -> Outcome:
    if not all(map(_widens, before["types"], after["types"])):
        return Outcome(Verdict.REFUSED, "the new type does not hold every value of the old one")
    return _calls_of_windows(Verdict.SAFE, "what the state holds of it is widened when it is read")(was, now)


_WIDTHS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "float": 32, "double": 64}


def _widens(before: JsonValue, after: JsonValue) -> bool:
    """Whether a type holds every value of another one of its kind."""
    if isinstance(before, str) and isinstance(after, str):
        one, other = _WIDTHS.get(before), _WIDTHS.get(after)
        is_kind = (before[:3] == "int") == (after[:3] == "int")
        return before == after or (one is not None and other is not None and is_kind and one <= other)
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys() == {"decimal128"}:
        (digits, places), (more, finer) = before["decimal128"], after["decimal128"]
        return bool(finer >= places and more - finer >= digits - places)
    return bool(before == after)


def _is_ordered(description: Description) -> bool:
    return any(definition_of(call["function"]).ordered for call in description["calls"])


def _holds_partials(description: Description) -> bool:
    """Whether the state of a program of windows is partials of built-in aggregates, a column each, and nothing made of them."""
    is_plain = bool(description["calls"]) and description["evictor"] is None and not description["resolved"]["process"]
    return is_plain and description["engine"] in ("slices", "sessions", "panes") and not description["panes"]["retracts"]


def _holds_elements(description: Description) -> bool:
    """Whether the state of a program of windows is what the operator keeps: elements, or accumulators, by key and window."""
    return description["engine"] in ("reference", "row")


_REFUSED_CALLS = CallRules(*[_always(Verdict.REFUSED, "its state holds other calls")] * 3)
CALL_RULES: Mapping[str, CallRules] = {
    "windows": CallRules(
        _calls_of_windows(Verdict.ACCEPT, "NULL in results of windows that began before"),
        _calls_of_windows(Verdict.SAFE, "it is left out of all results"),
        _calls_of_windows(Verdict.SAFE, "it is known by what it computes"),
        _retyped,
    ),
    "over": CallRules(
        _always(Verdict.ACCEPT, "its frames hold the rows that are in state"),
        _always(Verdict.SAFE, "it is left out of all results"),
        _always(Verdict.SAFE, "it is known by what it computes"),
    ),
}
"""By kind of program; calls of any other kind are refused."""
