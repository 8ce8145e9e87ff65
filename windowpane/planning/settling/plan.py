"""Plans of settling: a changelog that is read as the rows that stay, as a value that explains itself."""

from __future__ import annotations

from dataclasses import dataclass

from windowpane.engines.settling.program import SettlingProgram
from windowpane.planning.settings import plan_text
from windowpane.windowing.outputs import CHANGE_TYPE


@dataclass(frozen=True)
class SettlingPlan:
    event_time: str | None
    retracts = False
    uses_processing_time = False

    def explain(self, program: SettlingProgram, state: str, buckets: str) -> str:
        lines = {
            "event time": self.event_time or "that of the results before",
            "emitted": "each row that stays, once, when the watermark has passed it: no change can concern it any more",
            "late changes": "side output late_changes",
            "state": state,
            "buckets": buckets,
            "engine": f"{program.engine}: {program.engine_reason}",
        }
        return plan_text(f"Settled changelog ({CHANGE_TYPE})", lines)
