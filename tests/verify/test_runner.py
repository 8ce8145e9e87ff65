"""The runner itself: a difference is found, nothing is ignored silently, and the report says it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from verify.conformance.__main__ import main
from verify.conformance.engines.by_name import ENGINES
from verify.conformance.reading.vectors import Case, find_files, read_cases
from verify.conformance.replay.verdicts import Options, Verdict
from verify.conformance.report import report
from verify.conformance.runner import replay_case, replay_paths

COPIED = Path(__file__).parent / "oracle"
TUMBLING: dict[str, Any] = {
    "id": "example",
    "kind": "window_operator",
    "program": {
        "keyed": True,
        "assigner": {"type": "tumbling_event_time", "size_ms": 10, "offset_ms": 0},
        "trigger": {"type": "event_time"},
        "evictor": None,
        "allowed_lateness_ms": 0,
        "late_side_output": True,
        "function": {"type": "record_calls"},
    },
    "steps": [
        {"element": {"key": "k", "value": 1, "ts": 3}},
        {"element": {"key": "k", "value": 2, "ts": 2}},
        {"watermark": 9},
        {"element": {"key": "k", "value": 3, "ts": 4}},
        {
            "expect": {
                "output": [{"key": "k", "contents": [1, 2], "window": [0, 10], "ts": 9}],
                "late": [{"key": "k", "value": 3, "ts": 4}],
                "watermarks": [9],
                "state_entries": 0,
                "order": "exact",
            }
        },
    ],
}


def with_expect(**fields: Any) -> dict[str, Any]:
    case = copy.deepcopy(TUMBLING)
    case["steps"][-1]["expect"].update(fields)
    return case


def with_program(**fields: Any) -> dict[str, Any]:
    case = copy.deepcopy(TUMBLING)
    case["program"].update(fields)
    return case


def verdict_of(body: dict[str, Any], engine: str = "row") -> Verdict:
    case = Case(Path("example.json"), body["id"], body["kind"], body)
    return replay_case(case, ENGINES[engine](), engine, Options())


def write(folder: Path, *cases: dict[str, Any]) -> Path:
    file = folder / "vectors.json"
    file.write_text(json.dumps({"source": "example", "cases": list(cases)}))
    return file


def test_what_is_as_expected_passes() -> None:
    assert verdict_of(TUMBLING).passed


@pytest.mark.parametrize(
    "wrong",
    [
        {"output": []},
        {"output": [{"key": "k", "contents": [2, 1], "window": [0, 10], "ts": 9}]},
        {"output": [{"key": "k", "contents": [1, 2], "window": [0, 10], "ts": 10}]},
        {"output": [{"key": "k", "contents": [1, 2], "window": "GLOBAL", "ts": 9}]},
        {"output": [{"key": "k", "contents": [1, 2], "firing": 1, "window": [0, 10], "ts": 9}]},
        {"late": []},
        {"watermarks": []},
        {"state_entries": 1},
        {"event_time_timers": 1},
        {"function_calls": 2},
        {"trigger_on_time_times": [8]},
        {"trigger_clear_calls": 0},
        {"late_records_dropped": 1},
        {"side": {"tag": [{"value": 1, "ts": 9}]}},
        {"window_contents": {"key": "k", "window": [0, 10], "values": [1]}},
    ],
    ids=str,
)
def test_each_expectation_can_fail(wrong: dict[str, Any]) -> None:
    verdict = verdict_of(with_expect(**wrong))

    assert verdict.failed
    assert [difference.where for difference in verdict.differences] == [f"step 4 {next(iter(wrong))}"]
    assert [difference.expected for difference in verdict.differences] == list(wrong.values())


LATE_TWICE: dict[str, Any] = {
    **TUMBLING,
    "program": {**TUMBLING["program"], "allowed_lateness_ms": 20, "evictor": {"type": "count", "count": 1, "evict_after": True}},
    "steps": [
        {"element": {"key": "k", "value": 1, "ts": 3}},
        {"element": {"key": "k", "value": 2, "ts": 2}},
        {"watermark": 9},
        {"expect": {"output": [{"key": "k", "contents": [1, 2], "window": [0, 10], "ts": 9}], "order": "exact"}},
        {"element": {"key": "k", "value": 3, "ts": 4}},
        {"element": {"key": "k", "value": 4, "ts": 4}},
        {
            "expect": {
                "output": [{"key": "k", "contents": pair, "window": [0, 10], "ts": 9} for pair in ([2, 3], [3, 4])],
                "order": "exact",
            }
        },
    ],
}


@pytest.mark.parametrize("engine", ["row", "columnar"])
@pytest.mark.parametrize("wrong", [False, True])
def test_of_coalesced_refinements_the_last_one_is_compared(engine: str, wrong: bool) -> None:
    body = copy.deepcopy(LATE_TWICE)
    if wrong:
        body["steps"][-1]["expect"]["output"][-1]["contents"] = [2, 3, 4]
    case = Case(Path("example.json"), body["id"], body["kind"], body)
    verdict = replay_case(case, ENGINES[engine](), engine, Options(batches_steps=True))
    assert verdict.skipped is None
    assert verdict.failed == wrong


def test_a_fault_of_flinks_is_left_out_by_name() -> None:
    assert "where Flink loses it" in (verdict_of({**TUMBLING, "family": "session_equal_window"}).skipped or "")


WITH_RESULTS = [file for file in find_files([COPIED]) if file.stem != "refused"]


@pytest.mark.parametrize("file", WITH_RESULTS, ids=lambda file: file.stem)
def test_a_result_more_or_less_is_noticed(file: Path) -> None:
    tried = 0
    for case in read_cases(file):
        expects = [step["expect"] for step in case.get("steps") or [] if step.get("expect", {}).get("output")]
        if not expects or not replay_case(case, ENGINES["row"](), "row", Options()).passed:
            continue
        expects[0]["output"].pop()
        expects[0].pop("timer_groups", None)
        assert replay_case(case, ENGINES["row"](), "row", Options()).failed, case.id
        tried += 1
    assert tried >= 5


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (with_expect(moon_phase=3), "moon_phase"),
        (with_expect(order="alphabetical"), "alphabetical"),
        (with_expect(cumulative=True), "cumulative"),
        (with_program(parallelism=2), "parallelism"),
        (with_program(assigner={"type": "lunar"}), "lunar"),
        (with_program(trigger={"type": "lunar"}), "lunar"),
        (with_program(trigger={"type": "custom", "name": "lunar"}), "lunar"),
        (with_program(evictor={"type": "lunar"}), "lunar"),
        (with_program(function={"type": "lunar"}), "lunar"),
        ({**TUMBLING, "steps": [{"eclipse": 1}]}, "eclipse"),
        ({**TUMBLING, "weather": "fine"}, "weather"),
        ({**TUMBLING, "kind": "lunar"}, "lunar"),
        ({"id": "o", "kind": "over_window", "mode": "sideways"}, "sideways"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_understood_is_skipped_by_name(case: dict[str, Any], reason: str) -> None:
    verdict = verdict_of(case)

    assert verdict.skipped is not None
    assert reason in verdict.skipped
    assert not verdict.passed
    assert not verdict.failed


def test_timer_groups_bind_the_order_of_runs() -> None:
    steps = [
        {"element": {"key": "a", "value": 1, "ts": 1}},
        {"element": {"key": "b", "value": 2, "ts": 1}},
        {"element": {"key": "a", "value": 3, "ts": 11}},
        {"watermark": 30},
    ]
    rows = [
        {"key": "b", "contents": [2], "window": [0, 10], "ts": 9},
        {"key": "a", "contents": [1], "window": [0, 10], "ts": 9},
        {"key": "a", "contents": [3], "window": [10, 20], "ts": 19},
    ]
    in_order = {"expect": {"output": rows, "order": "any", "timer_groups": [2, 1]}}
    out_of_order = {"expect": {"output": [rows[2], *rows[:2]], "order": "any", "timer_groups": [1, 2]}}

    assert verdict_of({**TUMBLING, "steps": [*steps, in_order]}).passed
    assert verdict_of({**TUMBLING, "steps": [*steps, out_of_order]}).failed


def test_an_error_where_none_is_expected_fails() -> None:
    case = {**TUMBLING, "steps": [{"element": {"key": "k", "value": 1, "ts": None}}]}

    verdict = verdict_of(case)

    assert verdict.failed
    assert "has no timestamp" in str(verdict.differences[0].got)


def test_an_expected_error_that_does_not_come_fails() -> None:
    case = {**TUMBLING, "steps": [TUMBLING["steps"][0], {"expect_error": "no timestamp marker"}]}

    verdict = verdict_of(case)

    assert verdict.failed
    assert verdict.differences[0].got is None


def test_an_accepted_program_is_not_refused() -> None:
    body = {"id": "r", "kind": "refused", "program": TUMBLING["program"], "refused_at": "build", "error_class": "X"}

    assert verdict_of(body).failed


TUMBLE = {"id": "t", "kind": "tumble_start", "window_size": "30 minutes"}
TEN_PAST = "2022-02-22 22:10:00"


@pytest.mark.parametrize(
    ("call", "start"),
    [
        ({"ts": "2022-02-22 22:22:22"}, "2022-02-22 22:00:00"),
        ({"ts": "2022-02-22 22:22:22", "offset": "-140 minutes"}, TEN_PAST),
        ({"ts": "2022-02-22 22:22:22", "offset": "00:10:00"}, TEN_PAST),
        ({"ts": "2022-02-22", "size": "1 day", "window_size": "1 day"}, "2022-02-22 00:00:00"),
        ({"ts": -1, "window_size": 10}, -10),
    ],
)
def test_tumble_start(call: dict[str, Any], start: object) -> None:
    assert verdict_of({**TUMBLE, "calls": [{**call, "is": start}]}).passed
    assert verdict_of({**TUMBLE, **call, "expect": start}).passed
    assert verdict_of({**TUMBLE, "calls": [{**call, "is": 17}]}).failed
    assert verdict_of({**TUMBLE, "calls": [{**call, "zone": "UTC", "is": start}]}).skipped


HOP: dict[str, Any] = {
    "id": "hop",
    "kind": "hop_window",
    "schema": [["id", "bigint"], ["at", "timestamp"]],
    "pk": ["id"],
    "hop": {"time_column": "at", "slide": "15 minutes", "size": "15 minutes", "offset": "0"},
    "out_columns": ["id", "window_end"],
    "steps": [
        {"changes": [["+", [1, "2022-02-02 10:01:00"]]]},
        {"watermark": {"column": "at", "value": "2022-02-02 10:20:00"}},
        {
            "expect_changes": [["+", [1, "2022-02-02 10:15:00"]]],
            "expect_watermark": {"column": "window_end", "value": "2022-02-02 10:30:00"},
        },
    ],
}


def test_hop_window() -> None:
    fed, last = HOP["steps"][:2], HOP["steps"][2]

    assert verdict_of(HOP).passed
    assert verdict_of({**HOP, "steps": [*fed, {**last, "expect_changes": []}]}).failed
    assert verdict_of({**HOP, "steps": [*fed, {**last, "expect_watermark": None}]}).failed
    assert verdict_of({**HOP, "steps": [*fed, {**last, "expect_weather": None}]}).skipped


def test_watermark_filter_keeps_its_watermark_over_a_recovery() -> None:
    chunk = {"changes": [["+", [1, "2022-11-08 00:00:00"]]]}
    late = {"changes": [["+", [2, "2022-11-06 00:00:00"]]]}
    fields = {"watermark": {"column": "at", "expr": "at - interval '1 day'"}, "kind": "watermark_filter"}
    body = {**{name: HOP[name] for name in ("id", "schema", "pk")}, **fields}
    taken = {"expect_changes": chunk["changes"]}
    steps: list[dict[str, Any]] = [chunk, taken, {"barrier": 1}, {"recover": True}, late]

    assert verdict_of({**body, "steps": [*steps, {"expect_changes": []}]}).passed
    assert verdict_of({**body, "steps": [*steps, {"expect_changes": late["changes"]}]}).failed
    assert verdict_of({**body, "steps": [late, {"expect_changes": late["changes"]}]}).passed
    assert verdict_of({**body, "steps": [{"changes": [["-", [1, None]]]}]}).skipped


def test_windows_that_flink_wraps_are_skipped() -> None:
    case = {**TUMBLING, "steps": [{"element": {"key": "k", "value": 1, "ts": -(2**63) + 1}}]}

    assert verdict_of(case).skipped == "window bounds that overflow int64 are refused instead of wrapping"


def test_limits_are_read_as_times_but_not_as_data(tmp_path: Path) -> None:
    body = {**TUMBLING, "steps": [{"element": {"key": "MAX", "value": "MIN", "ts": "MIN"}}, {"watermark": "MAX"}]}

    (case,) = read_cases(write(tmp_path, body))

    assert case.get("steps") == [
        {"element": {"key": "MAX", "value": "MIN", "ts": -(2**63)}},
        {"watermark": 2**63 - 1},
    ]


def test_the_command_line_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, TUMBLING, {**with_expect(late=[]), "id": "wrong"}, {**TUMBLING, "id": "x", "kind": "sql"})

    code = main([str(file)])

    lines = capsys.readouterr().out.splitlines()
    assert code == 1
    assert lines[0] == "FAILED wrong (window_operator, vectors.json)"
    assert lines[2:4] == ["    expected []", "    got      [{'key': 'k', 'value': 3, 'ts': 4}]"]
    assert lines[-2:] == [
        "skipped 1: SQL is replayed with --engine local or spark, not with row",
        "1 passed, 1 failed, 1 skipped",
    ]


def test_the_command_line_chooses_cases(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENGINES, "idle", dict)
    write(tmp_path, *({**TUMBLING, "id": f"case-{number}"} for number in range(5)))

    assert main([str(tmp_path), "--limit", "3"]) == 0
    assert main([str(tmp_path), "--only", "-4", "--restart-every-step"]) == 0
    assert main([str(tmp_path), "--engine", "idle", "--limit", "3"]) == 0

    counts = [line for line in capsys.readouterr().out.splitlines() if "passed" in line]
    assert counts == ["3 passed, 0 failed, 0 skipped", "1 passed, 0 failed, 0 skipped", "0 passed, 0 failed, 5 skipped"]


def test_a_seed_takes_other_cases(tmp_path: Path) -> None:
    write(tmp_path, *({**TUMBLING, "id": f"case-{number}"} for number in range(50)))
    taken = {seed: [case.id for case, _ in replay_paths([tmp_path], limit=5, seed=seed)] for seed in (1, 2, None)}

    assert len({tuple(ids) for ids in taken.values()}) == 3
    assert taken[1] == [case.id for case, _ in replay_paths([tmp_path], limit=5, seed=1)]
    assert {len(ids) for ids in taken.values()} == {5}


def test_a_path_without_vectors_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_code:
        main([str(tmp_path / "absent.json")])

    assert exit_code.value.code == 2
    assert "absent.json holds no conformance vectors" in capsys.readouterr().err


def test_an_unexpected_exception_fails_one_case_and_not_the_run(tmp_path: Path) -> None:
    broken = {**TUMBLING, "id": "broken", "steps": [{"element": {"value": 1, "ts": 1}}]}

    verdicts = replay_paths([write(tmp_path, broken, TUMBLING)])

    assert {case.id: verdict.passed for case, verdict in verdicts} == {"broken": False, "example": True}


def test_the_share_of_programs_on_columns_is_told_where_the_planner_chooses() -> None:
    verdicts = [Verdict(), Verdict(), Verdict(skipped="for a reason", left_to_rows=True), Verdict(skipped="for another")]
    cases = [Case(Path("beam.json"), "a", "trigger_transcript", {}) for _ in verdicts]
    lines: list[str] = []
    assert report(zip(cases, verdicts, strict=True), lines.append, shows_share=True) == 0
    assert lines[-2:] == [
        "programs of built-in parts: 2 of 3 on a columnar engine (66.7 %)",
        "2 passed, 0 failed, 2 skipped",
    ]
