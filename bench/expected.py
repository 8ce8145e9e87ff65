"""The right answer, in plain numpy: how many result rows a program has, and their checksum.

Windows count that end at or before the last watermark: the largest time seen less the delay, in whole milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bench.bids import Part, Rows
from bench.programs import CHECK, SECOND, Program


class Answer(NamedTuple):
    """Number of result rows, and the sum of their checksums."""

    rows: int
    checksum: int


def answer(program: Program, parts: Sequence[Part], in_milliseconds: bool = False, emit: str = "") -> Answer:
    """Return the answer over the files of ``parts``.

    Args:
        program: what is computed.
        parts: the rows.
        in_milliseconds: whether times are cut to those, as in CSV.
        emit: for calls over rows, ``close`` if only rows behind the last watermark are emitted.
    """
    rows = _together(parts, in_milliseconds)
    closed = closed_ms(rows.times, program) * 1000
    if program.kind in ("over", "lag"):
        return _over(program, rows, closed if emit == "close" else None)
    return _sessions(program, rows, closed) if program.kind == "session" else _windows(program, rows, closed)


def closed_ms(times: np.ndarray, program: Program) -> int:
    """Return the last watermark over rows of these times, in milliseconds."""
    return int(times.max()) // 1000 - program.delay * 1000


def last_watermark(parts: Sequence[Part], program: Program) -> int:
    """Return the last watermark over all rows, in milliseconds."""
    return max(closed_ms(rows.times, program) for part in parts for rows in part.last_batch())


def _together(parts: Sequence[Part], in_milliseconds: bool) -> Rows:
    rows = [batch for part in parts for batch in part.batches()]
    times = np.concatenate([each.times for each in rows])
    times = times // 1000 * 1000 if in_milliseconds else times
    return Rows(np.concatenate([each.keys for each in rows]), np.concatenate([each.prices for each in rows]), times)


def _windows(program: Program, rows: Rows, closed: int) -> Answer:
    """Fold rows into a dense matrix of slices by keys; a window is a run of its rows."""
    length = (program.slide or program.size) * SECOND
    first, keys = int(rows.times.min()) // length, int(rows.keys.max()) + 1
    slices = int(rows.times.max()) // length - first + 1
    cells = (rows.times // length - first) * keys + rows.keys
    shape = (slices, keys)
    counts = np.bincount(cells, minlength=slices * keys).astype(np.int64).reshape(shape)
    sums = np.bincount(cells, rows.prices, slices * keys).astype(np.int64).reshape(shape)
    highest = np.zeros(slices * keys, np.int64)
    np.maximum.at(highest, cells, rows.prices)
    width, total = program.size * SECOND // length, Answer(0, 0)
    for last in range(slices + width - 1):
        end = (first + last + 1) * length
        span = slice(max(0, last - width + 1), last + 1)
        if end <= closed:
            n, s, m = counts[span].sum(0), sums[span].sum(0), highest.reshape(shape)[span].max(0, initial=0)
            total = _plus(total, np.arange(keys)[n > 0], end, n[n > 0], s[n > 0], m[n > 0])
    return total


def _sessions(program: Program, rows: Rows, closed: int) -> Answer:
    order = np.lexsort((rows.times, rows.keys))
    keys, prices, times = rows.keys[order], rows.prices[order], rows.times[order]
    starts = np.flatnonzero(np.r_[True, (keys[1:] != keys[:-1]) | (times[1:] - times[:-1] > program.size * SECOND)])
    counts = np.diff(np.r_[starts, len(keys)])
    ends = times[starts + counts - 1] + program.size * SECOND
    done = ends <= closed
    sums, highest = np.add.reduceat(prices, starts), np.maximum.reduceat(prices, starts)
    return _plus(Answer(0, 0), keys[starts][done], ends[done], counts[done], sums[done], highest[done])


def _over(program: Program, rows: Rows, closed: int | None) -> Answer:
    """Run along the rows of each key, in order of time."""
    order = np.lexsort((rows.times, rows.keys))
    keys, prices, times = rows.keys[order], rows.prices[order], rows.times[order]
    reach = program.preceding if program.kind == "over" else 1
    sums, highest, before = prices.copy(), prices.copy(), np.zeros_like(prices)
    for distance in range(1, min(reach, len(keys) - 1) + 1):
        same = keys[distance:] == keys[:-distance]
        earlier = np.where(same, prices[:-distance], 0)
        sums[distance:] += earlier
        highest[distance:] = np.maximum(highest[distance:], earlier)
        before[distance:] = earlier if distance == 1 else before[distance:]
    s, m = (sums, highest) if program.kind == "over" else (prices, before)
    done = np.ones(len(keys), bool) if closed is None else times < closed
    return _plus(Answer(0, 0), keys[done], times[done], np.zeros(done.sum(), np.int64), s[done], m[done])


def _plus(total: Answer, k: np.ndarray, end: int | np.ndarray, n: np.ndarray, s: np.ndarray, m: np.ndarray) -> Answer:
    checks = eval(CHECK.format(end="end"), {}, {"k": k, "end": np.asarray(end) // 1000, "n": n, "s": s, "m": m})
    return Answer(total.rows + len(k), total.checksum + int(checks.sum()))
