"""Nodes that put rows together by keys: groups, Top-N, joins, set operations."""

from __future__ import annotations

from dataclasses import dataclass, field

from windowpane.sql.expressions.expr import Expr, quoted
from windowpane.sql.expressions.written import in_one_spelling
from windowpane.sql.nodes.base import Binary, Order, Unary, Watermark, listed, placed


@dataclass(frozen=True)
class Fold:
    """A call of an aggregate that can be kept as a partial result, and rows added to it.

    Args:
        function: ``count``, ``sum``, ``avg``, ``min`` or ``max``.
        argument: the id of the column that it is of, ``None`` for ``count(*)``.
        condition: the id of the column that ``FILTER`` is, ``None`` without.
        kept: the DuckDB type of the partial result.
        takes_back: whether rows can be retracted.
        combined: what combines two partial results, ``None`` where they are added.
    """

    function: str
    argument: str | None
    condition: str | None
    kept: str
    takes_back: bool
    combined: str | None = None
    distinct: bool = False

    @classmethod
    def of_count(cls, argument: str | None = None, condition: str | None = None) -> Fold:
        return cls("count", argument, condition, "BIGINT", takes_back=True)

    @property
    def parts(self) -> list[str | bool]:
        return [self.function, self.kept, self.takes_back, self.distinct]

    @property
    def of(self) -> str:
        return "*" if self.argument is None else quoted(self.argument)

    @property
    def only(self) -> str | None:
        return None if self.condition is None else quoted(self.condition)

    @property
    def counts_values(self) -> bool:
        """Whether it is folded from the values that begin or cease to be among those of its argument; an extreme need not be."""
        return self.distinct and self.combined is None

    @property
    def is_by_length(self) -> bool:
        """Whether it is an extreme of intervals, which DuckDB's ``least`` and ``greatest`` compare by their months first."""
        return self.combined is not None and "INTERVAL" in self.kept

    def merged(self, held: str, added: str) -> str:
        """Return SQL of a partial result with another one added to it; either may be NULL."""
        if self.combined is None:
            return f"coalesce({held}, 0) + {added}"
        if self.is_by_length:
            better = "<" if self.function == "min" else ">"
            return f"CASE WHEN {held} IS NULL OR {added} {better} {held} THEN {added} ELSE {held} END"
        return f"{self.combined}({held}, {added})"


@dataclass(frozen=True)
class Aggregate(Unary):
    """Groups by columns, with one call for each further column; ``folds`` are those that can be folded."""

    groups: tuple[str, ...] = field(kw_only=True)
    calls: tuple[Expr, ...] = field(kw_only=True)
    folds: tuple[Fold | None, ...] = field(default=(), kw_only=True)
    state_fields = ("groups", "folds")

    def sql(self, *relations: str, extra: str = "") -> str:
        pairs = zip(self.calls, self.columns[len(self.groups) :], strict=True)
        items = [*self.shown_groups, *(f"{call.sql} AS {quoted(column.id)}" for call, column in pairs)]
        by = f" GROUP BY {', '.join(self.group_values)}" if self.groups else ""
        return f"SELECT {', '.join(items) or '1'} FROM {relations[0]}{by}"

    @property
    def group_values(self) -> list[str]:
        """What its rows are grouped by as SQL: one value for all that are equal."""
        return [in_one_spelling(quoted(group), self.input.column(group).type) for group in self.groups]

    @property
    def shown_groups(self) -> list[str]:
        pairs = zip(self.group_values, map(quoted, self.groups), strict=True)
        return [value if value == name else f"{value} AS {name}" for value, name in pairs]

    @property
    def detail(self) -> str:
        return ", ".join(call.sql for call in self.calls) + (f" by {', '.join(self.groups)}" if self.groups else "")


@dataclass(frozen=True)
class TopN(Unary):
    """The rows of each partition at places ``offset + 1`` to ``offset + limit``; ties of the last one too if ``with_ties``.

    ``number`` is the column for the place, ``None`` if it is not read.
    """

    partition: tuple[str, ...] = field(kw_only=True)
    order: tuple[Order, ...] = field(kw_only=True)
    limit: int | None = field(kw_only=True)
    offset: int = field(default=0, kw_only=True)
    with_ties: bool = field(default=False, kw_only=True)
    number: str | None = field(default=None, kw_only=True)
    state_fields = ("partition", "order", "limit", "offset", "with_ties", "number")

    def sql(self, *relations: str, extra: str = "") -> str:
        place = self.place_sql()
        upto = "" if self.limit is None else f" AND {place} <= {self.offset + self.limit}"
        number = f", {place} AS {quoted(self.number)}" if self.number else ""
        first = self._numbered(with_ties=self.with_ties and not self.offset)  # rows that are left out are counted one by one
        return f"SELECT *{number} FROM {relations[0]} QUALIFY {first} > {self.offset}{upto}"

    def place_sql(self) -> str:
        return self._numbered(with_ties=self.with_ties)

    def _numbered(self, *, with_ties: bool) -> str:
        by = f"PARTITION BY {listed(self.partition)} " if self.partition else ""
        order = [item.sql for item in self.order]
        if not with_ties:
            order += [f"{quoted(name)} ASC NULLS LAST" for name in self.input.key]
        ordered = f"ORDER BY {', '.join(order)}" if order else ""
        return f"{'rank' if with_ties else 'row_number'}() OVER ({by}{ordered})"

    @property
    def detail(self) -> str:
        ties = " with ties" if self.with_ties else ""
        return f"limit {self.limit}, offset {self.offset}{ties}{placed(self.partition, self.order)}"


@dataclass(frozen=True)
class TimeBound:
    """A bound in time on matches: rows of one input match no later row once their ``value`` is below ``watermark``.

    Args:
        frees: the number of the input whose rows it is about.
        value: over columns of that input.
        watermark: follows from that of the other input.
    """

    frees: int
    value: Expr
    watermark: Watermark


@dataclass(frozen=True)
class Join(Binary):
    """Rows of two inputs side by side; ``keys`` are pairs of columns that must be equal, ``residual`` what else must hold.

    ``bounds`` are the conditions of ``residual`` on time. ``by_arrival``: a row of the left side is joined once, with the rows
    that the right side has when it arrives.
    """

    kind: str = field(kw_only=True)
    keys: tuple[tuple[str, str], ...] = field(kw_only=True)
    null_safe: bool = field(default=False, kw_only=True)
    residual: Expr | None = field(default=None, kw_only=True)
    bounds: tuple[TimeBound, ...] = field(default=(), kw_only=True)
    by_arrival: bool = field(default=False, kw_only=True)
    state_fields = ("kind", "keys", "null_safe", "by_arrival")

    def sql(self, *relations: str, extra: str = "") -> str:
        left, right = relations
        if not self.keys and self.residual is None and self.kind == "inner":
            return f"SELECT * FROM {left} AS l CROSS JOIN {right} AS r"
        return f"SELECT * FROM {left} AS l {self.kind.upper()} JOIN {right} AS r ON {self.condition_of('l', 'r')}"

    def condition_of(self, left: str, right: str) -> str:
        """Return what holds of two rows that match, as SQL over relations of these names."""
        equal = "IS NOT DISTINCT FROM" if self.null_safe else "="
        conditions = [f"{left}.{quoted(one)} {equal} {right}.{quoted(other)}" for one, other in self.keys]
        conditions += [self.residual.sql] if self.residual is not None else []
        return " AND ".join(conditions) or "TRUE"

    @property
    def detail(self) -> str:
        keys = ", ".join(f"{one} = {other}" for one, other in self.keys)
        conditions = " and ".join(filter(None, (keys, "" if self.residual is None else self.residual.shown({}))))
        return f"{self.kind}{f' on {conditions}' if conditions else ''}{', by arrival' if self.by_arrival else ''}"


@dataclass(frozen=True)
class SetOperation(Binary):
    """EXCEPT or INTERSECT of the columns of two inputs, duplicates removed."""

    kind: str = field(kw_only=True)
    state_fields = ("kind",)

    def sql(self, *relations: str, extra: str = "") -> str:
        width = len(self.columns)
        parts = []
        for node, relation in zip(self.inputs, relations, strict=True):
            pairs = zip(node.columns[:width], self.columns, strict=True)
            items = (f"{in_one_spelling(quoted(one.id), one.type)} AS {quoted(other.id)}" for one, other in pairs)
            parts.append(f"SELECT {', '.join(items)} FROM {relation}")
        return f" {self.kind.upper()} ".join(parts)

    @property
    def detail(self) -> str:
        return self.kind
