"""Windows as bytes: order-preserving for time windows, self-delimiting for all, and back."""

from __future__ import annotations

import pickle

from windowpane.state import pickles
from windowpane.state.codec import decode_int64, encode_int64_pair
from windowpane.windowing.windows import GLOBAL_WINDOW, TimeWindow, Window

_NONE, _TIME, _GLOBAL, _OTHER = b"\x00", b"\x01", b"\x02", b"\x03"


def encode_namespace(window: Window | None) -> bytes:
    """Return the bytes of a window; ``None`` is the namespace of what belongs to a key and no window."""
    if type(window) is TimeWindow:
        return _TIME + encode_int64_pair(window.start, window.end)
    if window is None:
        return _NONE
    if window == GLOBAL_WINDOW:
        return _GLOBAL
    body = pickle.dumps(window, protocol=5)
    return _OTHER + len(body).to_bytes(4, "big") + body


def decode_namespace(data: bytes, at: int = 0) -> tuple[Window | None, int]:
    """Return the window that begins at ``at``, and where it ends."""
    tag = data[at : at + 1]
    if tag == _TIME:
        return TimeWindow(decode_int64(data[at + 1 : at + 9]), decode_int64(data[at + 9 : at + 17])), at + 17
    if tag == _OTHER:
        end = at + 5 + int.from_bytes(data[at + 1 : at + 5], "big")
        window: Window = pickles.loads(data[at + 5 : end])
        return window, end
    return (GLOBAL_WINDOW if tag == _GLOBAL else None), at + 1
