"""Every pair of operators on Spark: which can be built behind which, as docs/how-to/chains.md says; what some of them give."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

import windowpane as wp
from tests.docs.documents import ROOT
from tests.spark.building.chain_matrix import BEHIND, KINDS, MINUTE
from tests.spark.helpers import Feed, plain, rows, run, table
from windowpane.errors import WindowpaneError
from windowpane.windowing.outputs import APPEARING, CHANGE_TYPE

pytestmark = pytest.mark.spark

REFUSED = [
    ("OVER on update that looks ahead", "windows", "passes no watermark on"),
    ("last rows", "windows by count", "see a row before a change takes it back"),
]
TAKEN = list(KINDS)[:11]
PAIRS = [(before, TAKEN[(number + 4) % len(TAKEN)]) for number, before in enumerate(TAKEN)]
"""Each once in front and once behind; all pairs of those that need no JVM are in ``python -m verify.fuzz chains``."""


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


@pytest.mark.slow
def test_the_document_says_which_pairs_are_refused(stream: Any) -> None:
    page = (ROOT / "docs" / "how-to" / "chains.md").read_text()
    lines = [line.strip("| ").split(" | ") for line in re.findall(r"^\| .*\|$", page, re.MULTILINE)]
    head, *cells = lines[: len(KINDS) + 1]
    assert head == ["in front", *BEHIND]
    shown = {
        (line[0], kind): cell == "yes"
        for line in cells
        for name, cell in zip(BEHIND, line[1:], strict=True)
        for kind in BEHIND[name]
    }
    assert shown == {pair: reason is None for pair, reason in matrix(stream).items()}


@pytest.mark.parametrize(("before", "behind", "reason"), REFUSED)
def test_what_is_refused_says_why(stream: Any, before: str, behind: str, reason: str) -> None:
    assert reason in (refusal(before, behind, stream) or "")


# What they give.

FAR = 100_000


def batches() -> list[list[tuple[Any, ...]]]:
    draw = Random(1)
    rows = [(draw.choice("ab"), 30 * number + draw.randint(75, 125), draw.randint(1, 5)) for number in range(24)]
    cut = [rows[first : first + 6] for first in range(0, 24, 6)]
    return [*cut, [("a", FAR, 0)], [("b", FAR + 1, 0)], [("b", FAR + 2, 0)]]


def applied(found: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Return the rows that stay, without those of the rows that only move the watermark."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for row in found:
        word = row.get(CHANGE_TYPE, "insert")
        values = tuple(plain(value) for name, value in row.items() if name != CHANGE_TYPE)
        if not any(isinstance(value, int | float) and value >= FAR - 3600 for value in values):
            counts[values] += 1 if word in APPEARING else -1
    assert min(counts.values(), default=0) >= 0
    return sorted(counts.elements(), key=repr)


def streamed(result: Any, checkpoint: Path | None = None) -> list[dict[str, Any]]:
    collected: list[dict[str, Any]] = []
    query = result.start(
        main=lambda rows, _: collected.extend(rows.toArrow().to_pylist()),
        trigger={"availableNow": True},
        checkpoint=None if checkpoint is None else str(checkpoint),
    )
    query.awaitTermination()
    return collected


def check(spark: Any, folder: Path, before: str, behind: str) -> None:
    """A chain on a stream, with a restart, gives what its operators give one by one over the tables they leave."""
    (first, time), (second, _) = KINDS[before], KINDS[behind]
    feed = Feed(folder / "in").add(*batches()[:3])

    def rows_of() -> Any:
        return feed.stream(spark).withColumnRenamed("t", "at").withWatermark("at", "60 seconds")

    front = streamed(first(rows_of(), "at"), folder / "front")
    chain = second(first(rows_of(), "at").df, time)
    found = streamed(chain, folder / "chain")
    feed.add(*batches()[3:])
    front += streamed(first(rows_of(), "at"), folder / "front")
    found += streamed(chain, folder / "chain")
    names = [field.name for field in first(rows_of(), "at").df.schema if field.name != CHANGE_TYPE]
    table = applied_table(spark, front, first(rows_of(), "at").df.select(*names).schema)
    alone = second(table, time).df.toArrow().to_pylist()
    assert applied(found) == applied(alone) != []


def applied_table(spark: Any, found: Sequence[Mapping[str, Any]], schema: Any) -> Any:
    counts: Counter[tuple[Any, ...]] = Counter()
    for row in found:
        word = row.get(CHANGE_TYPE, "insert")
        counts[tuple(value for name, value in row.items() if name != CHANGE_TYPE)] += 1 if word in APPEARING else -1
    return spark.createDataFrame(list(counts.elements()), schema)


@pytest.mark.slow
@pytest.mark.parametrize(("before", "behind"), PAIRS)
def test_a_chain_gives_what_its_operators_give_one_by_one(spark: Any, tmp_path: Path, before: str, behind: str) -> None:
    check(spark, tmp_path, before, behind)


@pytest.mark.slow
def test_windows_count_the_rows_that_a_changelog_leaves(spark: Any, tmp_path: Path) -> None:
    """The newer row of each pair stays: 2 of a at 40, 4 of b at 30."""
    feed = Feed(tmp_path / "in").add([("a", 10, 1), ("b", 30, 4)], [("a", 40, 2)], [("a", 600, 0)], [("a", 601, 0)])
    last = wp.stream(feed.stream(spark), event_time="t", watermark="0 seconds").key_by("k").deduplicate("1 minute", keep="last")
    counted = wp.stream(last.df, event_time="t").key_by("k").window(MINUTE).aggregate(n=wp.count(), v=wp.sum("v"))
    assert "then, as windowpane_2_settled: Settled changelog (_change_type)" in counted.explain()
    assert run(counted).rows() == [("a", 0, 60, 1, 2), ("b", 0, 60, 1, 4)]


@pytest.mark.parametrize("between", ["first rows", "OVER on close", "join by an interval"])
def test_the_end_of_a_window_stays_one_behind_other_operators(spark: Any, between: str) -> None:
    """The last minute of an hour ends where the next hour begins, and counts in its own, whatever has passed it on."""
    minutes = KINDS["windows"][0](table(spark, [("a", 3590, 1), ("a", 3600, 2)]).withColumnRenamed("t", "at"), "at")
    passed = KINDS[between][0](minutes.df, "window_end").df
    time = "window_end" if "window_end" in passed.columns else "at"
    hours = wp.stream(passed, event_time=time).window_all(wp.TumblingEventTimeWindows.of("1 hour")).aggregate(n=wp.count())
    assert rows(hours.df) == [(0, 3600, 1), (3600, 7200, 1)]
