"""Replays the cases of vector files through an engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from verify.conformance.engines.by_name import ENGINES, Engine
from verify.conformance.reading.fields import LeftToRowsError, NotUnderstoodError
from verify.conformance.reading.vectors import Case, find_files, read_cases
from verify.conformance.replay.verdicts import Difference, Options, Verdict

_INTERNALS = {
    "plan": "the shape of RisingWave's plans",
    "window_buffer": "RisingWave's sliding buffer: frames here are searched, not slid",
    "rank_state": "RisingWave's incremental rank states: their results are replayed by kind over_window",
    "range_except": "RisingWave's incremental frames: frames here are searched, not slid",
    "range_diff": "RisingWave's incremental frames: frames here are searched, not slid",
    "evict_hint_merge": "RisingWave's hints for eviction: rows here are kept from one index on",
    "range_cache": "RisingWave's cache of state rows",
}
"""Kinds that speak of parts that have no counterpart here."""


def replay_case(case: Case, engine: Engine, engine_name: str, options: Options) -> Verdict:
    """Return the verdict of a case. An exception nobody expected fails the case and leaves the others to run."""
    replay = engine.get(case.kind)
    if replay is None:
        return Verdict(skipped=_missing(case.kind, engine_name))
    try:
        return Verdict(replay(case, options))
    except NotUnderstoodError as reason:
        return Verdict(skipped=str(reason), left_to_rows=isinstance(reason, LeftToRowsError))
    except Exception as error:
        return Verdict([Difference("replay", "no exception", error)])


def _missing(kind: str, engine: str) -> str:
    if kind == "sql":
        return f"SQL is replayed with --engine local or spark, not with {engine}"
    if kind in _INTERNALS:
        return f"{_INTERNALS[kind]} (kind {kind})"
    return f"kind {kind} is not understood by engine {engine}"


def replay_paths(
    paths: Sequence[Path],
    engine: str = "row",
    options: Options | None = None,
    only: str = "",
    limit: int | None = None,
    seed: int | None = None,
) -> Iterator[tuple[Case, Verdict]]:
    """Yield the verdict of every case below ``paths``.

    Args:
        paths: files, or folders of them.
        engine: one of ``ENGINES``.
        options: how to replay.
        only: a part that the id of a case must contain.
        limit: only this many cases that are not skipped, spread evenly over all of them, the same ones each time.
        seed: shuffles the cases, so that a limit takes others of them.
    """
    understood, replayed = ENGINES[engine](), 0
    cases = [case for file in find_files(paths) for case in read_cases(file) if only in case.id]
    if seed is not None:
        Random(seed).shuffle(cases)
    elif limit is not None:
        cases = spread(cases)
    for case in cases:
        if limit is not None and replayed >= limit:
            return
        verdict = replay_case(case, understood, engine, options or Options())
        replayed += verdict.skipped is None
        yield case, verdict


def spread(cases: Sequence[Case]) -> list[Case]:
    """Return the cases in an order that begins, however early it is cut, with some from everywhere (van der Corput's)."""
    bits = max(len(cases) - 1, 0).bit_length()
    turned = (int(f"{number:0{bits}b}"[::-1], 2) for number in range(1 << bits)) if bits else range(1)
    return [cases[number] for number in turned if number < len(cases)]
