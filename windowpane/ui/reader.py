"""The one reader of a page: it looks for a new batch, and reads state when there is one, once for all who look.

It runs in a thread of its own, which gives way to others. Reading takes a small share of a core at most: after a look that took
long the next one waits, so of quick batches not each is shown.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, thread_time
from typing import Any

from windowpane.inspect.checkpoints import Checkpoint
from windowpane.inspect.inspection import Inspection
from windowpane.ui.data import contents_data, page_data

PACE = 0.5  # seconds between two looks for a new batch
_SHARE = 50  # after a look it waits for so many times the processor time that it took
_LONGEST_WAIT = 10.0
_MOST = 300  # rows of a table that the page is sent
_NICE = 10

Newest = list[tuple[int, str | None]]
"""Of each query its last committed batch, and what ended it."""


class Reader:
    """Reads some checkpoints.

    Attributes:
        version: a number that is another one when there is something new to show.
    """

    def __init__(self, checkpoints: Sequence[str], queries: Sequence[Any] = ()) -> None:
        """Read these; ``queries`` run in this process, in the order of their checkpoints.

        Raises:
            MissingCheckpointError: one is not there.
        """
        self._places, self._queries = list(checkpoints), list(queries)
        for each in checkpoints:
            Checkpoint(each)
        self._worker = ThreadPoolExecutor(1, "windowpane-reader", _give_way)
        self.version = 0
        self._newest: Newest = []
        self._data = b""
        self._wait_until = 0.0
        self._watched = 0
        self._totals: list[dict[int, dict[str, int]]] = [{} for _ in checkpoints]
        self._progress: list[dict[int, Any]] = [{} for _ in checkpoints]

    async def data(self) -> bytes:
        """Return all figures as JSON; those that are shown already, if someone waits for new ones."""
        if not self._watched or not self.version:
            await self._in_worker(self._look)
        return self._data

    async def search(self, number: int, key: str) -> dict[str, Any]:
        """Return what a query holds of a key."""
        place = self._places[min(number, len(self._places) - 1)]
        found: dict[str, Any] = await self._in_worker(lambda: contents_data(Inspection(Checkpoint(place), _MOST), key))
        return found

    async def wait(self, before: int) -> int:
        """Return the version once it is another one than ``before``, or the pace has passed."""
        self._watched += 1
        try:
            if monotonic() >= self._wait_until:
                await self._in_worker(self._look)
            if self.version == before:
                await asyncio.sleep(PACE)
        finally:
            self._watched -= 1
        return self.version

    def close(self) -> None:
        self._worker.shutdown(wait=False, cancel_futures=True)

    async def _in_worker(self, work: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    def _look(self) -> None:
        if monotonic() < self._wait_until and self._watched:
            return
        newest = self._found()
        if newest == self._newest and self.version:
            return
        began = thread_time()
        self._data = json.dumps({"queries": [self._of(number, error) for number, (_, error) in enumerate(newest)]}).encode()
        self._newest, self.version = newest, self.version + 1
        if self.version > 1:  # the first look is dearer than those that follow, and is not thinned out
            self._wait_until = monotonic() + min(_SHARE * (thread_time() - began), _LONGEST_WAIT)

    def _found(self) -> Newest:
        errors = [None if (error := query.exception()) is None else str(error) for query in self._queries]
        errors += [None] * (len(self._places) - len(errors))
        return [(Checkpoint(place).last_batch(), error) for place, error in zip(self._places, errors, strict=True)]

    def _of(self, number: int, error: str | None) -> dict[str, Any]:
        seen = self._progress[number]
        if number < len(self._queries):
            query = self._queries[number]
            for progress in [query.lastProgress] if seen else query.recentProgress:
                if progress is not None:
                    seen[progress["batchId"]] = progress
        for batch in sorted(seen)[:-_MOST]:
            del seen[batch]
        recent = [seen[batch] for batch in sorted(seen)]
        return page_data(Inspection(Checkpoint(self._places[number]), _MOST, recent, self._totals[number]), error)


def _give_way() -> None:
    """Let threads of the query run first; where threads have no priorities of their own, nothing is changed."""
    try:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
    except (AttributeError, OSError):
        return
