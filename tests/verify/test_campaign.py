"""A campaign counts what its parts say, and takes one that says nothing for failed."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from verify import campaign
from verify.campaign import Part
from verify.fuzz.__main__ import KINDS


def test_a_campaign_has_every_kind_of_random_program_and_every_test_that_kills(tmp_path: Path) -> None:
    commands = [part.command for part in campaign.parts(0.00001, tmp_path / "absent")]
    assert {command[2] for command in commands if command[1] == "verify.fuzz"} == set(KINDS)
    assert commands[0][3:5] == ["--programs", "1"]
    assert all((campaign.ROOT / name).is_file() for name in campaign.KILLS)


@pytest.mark.parametrize(
    ("program", "passed", "failed"),
    [
        ("print('seeds'); print('1,200 passed, 0 failed')", 1200, 0),
        ("print('5 passed in 3.2s')", 5, 0),
        ("print('2 failed, 3 passed in 3.2s'); raise SystemExit(1)", 3, 2),
        ("raise SystemExit(1)", 0, 1),
        ("print('nothing')", 0, 1),
    ],
)
def test_a_part_counts_what_its_last_line_says(program: str, passed: int, failed: int) -> None:
    found = campaign.tried(Part("a part", ["-c", program]), Console(quiet=True))
    assert (found.passed, found.failed) == (passed, failed)


def test_the_table_takes_the_place_of_the_one_before() -> None:
    found = [campaign.Found(Part("random programs", []), 1200, 1, 90.0)]
    once = campaign.written(found, campaign.PAGE.read_text())
    assert "| random programs | 1,200 | 1 | 1.5 |" in once
    assert campaign.written(found, once) == once
