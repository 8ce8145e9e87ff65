"""Writes what is made of the registry of metrics: the table of docs/metrics.md and the Grafana dashboard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from windowpane.metrics.registry import METRICS, Kind, Metric, as_markdown, names

ROOT = Path(__file__).parents[1]
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def expression(metric: Metric) -> str:
    chosen, by = '{query=~"$query"}', ", ".join(metric.labels)
    if metric.kind is Kind.COUNTER:
        return f"sum by ({by}) (rate({metric.name}{chosen}[5m]))"
    if metric.kind is Kind.HISTOGRAM:
        return f"histogram_quantile(0.95, sum by (le, {by}) (rate({metric.name}_bucket{chosen}[5m])))"
    return metric.name + chosen + (" * 1000" if _is_instant(metric) else "")


def _is_instant(metric: Metric) -> bool:
    return metric.name.endswith("_timestamp_seconds")


def panel(number: int, metric: Metric) -> dict[str, Any]:
    kinds = {"_timestamp_seconds": "dateTimeAsIso", "_seconds": "s", "_bytes": "bytes"}
    unit = next((unit for end, unit in kinds.items() if metric.name.endswith(end)), "short")
    legend = " ".join(f"{{{{{label}}}}}" for label in metric.labels)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": metric.name.removeprefix("windowpane_").removesuffix("_total").replace("_", " "),
        "description": metric.help,
        "datasource": SOURCE,
        "gridPos": {"h": 7, "w": 8, "x": 8 * (number % 3), "y": 7 * (number // 3)},
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
        "targets": [{"refId": "A", "expr": expression(metric), "legendFormat": legend}],
    }


def dashboard() -> dict[str, Any]:
    one_each = [next(each for each in METRICS if each.name == name) for name in names()]
    choices = [
        {"name": "datasource", "type": "datasource", "query": "prometheus"},
        {
            "name": "query",
            "type": "query",
            "datasource": SOURCE,
            "query": "label_values(windowpane_batches_total, query)",
            "multi": True,
            "includeAll": True,
            "current": {"text": "All", "value": "$__all"},
        },
    ]
    return {
        "title": "windowpane",
        "uid": "windowpane",
        "schemaVersion": 39,
        "tags": ["windowpane", "spark"],
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "10s",
        "templating": {"list": choices},
        "panels": [panel(number, each) for number, each in enumerate(one_each)],
    }


def main() -> None:
    (ROOT / "deploy/grafana/windowpane.json").write_text(json.dumps(dashboard(), indent=1) + "\n")
    page = ROOT / "docs/metrics.md"
    before, _, _ = page.read_text().partition("| metric |")
    page.write_text(before + as_markdown() + "\n")


if __name__ == "__main__":
    main()
