"""windowpane: Flink's windows and RisingWave's OVER windows for PySpark Structured Streaming.

``stream(df, ...)`` begins a windowed program; assigners, triggers, evictors and functions carry Flink's names; aggregates
carry Spark SQL's. Example::

    import windowpane as wp
    from windowpane import TumblingEventTimeWindows

    result = (
        wp.stream(flights, event_time="scheduled", watermark="2 hours")
        .key_by("origin")
        .window(TumblingEventTimeWindows.of("1 hour"))
        .aggregate(flights=wp.count(), delay=wp.avg("dep_delay"))
    )
"""

# ruff: noqa: E402 (numpy's switch is set before anything imports it)
from windowpane.vectors import choose_vectors

choose_vectors()

from typing import TYPE_CHECKING, Any

from windowpane import checkpoints as checkpoints
from windowpane import metrics as metrics
from windowpane.aggregates import *  # noqa: F403
from windowpane.aggregates import __all__ as _aggregates
from windowpane.errors import WindowpaneError
from windowpane.guidance import unknown_name
from windowpane.inspect import inspect
from windowpane.join.results import AsOfJoin, CoGrouped, IntervalJoin, Join, WindowJoin
from windowpane.join.streams import AsOfStreams, JoinedStreams, KeyedAsOfStreams, KeyedStreams, as_of, join
from windowpane.malformed import MalformedRow
from windowpane.matching import Matching, MatchResult
from windowpane.over import OverResult, OverSelection, OverStream, over
from windowpane.result import Changes, Progress, changes, progress, warm_up
from windowpane.rolling import RollingFeatures, RollingResult, RollingStream, rolling
from windowpane.sinks import DeltaTable, Files
from windowpane.sources.arrow_input import map_in_arrow, read_in_arrow
from windowpane.sources.systems import avro, generate, json, protobuf, read_delta, read_iceberg, read_kafka
from windowpane.stream import Deduplicated, Filled, KeyedStream, Result, Stream, WindowedStream, stream
from windowpane.ui import ui
from windowpane.windowing.aggregates import Aggregate, BoundAggregate, CombinedAggregate
from windowpane.windowing.arrow_functions import GROUP, ArrowAggregateFunction
from windowpane.windowing.assigners import *  # noqa: F403
from windowpane.windowing.assigners import __all__ as _assigners
from windowpane.windowing.calls import (
    cume_dist,
    dense_rank,
    first_value,
    lag,
    last_value,
    lead,
    nth_value,
    ntile,
    percent_rank,
    rank,
    row_number,
)
from windowpane.windowing.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor, TimestampedValue
from windowpane.windowing.expressions import Expression, apply, col, left, right
from windowpane.windowing.functions import (
    AggregateFunction,
    ProcessContext,
    ProcessWindowFunction,
    RichFunction,
    WindowFunctionSpec,
)
from windowpane.windowing.outputs import OutputTag
from windowpane.windowing.patterns.values import classifier, match_number, match_time
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.times import MAX, MIN
from windowpane.windowing.triggers import *  # noqa: F403
from windowpane.windowing.triggers import __all__ as _triggers
from windowpane.windowing.triggers.composable import *  # noqa: F403
from windowpane.windowing.triggers.composable import __all__ as _composable_triggers
from windowpane.windowing.watermarks import Watermarks
from windowpane.windowing.windows import GLOBAL_WINDOW, GlobalWindow, TimeWindow, Window

__version__ = "0.1.0"


def __dir__() -> list[str]:
    """Return the public names: modules of the package are no part of them."""
    return sorted(__all__)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module 'windowpane' has no attribute {name!r}")
        raise unknown_name("windowpane", name, __all__, ["windowpane"])


__all__ = [
    "GLOBAL_WINDOW",
    "GROUP",
    "MAX",
    "MIN",
    "Aggregate",
    "AggregateFunction",
    "ArrowAggregateFunction",
    "AsOfJoin",
    "AsOfStreams",
    "Changes",
    "BoundAggregate",
    "CoGrouped",
    "CombinedAggregate",
    "CountEvictor",
    "DeltaEvictor",
    "Deduplicated",
    "Filled",
    "DeltaTable",
    "Evictor",
    "Expression",
    "Files",
    "GlobalWindow",
    "IntervalJoin",
    "Join",
    "JoinedStreams",
    "KeyedAsOfStreams",
    "KeyedStream",
    "KeyedStreams",
    "MalformedRow",
    "MatchResult",
    "Matching",
    "OutputTag",
    "OverResult",
    "OverSelection",
    "OverStream",
    "ProcessContext",
    "ProcessWindowFunction",
    "Progress",
    "Result",
    "RichFunction",
    "RollingFeatures",
    "RollingResult",
    "RollingStream",
    "Stream",
    "TimeEvictor",
    "TimeWindow",
    "TimestampedValue",
    "Watermarks",
    "Window",
    "WindowFunctionSpec",
    "WindowJoin",
    "WindowSpec",
    "WindowedStream",
    "WindowpaneError",
    "__version__",
    "apply",
    "as_of",
    "avro",
    "changes",
    "classifier",
    "col",
    "cume_dist",
    "dense_rank",
    "first_value",
    "generate",
    "inspect",
    "join",
    "json",
    "lag",
    "last_value",
    "lead",
    "left",
    "map_in_arrow",
    "match_number",
    "match_time",
    "nth_value",
    "ntile",
    "over",
    "percent_rank",
    "progress",
    "protobuf",
    "rank",
    "read_delta",
    "read_iceberg",
    "read_in_arrow",
    "read_kafka",
    "right",
    "rolling",
    "row_number",
    "stream",
    "ui",
    "warm_up",
    *_aggregates,
    *_assigners,
    *_composable_triggers,
    *_triggers,
]
