"""Kinds of the frame finder: what a change affects, by rows and by range, and how frames merge.

``affected_range_rows``: the four ends of the affected range, with rows of a partition that may continue beyond either end.
``merge_rows_frames``: the super frame of several ROWS frames. ``rows_frame_bounds``: what a frame says of itself, or its refusal.
``range_logical_order``: order values at the edges of RANGE frames. ``range_find_left_right``: rows at or around an order value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from verify.conformance.frame_finder import Positions, find_affected, reaching_key
from verify.conformance.reading.fields import Json, NotUnderstoodError, require_known
from verify.conformance.reading.over_vectors import arrow_type, read_bound, read_frame, read_order, read_rows_frame, read_value
from verify.conformance.reading.vectors import Case
from verify.conformance.replay.verdicts import Difference, Options
from windowpane.errors import InvalidFrameError
from windowpane.operators.over.row_order import OrderKey, Position, RowOrder
from windowpane.operators.over.sorted_partition import frame_edge
from windowpane.windowing.frames import Frame, merge_rows_frames
from windowpane.windowing.over.spec import OverCall, OverSpec

_ENVELOPE = {"id", "kind", "rust_test"}
_SENTINELS = {"left_sentinel", "right_sentinel"}
_INSERTED = {"insert": True, "update": True, "delete": False}


def _order_of(kind: str, words: str) -> RowOrder:
    columns = pa.schema([("order", arrow_type(kind)), ("pk", pa.int64())])
    calls = (OverCall("row_number"),)
    return RowOrder(OverSpec((), (read_order("order", words),), ("pk",), calls), columns)


def _changed(cached: set[Any], delta: list[Any]) -> list[Any]:
    """The rows with the delta applied; each entry ends with what happens to the row."""
    for *cells, op in delta:
        if op not in _INSERTED:
            raise NotUnderstoodError(f"delta {op!r} is not understood")
        row = tuple(cells)
        cached = cached | {row} if _INSERTED[op] else cached - {row}
    return sorted(cached)


def _named(index: int, rows: list[Any]) -> Any:
    """A row by its key, and the ends beyond which there may be more."""
    if index < 0:
        return "smallest"
    return "largest" if index >= len(rows) else rows[index][-1]


def _compare(expected: Json, got: Json, where: str = "expect") -> list[Difference]:
    require_known(expected, got, where)
    return [Difference(f"{where} {name}", value, got[name]) for name, value in expected.items() if value != got[name]]


def affected_range_rows(case: Case, options: Options) -> list[Difference]:
    """Compare the ends that the case asserts."""
    require_known(case.body, {*_ENVELOPE, *_SENTINELS, "cache", "delta", "frame", "frames", "expect"}, "case")
    rows = _changed({(key,) for key in case.get("cache")}, case.get("delta"))
    positions = Positions([Position((), row) for row in rows], case.get("left_sentinel"), case.get("right_sentinel"))
    changed = sorted(Position((), (key,)) for key, _ in case.get("delta"))
    frames = [read_frame(frame) for frame in case.get("frames", [case.get("frame")])]
    found = find_affected(positions, changed[0], changed[-1], frames)
    got = {
        "first_curr_key": _named(found.first_curr_row, rows),
        "last_curr_key": _named(found.last_curr_row, rows),
        "first_frame_start": _named(found.first_frame_start, rows),
        "last_frame_end": _named(found.last_frame_end, rows),
    }
    return _compare(case.get("expect"), got)


def merge_frames(case: Case, options: Options) -> list[Difference]:
    """Compare the super frame."""
    require_known(case.body, {*_ENVELOPE, "frames", "expect"}, "case")
    merged = merge_rows_frames(read_rows_frame(bounds) for bounds in case.get("frames"))
    expected = read_rows_frame(case.get("expect"))
    return [] if merged == expected else [Difference("expect", expected, merged)]


def rows_frame_bounds(case: Case, options: Options) -> list[Difference]:
    """Compare what the frame says of itself; a frame that is not valid cannot be built."""
    require_known(case.body, {*_ENVELOPE, "start", "end", "expect"}, "case")
    return _compare(case.get("expect"), _described(case))


def _described(case: Case) -> Json:
    try:
        frame = Frame.rows(read_bound(case.get("start")), read_bound(case.get("end")))
    except InvalidFrameError:
        return {"valid": False, "canonical": False}
    return {
        "valid": True,
        "canonical": frame.is_canonical,
        "start_offset": frame.start.steps,
        "end_offset": frame.end.steps,
        "n_preceding": frame.n_preceding,
        "n_following": frame.n_following,
    }


def range_logical_order(case: Case, options: Options) -> list[Difference]:
    """Compare the order values: of the farthest rows a change can reach, and of the edges of given rows' frames."""
    require_known(case.body, {*_ENVELOPE, "order", "frames", "first", "last", "expect"}, "case")
    kind = arrow_type(case.get("order")[0])
    order = _order_of(*case.get("order"))
    first, last = (order.key_of(read_value(kind, case.get(name))) for name in ("first", "last"))
    bounds = [(read_bound(start), read_bound(end)) for start, end in case.get("frames")]
    keys: dict[str, Callable[[], OrderKey]] = {
        "first_curr": lambda: min(reaching_key(order, first, end) for _, end in bounds),
        "last_curr": lambda: max(reaching_key(order, last, start) for start, _ in bounds),
        "first_frame_start": lambda: min(frame_edge(order, first, start) for start, _ in bounds),
        "last_frame_end": lambda: max(frame_edge(order, last, end) for _, end in bounds),
    }
    unbounded = {
        "first_curr": any(end.is_unbounded for _, end in bounds),
        "last_curr": any(start.is_unbounded for start, _ in bounds),
        "first_frame_start": any(start.is_unbounded for start, _ in bounds),
        "last_frame_end": any(end.is_unbounded for _, end in bounds),
    }
    got = {name: None if unbounded[name] else order.value_of(key()) for name, key in keys.items()}
    return _compare({name: _edge(kind, value) for name, value in case.get("expect").items()}, got)


def _edge(kind: pa.DataType, value: Any) -> Any:
    return None if value in ("unbounded", "smallest", "largest") else read_value(kind, value)


def range_find_left_right(case: Case, options: Options) -> list[Difference]:
    """Compare the row found on the left and on the right of each order value."""
    require_known(case.body, {*_ENVELOPE, *_SENTINELS, "order", "cache_ord_pk", "delta_ord_pk", "queries"}, "case")
    kind, order = arrow_type(case.get("order")[0]), _order_of(*case.get("order"))
    rows = _changed({tuple(row) for row in case.get("cache_ord_pk")}, case.get("delta_ord_pk"))
    placed = sorted((Position(order.key_of(read_value(kind, value)), (key,)), (key,)) for value, key in rows)
    positions = Positions([place for place, _ in placed], case.get("left_sentinel"), case.get("right_sentinel"))
    keys = [key for _, key in placed]
    differences = []
    for query in case.get("queries"):
        value = order.key_of(read_value(kind, query["order_value"]))
        left, right = _named(positions.left_of(value), keys), _named(positions.right_of(value), keys)
        got = {"order_value": query["order_value"], "expect_left_pk": left, "expect_right_pk": right}
        differences += _compare(query, got, f"order value {query['order_value']}")
    return differences
