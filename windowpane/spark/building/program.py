"""BuiltProgram: a source, the operators that its rows pass through, and the outputs of the last one.

Windows and rolling features are one operator, OVER windows a chain of them; all are the same value here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, cast

from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowpane import pickles
from windowpane.engines.program import MAIN, WINDOW_END, BucketProgram
from windowpane.engines.protocol import COUNTERS, Engine
from windowpane.errors import InvalidSpecError, UndeclaredSideOutputError, UnknownOutputError, present
from windowpane.guidance import instead_of_argument
from windowpane.hidden_columns import FIRING_WATERMARK, TIME
from windowpane.malformed import MALFORMED_COUNT, ROWS
from windowpane.planning.changing import complete_since
from windowpane.planning.deduplication import DeduplicationPlan
from windowpane.planning.engines import engine_of
from windowpane.planning.filling.plan import FillingPlan
from windowpane.planning.joins import JoinPlan
from windowpane.planning.over import OverPlan
from windowpane.planning.patterns.plan import PatternPlan
from windowpane.planning.rolling import RollingPlan
from windowpane.planning.settling.plan import SettlingPlan
from windowpane.planning.windows import WindowPlan
from windowpane.spark.building.expressions import column_of
from windowpane.spark.building.operator_input import OperatorInput, buckets_of
from windowpane.spark.building.outputs import Output, ToBlobs
from windowpane.spark.internals.available_now import end_available_now_runs
from windowpane.spark.internals.blob_state import SparkBlobStore
from windowpane.spark.internals.driver_worker import unpickled_on_workers
from windowpane.spark.internals.earlier_operators import as_result
from windowpane.spark.internals.query_plans import each_use_its_own, reuse_no_exchange, with_own_counters
from windowpane.spark.internals.session import hide_state_warnings, setting
from windowpane.spark.internals.worker import shared_workers
from windowpane.spark.session.column_names import refuse_alike
from windowpane.spark.session.settings import Buckets, choose_settings
from windowpane.spark.session.worker_python import check_worker_python, fork_workers
from windowpane.spark.sources.arrow_rows import Reading
from windowpane.spark.sources.source import AWAITED, Source, put_program_on
from windowpane.spark.stages import bounded, encode
from windowpane.spark.stages.messages import MALFORMED
from windowpane.spark.stages.next_watermark import NextWatermark
from windowpane.spark.stages.process import BucketProcessor
from windowpane.spark.stages.types import TIMESTAMP, spark_schema
from windowpane.spark.stages.wire import WATERMARK_ROW, Wire, counter_columns, wire_of
from windowpane.windowing.aggregates.results import Step
from windowpane.windowing.expressions import Name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Operator:
    program: BucketProgram  # what its engine runs
    reads: OperatorInput  # where its rows come from, encoded for its buckets
    behind: int = 0  # microseconds by which its watermark stays behind that of the source
    # the state that it begins with, as a static DataFrame of ``bounded.STATE``; ``None`` where it begins empty
    history: DataFrame | None = None
    # whether what its history gave may wait in its state, to be emitted
    begins_with_results: bool = False
    # bounds its watermark for the tasks that fold its rows, ``None`` where they need not know
    next_watermark: NextWatermark | None = None


MALFORMED_OUTPUT = "malformed"  # The name of the output of malformed rows

_APART = 1000  # What the numbers of outputs of programs ``beside`` one are raised by, of the first once, of the second twice


def _place_of(output: Output) -> tuple[int, int]:
    """Return which of the programs ``beside`` one an output is of, from 1 on, 0 for its own, and its number there."""
    return divmod(output.number, _APART) if output.number > _APART else (0, output.number)


@dataclass(frozen=True, eq=False)
class BuiltProgram:
    """A program on a DataFrame: built once, with one DataFrame an output."""

    sources: tuple[Source, ...]  # where rows come from: one source, or the left and the right one of a join
    # the user's program as a value
    plan: WindowPlan | OverPlan | RollingPlan | DeduplicationPlan | FillingPlan | SettlingPlan | JoinPlan | PatternPlan
    operators: tuple[Operator, ...]  # what the rows pass through, in this order
    outputs: Mapping[str, Output]  # the outputs by name, ``main`` first
    explained: Callable[[str], str]  # returns the plan as text, given in how many buckets it runs
    # microseconds by which rows of the main output may stay behind the watermark of the last operator; ``None`` if nothing bounds
    # it, so that no watermark is passed on
    held_back: int | None = 0
    counters: tuple[str, ...] = COUNTERS  # the names of the counters of its operators
    # the programs ``beside`` it as they begin with a history, by their identity
    begun: Mapping[int, BuiltProgram] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for output in self.outputs.values():
            refuse_alike(output.column_names, self._spark)

    @property
    def source(self) -> Source:
        return self.sources[0]

    @property
    def name(self) -> str:
        return self.source.name

    @cached_property
    def path(self) -> tuple[BuiltProgram, ...]:
        """The programs that hand their rows on to this one as they leave the operator, then this one."""
        before = self.source.upstream
        return (self,) if before is None else (*cast("BuiltProgram", before).path, self)

    @cached_property
    def beside(self) -> tuple[BuiltProgram, ...]:
        """The programs whose outputs are DataFrames that this one was built on; their other outputs are no rows of its own."""
        found = dict.fromkeys(each for one in self.path for source in one.sources for each in source.results)
        return tuple(each for each in found if each.is_streaming == self.is_streaming)

    @property
    def programs(self) -> tuple[BuiltProgram, ...]:
        """Every program of the query, earlier ones first."""
        return tuple(dict.fromkeys(each for last in (*self.beside, self) for each in last.path))

    @property
    def counted(self) -> dict[str, tuple[str, ...]]:
        """The names of the counters of each operator, those of earlier programs of the query first."""
        operators = ((each, number) for each in self.programs for number in range(1, len(each.operators) + 1))
        return {each.counted_as(number): (*each.counters, MALFORMED_COUNT) for each, number in operators}

    def counted_as(self, number: int) -> str:
        return self.name if number == 1 else f"{self.name}_{number}"

    @property
    def is_streaming(self) -> bool:
        return self.source.is_streaming

    @property
    def has_watermark(self) -> bool:
        return all(source.has_watermark for source in self.sources)

    @property
    def delay(self) -> int:
        """Microseconds by which rows of the main output may stay behind Spark's watermark."""
        return self._source_delay + self.operators[-1].behind + (self.held_back or 0)

    @property
    def event_type(self) -> T.DataType | None:
        main = self.outputs["main"].arrow
        if WINDOW_END not in main.names:
            return self.sources[0].event_type
        return T.TimestampType() if main.field(WINDOW_END).type == TIMESTAMP else T.TimestampNTZType()

    @property
    def _source_delay(self) -> int:
        return max(source.delay for source in self.sources)

    @property
    def _watermark_delay(self) -> int | None:
        """By how much the watermark stays behind rows, where that is the same for all sources."""
        delays = {source.watermark_delay for source in self.sources}
        return delays.pop() if len(delays) == 1 else None

    @property
    def time_mode(self) -> str:
        own = self.source.stream_watermark
        if self.plan.uses_processing_time or (own is not None and not own.waits_for_rows_alone):
            return "ProcessingTime"
        is_sparks = self.source.own_watermark is None and not self.source.follows_watermark
        return "EventTime" if self.has_watermark and is_sparks else "None"

    @property
    def waits_for_the_clock(self) -> bool:
        return any(each.time_mode == "ProcessingTime" for each in self.programs)

    def with_step(self, step: Step) -> BuiltProgram:
        """Return the same program with a step behind its main output; Spark's functions in it are called here, not in a batch."""
        for made in step.expressions:
            column_of(made)
        main = self.outputs["main"]
        return dataclasses.replace(self, outputs={**self.outputs, "main": dataclasses.replace(main, steps=(*main.steps, step))})

    @property
    def as_emitted(self) -> BuiltProgram:
        """The same program with the columns of its operator, before Spark computes anything of them."""
        main = self.outputs["main"]
        emitted = tuple((name, Name(name)) for name in main.arrow.names if name not in (TIME, FIRING_WATERMARK))
        return dataclasses.replace(self, outputs={**self.outputs, "main": dataclasses.replace(main, selected=emitted, steps=())})

    def explain(self) -> str:
        """Return the plan as text: which engines run it, and why; those of the programs before it first."""
        first, *others = self.programs
        return "\nthen, as ".join([first._explained_alone, *(f"{each.name}: {each._explained_alone}" for each in others)])

    @property
    def _explained_alone(self) -> str:
        text = self.explained(self._buckets.text) + self.operators[0].reads.explanation
        text += "".join(f"\n  then            {step}" for step in self.outputs["main"].steps)
        for operator in self.operators:
            text += "".join(
                f"\n  complete since  {at}: {name}" for name, at in complete_since(operator.program.description).items()
            )
        return text + (self.source.watermark_text if len(self.sources) == 1 else "")

    @property
    def _buckets(self) -> Buckets:
        return buckets_of(self.source, is_side=len(self.sources) > 1)

    @property
    def _spark(self) -> SparkSession:
        return self.source.dataframe.sparkSession

    def rows(self, wire: Wire) -> DataFrame:
        """Return the rows of the last operator, as they travel by ``wire``; those between operators travel as blobs."""
        check_worker_python(self._spark)
        if self.is_streaming:
            fork_workers(self._spark)
        if any(source.has_watermark_below for source in self.sources):
            reuse_no_exchange(self._spark)
        rows: DataFrame | None = None
        for number, operator in enumerate(self.operators, start=1):
            encoded, make_engine = operator.reads.encoded(rows), partial(engine_of(operator.program), operator.program)
            travels = wire if number == len(self.operators) else Wire()
            travels = dataclasses.replace(travels, counters=self.counters, numbered_from=self.source.numbered_from)
            if not self.is_streaming:
                rows = run_static(encoded, make_engine, travels, self._buckets.chosen)
                continue
            own = self.source.stream_watermark
            processor = BucketProcessor(
                make_engine,
                travels,
                self.time_mode,
                delay=self._source_delay + operator.behind,
                own_watermark=own if number == 1 else None,
                follows_watermark=self.source.follows_watermark or (number > 1 and own is not None),
                next_watermark=operator.next_watermark,
                begins_with_results=operator.begins_with_results,
                watermark_delay=self._watermark_delay,
                name=self.counted_as(number),
            )
            counters = counter_columns(self.counters, own is not None and number == 1)
            if since := complete_since(operator.program.description).values():
                counters.append(F.max(F.lit(max(since))).alias("complete_since"))
            rows = run_on_buckets(encoded, processor, operator.history).observe(self.counted_as(number), *counters)
        return present(rows, "a program has an operator")

    @cached_property
    def blobs(self) -> DataFrame:
        """The rows of the last operator, every output as blobs: what is small to keep while several sinks read it."""
        return self.rows(Wire())

    @cached_property
    def _wired(self) -> tuple[DataFrame, Wire]:
        """The rows of the last operator, main rows as columns where they can be, and how they travel."""
        main = self.outputs["main"]
        wire = wire_of(main.arrow, main.spark)
        return (self.rows(wire) if wire.main is not None else self.blobs), wire

    @cached_property
    def side_outputs(self) -> dict[str, Output]:
        """The side outputs that its rows come with, by the name of their program, of ``path``, and their own."""
        malformed = Output(MALFORMED_OUTPUT, MALFORMED, ROWS, spark_schema(ROWS))
        found: dict[str, Output] = {}
        for each in self.path:
            own = {**({MALFORMED_OUTPUT: malformed} if each._own_readings else {}), **each.outputs}
            found |= {f"{each.name}.{name}": output for name, output in own.items() if name != "main"}
        return found

    @cached_property
    def _all_side_outputs(self) -> dict[str, Output]:
        """The side outputs of every program of the query; the numbers of those ``beside`` it are apart from its own."""
        others = {
            name: dataclasses.replace(output, number=place * _APART + output.number)
            for place, program in enumerate(self.beside, start=1)
            for name, output in program.side_outputs.items()
            if output.number != MALFORMED
        }
        return others | self.side_outputs

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs that a query of this program writes: with that of their program where two have one name."""
        names = [output.name for output in self._all_side_outputs.values()]
        sides = self._all_side_outputs.items()
        return ["main", *(output.name if names.count(output.name) == 1 else full for full, output in sides)]

    def written(self, name: str) -> Output:
        """Return the output of this program, or of one before it, that a sink of its query is given to."""
        found = [output for full, output in self._all_side_outputs.items() if name in (full, output.name)]
        if name != "main" and len(found) != 1:
            raise UnknownOutputError(name, self.output_names, instead_of_argument(name))
        return self.outputs["main"] if name == "main" else found[0]

    def named(self, name: str) -> Output:
        if name in self.outputs:
            return self.outputs[name]
        if name in self.output_names or name in self._all_side_outputs:
            return self.written(name)
        raise UndeclaredSideOutputError(name, self.output_names[1:])

    @property
    def readings(self) -> list[Reading]:
        return [reading for each in self.path for reading in each._own_readings]

    @property
    def _own_readings(self) -> list[Reading]:
        made = [source.made for source in self.sources if source.made is not None]
        return [each.reading for each in made if each.reading is not None]

    def output(self, name: str) -> DataFrame:
        output = self.named(name)
        if self.is_streaming and self.waits_for_the_clock:
            end_available_now_runs(self._spark)
        if name != "main" and self.is_streaming and any(each.time_mode == "EventTime" for each in self.programs):
            times = [each.name for each in output.spark if isinstance(each.dataType, T.TimestampType)]
            output = dataclasses.replace(output, marks={time: {AWAITED: True} for time in times})
        place, number = _place_of(output)
        wired = self.beside[place - 1]._wired if place else self._wired
        rows = as_result(dataclasses.replace(output, number=number).of(*wired), self)
        found = with_own_counters(rows, self.name) if self.is_streaming else rows
        carries = self.is_streaming and TIME in output.arrow.names and not place
        return put_program_on(found, self) if carries and name == "main" else found

    def names_beside(self, outputs: Iterable[Output]) -> list[str]:
        numbers = {output.number for output in outputs}
        return [name for name, each in self._all_side_outputs.items() if each.number in numbers and _place_of(each)[0]]

    def with_outputs_beside(self, rows: DataFrame, outputs: Iterable[Output]) -> DataFrame:
        """Return (``output``, ``blob``) of this program with those of outputs of programs ``beside`` it, each computed anew."""
        places = [_place_of(output) for output in outputs]
        for place, program in enumerate(self.beside, start=1):
            wanted = [number for of, number in places if of == place]
            if wanted:
                found = self.begun.get(id(program), program)._wired[0].filter(F.col("output").isin(wanted))
                rows = rows.union(found.select((F.col("output") + place * _APART).alias("output"), "blob"))
        return rows

    def mapped(self, function: ToBlobs) -> DataFrame:
        """Return what a function makes of the main output, as a column ``blob``: in the operator, so its rows stay in Python."""
        return self.mapped_with_reports(function).filter(F.col("output") == MAIN).select("blob")

    def mapped_with_reports(self, function: ToBlobs) -> DataFrame:
        """Return the same as (``output``, ``blob``), with the rows between, by ``WATERMARK_ROW``, that report the watermark."""
        wire = Wire(main_blobs=self.outputs["main"].mapped_by(function))
        return self.rows(wire).filter(F.col("output").isin(MAIN, WATERMARK_ROW)).select("output", "blob")

    def followed_by(self, name: str) -> Source:
        """Return the main output as the source of a window of the same query, with the time of each row beside it."""
        if self.is_streaming and self.held_back is None:
            raise InvalidSpecError(
                "these results have no watermark, so no window over them would ever be final; explain() says why. Write them to "
                "a table and read that as a stream with a watermark."
            )
        own = self.source.own_watermark
        if own is not None and own.of_each_key:
            raise InvalidSpecError(
                f"watermark={own!r} is one of each key, and a second window may have other keys: there is none that it could "
                "have. Say it again of the results, wp.stream(result.df, event_time=..., watermark=wp.Watermarks.monotonous()."
                "per_key()), or use a watermark of the whole stream."
            )
        has_reports = self.source.stream_watermark is not None or self.source.follows_watermark
        reports = [WATERMARK_ROW] if has_reports else []
        sides = [output.number for output in self.side_outputs.values()] if self.is_streaming else []
        output = dataclasses.replace(self.outputs["main"], with_system=True, passing=(*reports, *sides))
        return Source(output.of(*self._wired), name=name, upstream=self)


def run_static(encoded: DataFrame, make_engine: Callable[[], Engine], wire: Wire, buckets: int | None) -> DataFrame:
    """Return what an engine makes of encoded static rows; ``buckets`` of them, ``None`` for the session's shuffle partitions."""
    spread = encoded if buckets is None else encoded.repartition(buckets, encode.BUCKET)
    return spread.groupBy(encode.BUCKET).applyInArrow(bounded.bounded_processor(make_engine, wire), wire.spark_schema)


def run_on_buckets(encoded: DataFrame, processor: BucketProcessor, history: DataFrame | None = None) -> DataFrame:
    """Return what a processor makes of a stream of encoded rows; ``history`` is the state that it begins with."""
    spark, mode = encoded.sparkSession, processor.time_mode
    choose_settings(spark)
    hide_state_warnings(spark)
    grouped = each_use_its_own(encoded).groupBy(encode.BUCKET)
    processor = dataclasses.replace(processor, holds_values_only=setting(spark, pickles.SETTING, "false").lower() == "true")
    light = unpickled_on_workers(processor, *SparkBlobStore.DECLARED)
    begins_with = None if history is None else history.groupBy(encode.BUCKET)
    with shared_workers(spark):
        return grouped.transformWithStateInPandas(light, processor.wire.spark_schema, "append", mode, begins_with)
