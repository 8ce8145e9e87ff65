"""The list of tests that are left to ``make test-all`` names tests: a name left behind would hide one of that name later."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.slow import SLOW

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", SLOW)
def test_what_is_left_to_make_test_all_exists(name: str) -> None:
    file, _, test = name.partition("::")
    source = (ROOT / file).read_text()
    function = test.rpartition("::")[2].partition("[")[0]
    assert re.search(rf"^ *def {function}", source, re.MULTILINE), f"{name} is no test: take it out of tests/slow.py"
