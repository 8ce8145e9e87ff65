"""The never engine: global windows under the trigger that never fires, which is their default. Nothing can be emitted.

So nothing is kept: the state is the ``header`` alone, for a restart with another program to be refused. The row engine keeps
every accumulator for ever instead. Who may mutate: this engine, once a batch. Recovery: read the header back.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from windowpane.engines.common.bucket_header import BucketHeader
from windowpane.engines.common.columnar import common_refusal
from windowpane.engines.program import Program
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.state.blob_store import BlobStore
from windowpane.windowing.assigners import GlobalWindows
from windowpane.windowing.triggers import NeverTrigger


class NeverEngine:
    """Runs what ``refusal`` does not refuse: takes rows, and never emits one."""

    name = "never"

    def __init__(self, program: Program) -> None:
        """Run ``program``."""
        self._program = program

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        """Run one batch of a bucket."""
        header = BucketHeader.read(store, self._program.description)
        watermark = max(clock.watermark, header.watermark)
        now = max(clock.processing_time, header.processing_time)
        BucketHeader(self._program.description, watermark, now).write(store)
        return BucketOutput()


def refusal(program: Program) -> str | None:
    """Return why the never engine cannot run a program, ``None`` if it can."""
    trigger = program.spec.firing_trigger
    if type(trigger) is not NeverTrigger:
        return f"{type(trigger).__name__} fires"
    if type(program.spec.assigner) is not GlobalWindows:
        return "windows that end have late rows"
    return common_refusal(program, runs_user_code=False)
