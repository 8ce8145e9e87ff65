"""A hand-written transformWithState that keeps all rows of a window until it ends, as a process function is given them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.systems.on_own_tws import main
from bench.systems.on_tws import Tumbling


class TumblingRows(Tumbling):
    """The prices of each open window of a key."""

    def init(self, handle: Any) -> None:
        self._handle = handle
        self._windows = handle.getMapState("windows", "window_end bigint", "prices array<bigint>")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        brought: dict[int, list[int]] = {}
        for row in rows:
            brought.setdefault(row.ms // self._size * self._size + self._size, []).append(row.price)
        for end, prices in brought.items():
            held = self._windows.getValue((end,))
            if held is None:
                self._handle.registerTimer(end)
            self._windows.updateValue((end,), ([*(held[0] if held else ()), *prices],))
        return iter(())

    def taken(self, end: int) -> tuple[int, int, int]:
        (prices,) = self._windows.getValue((end,))
        return len(prices), sum(prices), max(prices)


if __name__ == "__main__":
    main(TumblingRows)
