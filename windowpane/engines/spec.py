"""An engine as the registry lists it, and the choice among engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from windowpane.engines.combiner import Combiner
from windowpane.engines.protocol import Engine
from windowpane.errors import InvalidSpecError

P = TypeVar("P")
"""The kind of programs that an engine runs."""
P_contra = TypeVar("P_contra", contravariant=True)


def _always(program: object) -> bool:
    return True


def _runs_all(program: object) -> None:
    return None


class EngineClass(Protocol[P_contra]):
    """The class of an engine: made from a program, it travels to workers, which so import no other engine."""

    @property
    def name(self) -> str:
        """The word for it, in ``explain()`` and ``engine(...)``."""

    def __call__(self, program: P_contra, /) -> Engine:
        """Return the engine for a program."""


@dataclass(frozen=True)
class Combining(Generic[P]):
    """How an engine lets rows fold before the shuffle."""

    combiner: Callable[[P], Combiner]  # a program -> what folds its rows
    # why the rows of a program must arrive whole, as far as this engine is concerned, ``None`` if they may fold
    refusal: Callable[[P], str | None]
    # whether the combiner also finds which rows are late, so that these stay whole while others fold
    folds_punctual: bool = False
    folds_ordered: bool = False  # whether it also folds aggregates that depend on the order of arrival


@dataclass(frozen=True)
class EngineSpec(Generic[P]):
    """One engine."""

    make: EngineClass[P]  # its class
    reason: str | Callable[[P], str]  # why it is chosen where it can run a program, or what says so of one
    state: str  # what its blobs are, for people
    holds: Mapping[str, str]  # what each structure of its state holds, by the name of the structure, for people
    refusal: Callable[[P], str | None] = _runs_all  # why the engine cannot run a program, ``None`` if it can
    # how the rows of a program fold before the shuffle, ``None`` where they always arrive whole
    combining: Combining[P] | None = None
    serves: Callable[[P], bool] = _always  # which programs it is made for at all; it is not named for others
    # of those, for which its refusal is shown when the reference, or one that tells refusals, runs them instead
    explains: Callable[[P], bool] = _always
    tells_refusals: bool = False  # whether its reason goes on with why faster engines cannot run the program

    @property
    def name(self) -> str:
        """The word for the engine, in ``explain()`` and ``engine(...)``."""
        return self.make.name

    def reason_for(self, program: P) -> str:
        return self.reason if isinstance(self.reason, str) else self.reason(program)


class Choice(NamedTuple, Generic[P]):
    """The engine that runs a program, and why it is this one."""

    engine: EngineSpec[P]
    reason: str


def choose(engines: Sequence[EngineSpec[P]], program: P, wanted: str | None = None) -> Choice[P]:
    """Return the first engine that covers ``program`` exactly, or the one that was asked for, and why it is this one.

    The fastest stands first; the last is the reference, which runs every program.

    Raises:
        InvalidSpecError: the engine asked for cannot run the program, or none has that name.
    """
    *candidates, reference = (each for each in engines if each.serves(program))
    if wanted == reference.name:
        return Choice(reference, "asked for")
    if wanted not in (None, *(each.name for each in candidates)):
        names = ", ".join(repr(each.name) for each in (reference, *candidates))
        raise InvalidSpecError(f"there is no engine {wanted!r} for such a program; there are {names}.")
    notes: list[str] = []
    for each in candidates:
        if wanted in (None, each.name):
            refused = each.refusal(program)
            if refused is None:
                return Choice(each, "; ".join([each.reason_for(program), *(notes if each.tells_refusals else [])]))
            if wanted is not None:
                raise InvalidSpecError(f"the engine {wanted!r} cannot run this program: {refused}.")
            notes += [f"not {each.name}: {refused}"] if each.explains(program) else []
    return Choice(reference, "; ".join([reference.reason_for(program), *notes]))
