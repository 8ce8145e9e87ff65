"""Freeing state: which stored rows a watermark has made useless, since no later row can need them.

A watermark is *final* where no change at all arrives behind it, deletes included: the rows of its tables stay. Then

- groups, partitions of Top-N and of OVER, and rows of EXCEPT and INTERSECT expire when one of their columns is behind its
  watermark;
- the rows of a session expire when the watermark is more than the gap behind its last row: no later row can extend it;
- a row of a join expires when no later row of the other side can match it: its key is behind the watermark of the other side's
  key, or behind the bound that the watermark makes in a condition on times (``l.at >= r.at - INTERVAL '5 minutes'``).

In an outer, semi or anti join the result also says whether a row has a partner. So a row that is the partner of others stays as
long as one of them is still needed. State is freed after the rows of a batch, never before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import Expr, quoted
from windowpane.sql.nodes import Aggregate, Join, Node, Over, SessionWindows, SetOperation, TopN, Watermark
from windowpane.sql.streaming.clock import Clock
from windowpane.sql.streaming.deltas import same

WITNESSES = {"left": (1,), "semi": (1,), "anti": (1,), "right": (0,), "full": (0, 1)}
"""For each kind of join the inputs whose rows decide whether rows of the other side have a partner."""


def free(node: Node, storage: Storage, clock: Clock, tables: Sequence[str], *, whole: bool = True) -> None:
    """Delete the rows that no later row can need from the tables of a node's state, one table an input.

    Args:
        node: the node.
        storage: where the tables are.
        clock: its watermarks.
        tables: one for each input, with the input's columns (of folded groups: with the columns of the groups).
        whole: whether the tables hold all state, or only that of some keys beside parts of others.
    """
    for table, passed in zip(tables, _passed(node, clock), strict=True):
        if passed:
            storage.run(f"DELETE FROM {table} WHERE {passed}")
    if isinstance(node, Join):
        _free_unmatched(node, storage, clock, tables, whole)
    elif isinstance(node, SessionWindows):
        _free_sessions(node, storage, clock, tables[0])


def frees_rows(node: Join, clock: Clock) -> bool:
    """Whether a watermark may free rows of a join."""
    return any(_passed(node, clock)) or any(_past(node, index, clock) for index in range(2))


def ended(node: Node, clock: Clock, *, whole: bool = True) -> list[str]:
    """Return for each input the condition on its rows in state by which they are freed, empty where none is.

    A row of a session is freed with the whole of it: the condition asks for the end of the session beside the row. A row that
    decides whether others have a partner may stay beyond that.

    Args:
        node: the node.
        clock: its watermarks.
        whole: see ``free``.
    """
    found = _passed(node, clock)
    if isinstance(node, Join):
        witnesses = () if whole else WITNESSES.get(node.kind, ())
        past = ["" if index in witnesses else _past(node, index, clock) for index in range(2)]
        return [_any(each) for each in zip(found, past, strict=True)]
    limit = _session_limit(node, clock) if isinstance(node, SessionWindows) else None
    return [_any((each, _behind(node.columns[-1].id, limit))) for each in found]


class _Named:
    """Stands for watermarks where only the conditions on them are asked for."""

    def of(self, watermark: Watermark) -> str:
        return "its watermark"


def freed_where(node: Node) -> str:
    """Return the condition on rows of a node's state that a watermark makes useless, as EXPLAIN writes it; empty for none."""
    clock = _Named()
    found = _passed(node, clock)
    if isinstance(node, Join):
        found = [passed or _past(node, index, clock, lambda value: value.shown({})) for index, passed in enumerate(found)]
    elif isinstance(node, SessionWindows) and (limit := _session_limit(node, clock)) is not None:
        found.append(_beyond_the_gap(node, limit))
    return ", or ".join(dict.fromkeys(filter(None, found)))


def closing_columns(node: Node) -> tuple[str, ...]:
    """Return the columns of a node's first input behind whose watermark its state expires, whatever else a row holds."""
    if isinstance(node, Aggregate):
        return tuple(name for name in node.groups if _is_final(node.input, name))
    if isinstance(node, TopN | SessionWindows | Over):
        return tuple(name for name in node.partition if _is_final(node.input, name))
    return ()


def _is_final(node: Node, name: str) -> bool:
    watermark = node.watermarks.get(name)
    return watermark is not None and watermark.final


def _passed(node: Node, clock: Clock) -> list[str]:
    """Return for each input the condition on its rows that makes them useless by themselves, empty where there is none."""
    if not isinstance(node, Join | SetOperation):
        source = node.inputs[0]
        return [_any(_behind(name, clock.of(source.watermarks[name])) for name in closing_columns(node))]
    limits = [(pair, _both(node.left, pair[0], node.right, pair[1], clock)) for pair in _equal_columns(node)]
    return [_any(_behind(pair[index], limit) for pair, limit in limits) for index in range(2)]


def _equal_columns(node: Join | SetOperation) -> Sequence[tuple[str, str]]:
    """Return the columns of both sides that are equal in rows that meet; what a row meets by arrival depends on no time."""
    if isinstance(node, Join):
        return () if node.by_arrival else node.keys
    return [(one.id, other.id) for one, other, _ in zip(node.left.columns, node.right.columns, node.columns, strict=False)]


def _behind(name: str, limit: str | None) -> str | None:
    return None if limit is None else f"{quoted(name)} < {limit}"


def _any(conditions: Iterable[str | None]) -> str:
    return " OR ".join(filter(None, conditions))


def _both(left: Node, one: str, right: Node, other: str, clock: Clock) -> str | None:
    """Return the lesser watermark of two columns that are equal, ``None`` if one of them has no final watermark."""
    if not (_is_final(left, one) and _is_final(right, other)):
        return None
    return clock.of(Watermark.least(left.watermarks[one], right.watermarks[other]))


def _session_limit(node: SessionWindows, clock: Clock) -> str | None:
    watermark = node.input.watermarks.get(node.time)
    return clock.of(watermark) if watermark is not None and watermark.final else None


def _beyond_the_gap(node: SessionWindows, limit: str) -> str:
    return f"{quoted(node.time)} + {node.gap.sql} < {limit}"


def _free_sessions(node: SessionWindows, storage: Storage, clock: Clock, table: str) -> None:
    limit = _session_limit(node, clock)
    if limit is None:
        return
    old = f"(SELECT * FROM {table} WHERE {_beyond_the_gap(node, limit)})"
    rows = f"(SELECT s.* FROM {table} AS s SEMI JOIN {old} AS o ON {same('s', 'o', node.partition)})"
    closed = storage.temporary(f"SELECT * FROM ({node.sql(rows)}) WHERE {quoted(node.columns[-1].id)} < {limit}")
    storage.run(f"DELETE FROM {table} AS s USING {closed} AS d WHERE {same('s', 'd', node.input.key)}")


def _free_unmatched(node: Join, storage: Storage, clock: Clock, tables: Sequence[str], whole: bool) -> None:
    past = [_past(node, index, clock) for index in range(2)]
    witnesses = WITNESSES.get(node.kind, ())
    useless = {
        index: storage.temporary(
            _without_partners(node, index, tables, past) if index in witnesses else _where(tables[index], past[index])
        )
        for index in range(2)
        if past[index] and (whole or index not in witnesses)
    }
    for index, found in useless.items():
        storage.run(f"DELETE FROM {tables[index]} AS s USING {found} AS d WHERE {same('s', 'd', node.inputs[index].key)}")


def _past(node: Join, index: int, clock: Clock, text: Callable[[Expr], str] = attrgetter("sql")) -> str:
    """Return the condition on rows of an input that no later change can match, and that do not change themselves any more."""
    if node.by_arrival:
        return ""
    source, other = node.inputs[index], node.inputs[1 - index]
    conditions = [
        _behind(pair[index], clock.of(other.watermarks[pair[1 - index]]))
        for pair in node.keys
        if _is_final(other, pair[1 - index])
    ]
    for bound in node.bounds:
        limit = clock.of(bound.watermark) if bound.frees == index and bound.watermark.final else None
        # Where the bound of a row is NULL, the row matches nothing.
        value = text(bound.value)
        conditions.append(None if limit is None else f"({value} < {limit} OR {value} IS NULL)")
    matched = _any(conditions)
    if not matched or source.append_only:
        return matched
    settled = _any(_behind(name, clock.of(mark)) for name, mark in source.watermarks.items() if mark.final)
    return f"({matched}) AND ({settled})" if settled else ""


def _where(table: str, condition: str) -> str:
    return f"SELECT * FROM {table} WHERE {condition}"


def _without_partners(node: Join, index: int, tables: Sequence[str], past: Sequence[str]) -> str:
    """Return the past rows of an input that are not the partner of a row of the other input that is still needed."""
    needed = f"SELECT * FROM {tables[1 - index]}" + (f" WHERE ({past[1 - index]}) IS NOT TRUE" if past[1 - index] else "")
    old, matching = _where(tables[index], past[index]), node.condition_of(*(("s", "p") if index == 0 else ("p", "s")))
    return f"SELECT s.* FROM ({old}) AS s ANTI JOIN ({needed}) AS p ON {matching}"
