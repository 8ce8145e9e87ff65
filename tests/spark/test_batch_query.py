"""How a query says that all rows are taken that were there: no JVM is needed."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace as Object

import pytest

from windowpane.spark.queries.batch_query import BatchQuery, has_passed


@pytest.mark.parametrize(
    ("end", "target", "expected"),
    [
        ('{"t": {"0": 7, "1": 4}}', '{"t": {"0": 5, "1": 4}}', True),
        ('{"t": {"0": 7, "1": 3}}', '{"t": {"0": 5, "1": 4}}', False),
        ('{"t": {"0": 7}}', '{"t": {"0": 5, "1": 4}}', False),
        ("None", '{"t": {"0": 5}}', True),
        ("12", "None", True),
        (None, None, True),
        ("11", "12", False),
        ('{"logOffset": 3, "id": "b"}', '{"logOffset": 3, "id": "a"}', True),
        ("{no JSON", "{no JSON", True),
    ],
)
def test_an_offset_has_passed_another_where_no_number_in_it_is_behind(end: str, target: str, expected: bool) -> None:
    assert has_passed(end, target) is expected


class Endless:
    """A streaming query with ten more rows each batch, of which a batch takes four."""

    def __init__(self, taken: list[int]) -> None:
        self.recentProgress: list[Object] = []
        self.query = BatchQuery(None, "q", Path(), lambda _: None, lambda _, number: taken.append(number))
        self.query._query = self
        self._ends = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def processAllAvailable(self) -> None:  # noqa: N802 - Spark's name
        self._ends.wait()

    def _run(self) -> None:
        for number in range(1000):
            self.query.batch(None, number)
            offsets = Object(endOffset=f'{{"t": {{"0": {4 * number}}}}}', latestOffset=f'{{"t": {{"0": {20 + 10 * number}}}}}')
            self.recentProgress = [*self.recentProgress, Object(batchId=number, sources=[offsets])][-100:]
            time.sleep(0.02)


def test_an_endless_query_has_taken_what_was_there_once_a_batch_passes_what_the_first_one_reported() -> None:
    taken: list[int] = []
    endless = Endless(taken)
    endless.query.finish(is_endless=True)
    assert 5 <= taken[-1] < 100  # the first batch saw 20 or 30 rows; batch 5 ends at row 20
    endless._ends.set()
