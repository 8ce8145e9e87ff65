"""What an ``expect`` step expects, compared with what an engine shows. Every engine is compared by this module.

Order: ``exact`` compares lists; ``any`` compares multisets; ``any`` with ``timer_groups`` compares the consecutive runs of that
many records one after the other, each as a multiset, because timers fire by time and only those of one time in any order.
Records are compared in the fields that the expected records of the step list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from verify.conformance.reading.fields import REMARKS, Json, NotUnderstoodError
from verify.conformance.replay.verdicts import Difference
from windowpane.windowing.times import MIN

Read = Callable[[str], Any]

_RECORDS = {"output": "order", "late": "late_order", "intermediate": "intermediate_order", "late2": "late2_order"}
_RECORDS |= {f"stage{number}": f"order{number}" for number in range(1, 4)}
_RECORDS |= {f"late_of_{number}": f"order_late{number}" for number in range(1, 4)}
"""Lists of records, and the field that says how their order is compared."""
_MULTISETS = frozenset({"function_clears"})
_MODES = frozenset({"order", "cumulative", "timer_groups", *_RECORDS.values()})


def compare_expect(expect: Json, read: Read, where: str, contents_order: str = "exact") -> list[Difference]:
    """Return how ``expect`` differs from what ``read(field)`` shows.

    Args:
        expect: the step; fields it does not have were not asserted.
        read: the engine's answer for a field, everything relative to the expect before; raises ``NotUnderstoodError`` for a
            field that the engine does not show.
        where: the step, for messages.
        contents_order: ``any`` where ``contents`` are multisets.

    Raises:
        NotUnderstoodError: a field or mode nobody knows.
    """
    if expect.get("cumulative", False):
        raise NotUnderstoodError("cumulative expectations are not understood")
    differences = []
    for name, expected in expect.items():
        if name in _MODES or name in REMARKS:
            continue
        got = read(name)
        if not _same(name, expected, got, expect, contents_order):
            differences.append(Difference(f"{where} {name}", expected, got))
    return differences


def _same(name: str, expected: Any, got: Any, expect: Json, contents_order: str) -> bool:
    if name == "side":
        return _same_sides(expected, got, _order(expect, "order"))
    if name in _RECORDS:
        order = _order(expect, _RECORDS[name])
        groups = expect.get("timer_groups") if name == "output" else None
        return same_records(expected, got, order, groups, contents_order)
    if name in _MULTISETS:
        return _multiset(expected) == _multiset(got)
    if isinstance(got, list):
        return same_calls(expected, got)
    return bool(expected == got)


def _order(expect: Json, field: str) -> str:
    order = expect.get(field, expect.get("order", "any"))
    if order not in ("exact", "any"):
        raise NotUnderstoodError(f"{field} {order!r} is not understood")
    return str(order)


def same_records(
    expected: Sequence[Json],
    got: Sequence[Json],
    order: str,
    groups: Sequence[int] | None = None,
    contents_order: str = "exact",
) -> bool:
    """Return whether two lists of records are the same in the fields that the expected ones list."""
    fields = {name for record in expected for name in record}
    wanted = [_canonical(record, fields, contents_order) for record in expected]
    shown = [_canonical(record, fields, contents_order) for record in got]
    if len(wanted) != len(shown):
        return False
    if order == "exact":
        return bool(wanted == shown)
    return all(Counter(wanted[a:b]) == Counter(shown[a:b]) for a, b in _runs(groups, len(wanted)))


def _runs(groups: Sequence[int] | None, length: int) -> list[tuple[int, int]]:
    if not groups:
        return [(0, length)]
    if sum(groups) != length:
        raise NotUnderstoodError(f"timer_groups {list(groups)} do not add up to {length} records")
    ends = [sum(groups[: index + 1]) for index in range(len(groups))]
    return list(zip([0, *ends], ends, strict=False))


def _canonical(record: Json, fields: set[str], contents_order: str) -> Any:
    shown = {name: value for name, value in record.items() if name in fields}
    if "ts" in shown and shown["ts"] is None:
        shown["ts"] = MIN
    if contents_order == "any" and isinstance(shown.get("contents"), list):
        shown["contents"] = sorted(shown["contents"])
    return frozen(shown)


def frozen(node: Any) -> Any:
    """Return JSON as a value that hashes."""
    if isinstance(node, dict):
        return frozenset((name, frozen(child)) for name, child in node.items())
    if isinstance(node, list | tuple):
        return tuple(frozen(child) for child in node)
    return node


def _multiset(items: Sequence[Any]) -> Counter[Any]:
    return Counter(frozen(item) for item in items)


def _same_sides(expected: dict[str, list[Json]], got: dict[str, list[Json]], order: str) -> bool:
    empty = {tag for tag, records in got.items() if not records}
    tags = set(expected) | (set(got) - empty)
    return all(same_records(expected.get(tag, []), got.get(tag, []), order) for tag in tags)


def same_calls(expected: Any, got: list[Any]) -> bool:
    """Return whether calls are as expected: a number counts them, a list names them, in the fields it lists."""
    if isinstance(expected, list) and all(isinstance(call, dict) for call in expected + got):
        return same_records(expected, got, "any")
    if isinstance(expected, list):
        return bool(frozen(expected) == frozen(got))
    return bool(expected == len(got))
