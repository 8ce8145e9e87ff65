"""What a query cost in its last batches, as text beside its plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_STAGES = 4


def batch_lines(progress: Mapping[str, Any], operators: Sequence[str]) -> list[str]:
    """Return rows, seconds and bytes of one batch, and of each of its stateful operators, as lines.

    Args:
        progress: that of the batch, as Spark gives it.
        operators: the names of the stateful operators, from the first to the last.
    """
    (whole, said), rows = _spent([progress]), progress.get("numInputRows") or 0
    lines = [f"cost of batch {progress['batchId']}: {rows:,} rows read, {whole:.2f} s, of these {said}"]
    stores = list(reversed(progress.get("stateOperators") or []))  # Spark lists them from the last operator to the first
    names = operators if len(operators) == len(stores) else [f"operator {number}" for number in range(1, len(stores) + 1)]
    for name, store in zip(names, stores, strict=True):
        took = (store["allUpdatesTimeMs"] + store["allRemovalsTimeMs"] + store["commitTimeMs"]) / 1000
        written = store["numRowsUpdated"] + store["numRowsRemoved"]
        sizes = f"{store['numRowsTotal']:,} blobs, {store['memoryUsedBytes']:,} bytes in memory"
        lines.append(f"  {name}: {took:.2f} s on all tasks, {written:,} blobs written; state: {sizes}")
    return lines


def costs_text(batches: Sequence[tuple[Mapping[str, Any], Mapping[str, Mapping[str, Any]]]]) -> str:
    """Return rows, seconds and bytes of the last batches: of each operator what it counted, of the whole how long stages took.

    Args:
        batches: the progress of each batch, and the counters of its operators.
    """
    ran = [(progress, operators) for progress, operators in batches if operators]
    if not ran:
        return "cost: no batch has run yet"
    first, last = ran[0][0]["batchId"], ran[-1][0]["batchId"]
    lines = [f"cost of the last {len(ran)} batches, {first} to {last}:"]
    for name, gauges in ran[-1][1].items():
        total = {
            counter: sum(of.get(name, {}).get(counter, 0) for _, of in ran) for counter in ("firings", "late_elements", "pairs")
        }
        results = total["firings"] + total["pairs"]
        lines.append(
            f"  {name}: {results:,} results, {total['late_elements']:,} late rows, "
            f"{gauges.get('state_bytes', 0):,} bytes of state, {gauges.get('open_windows', 0):,} windows or keys open"
        )
    whole, said = _spent([progress for progress, _ in ran])
    rows = sum(progress.get("numInputRows") or 0 for progress, _ in ran)
    lines.append(f"  all: {whole:.2f} s, of these {said}; {rows:,} rows read, {rows / max(whole, 0.001):,.0f} rows/s")
    return "\n".join(lines)


def _spent(batches: Iterable[Mapping[str, Any]]) -> tuple[float, str]:
    """Return the seconds of batches, and of the stages of which most went to."""
    stages: dict[str, float] = {}
    for progress in batches:
        for stage, took in (progress.get("durationMs") or {}).items():
            stages[stage] = stages.get(stage, 0) + took / 1000
    whole = stages.pop("triggerExecution", 0.0)
    longest = sorted(stages.items(), key=lambda stage: -stage[1])[:_STAGES]
    return whole, ", ".join(f"{stage} {took:.2f} s" for stage, took in longest)
