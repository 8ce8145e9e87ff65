"""Kind ``tumble_start``: RisingWave's ``tumble_start(time, window size[, offset])``, the start of the tumbling window of a time.

A case, or each entry of its ``calls`` (or ``queries``), has a time (``ts``), a ``window_size`` (or ``size``), perhaps an
``offset``, and what it ``is`` (or ``expect``); what the case says holds for every entry that does not say it. Times are text or
integers of microseconds, durations text or integers. The offset may have any length.
"""

from __future__ import annotations

from typing import Any

from verify.conformance.reading.fields import Json, NotUnderstoodError, require_known
from verify.conformance.reading.sql_values import read_duration, read_instant
from verify.conformance.reading.vectors import Case
from verify.conformance.replay.verdicts import Difference, Options
from windowpane.errors import WindowpaneError
from windowpane.windowing.windows import window_start

_CALLS = ("calls", "queries")
_ENVELOPE = {"id", "kind", "rust_test", *_CALLS}
_TIME = ("ts", "time", "timestamp", "input")
_SIZE = ("window_size", "size", "window", "interval")
_OFFSET = ("offset", "window_offset")
_RESULT = ("is", "expect", "expected", "window_start", "returns")


def replay(case: Case, options: Options) -> list[Difference]:
    """Compare the start of every call."""
    shared = {name: value for name, value in case.body.items() if name not in _ENVELOPE}
    differences = []
    entries: list[Json] = next((case.get(name) for name in _CALLS if name in case.body), [{}])
    for entry in entries:
        call = {**shared, **entry}
        require_known(call, {*_TIME, *_SIZE, *_OFFSET, *_RESULT}, "tumble_start call")
        expected = read_instant(_one_of(call, _RESULT))
        got = _start(call)
        if got != expected:
            differences.append(Difference(f"{call}", expected, got))
    return differences


def _start(call: Json) -> Any:
    try:
        size = read_duration(_one_of(call, _SIZE))
        offset = read_duration(_one_of(call, _OFFSET, 0))
    except WindowpaneError as error:
        raise NotUnderstoodError(str(error)) from None
    time = read_instant(_one_of(call, _TIME))
    return None if time is None else window_start(time, offset, size)


def _one_of(call: Json, names: tuple[str, ...], default: Any = ...) -> Any:
    for name in names:
        if name in call:
            return call[name]
    if default is ...:
        raise NotUnderstoodError(f"a tumble_start call without {' or '.join(names)} is not understood")
    return default
