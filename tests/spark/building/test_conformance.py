"""Representative vectors of Flink through Structured Streaming; `make conformance-spark` runs many more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from tests.conformance_path import ABSENT, find_conformance_root
from verify.conformance.engines.by_name import ENGINES
from verify.conformance.engines.spark_engine import patiently
from verify.conformance.reading.vectors import read_cases
from verify.conformance.replay.verdicts import Difference, Options, Verdict
from verify.conformance.runner import replay_case

ROOT = find_conformance_root()

CASES = [
    ("flink/WindowOperatorTest.json", "flink/WindowOperatorTest/testSideOutputDueToLatenessSliding"),
    ("flink/EvictingWindowOperatorTest.json", "flink/EvictingWindowOperatorTest/testDeltaEvictorEvictBefore"),
    ("flink/NonKeyedWindowOperatorTest.json", "flink/NonKeyedWindowOperatorTest/testCountTrigger"),
    ("oracle/tumbling.json", "flink-2.3-oracle/1072"),
    ("oracle/tumbling.json", "flink-2.3-oracle/1096"),
    ("oracle/sliding.json", "flink-2.3-oracle/2094"),
    ("oracle/session.json", "flink-2.3-oracle/3078"),
    ("oracle/session.json", "flink-2.3-oracle/3120"),
    ("oracle/global_count.json", "flink-2.3-oracle/4020"),
    ("oracle/window_all.json", "flink-2.3-oracle/6090"),
    ("oracle/chained.json", "flink-2.3-oracle/7006"),
    ("oracle/end_of_stream.json", "flink-2.3-oracle/9146"),
]


def replay(file: str, case_id: str, restart: bool = False) -> Verdict:
    if ROOT is None:
        pytest.skip(ABSENT)
    case = next(case for case in read_cases(Path(ROOT) / file) if case.id == case_id)
    return replay_case(case, ENGINES["spark"](), "spark", Options(restart=restart))


@pytest.mark.slow_but("9146")
@pytest.mark.spark
@pytest.mark.parametrize(("file", "case_id"), CASES, ids=[case_id.split("/")[-1] for _, case_id in CASES])
def test_a_query_gives_what_flink_gives(spark: Any, file: str, case_id: str) -> None:
    verdict = replay(file, case_id)
    assert verdict.skipped is None
    assert verdict.differences == []


@pytest.mark.slow
@pytest.mark.spark
def test_a_query_restarted_after_every_step_gives_the_same(spark: Any) -> None:
    verdict = replay("oracle/session.json", "flink-2.3-oracle/3078", restart=True)
    assert verdict.passed


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("flink/ContinuousProcessingTimeTriggerTest.json", "processing time"),
        ("flink/WindowOperatorContractTest.json", "scripted"),
    ],
)
def test_what_cannot_be_told_to_a_query_is_skipped_with_the_reason(file: str, reason: str) -> None:
    if ROOT is None:
        pytest.skip(ABSENT)
    case = next(case for case in read_cases(Path(ROOT) / file) if case.kind == "window_operator")
    verdict = replay_case(case, ENGINES["spark"](), "spark", Options())
    assert verdict.skipped is not None
    assert reason in verdict.skipped


@pytest.mark.parametrize(("message", "attempts"), [("Python worker failed to connect back.", 3), ("something else", 1)])
def test_a_query_that_a_busy_machine_did_not_start_is_started_again(message: str, attempts: int) -> None:
    tried = []

    def fail() -> list[Difference]:
        tried.append(message)
        raise StreamingQueryException(message)

    with pytest.raises(StreamingQueryException):
        patiently(fail)
    assert len(tried) == attempts
