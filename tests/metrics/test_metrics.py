"""Metrics: one registry, which the documentation, the dashboard, the rules and a scrape agree with."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from windowpane.engines.join.program import JOIN_COUNTERS
from windowpane.engines.protocol import COUNTERS, Counters
from windowpane.engines.rolling.program import ROLLING_COUNTERS
from windowpane.metrics.costs import costs_text
from windowpane.metrics.registry import METRICS, Kind, as_markdown, names
from windowpane.metrics.samples import samples_of
from windowpane.result import Progress

ROOT = Path(__file__).parents[2]
RULES, DASHBOARD = ROOT / "deploy/prometheus/alerts.yml", ROOT / "deploy/grafana/windowpane.json"

PROGRESS: dict[str, Any] = {
    "id": "one",
    "name": None,
    "batchId": 3,
    "timestamp": "2026-01-01T00:01:00.000Z",
    "numInputRows": 1000,
    "inputRowsPerSecond": 100.0,
    "processedRowsPerSecond": 200.0,
    "durationMs": {"addBatch": 1500, "triggerExecution": 2000},
    "eventTime": {"watermark": "2026-01-01T00:00:15.000Z"},
    "stateOperators": [{"operatorName": "transformWithStateInPandasExec", "memoryUsedBytes": 4096}],
    "observedMetrics": {},
}
COUNTED = {"windowpane": vars(Counters(late_elements=7, late_dropped=5, firings=11, open_windows=2, state_bytes=512))}


def test_samples_are_the_figures_of_the_batch() -> None:
    found = {each.text: each.value for each in samples_of(PROGRESS, COUNTED)}
    assert found['windowpane_late_rows_total{operator="windowpane",outcome="dropped"}'] == 5
    assert found['windowpane_late_rows_total{operator="windowpane",outcome="kept"}'] == 2
    assert found['windowpane_state_bytes{operator="windowpane",structure="blobs"}'] == 512
    assert found['windowpane_state_bytes{operator="windowpane",structure="store"}'] == 4096
    assert found["windowpane_watermark_lag_seconds{}"] == 45
    assert found["windowpane_batch_duration_seconds{}"] == 2
    assert found['windowpane_stage_duration_seconds{stage="addBatch"}'] == 1.5
    assert (found["windowpane_batches_total{}"], found["windowpane_input_rows_total{}"]) == (1, 1000)


@pytest.mark.parametrize("counters", [COUNTERS, JOIN_COUNTERS, ROLLING_COUNTERS], ids=["windows", "join", "rolling"])
def test_every_figure_of_a_progress_is_a_metric(counters: tuple[str, ...]) -> None:
    """Each is counted once: as it is, or as what is left of it without another one that is a metric, too."""
    observed = {name: 1000 + number for number, name in enumerate(counters)}
    found = {each.metric.source: each.value for each in samples_of(PROGRESS, {"one": observed}) if each.metric.labels[1:2]}
    named = {name for source in found for name in source.split(" - ")}
    assert named >= set(counters)
    assert {source: value for source, value in found.items() if source in observed} == {
        name: value for name, value in observed.items() if name in found
    }


def test_progress_answers_from_the_same_registry() -> None:
    found = Progress(COUNTED).metrics
    assert found['windowpane_firings_total{operator="windowpane"}'] == 11
    assert found['windowpane_open_windows{operator="windowpane"}'] == 2


def test_until_when_windows_lack_rows_of_an_aggregate_is_an_instant() -> None:
    def value(text: str) -> float:
        found = Progress({"windowpane": {**COUNTED["windowpane"], "complete_since": text}}).metrics
        return found['windowpane_complete_since_timestamp_seconds{operator="windowpane"}']

    assert value("2026-01-01T00:00:00Z") == 1_767_225_600
    assert value("2026-01-01T00:00:00.250000Z") == 1_767_225_600.25
    assert value("never") == float("inf")


def test_names_follow_the_conventions() -> None:
    for each in METRICS:
        assert each.name.startswith("windowpane_")
        assert each.name.endswith("_total") == (each.kind is Kind.COUNTER)
        assert each.help.endswith(".")


def test_the_documentation_is_that_of_the_registry() -> None:
    assert as_markdown() in (ROOT / "docs/metrics.md").read_text()


def test_the_dashboard_shows_every_metric() -> None:
    shown = json.loads(DASHBOARD.read_text())
    expressions = " ".join(target["expr"] for panel in shown["panels"] for target in panel["targets"])
    assert [name for name in names() if name not in expressions] == []


def test_the_rules_name_metrics_that_there_are() -> None:
    named = set(re.findall(r"windowpane_[a-z_]+", RULES.read_text()))
    assert named <= set(names())
    assert len(named) >= 5


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool, of the package prometheus, is not installed")
def test_promtool_takes_the_rules() -> None:
    done = subprocess.run(["promtool", "check", "rules", str(RULES)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 rules found" in done.stdout


def test_a_scrape_has_every_metric_and_its_figures() -> None:
    """Without Spark: what its listener hands on is handed on here."""
    pytest.importorskip("prometheus_client")
    from pyspark.sql import Row

    from windowpane.metrics.prometheus import Served

    session: Any = _Session()
    served = Served(session, 0, "127.0.0.1")
    try:
        progress = PROGRESS | {"observedMetrics": {"windowpane": Row(**COUNTED["windowpane"])}}
        for _ in range(2):
            session.listener.onQueryProgress(_Event(progress))
        with urlopen(f"http://127.0.0.1:{served.port}/metrics") as answer:
            text = answer.read().decode()
    finally:
        served.close()
    assert session.listener is None
    assert [name for name in names() if f"# HELP {name.removesuffix('_total')}" not in text] == []
    lines = text.splitlines()
    assert 'windowpane_late_rows_total{operator="windowpane",outcome="dropped",query="one"} 10.0' in lines
    assert 'windowpane_open_windows{operator="windowpane",query="one"} 2.0' in lines
    assert 'windowpane_batch_duration_seconds_count{query="one"} 2.0' in lines


def test_a_batch_is_a_span() -> None:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from windowpane.metrics.telemetry import Spans

    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    Spans(provider.get_tracer("test")).take(PROGRESS, "one", list(samples_of(PROGRESS, COUNTED)))
    (span,) = kept.get_finished_spans()
    assert (span.end_time or 0) - (span.start_time or 0) == 2_000_000_000
    assert (span.attributes or {})["windowpane_late_rows_total.windowpane.dropped"] == 5.0


class _Event:
    def __init__(self, progress: Any) -> None:
        self.progress = progress


class _Session:
    """What listening needs of a session."""

    listener: Any = None

    @property
    def streams(self) -> Any:
        return self

    def addListener(self, listener: Any) -> None:  # noqa: N802
        self.listener = listener

    def removeListener(self, listener: Any) -> None:  # noqa: N802
        assert self.listener is listener
        self.listener = None


def test_costs_are_added_up_over_batches() -> None:
    assert costs_text([(PROGRESS, COUNTED), (PROGRESS | {"batchId": 4}, COUNTED)]).splitlines() == [
        "cost of the last 2 batches, 3 to 4:",
        "  windowpane: 22 results, 14 late rows, 512 bytes of state, 2 windows or keys open",
        "  all: 4.00 s, of these addBatch 3.00 s; 2,000 rows read, 500 rows/s",
    ]
    assert costs_text([]) == "cost: no batch has run yet"


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus, of the package of that name, is not installed")
def test_a_real_prometheus_scrapes_it(tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client")
    from pyspark.sql import Row

    from windowpane.metrics.prometheus import Served

    session: Any = _Session()
    served = Served(session, 0, "127.0.0.1")
    session.listener.onQueryProgress(_Event(PROGRESS | {"observedMetrics": {"windowpane": Row(**COUNTED["windowpane"])}}))
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    job = {"job_name": "spark", "scrape_interval": "1s", "static_configs": [{"targets": [f"127.0.0.1:{served.port}"]}]}
    (tmp_path / "prometheus.yml").write_text(json.dumps({"rule_files": [str(RULES)], "scrape_configs": [job]}))  # JSON is YAML
    options = [
        f"--config.file={tmp_path}/prometheus.yml",
        f"--storage.tsdb.path={tmp_path}/data",
        f"--web.listen-address={address}",
    ]
    running = subprocess.Popen(["prometheus", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        found = _asked(address, 'windowpane_late_rows_total{outcome="dropped"}')
        assert [(each["metric"]["query"], each["metric"]["operator"], each["value"][1]) for each in found] == [
            ("one", "windowpane", "5")
        ]
        assert _asked(address, "windowpane_watermark_lag_seconds")[0]["value"][1] == "45"
    finally:
        running.terminate()
        running.wait(20)
        served.close()


def _asked(address: str, query: str) -> list[Any]:
    """Return what Prometheus answers, once it has scraped."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with urlopen(f"http://{address}/api/v1/query?{urlencode({'query': query})}", timeout=5) as answer:
                found: list[Any] = json.loads(answer.read())["data"]["result"]
            if found:
                return found
        except OSError:
            pass  # it starts
        time.sleep(0.3)
    raise TimeoutError(query)
