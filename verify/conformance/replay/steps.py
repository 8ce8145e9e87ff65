"""Replaying a case step by step: expectations are compared, everything else is acted out."""

from __future__ import annotations

from typing import Protocol

from verify.conformance.reading.fields import Json
from verify.conformance.reading.vectors import Case
from verify.conformance.replay.changelog import EXPECT, Changelog
from verify.conformance.replay.verdicts import Difference, Options


class Replayed(Protocol):
    """An operator whose output a case expects."""

    @property
    def emitted(self) -> Changelog:
        """What was emitted since it was last compared."""

    def act(self, step: Json) -> None:
        """Take a step that expects nothing."""

    def restart(self) -> None:
        """Build the operator anew on its state."""


def replay_steps(case: Case, replayed: Replayed, options: Options) -> list[Difference]:
    """Run the steps of a case and return what differs; with ``restart`` the operator is built anew after each."""
    differences: list[Difference] = []
    for number, step in enumerate(case.get("steps")):
        if step.keys() & EXPECT:
            differences += replayed.emitted.compare(step, f"step {number}")
        else:
            replayed.act(step)
        if options.restart:
            replayed.restart()
    return differences
