"""The registry: every metric there is, with its unit, what it means and where it comes from. Nothing else names all metrics.

``docs/metrics.md`` is made of it, and tests compare it with the dashboard, the alert rules and a scrape.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

QUERY, OPERATOR = ("query",), ("query", "operator")


class Kind(Enum):
    """What a metric does with the figures of a batch: adds them up, shows the last one, or counts how often each size was."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True)
class Metric:
    """One metric.

    Args:
        name: its name, with the unit, by the conventions of Prometheus.
        kind: what it does.
        help: what it means, in a sentence.
        labels: the names of its labels, none of which has unbounded values.
        source: the field of a batch's progress that it comes from; of ``observedMetrics`` the name of the counter.
        label: the value of its last label, where several fields are one metric.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...]
    source: str
    label: str | None = None


def _of_operator(name: str, kind: Kind, text: str, source: str, label: tuple[str, str] | None = None) -> Metric:
    labels = OPERATOR if label is None else (*OPERATOR, label[0])
    return Metric(f"windowpane_{name}", kind, text, labels, source, None if label is None else label[1])


_LATE = "Rows that were late: dropped ones are in no result, kept ones missed only some of their windows."
_LATE_OF_SIDE = "Rows of each side of a join that were late."
_HELD = "Rows that a join holds of each side."
_FEATURES = "Rows of rolling features that were emitted: because rows arrived, or because a tick has passed."
_STATE = "Bytes of state: blobs as windowpane stores them, store as Spark's state store has them in memory."
_COMPLETE = "Event time at which the last window ends that lacks rows of an aggregate that was added; infinite if none does."
_C, _G = Kind.COUNTER, Kind.GAUGE

METRICS: Final[tuple[Metric, ...]] = (
    Metric("windowpane_batches_total", _C, "Batches that were run.", QUERY, "batchId"),
    Metric(
        "windowpane_batch_duration_seconds",
        Kind.HISTOGRAM,
        "How long a batch took, all stages together.",
        QUERY,
        "durationMs.triggerExecution",
    ),
    Metric(
        "windowpane_stage_duration_seconds",
        _G,
        "How long each stage of the last batch took.",
        (*QUERY, "stage"),
        "durationMs.*",
    ),
    Metric("windowpane_input_rows_total", _C, "Rows that were read from sources.", QUERY, "numInputRows"),
    Metric(
        "windowpane_input_rows_per_second",
        _G,
        "Rows that arrived in a second, as the last batch has seen.",
        QUERY,
        "inputRowsPerSecond",
    ),
    Metric(
        "windowpane_processed_rows_per_second",
        _G,
        "Rows that were processed in a second of the last batch.",
        QUERY,
        "processedRowsPerSecond",
    ),
    Metric(
        "windowpane_watermark_lag_seconds",
        _G,
        "How far the watermark is behind the time of the last batch.",
        QUERY,
        "eventTime.watermark",
    ),
    _of_operator("late_rows_total", _C, _LATE, "late_dropped", ("outcome", "dropped")),
    _of_operator("late_rows_total", _C, _LATE, "late_elements - late_dropped", ("outcome", "kept")),
    _of_operator("firings_total", _C, "Results that were emitted.", "firings"),
    _of_operator("merges_total", _C, "Sessions that grew or met.", "merges"),
    _of_operator("duplicates_total", _C, "Rows that deduplication dropped.", "duplicates"),
    _of_operator("inconsistent_changes_total", _C, "Changes of rows that were not there, or were there already.", "inconsistent"),
    _of_operator("finished_trigger_rows_total", _C, "Rows of windows whose trigger was finished.", "dropped_by_finished_trigger"),
    _of_operator("malformed_rows_total", _C, "Rows of sources that could not be read.", "malformed"),
    _of_operator("rows_before_cut_total", _C, "Rows before the time that the history of a query ends at.", "before_cut"),
    _of_operator("join_late_rows_total", _C, _LATE_OF_SIDE, "left_late", ("side", "left")),
    _of_operator("join_late_rows_total", _C, _LATE_OF_SIDE, "right_late", ("side", "right")),
    _of_operator("join_pairs_total", _C, "Pairs that a join emitted.", "pairs"),
    _of_operator("join_padded_rows_total", _C, "Rows that a join emitted without a match.", "padded"),
    _of_operator("open_windows", _G, "Windows, keys or rows that wait for a clock.", "open_windows"),
    _of_operator("state_bytes", _G, _STATE, "state_bytes", ("structure", "blobs")),
    Metric("windowpane_state_bytes", _G, _STATE, (*OPERATOR, "structure"), "stateOperators.memoryUsedBytes", "store"),
    _of_operator("held_rows", _G, _HELD, "held_left", ("side", "left")),
    _of_operator("held_rows", _G, _HELD, "held_right", ("side", "right")),
    _of_operator("complete_since_timestamp_seconds", _G, _COMPLETE, "complete_since"),
    _of_operator("rolling_keys", _G, "Keys that have rolling features.", "keys"),
    _of_operator("rolling_tiles", _G, "Partial aggregates of rolling features.", "tiles"),
    _of_operator("rolling_held_rows", _G, "Rows that rolling features hold one by one, for exact edges.", "raw_rows"),
    _of_operator("rolling_rows_total", _C, _FEATURES, "emitted_by_row", ("cause", "row")),
    _of_operator("rolling_rows_total", _C, _FEATURES, "emitted_by_tick", ("cause", "tick")),
)
"""The metrics; of those with one name and several values of the last label, one entry a value."""


def names() -> list[str]:
    return list(dict.fromkeys(each.name for each in METRICS))


def as_markdown() -> str:
    lines = ["| metric | kind | labels | meaning | from |", "|---|---|---|---|---|"]
    for name in names():
        of = [each for each in METRICS if each.name == name]
        sources = ", ".join(f"`{each.source}`" for each in of)
        labels = ", ".join(f"`{label}`" for label in of[0].labels)
        lines.append(f"| `{name}` | {of[0].kind.value} | {labels} | {of[0].help} | {sources} |")
    return "\n".join(lines)
