"""A materialized view at work: the operators of its plan, fed with the changes of the relations it reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windowpane.sql.embedded.storage import Storage, as_part
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.failures.bad_values import BadValues
from windowpane.sql.failures.trying import tried
from windowpane.sql.nodes import Node, Scan, every_node
from windowpane.sql.streaming.clock import Watermarks
from windowpane.sql.streaming.deltas import Delta, kept
from windowpane.sql.streaming.kept import kept_by
from windowpane.sql.streaming.operators import Operator
from windowpane.sql.streaming.physical import physical, physical_lines


class Job:
    """The operators of one plan.

    State is kept under ``name`` and the number of the operator in the plan, counted depth first: the same text gives the same
    numbers, so a session that opens a file again finds the state of its views.

    Args:
        bad_values: counts the values that an expression fails on, which then is NULL; ``None`` to fail with it.
    """

    def __init__(self, name: str, node: Node, storage: Storage, clock: Watermarks, bad_values: BadValues | None = None) -> None:
        """Set the operators up, and their state if it does not exist yet."""
        self.node = node
        self.has_bad_values = False
        self._name, self._storage, self._clock, self._bad_values = name, storage, clock, bad_values
        self._operators: dict[int, Operator] = {}
        self._numbers: dict[int, int] = {}
        self._set_up(node)

    def _set_up(self, node: Node) -> None:
        for source in node.inputs:
            self._set_up(source)
        number = len(self._operators)
        self._numbers[id(node)] = number
        self._operators[id(node)] = self._operator(node, self._owner(number))

    @property
    def tries(self) -> bool:
        """Whether expressions that fail are NULL."""
        return self._bad_values is not None

    def trying(self, bad_values: BadValues | None) -> Job:
        """Return the same job with expressions that are NULL where they fail, or with ``None`` fail."""
        return Job(self._name, self.node, self._storage, self._clock, bad_values)

    def _operator(self, node: Node, owner: str) -> Operator:
        node = tried(node) if self.tries else node
        return physical(node, self._storage).make(node, self._storage, owner, self._clock)

    def run(self, changes: Mapping[str, Delta], *, initial: bool = False) -> Delta | None:
        """Return the changes of the view, given those of the relations it reads, by name; some may cancel others."""
        self.has_bad_values = False
        return self._run(self.node, changes, initial)

    def _run(self, node: Node, changes: Mapping[str, Delta], initial: bool) -> Delta | None:
        if isinstance(node, Scan):
            inputs = [changes.get(node.relation)]
        else:
            inputs = [self._run(source, changes, initial) for source in node.inputs]
        if self._bad_values is not None:
            inputs = [None if delta is None else kept(self._storage, delta) for delta in inputs]
            for delta in inputs:
                if delta is not None:
                    self.has_bad_values |= self._bad_values.note_batch(self._name, node, delta.relation)
        return self._operators[id(node)].run(inputs, initial=initial)

    def lines(self) -> list[str]:
        """Return the plan with how its nodes run, and how much each keeps now."""
        return physical_lines(self.node, self._storage, size=self._size)

    def owner(self, node: Node) -> str:
        """Return the name under which the state of a node of the plan is."""
        return self._owner(self._numbers[id(node)])

    def _owner(self, number: int) -> str:
        return f"{as_part(self._name)}/{number}"

    def _size(self, node: Node) -> str:
        owner = self.owner(node)
        names = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'windowpane_state'"
        tables = self._storage.run(f"{names} AND starts_with(table_name, ?)", [f"{owner}/"])
        rows = sum(self._storage.count(f"windowpane_state.{quoted(name)}") for (name,) in tables)
        found = self._storage.run("SELECT sum(octet_length(blob)) FROM windowpane.blobs WHERE owner = ?", [owner])
        return f"rows now: {rows:,}" if tables else f"bytes now: {found[0][0] or 0:,}"

    def kept(self) -> list[dict[str, Any]]:
        """Return what its operators keep, as JSON has it, each with the owner of its state."""
        found = [(number, node) for node in every_node(self.node) if (number := self._numbers.get(id(node))) is not None]
        parts = {number: kept_by(node, self._storage) for number, node in found}
        return [{**parts[number], "owner": self._owner(number)} for number in sorted(parts) if parts[number]]

    def forget(self) -> None:
        for operator in self._operators.values():
            operator.forget()

    def drop(self) -> None:
        for operator in self._operators.values():
            operator.drop()
