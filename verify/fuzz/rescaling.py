"""Kind ``rescaling``: the keys of a program go to other buckets in the middle of a stream, and its results stay the same.

Drawn are a program of any kind, its batches, and after which of them the state of all buckets is spread over another number of
buckets: from 2 to 5, to 1, to 3. Before every batch all state has to be as ``verify`` wants it. What comes out of all buckets
together has to be what one bucket gives that is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa

from verify.fuzz import faults
from verify.fuzz.comparison import difference
from verify.fuzz.faults import Given, on_reference
from verify.fuzz.outcome import Outcome, differences_of
from windowpane.engines.batch.header import BucketHeader
from windowpane.engines.buckets import bucket_numbers
from windowpane.engines.common.tagged import tag
from windowpane.engines.deduplication.program import DeduplicationProgram
from windowpane.engines.filling.program import FillingProgram
from windowpane.engines.join.program import JoinProgram
from windowpane.engines.over.program import OverProgram
from windowpane.engines.patterns.program import PatternProgram
from windowpane.engines.protocol import BucketOutput
from windowpane.engines.rolling.program import RollingProgram
from windowpane.engines.settling.program import SettlingProgram
from windowpane.errors import UnmovableStateError, WindowpaneError
from windowpane.planning.description.programs import (
    of_deduplication,
    of_filling,
    of_join,
    of_over,
    of_patterns,
    of_rolling,
    of_settling,
)
from windowpane.planning.engines import make_engine
from windowpane.planning.rescaling.buckets import problems, rescaled
from windowpane.state.memory import MemoryBlobStore

COUNTS = (2, 5, 1, 3)
"""The numbers of buckets, one after the other."""


def run(seed: int) -> Outcome:
    """Run the program of a seed in one bucket, and in many whose number changes, and compare."""
    draw = Random(seed)
    case = faults.CASES[draw.choice(sorted(faults.CASES))](draw, seed)
    program = _described(case.program, draw)
    text = f"{program}\n    {len(case.batches)} batches"
    return Outcome(seed, text, program.engine, differences_of(seed, lambda: _differences(program, case.batches, draw)))


def _described(program: Any, draw: Random) -> Any:
    """Return a program with its description, now and then on its reference."""
    if draw.random() < 0.35:
        program = on_reference(program)
    if isinstance(program, OverProgram):
        return replace(program, description=of_over(program))
    if isinstance(program, JoinProgram):
        return replace(program, description=of_join(program, ("t", "t")))
    if isinstance(program, RollingProgram):
        return replace(program, description=of_rolling(program, program.keys.names, "t"))
    if isinstance(program, DeduplicationProgram):
        return replace(program, description=of_deduplication(program, "t"))
    if isinstance(program, PatternProgram):
        return replace(program, description=of_patterns(program, {}))
    if isinstance(program, FillingProgram):
        return replace(program, description=of_filling(program))
    if isinstance(program, SettlingProgram):
        return replace(program, description=of_settling(program))
    return replace(program, description={**program.description, "engine": program.engine})


def _differences(program: Any, batches: Any, draw: Random) -> Iterator[str]:
    alone, engine = MemoryBlobStore(), make_engine(program)
    stores, counts = [MemoryBlobStore() for _ in range(COUNTS[0])], list(COUNTS[1:])
    for number, given in enumerate(batches):
        if counts and draw.random() < 0.5:
            try:
                stores = rescaled(stores, counts.pop(0))
            except UnmovableStateError as error:
                if "stagger" in str(error):
                    return
                raise
        for place, store in enumerate(stores):
            yield from (f"batch {number}, verified: {each}" for each in problems(store, place, len(stores)))
        try:
            wanted = engine.run(alone, list(given.parts), given.clock)
        except WindowpaneError:
            return  # which bucket would raise it first depends on where keys are
        got = [
            make_engine(program).run(store, of_bucket(program, given, bucket, len(stores)), given.clock)
            for bucket, store in enumerate(stores)
        ]
        for output in sorted({each for found in (wanted, *got) for each, _ in found.tables}):
            differs = difference(_rows([wanted], output), _rows(got, output))
            if differs is not None:
                yield f"batch {number}, output {output}, {len(stores)} buckets: {differs}"
        open_windows = sum(BucketHeader.read(store, program.description).open_windows for store in stores)
        if open_windows != BucketHeader.read(alone, program.description).open_windows and _counts_keys(program):
            yield f"batch {number}: {open_windows} open windows, and {wanted.counters.open_windows} in one bucket"


def _counts_keys(program: Any) -> bool:
    """Whether what it counts as open are windows of keys: others count those of all keys, or what is forgotten some time."""
    return program.engine in ("sessions", "row", "reference")


def of_bucket(program: Any, given: Given, bucket: int, count: int) -> list[pa.Table]:
    """Return the rows of a batch whose keys are of a bucket."""
    return [
        part.filter(pa.array(bucket_numbers(part, _keys(program, part), count) == bucket))
        for part in given.parts
        if part.num_rows
    ]


def _keys(program: Any, part: pa.Table) -> list[str]:
    if isinstance(program, OverProgram):
        return list(program.spec.partition_by)
    if isinstance(program, JoinProgram):
        return list(program.left.keys if tag(part, "side") == "left" else program.right.keys)
    return list(
        program.keys
        if isinstance(program, PatternProgram | DeduplicationProgram | FillingProgram | SettlingProgram)
        else program.key_columns
    )


def _rows(outputs: list[BucketOutput], number: int) -> list[dict[str, Any]]:
    return [row for output in outputs for which, table in output.tables if which == number for row in table.to_pylist()]
