"""An engine as the class that runs programs and says so, and the choice among engines.

An engine states what it is as data beside its code. What it does with the rows of a bucket between two clocks is a class of its
own, its *batch* (``batch.driver``), which is given the engine: what it has made of the program, once for all buckets of a task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import pyarrow as pa

from windowpane.engines.combiner import Combiner
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.errors import InvalidSpecError
from windowpane.state.blob_store import BlobStore

P = TypeVar("P")
"""The kind of programs that an engine runs."""


@dataclass(frozen=True)
class Combining(Generic[P]):
    """How an engine lets rows fold before the shuffle."""

    combiner: Callable[[P], Combiner]  # a program -> what folds its rows
    # why the rows of a program must arrive whole, as far as this engine is concerned, ``None`` if they may fold
    refusal: Callable[[P], str | None]
    # whether the combiner also finds which rows are late, so that these stay whole while others fold
    folds_punctual: bool = False
    folds_ordered: bool = False  # whether it also folds aggregates that depend on the order of arrival


class BucketEngine(Generic[P]):
    """An engine: made from a program, it runs the batches of the buckets of a task.

    Attributes:
        name: the word for it, in ``explain()`` and ``engine(...)``.
        reason: why it is chosen where it can run a program.
        state: what its blobs are, for people.
        holds: what each structure of its state holds, by the name of the structure, for people.
        combining: how the rows of a program fold before the shuffle, ``None`` where they always arrive whole.
        tells_refusals: whether its reason goes on with why faster engines cannot run the program.
        batch: the class of a batch, made from the engine and the blobs of a bucket.
    """

    name: str
    reason: ClassVar[str]
    state: ClassVar[str]
    holds: ClassVar[Mapping[str, str]]
    combining: ClassVar[Combining[Any] | None] = None
    tells_refusals: ClassVar[bool] = False
    batch: ClassVar[type[Any]]

    def __init__(self, program: P) -> None:
        self.program = program

    @classmethod
    def serves(cls, program: P) -> bool:
        """Whether it is made for a program at all; it is not named for others."""
        return True

    @classmethod
    def refusal(cls, program: P) -> str | None:
        """Return why it cannot run a program, ``None`` if it can."""
        return None

    @classmethod
    def explains(cls, program: P) -> bool:
        """Whether its refusal is shown when the reference, or an engine that tells refusals, runs a program instead."""
        return True

    @classmethod
    def reason_for(cls, program: P) -> str:
        return cls.reason

    def open(self, store: BlobStore) -> Any:
        """Return a batch of the bucket with these blobs."""
        return self.batch(self, store)

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        output: BucketOutput = self.open(store).run(rows, clock)
        return output


def reason_of_the_reference(key_delay: int | None) -> str:
    if key_delay is not None:
        return "each key has a watermark of its own, which only the reference operator keeps"
    return "the reference operator runs every program"


class Choice(NamedTuple, Generic[P]):
    """The engine that runs a program, and why it is this one."""

    engine: type[BucketEngine[P]]
    reason: str


def choose(engines: Sequence[type[BucketEngine[P]]], program: P, wanted: str | None = None) -> Choice[P]:
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
