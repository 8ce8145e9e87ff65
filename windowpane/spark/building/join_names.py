"""The columns of a join: which ones each side carries, and what the columns of the result are made of.

A column ``x`` of the left side is ``left.x`` where rows leave the operator; Spark computes the columns of the result from these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import functions as F

from windowpane.engines.join.program import passed_name
from windowpane.engines.program import WINDOW_END, WINDOW_START
from windowpane.errors import DuplicateColumnError, InvalidSpecError, UnknownColumnError
from windowpane.planning.joins import JoinRequest, side_tags
from windowpane.spark.building.outputs import Selected
from windowpane.windowing.expressions import Applied, Constant, Expression, Name, Side, SideName, is_column, replaced, sides_in
from windowpane.windowing.joins import LEFT_ONLY, PADS_RIGHT, AsOfMatch, IntervalMatch, WindowMatch
from windowpane.windowing.outputs import CHANGE_TYPE


class JoinNames:
    """What a request comes to over the columns of its sides."""

    def __init__(
        self,
        request: JoinRequest,
        visible: Mapping[Side, list[str]],
        declared: Sequence[str] = (),
        fold: Callable[[str], str] = str,
    ) -> None:
        self._request, self._visible, self._declared, self._fold = request, visible, declared, fold
        self._windowed = isinstance(request.match, WindowMatch)
        all_columns = dict(self._all())
        chosen = [each for name, given in request.columns for each in self._chosen(name, given, all_columns)]
        corrects = bool(request.settings.allowed_lateness) and self._windowed and request.co_group is None
        self._refuse_twice([name for name, _ in chosen] + ([CHANGE_TYPE] if corrects or request.updates else []))
        of_left = [name for name, expression in chosen if isinstance(expression, SideName) and expression.side == "left"]
        for name in request.updates:
            if fold(name) not in map(fold, of_left):
                raise UnknownColumnError(name, "emit_on_update: columns of the left side in the result", of_left)
        used = [part for _, expression in chosen for part in sides_in(expression)]
        self._check(used, "select")
        # Of each side the columns that the operator lets out, and all that its rows need.
        self.passed: dict[Side, tuple[str, ...]] = {side: _of(side, used) for side in ("left", "right")}
        self.selected: Selected = tuple((name, _resolved(expression)) for name, expression in chosen)
        self.carried: dict[Side, tuple[str, ...]] = {"left": self._carried("left"), "right": self._carried("right")}

    def _all(self) -> list[tuple[str, Expression]]:
        """Return the columns of ``*``: keys once, window bounds, left columns, right columns."""
        request, left, right = self._request, self._visible["left"], self._visible["right"]
        bounds = [(name, Name(name)) for name in (WINDOW_START, WINDOW_END)] if self._windowed else []
        if request.co_group is not None:
            grouped = [
                *((one, SideName("left", one)) for one, _ in request.on),
                *bounds,
                *((name, Name(name)) for name in self._declared),
            ]
            self._refuse_twice([name for name, _ in grouped])
            return grouped
        if request.how in LEFT_ONLY:
            own: list[tuple[str, Expression]] = [(name, SideName("left", name)) for name in left]
            self._refuse_twice([name for name, _ in (*own, *bounds)])
            return [*own, *bounds]
        keys = [each for one, other in request.on for each in self._keys(one, other)]
        both = {*map(self._fold, left)} & {*map(self._fold, right)}
        columns = [*keys, *bounds]
        own_keys: dict[Side, set[str]] = {"left": {one for one, _ in request.on}, "right": {other for _, other in request.on}}
        for (side, names), prefix in zip(self._visible.items(), request.prefixes, strict=True):
            rest = (name for name in names if name not in own_keys[side])
            columns += [(f"{prefix}{name}" if self._fold(name) in both else name, SideName(side, name)) for name in rest]
        self._refuse_twice([name for name, _ in columns])
        return columns

    def _keys(self, left: str, right: str) -> list[tuple[str, Expression]]:
        if self._fold(left) != self._fold(right):
            return [(left, SideName("left", left)), (right, SideName("right", right))]
        present: Expression = SideName("left", left)
        if self._request.how == "right":
            present = SideName("right", right)
        elif self._request.how in PADS_RIGHT:
            present = Applied(F.coalesce, (present, SideName("right", right)))
        return [(left, present)]

    def _chosen(self, name: str, given: Expression | None, all_columns: Mapping[str, Expression]) -> list[tuple[str, Expression]]:
        if given is None:
            return list(all_columns.items())

        def leaf(part: Expression) -> Expression | None:
            if isinstance(part, Name):
                found = next((made for known, made in all_columns.items() if self._fold(known) == self._fold(part.name)), None)
                if found is None:
                    raise UnknownColumnError(part.name, "select", all_columns)
                return found
            if isinstance(part, Constant) and is_column(part.value):
                raise InvalidSpecError(
                    f"select {name}={given!r}: a PySpark Column does not say of which side it is. Write "
                    "wp.left('x') or wp.right('x')."
                )
            return part if isinstance(part, SideName) else None

        return [(name, replaced(given, leaf))]

    def _check(self, names: list[SideName], role: str) -> None:
        for name in names:
            if name.name not in self._visible[name.side]:
                raise UnknownColumnError(name.name, f"{role}: {name.side} side", self._visible[name.side])
            if name.side == "right" and self._request.how in LEFT_ONLY:
                raise InvalidSpecError(f"{role}: a {self._request.how} join has left columns only, and {name!r} is none.")

    def _refuse_twice(self, names: list[str]) -> None:
        folded = [self._fold(name) for name in names]
        twice = [name for name in dict.fromkeys(names) if folded.count(self._fold(name)) > 1]
        if twice:
            raise DuplicateColumnError(
                twice,
                "Give them names of their own: prefixes=('l_', 'r_') for names that both sides have, or withColumnRenamed on one "
                "of them before the join.",
            )

    def _carried(self, side: Side) -> tuple[str, ...]:
        """Return the columns that a side needs: keys, those of the result, what the match reads; all for late rows and gaps."""
        request = self._request
        keys = [pair[0 if side == "left" else 1] for pair in request.on]
        read = [] if request.condition is None else _of(side, list(sides_in(request.condition)))
        match = request.match
        if side == "left" and isinstance(match, IntervalMatch) and match.upper_column is not None:
            read = [*read, match.upper_column]
        if isinstance(match, AsOfMatch):
            own = match.tolerance_of if side == "left" else match.sequence
            read = [*read, *([] if own is None else [own])]
        needed = dict.fromkeys([*keys, *self.passed[side], *read])
        reads_rows = request.co_group is not None or (isinstance(match, WindowMatch) and match.gap_of is not None)
        if side in side_tags(request) or reads_rows:
            needed |= dict.fromkeys(self._visible[side])
        return tuple(needed)


def _of(side: Side, names: list[SideName]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.name for name in names if name.side == side))


def _resolved(expression: Expression) -> Expression:

    def leaf(part: Expression) -> Expression | None:
        return Name(passed_name(part.side, part.name)) if isinstance(part, SideName) else None

    return replaced(expression, leaf)
