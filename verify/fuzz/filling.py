"""Kind ``filling``: gaps of random windows, batch by batch, on the engine and on the reference; and all at once in DuckDB.

The engine is made anew from bytes before every batch. After every batch both must have emitted the same; and the last result of
each key and window is what DuckDB makes of all results: a series of windows for each key, with what was seen joined to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import duckdb
import pyarrow as pa

from verify.fuzz.outcome import Outcome, differences_of
from windowpane.engines.filling.program import FillingProgram
from windowpane.engines.filling.reference import FillingReferenceEngine
from windowpane.engines.program import WINDOW_END, WINDOW_START
from windowpane.engines.protocol import Clock, Engine
from windowpane.hidden_columns import FIRING_WATERMARK, PARTITION, POSITION, TIME
from windowpane.planning.engines import make_engine, with_engine
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.times import MIN

MAIN_SCHEMA = pa.schema(
    [
        *(("k", pa.string()), (WINDOW_START, pa.int64()), (WINDOW_END, pa.int64()), ("n", pa.int64()), ("v", pa.int64())),
        *((TIME, pa.int64()), (FIRING_WATERMARK, pa.int64())),
    ]
)
Result = tuple[str | None, int, int, int | None]
"""Key, start, and the values."""
Batch = tuple[int, int, Sequence[Result]]
"""The watermark that results were emitted under, the one after them, and the results."""

_EXPECTED = """
    WITH windows AS (SELECT k, unnest(range(min(s), {watermark} - {size} + 2, {step})) AS w FROM seen GROUP BY k),
    joined AS (
        SELECT windows.k, w, s, n, CASE WHEN s IS NOT NULL THEN {{'s': s, 'v': v}} END AS result
        FROM windows LEFT JOIN seen ON seen.k IS NOT DISTINCT FROM windows.k AND s = w
    ),
    filled AS (SELECT *, last_value(result IGNORE NULLS) OVER (PARTITION BY k ORDER BY w) AS last FROM joined)
    SELECT k, w, CASE WHEN s IS NULL THEN {n} ELSE n END, CASE WHEN s IS NULL AND NOT {keeps} THEN NULL ELSE last.v END
    FROM filled WHERE w - last.s <= {room}
"""


def run(seed: int) -> Outcome:
    """Return what became of the program of a seed."""
    draw = Random(seed)
    program = with_engine(random_program(draw))
    batches = random_batches(draw, program)
    text = f"{program}, {batches!r}"
    return Outcome(seed, text, program.engine, differences_of(seed, lambda: _differences(program, batches)))


def random_program(draw: Random) -> FillingProgram:
    """Draw a program: tumbling and sliding windows, and such with room between them."""
    size, step = draw.choice([(10, 10), (10, 5), (10, 15), (25, 10)])
    previous, constants = draw.choice([(("v",), (("n", 0),)), ((), (("n", 0),)), ((), ())])
    limit, lateness = draw.choice([1, 2, 7, None]), draw.choice([0, 0, 20, 60])
    return FillingProgram(("k",), MAIN_SCHEMA, size, step, limit, previous, constants, lateness)


def random_batches(draw: Random, program: FillingProgram) -> list[Batch]:
    """Draw batches of results that windows can emit: of those that a watermark closes, and late ones."""
    batches: list[Batch] = []
    before, watermark = MIN, draw.choice([MIN, 0, 30])
    for _ in range(draw.randint(1, 8)):
        before, watermark = watermark, max(watermark, 0) + draw.choice([0, 3, 10, 40, 120])
        oldest = before - program.allowed_lateness - program.size + 2
        starts = [start for start in range(0, watermark - program.size + 2, program.step) if start >= oldest]
        chosen = draw.sample(starts, min(len(starts), draw.randint(0, 3)))
        rows = [(k, s, draw.randint(1, 9), draw.choice([None, 1, 2])) for s in chosen for k in draw.sample(["a", "b", None], 2)]
        batches.append((before, watermark, rows))
    return batches


def _differences(program: FillingProgram, batches: Sequence[Batch]) -> Iterator[str]:
    expected, found = (replay(engine, program, batches) for engine in (FillingReferenceEngine, make_engine))
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        if Counter(one) != Counter(other):
            yield f"batch {number}: the reference {sorted(one, key=repr)}, {program.engine} {sorted(other, key=repr)}"
    last = {row[:2]: row for batch in found for row in batch}
    at_once = in_duckdb(program, batches)
    if Counter(last.values()) != Counter(at_once):
        yield f"DuckDB {sorted(at_once, key=repr)}, {program.engine} {sorted(last.values(), key=repr)}"


def replay(
    engine: Callable[[FillingProgram], Engine], program: FillingProgram, batches: Sequence[Batch]
) -> list[list[tuple[Any, ...]]]:
    """Return key, start and values of what came out of each batch; an engine is made anew from bytes before each."""
    store, found = MemoryBlobStore(), []
    for before, watermark, rows in batches:
        output = engine(program).run(store, [table_of(rows, program, before)], Clock(watermark, 0))
        tables = [table.select(["k", WINDOW_START, "n", "v"]) for _, table in output.tables]
        found.append([tuple(row.values()) for table in tables for row in table.to_pylist()])
        again = MemoryBlobStore()
        again.restore(store.snapshot())
        store = again
    return found


def table_of(rows: Sequence[Result], program: FillingProgram, fired_under: int) -> pa.Table:
    """Return results as an engine is given them."""
    size, types = program.size, pa.schema([*MAIN_SCHEMA, (PARTITION, pa.int32()), (POSITION, pa.int64())])
    columns = [(k, s, s + size, n, v, s + size - 1, fired_under, 0, at) for at, (k, s, n, v) in enumerate(rows)]
    return pa.Table.from_pylist([dict(zip(types.names, row, strict=True)) for row in columns], schema=types)


def in_duckdb(program: FillingProgram, batches: Sequence[Batch]) -> list[tuple[Any, ...]]:
    """Return the last result of each key and window, of all results at once."""
    last = {row[:2]: row for _, _, rows in batches for row in rows}
    room = 10**9 if program.limit is None else program.limit * program.step
    parts = {"watermark": batches[-1][1], "size": program.size, "step": program.step, "room": room}
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE seen (k TEXT, s BIGINT, n BIGINT, v BIGINT)")
        if last:
            connection.executemany("INSERT INTO seen VALUES (?, ?, ?, ?)", list(last.values()))
        n = dict(program.constants).get("n", "NULL")
        return connection.execute(_EXPECTED.format(**parts, n=n, keeps=bool(program.previous))).fetchall()
