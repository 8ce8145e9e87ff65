"""Equal nodes of a plan: they have the same rows, in columns of other ids, as of a query in WITH that is read twice."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from windowpane.sql.nodes import Node, every_node


def equal_nodes(nodes: Sequence[Node]) -> dict[int, int]:
    """Return for each node that equals an earlier one the number of the first such, by its own number.

    Their columns are the same in number and order. Which nodes are equal depends on the plan alone, in any process.
    """
    forms = [_form(node) for node in nodes]
    firsts = {number: forms.index(form) for number, form in enumerate(forms)}
    return {number: first for number, first in firsts.items() if first != number}


def _form(node: Node) -> Any:
    """Return what equals that of another node if the nodes are equal: ids of columns are numbers, in the order of the plan."""
    ids = dict.fromkeys(column.id for each in every_node(node) for column in each.columns)
    numbers = {name: f"#{number}" for number, name in enumerate(ids)}
    longest_first = sorted(map(re.escape, numbers), key=len, reverse=True)
    return _numbered(node, re.compile(rf"(?:{'|'.join(longest_first)})(?!\d)"), numbers)


def _numbered(value: Any, ids: re.Pattern[str], numbers: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return ids.sub(lambda found: numbers[found[0]], value)
    if is_dataclass(value):
        parts = [getattr(value, each.name) for each in fields(value) if each.compare]
        return type(value), [_numbered(part, ids, numbers) for part in parts]
    if isinstance(value, tuple | list):
        return [_numbered(part, ids, numbers) for part in value]
    if isinstance(value, frozenset):
        return sorted((_numbered(part, ids, numbers) for part in value), key=repr)
    if isinstance(value, Mapping):
        return sorted(((_numbered(name, ids, numbers), _numbered(part, ids, numbers)) for name, part in value.items()), key=repr)
    return value
