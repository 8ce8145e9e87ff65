"""Binds one MATCH_RECOGNIZE over a relation of FROM to a node of the plan, and to what can be named of its results.

In a view the rows that a pattern is over have to be final: its input is closed here (``emit_on_close``), and the view emits on
window close.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sqlglot import exp

from windowpane.errors import PatternError, SqlSyntaxError
from windowpane.planning.patterns.programs import check_bounds
from windowpane.sql.bind import build_plan as plan
from windowpane.sql.bind.scope import Column, Ids, Scope, Visible
from windowpane.sql.expressions.binder import name_of
from windowpane.sql.expressions.expr import Expr, settled
from windowpane.sql.expressions.operators import key_value, sortable
from windowpane.sql.expressions.types import BOOLEAN, INTERVAL, TIMESTAMP, TIMESTAMPTZ
from windowpane.sql.nodes import Match, Node, Order
from windowpane.sql.optimize import planned
from windowpane.sql.parse.positions import Text, place_at
from windowpane.sql.patterns.values import Constants, MatchValues
from windowpane.sql.values.intervals import interval_sql, length
from windowpane.sql.windows.emit_on_close import emit_on_close, with_times
from windowpane.windowing.intervals import Interval
from windowpane.windowing.patterns.spec import AfterMatch, PatternSpec
from windowpane.windowing.patterns.text import parse_pattern
from windowpane.windowing.patterns.tree import Exclusion, Pattern, every_part, looked_for, variables
from windowpane.windowing.patterns.values import Began, MatchTime

_NEEDED = (
    "A view with a pattern ends with EMIT ON WINDOW CLOSE, over rows that stay (APPEND ONLY) and are ordered by the column of a "
    "WATERMARK. A SELECT takes any rows."
)


class Query(Constants, Protocol):
    """What a clause needs of the query around it: ``QueryBinder``."""

    text: Text
    ids: Ids
    streaming: bool
    now: str
    window_places: dict[str, exp.Expr]


def match_recognize(query: Query, tree: exp.MatchRecognize, node: Node, scope: Scope) -> tuple[Node, Scope]:
    """Return the matches in a relation, and what can be named of them.

    Raises:
        SqlError: something in it does not exist, does not fit, or is not supported, with its place.
        NeverClosesError: in a view: an absence or ``$`` without WITHIN.
        UnboundedStateError: in a view: an attempt could wait for ever with all rows to come.
    """
    return _Clause(query, tree, scope).bound(node)


@dataclass
class _Clause:
    query: Query
    tree: exp.MatchRecognize
    scope: Scope

    def __post_init__(self) -> None:
        self.text = self.query.text
        self.rows = self.tree.args["rows"].name
        self.pattern = self._pattern()
        named = frozenset((*variables(self.pattern), *looked_for(self.pattern)))
        self.subsets = self._subsets(named)
        self.values = MatchValues(self.text, self.scope, self.query.ids, self.query, self.query.now, named, self.subsets, None)
        keys = [settled(self.values.rows("PARTITION BY").bind(each)) for each in self.tree.args.get("partition_by") or []]
        self.partition = [(key.name, self.values.computed.column(key_value(key))) for key in keys]
        self.order, self.time = self._order()
        self.values.time = self.time

    def bound(self, node: Node) -> tuple[Node, Scope]:
        spec = self._spec()
        of_unmatched, written = self.rows == "all unmatched", self.tree.args.get("measures") or []
        measures = [(each.alias_or_name, self.values.measure(each.this, of_unmatched=of_unmatched)) for each in written]
        node = self._closed(node) if self.query.streaming else node
        for name in node.key:
            column = node.column(name)
            self.values.measured(Began(name), column.type, column.name)
        if self.query.streaming:
            check_bounds(spec)
        matched = self._node(node, spec)
        items = self._items(matched, measures)
        if not items:
            raise self.text.syntax_error(self.tree, "MEASURES is missing: without PARTITION BY a match has no other column.")
        columns = [(self.query.ids.column(name, value.type), value) for name, value in items]
        shown = Scope(tuple(Visible("", column) for column, _ in columns))
        return plan.project(matched, columns), shown

    def _items(self, matched: Match, measures: list[tuple[str, Expr]]) -> list[tuple[str, Expr]]:
        """Return what is shown: keys, order, measures, and the rest. Source: SQL:2016, and DuckDB."""
        keys = [(name, column.expr) for name, column in self.partition]
        if self.rows in ("one", "timeouts"):
            timed_out = [] if matched.timed_out is None else [("timed_out", matched.column(matched.timed_out).expr)]
            return [*keys, *measures, *timed_out]
        taken = {column.id for _, column in self.partition}
        ordered = [column for item in self.order for column in self.scope_columns if column.id == item.column]
        first = [column for column in ordered if column.id not in taken]
        taken |= {column.id for column in first}
        rest = [column for column in self.scope_columns if column.id not in taken]
        return [*keys, *((each.name, each.expr) for each in first), *measures, *((each.name, each.expr) for each in rest)]

    @property
    def scope_columns(self) -> list[Column]:
        return self.scope.of_table()

    def _node(self, node: Node, spec: PatternSpec) -> Match:
        ids, is_one = self.query.ids, spec.rows == "one"
        source = self.values.computed.apply(node)
        keys = tuple(column.id for _, column in self.partition)
        shown = keys if is_one else tuple(dict.fromkeys((*keys, *(each.id for each in self.scope_columns), *source.key)))
        measures = self.values.measures
        spec = replace(spec, measures=tuple(measure for _, measure in measures))
        timed_out = ids.column("timed_out", BOOLEAN) if spec.has_timeouts else None
        columns = (*map(source.column, shown), *(column for column, _ in measures), *([timed_out] if timed_out else []))
        began = tuple(column.id for column, measure in measures if isinstance(measure.value, Began))
        times = {column.id for column, measure in measures if isinstance(measure.value, MatchTime)}
        times |= {self.time.id} if self.time is not None and not is_one else set()
        mark = None if self.time is None else source.watermarks.get(self.time.id)
        behind = spec.passed_on
        watermarks = {}
        if mark is not None and behind is not None:
            delayed = mark.through(f"({{w}} - {interval_sql(Interval(micros=behind))})") if behind else mark
            watermarks = dict.fromkeys(times, delayed)
        return Match(
            columns,
            began if is_one else (*source.key, *began),
            True,
            watermarks,
            input=source,
            partition=keys,
            order=self.order,
            spec=spec,
            time=None if self.time is None else self.time.id,
            shown=shown,
            timed_out=None if timed_out is None else timed_out.id,
        )

    def _closed(self, node: Node) -> Node:
        """Return the rows once each, when they are final."""
        closed = node
        if self.time is not None and (not node.append_only or self._watermarked(node) is None):
            closed = with_times(
                emit_on_close(planned(node, self.query.ids), self.text, self.tree, self.query.window_places, self.query.ids)
            )
        if not closed.append_only or self._watermarked(closed) is None:
            raise self.text.unsupported(self.tree, "MATCH_RECOGNIZE in a view, of rows without a watermark,", _NEEDED)
        return closed

    def _watermarked(self, node: Node) -> str | None:
        """Return the event time, if it has a watermark above a node."""
        if self.time is None:
            return None
        return self.time.id if self.time.id in self.values.computed.apply(node).watermarks else None

    # The parts of the clause.

    def _spec(self) -> PatternSpec:
        conditions = {}
        for each in self.tree.args.get("define") or []:
            name = name_of(each.args["alias"])
            if name not in self.values.names - self.subsets.keys():
                known = ", ".join(sorted(self.values.names - self.subsets.keys()))
                raise self.text.name_error(each, f"DEFINE {name}: it is no variable of the pattern; there are {known}.")
            if name in conditions:
                raise self.text.name_error(each, f"DEFINE has {name!r} twice.")
            conditions[name] = self.values.condition(name, each.this)
        if self.rows == "all unmatched" and any(isinstance(part, Exclusion) for part in every_part(self.pattern)):
            instead = "It takes rows out, and WITH UNMATCHED ROWS shows every row."
            raise self.text.unsupported(self.tree.args["pattern"], "{- -} in a pattern WITH UNMATCHED ROWS", instead)
        within = self._within()
        if self.rows == "timeouts" and within is None:
            raise self.text.unsupported(
                self.tree, "SHOW TIMEOUT MATCHES without WITHIN", "Write WITHIN INTERVAL '30 minutes' behind the pattern."
            )
        return PatternSpec(
            self.pattern,
            conditions,
            self.subsets,
            rows="one" if self.rows == "timeouts" else self.rows,
            after_match=self._after_match(),
            within=within,
            has_timeouts=self.rows == "timeouts",
        )

    def _pattern(self) -> Pattern:
        written = self.tree.args["pattern"]
        try:
            return parse_pattern(written.name, folds=True)
        except PatternError as error:
            place = place_at(self.text.text, written.meta["start"] + error.column - 1)
            raise place.error(SqlSyntaxError, f"PATTERN: {error.reason}.") from None

    def _subsets(self, named: frozenset[str]) -> Mapping[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}
        for each in self.tree.args.get("subset") or []:
            name, *of = map(name_of, each.expressions)
            unknown = sorted(set(of) - named)
            if name in named or name in found or unknown:
                reason = f"{', '.join(unknown)} is no variable of the pattern" if unknown else f"the name {name!r} is taken"
                raise self.text.name_error(each, f"SUBSET {name}: {reason}; there are {', '.join(sorted(named))}.")
            found[name] = frozenset(of)
        return found

    def _after_match(self) -> AfterMatch:
        to, target = self.tree.args.get("after"), self.tree.args.get("target")
        if to is None:
            return AfterMatch()
        variable = None if target is None else name_of(target)
        if variable is not None and variable not in self.values.names:
            known = ", ".join(sorted(self.values.names))
            raise self.text.name_error(target, f"AFTER MATCH SKIP TO {variable}: there is no such variable; there are {known}.")
        return AfterMatch(to.name, variable)

    def _within(self) -> int | None:
        tree = self.tree.args.get("within")
        if tree is None:
            return None
        found: Any = self.query.evaluate(tree, INTERVAL)
        micros = length(found) if isinstance(found, Interval) else None
        if micros is None or micros <= 0:
            raise self.text.type_error(tree, f"WITHIN takes an interval without months, longer than nothing, not {found}.")
        if self.time is None:
            raise self.text.type_error(tree, "WITHIN needs a timestamp, ascending, as the first column of ORDER BY.")
        return micros

    def _order(self) -> tuple[tuple[Order, ...], Column | None]:
        """Return the order of the rows, and its first column if that is an ascending time."""
        clause, binder, found = self.tree.args.get("order"), self.values.rows("ORDER BY"), dict[str, Order]()
        time: Column | None = None
        for item in clause.expressions if clause is not None else []:
            column = self.values.computed.column(sortable(settled(binder.bind(item.this))))
            descending = bool(item.args.get("desc"))
            if not found and not descending and column.type in (TIMESTAMP, TIMESTAMPTZ):
                time = column
            found.setdefault(column.id, Order(column.id, descending, bool(item.args.get("nulls_first"))))
        return tuple(found.values()), time
