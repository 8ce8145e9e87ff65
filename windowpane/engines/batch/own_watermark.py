"""The watermark that an operator makes itself, as its buckets keep it: the watermark, and what is known of each source.

Layout: one framed JSON blob under ``watermark``, the same in every bucket. Who may mutate: the operator, once a batch. Recovery:
what was known of sources holds only where the same column names them.
"""

from __future__ import annotations

import json

from windowpane.state.codec import frame, unframe
from windowpane.windowing.watermarks import SourceMark, WatermarkState

OWN_WATERMARK, _KIND = "watermark", "own-watermark"


def write_state(state: WatermarkState, column: str | None) -> bytes:
    """Return what is known as a blob; ``column`` names the sources."""
    sources = [(name, mark.latest, mark.silent) for name, mark in state.sources.items()]
    return frame(_KIND, json.dumps({**vars(state), "sources": sources, "column": column}).encode())


def read_state(blob: bytes) -> tuple[WatermarkState, str | None]:
    """Return what a blob says, and the column that names sources."""
    held = json.loads(unframe(_KIND, blob))
    column = held.pop("column")
    sources = {name: SourceMark(latest, silent) for name, latest, silent in held.pop("sources")}
    holders = tuple(held.pop("holders", ()))
    return WatermarkState(sources=sources, holders=holders, **held), column
