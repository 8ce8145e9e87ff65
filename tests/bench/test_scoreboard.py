"""The scoreboard says what the results say, and what is published is made of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.environments import ROOT
from bench.pages import write_scoreboard
from bench.results import Figure, Results, read
from bench.scoreboard import PICTURE, picture, readme_table, rows_of, table

MACHINE = {"processor": "X", "cores": 2, "memory_gb": 24}
FIGURES = (
    Figure("a", 10, "ours", rows_per_s=2_000_000, whole_job_s=30, day="2026-01-02"),
    Figure("a", 10, "spark", rows_per_s=500_000, whole_job_s=24, day="2026-01-02"),
)


@pytest.fixture
def chosen(tmp_path: Path) -> Path:
    of_a_case = {"case": "a", "keys": 10, "ours": "ours", "peer": "spark"}
    rows = [
        {"what": "fast", **of_a_case, "in_readme": True},
        {"what": "job", **of_a_case, "measure": "whole_job_s"},
        {"what": "given", "ours": 1.5, "peer": 46.2, "times": 30, "day": "2026-01-01"},
    ]
    path = tmp_path / "scoreboard.json"
    path.write_text(json.dumps([{"against": "native Spark", "rows": rows}]))
    return path


def test_rows_are_seconds_of_a_million_rows_or_what_they_name(chosen: Path) -> None:
    rows = rows_of(Results(MACHINE, FIGURES), chosen)
    assert table(rows).splitlines()[2:] == [
        "| **beside native Spark** | | | |",
        "| fast | 2.00 s | 0.50 s | 4.0x |",
        "| job | 24.0 s | 30.0 s | **0.80x** |",
        "| given | 46.2 s | 1.50 s | 30x |",
    ]
    assert readme_table(rows).splitlines()[2:] == ["| fast | 4.0x |"]
    drawn = picture(rows, "X")
    assert (drawn.count('class="faster"'), drawn.count('class="slower"')) == (2, 1)
    assert "prefers-color-scheme: dark" in drawn


def test_what_is_published_is_made_of_the_results(tmp_path: Path) -> None:
    pages = [Path("docs/performance.md"), Path("README.md"), PICTURE.relative_to(ROOT)]
    for page in pages:
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / page).write_text((ROOT / page).read_text())
    write_scoreboard(read(), tmp_path)
    assert [page for page in pages if (tmp_path / page).read_text() != (ROOT / page).read_text()] == []
