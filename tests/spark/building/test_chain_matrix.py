"""Every pair of operators on Spark: which can be built behind which, as docs/how-to/chains.md says; what some of them give."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest

from tests.docs.documents import ROOT
from tests.spark.building.chain_matrix import KINDS
from windowpane.errors import WindowpaneError

pytestmark = pytest.mark.spark


def refusal(before: str, behind: str, stream: Any) -> str | None:
    """Return why an operator cannot stand behind another, ``None`` if it can."""
    (first, time), (second, _) = KINDS[before], KINDS[behind]
    try:
        second(first(stream, "at").df, time)._built.operators  # noqa: B018
    except WindowpaneError as error:
        return str(error)
    return None


def matrix(stream: Any) -> dict[tuple[str, str], str | None]:
    return {pair: refusal(*pair, stream) for pair in product(KINDS, KINDS)}


@pytest.fixture(scope="module")
def stream(spark: Any) -> Any:
    rows = spark.readStream.format("rate").load()
    return rows.selectExpr("string(value % 7) AS k", "value AS v", "timestamp AS at").withWatermark("at", "10 seconds")


def test_the_document_says_which_pairs_are_refused(stream: Any) -> None:
    page = (ROOT / "docs" / "how-to" / "chains.md").read_text()
    lines = [line.strip("| ").split(" | ") for line in re.findall(r"^\| .*\|$", page, re.MULTILINE)]
    (_, *behind), *cells = lines[: len(KINDS) + 1]
    shown = {(line[0], name): cell == "yes" for line in cells for name, cell in zip(behind, line[1:], strict=True)}
    assert shown == {pair: reason is None for pair, reason in matrix(stream).items()}
