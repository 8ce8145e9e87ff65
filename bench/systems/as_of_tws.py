"""An as-of join written by hand on transformWithState: one group a key, lists of left rows and versions, a timer a left row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

SCHEMA = "k {key}, v bigint, r_v bigint"
_ROW = "micros bigint, v bigint"


class Latest(StatefulProcessor):
    """Each left row with the latest version until its time, once the watermark has passed it.

    Rows have ``k``, ``micros``, ``v`` and ``is_left``.
    """

    def init(self, handle: Any) -> None:
        self._handle = handle
        self._left = handle.getListState("left", _ROW)
        self._versions = handle.getListState("versions", _ROW)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        lefts, versions = [], []
        for row in rows:
            (lefts if row.is_left else versions).append((row.micros, row.v))
        if lefts:
            self._left.appendList(lefts)
            for micros in {micros // 1000 + 1 for micros, _ in lefts}:
                self._handle.registerTimer(micros)
        if versions:
            self._versions.appendList(versions)
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        until = expiredTimerInfo.getExpiryTimeInMs() * 1000
        versions = sorted((tuple(each) for each in self._versions.get()), key=lambda each: each[0])
        waiting = []
        for micros, v in self._left.get():
            if micros >= until:
                waiting.append((micros, v))
                continue
            found = [version for at, version in versions if at <= micros]
            yield Row(k=key[0], v=v, r_v=found[-1] if found else None)
        old = [each for each in versions if each[0] < until]
        for state, kept in ((self._versions, [*old[-1:], *versions[len(old) :]]), (self._left, waiting)):
            if kept:
                state.put(kept)
            else:
                state.clear()

    def close(self) -> None:
        """Nothing to release."""
