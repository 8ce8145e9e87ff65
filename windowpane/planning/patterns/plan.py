"""Plans of row patterns: the arguments of ``match``, as a frozen value that checks and explains itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from windowpane.engines.patterns.program import PatternProgram
from windowpane.errors import InvalidSpecError
from windowpane.planning.settings import DEFAULTS, Settings, plan_text
from windowpane.windowing.expressions import Argument, Expression, OrderLike
from windowpane.windowing.outputs import OutputTag
from windowpane.windowing.over.spec import OrderColumn
from windowpane.windowing.patterns.spec import MAX_ROWS, MAX_STEPS, PAST_LAST_ROW, AfterMatch, OnError, PatternSpec, RowsShown
from windowpane.windowing.patterns.tree import Exclusion, every_part
from windowpane.windowing.times import format_micros


@dataclass(frozen=True)
class PatternRequest:
    """A pattern as the fluent API writes it: names are not yet looked up."""

    text: str  # the pattern
    define: Mapping[str, Argument]  # the condition of each variable, an expression or a PySpark Column
    subsets: Mapping[str, frozenset[str]] = field(default_factory=dict)  # names that stand for several variables
    measures: tuple[tuple[str, Expression], ...] = ()  # the values of a result, by name
    columns: tuple[str, ...] = ()  # the columns of rows of matches that come out, ``"*"`` among them for all
    order_by: tuple[OrderLike, ...] = ()  # what orders rows of one time
    rows: RowsShown = "one"
    within: int | None = None
    after_match: AfterMatch = PAST_LAST_ROW
    on_error: OnError = "raise"
    timeouts: OutputTag | None = None
    most_rows: int = MAX_ROWS
    most_steps: int = MAX_STEPS
    retain: int | None = None
    settings: Settings = DEFAULTS


@dataclass(frozen=True)
class PatternPlan:
    """The arguments of ``match``.

    Raises:
        InvalidSpecError: settings that do not go together.
    """

    spec: PatternSpec  # the pattern, its conditions and measures
    conditions: Mapping[str, str]  # the conditions as they were written
    keys: tuple[str, ...]  # names of the key columns
    event_time: str  # name of the event-time column
    order_by: tuple[OrderColumn, ...] = ()  # columns that order rows of one time
    timeouts: OutputTag | None = None  # where attempts go that fail for want of a row
    # microseconds behind the watermark for which a key is remembered that has no waiting row; ``None``: for ever
    retain: int | None = None
    settings: Settings = DEFAULTS  # lateness, where late rows go, the requested engine

    def __post_init__(self) -> None:
        spec, late = self.spec, self.settings.late_tag
        if self.timeouts is not None and spec.within is None:
            raise InvalidSpecError(
                f"timeouts({self.timeouts.name!r}) needs a bound after which no row is waited for: .within('30 minutes')."
            )
        if self.timeouts is not None and self.timeouts.name in ("main", None if late is None else late.name):
            raise InvalidSpecError(
                f"side outputs need names that differ from each other and from 'main': {self.timeouts.name!r}."
            )
        if spec.rows == "all unmatched" and any(isinstance(part, Exclusion) for part in every_part(spec.pattern)):
            raise InvalidSpecError(
                "unmatched=True shows every row, and {- -} in the pattern takes rows out: leave one of them out (SQL:2016)."
            )

    @property
    def retracts(self) -> bool:
        return False

    @property
    def uses_processing_time(self) -> bool:
        return False

    def explain(self, program: PatternProgram, buckets: str) -> str:
        spec = self.spec
        lines = {
            "key": ", ".join(self.keys) or "none, all rows are one partition",
            "pattern": str(spec.pattern),
            **{f"  {name}": condition for name, condition in self.conditions.items()},
            "within": "any time" if spec.within is None else format_micros(spec.within),
            "after a match": str(spec.after_match),
            "rows": spec.rows if spec.rows != "one" else "one a match",
            "order": ", ".join(map(str, (self.event_time, *self.order_by, "arrival"))),
            "timeouts": "not asked for" if self.timeouts is None else f"side output {self.timeouts.name}",
            "an idle key": "remembered for ever" if self.retain is None else f"forgotten after {format_micros(self.retain)}",
            **({"left out": "rows that no variable takes"} if program.leaves_rows_out else {}),
            "late rows": self.settings.late_text,
            "lateness": format_micros(self.settings.allowed_lateness),
            "buckets": buckets,
            "engine": f"{program.engine}: {program.engine_reason}",
        }
        return plan_text("Row pattern", lines)
