"""Row patterns of the vectors: their trees as specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from windowpane.aggregates import count, max, min, sum  # the names of the field
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.expressions import Constant, Expression, Operation
from windowpane.windowing.patterns import tree
from windowpane.windowing.patterns.spec import AfterMatch, Measure, PatternSpec
from windowpane.windowing.patterns.values import Aggregated, Classifier, MatchNumber, Moved, Picked

_AGGREGATES = {"count": count, "sum": sum, "min": min, "max": max}
_OPERATORS = {"=": "==", "<>": "!=", "and": "&", "or": "|", "not": "~", "is_null": "is null"}


def pattern_spec(query: Mapping[str, Any], types: Mapping[str, pa.DataType]) -> PatternSpec:
    """Return the spec of a query of the vectors."""
    to, *variable = query["skip"]
    return PatternSpec(
        pattern=pattern_tree(query["pattern"]),
        conditions={name: _value(condition, types) for name, condition in query["define"].items()},
        subsets={name: frozenset(of) for name, of in (query["subset"] or {}).items()},
        measures=tuple(Measure(name, _value(value, types), final) for name, value, final in query["measures"]),
        rows=query["rows"],
        after_match=AfterMatch(to, *variable),
        within=query["within"],
        has_timeouts=query["timeouts"],
    )


def pattern_tree(node: list[Any]) -> tree.Pattern:
    """Return the pattern of a query of the vectors."""
    match node:
        case ["var", name]:
            return tree.Variable(name)
        case ["cat", *parts]:
            return tree.Sequence(tuple(map(pattern_tree, parts)))
        case ["alt", *parts]:
            return tree.Alternation(tuple(map(pattern_tree, parts)))
        case ["permute", *parts]:
            return tree.Permutation(tuple(map(pattern_tree, parts)))
        case ["q", part, least, most, is_greedy]:
            return tree.Repetition(pattern_tree(part), least, most, is_greedy)
        case ["excl", part]:
            return tree.Exclusion(pattern_tree(part))
        case ["^"]:
            return tree.First()
        case ["$"]:
            return tree.Last()
        case ["empty"]:
            return tree.Sequence(())
        case ["pass", *names]:
            return tree.Passing(tuple(names))
        case ["absent", *names]:
            return tree.Absence(tuple(names))
    raise ValueError(f"no pattern: {node}")


def _value(node: list[Any], types: Mapping[str, pa.DataType]) -> Expression:
    match node:
        case ["const", value]:
            return Constant(value)
        case ["col", variable, column]:
            return Picked("last", variable, column)
        case ["first" | "last" as end, variable, column, offset]:
            return Picked(end, variable, column, offset)
        case ["prev" | "next" as way, inner, rows]:
            of = _value(inner, types)
            assert isinstance(of, Picked)
            return Moved(of, rows if way == "next" else -rows)
        case ["agg", name, variable, column]:
            aggregate: Aggregate = _AGGREGATES[name](column)
            return Aggregated(variable, (column,), aggregate.bind([types[column]]), name, f"{name}({variable}.{column})")
        case ["classifier", variable]:
            return Classifier(variable)
        case ["match_number"]:
            return MatchNumber()
        case ["is_not_true", value]:
            return Operation("is distinct from", (_value(value, types), Constant(True)))
        case [operator, *parts]:
            return Operation(_OPERATORS.get(operator, operator), tuple(_value(part, types) for part in parts))
    raise ValueError(f"no expression: {node}")
