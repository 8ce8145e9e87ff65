"""A vector's program as a ``WindowSpec``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from verify.conformance.reading.assigners import parse_assigner
from verify.conformance.reading.evictors import parse_evictor
from verify.conformance.reading.fields import Json, require_known
from verify.conformance.reading.functions import UnkeyedFunction, parse_function
from verify.conformance.reading.scripted import Script
from verify.conformance.reading.triggers import TRIGGER_NAMES, parse_trigger, script_of
from verify.conformance.replay.recorder import RecordedFunction, RecordedTrigger, Recorder, recorded_assigner
from verify.conformance.replay.verdicts import MismatchError
from windowpane.windowing.assigners import WindowAssigner
from windowpane.windowing.evictors import Evictor
from windowpane.windowing.spec import WindowSpec, count_window
from windowpane.windowing.triggers import Trigger

_FIELDS = {
    "keyed",
    "assigner",
    "trigger",
    "evictor",
    "allowed_lateness_ms",
    "late_side_output",
    "function",
    "default_trigger",
    "count_window",
}


@dataclass(frozen=True)
class Program:
    """One windowed computation of a vector."""

    spec: WindowSpec
    keyed: bool
    late_side_output: bool

    @property
    def script(self) -> Script | None:
        """The script of a scripted trigger."""
        return script_of(self.spec.trigger)

    def key_of(self, element: Json) -> Any:
        """Return the key under which an element is processed."""
        return element["key"] if self.keyed else None

    def recorded(self, recorder: Recorder) -> Program:
        """Return this program with the calls of its parts written down."""
        spec = self.spec
        function = replace(spec.function, process=RecordedFunction(spec.function.process, recorder))
        parts = replace(
            spec,
            assigner=recorded_assigner(spec.assigner, recorder),
            trigger=RecordedTrigger(spec.trigger, recorder),
            function=function,
        )
        return replace(self, spec=parts)


def parse_program(fields: Json) -> Program:
    """Return the program.

    Raises:
        NotUnderstoodError: an unknown type or field.
        MismatchError: ``count_window`` or ``default_trigger`` mean other parts than the case names.
        WindowpaneError: a program that windowpane refuses.
    """
    require_known(fields, _FIELDS, "program")
    assigner = parse_assigner(fields["assigner"])
    trigger = _trigger(fields, assigner)
    evictor = parse_evictor(fields.get("evictor"))
    if "count_window" in fields:
        _check_count_window(fields["count_window"], (assigner, trigger, evictor))
    keyed = fields.get("keyed", True)
    function = parse_function(fields["function"])
    if not keyed:
        function = replace(function, process=UnkeyedFunction(function.process))
    spec = WindowSpec(assigner, function, trigger, evictor, fields.get("allowed_lateness_ms", 0))
    return Program(spec, keyed, fields.get("late_side_output", False))


def _trigger(fields: Json, assigner: WindowAssigner) -> Trigger:
    if not fields.get("default_trigger", False):
        return parse_trigger(fields["trigger"])
    trigger = assigner.default_trigger()
    if "trigger" in fields and not isinstance(trigger, TRIGGER_NAMES.get(fields["trigger"]["type"], ())):
        raise MismatchError(f"default trigger of {assigner!r}", fields["trigger"], trigger)
    return trigger


def _check_count_window(fields: Json, parts: tuple[WindowAssigner, Trigger, Evictor | None]) -> None:
    require_known(fields, {"size", "slide"}, "count_window")
    built = count_window(fields["size"], fields.get("slide"))
    if built != parts:
        raise MismatchError(f"count_window {fields}", parts, built)
