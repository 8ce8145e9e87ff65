"""Kind ``rescaling``: the keys of a program go to other buckets in the middle of a stream, and its results stay the same.

Drawn are a program of any kind, its batches, and after which of them the state of all buckets is spread over another number of
buckets: from 2 to 5, to 1, to 3. What comes out of all buckets together has to be what one bucket gives that is left alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa

from verify.fuzz import faults
from verify.fuzz.comparison import difference
from verify.fuzz.faults import Case, Given
from verify.fuzz.outcome import Outcome, raised
from verify.sizes import drawn_sizes
from windowpane.engines.batch.header import BucketHeader
from windowpane.engines.buckets import bucket_numbers
from windowpane.engines.deduplication.program import DeduplicationProgram, Keep
from windowpane.engines.join.program import JoinProgram
from windowpane.engines.join.sides import side_of
from windowpane.engines.over.program import OverProgram
from windowpane.engines.patterns.program import PatternProgram
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.engines.registry import engines_for
from windowpane.engines.rolling.program import RollingProgram
from windowpane.errors import UnmovableStateError, WindowpaneError
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.planning.description.programs import of_deduplication, of_join, of_over, of_patterns, of_rolling
from windowpane.planning.engines import make_engine, with_engine
from windowpane.planning.rescaling import rescaled
from windowpane.state.memory import MemoryBlobStore

COUNTS = (2, 5, 1, 3)
"""The numbers of buckets, one after the other."""


def run(seed: int) -> Outcome:
    """Run the program of a seed in one bucket, and in many whose number changes, and compare."""
    draw = Random(seed)
    kinds: dict[str, Callable[[Random, int], Case]] = {**faults.CASES, "deduplication": _deduplication}
    case = kinds[draw.choice(sorted(kinds))](draw, seed)
    program = _described(case.program, draw)
    text = f"{program}\n    {len(case.batches)} batches"
    try:
        with drawn_sizes(seed), warnings.catch_warnings():
            warnings.simplefilter("error")
            return Outcome(seed, text, program.engine, list(_differences(program, case.batches, draw)))
    except Exception as error:  # a program that raises, or warns, is a finding like any other
        return Outcome(seed, text, program.engine, [raised(error)])


def _deduplication(draw: Random, seed: int) -> Case:
    columns = pa.schema([("k", pa.int64()), ("s", pa.string()), ("t", pa.int64()), ("v", pa.int64())])
    program = DeduplicationProgram(
        keys=("k", "s"),
        columns=columns,
        passed=tuple(columns.names),
        within=draw.choice([0, 3, 20]),
        keep=draw.choice(list(Keep)),
        allowed_lateness=draw.choice([0, 5]),
    )
    given, time = [], 0
    for number in range(draw.randint(4, 9)):
        rows = [
            {"k": draw.randint(0, 9), "s": draw.choice(["a", "b", None]), "t": (at := time + draw.randint(-4, 9)), "v": place}
            | {TIME: at, PARTITION: 0, POSITION: 100 * number + place}
            for place in range(draw.randint(0, 12))
        ]
        system = [pa.field(TIME, pa.int64()), pa.field(PARTITION, pa.int32()), pa.field(POSITION, pa.int64())]
        given.append(Given([pa.Table.from_pylist(rows, pa.schema([*columns, *system]))], Clock(time - 6, time)))
        time += draw.randint(0, 12)
    return Case(with_engine(program), given)


def _described(program: Any, draw: Random) -> Any:
    """Return a program with its description, now and then on its reference."""
    if draw.random() < 0.35:
        program = replace(program, engine=engines_for(program)[-1].name)
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
        try:
            wanted = engine.run(alone, list(given.parts), given.clock)
        except WindowpaneError:
            return  # which bucket would raise it first depends on where keys are
        got = [
            make_engine(program).run(store, _of_bucket(program, given, bucket, len(stores)), given.clock)
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


def _of_bucket(program: Any, given: Given, bucket: int, count: int) -> list[pa.Table]:
    return [
        part.filter(pa.array(bucket_numbers(part, _keys(program, part), count) == bucket))
        for part in given.parts
        if part.num_rows
    ]


def _keys(program: Any, part: pa.Table) -> list[str]:
    if isinstance(program, OverProgram):
        return list(program.spec.partition_by)
    if isinstance(program, JoinProgram):
        return list(program.left.keys if side_of(part) == "left" else program.right.keys)
    return list(program.keys if isinstance(program, PatternProgram | DeduplicationProgram) else program.key_columns)


def _rows(outputs: list[BucketOutput], number: int) -> list[dict[str, Any]]:
    return [row for output in outputs for which, table in output.tables if which == number for row in table.to_pylist()]
