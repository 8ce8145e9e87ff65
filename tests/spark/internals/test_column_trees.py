"""What a Column says is read from its tree; a tree of another form computes something, unless it has a direction."""

from __future__ import annotations

from typing import Any, cast

import pytest
from pyspark.sql import functions as F

from windowpane.errors import InvalidSpecError
from windowpane.spark.internals.column_trees import column_name, column_order
from windowpane.spark.internals.session import processors

pytestmark = pytest.mark.spark


class OfAnotherSpark:
    """A Column whose tree has another form."""

    _jc = object()

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return f"Column<'{self.text}'>"


def test_a_name_is_read_and_what_computes_has_none(spark: Any) -> None:
    columns = [F.col("price"), F.col("a b"), F.col("price") + 1, F.col("a.b"), F.lit(1)]
    assert [column_name(column) for column in columns] == ["price", "a b", None, None, None]


@pytest.mark.parametrize(
    ("method", "descending", "nulls_first"),
    [
        ("asc", False, True),
        ("desc", True, False),
        ("asc_nulls_last", False, False),
        ("desc_nulls_first", True, True),
    ],
)
def test_a_direction_is_read(spark: Any, method: str, descending: bool, nulls_first: bool) -> None:
    of_name, of_sum = (column_order(getattr(column, method)()) for column in (F.col("id"), F.col("id") + 1))
    assert of_name is not None
    assert of_sum is not None
    assert of_name == ("id", descending, nulls_first)
    assert of_sum[1:] == (descending, nulls_first)
    assert [row[0] for row in spark.range(3).select(of_sum.by).collect()] == [1, 2, 3]
    assert column_order(F.col("id")) is None


def test_a_tree_of_another_form_computes_something() -> None:
    assert column_name(OfAnotherSpark("price")) is None
    assert column_order(OfAnotherSpark("price + 1")) is None


def test_a_direction_in_a_tree_of_another_form_is_refused() -> None:
    with pytest.raises(InvalidSpecError, match=r"price DESC NULLS LAST.*wp\.col"):
        column_order(OfAnotherSpark("price DESC NULLS LAST"))


def test_processors_are_those_of_the_jvm_or_of_this_machine(spark: Any) -> None:
    assert processors(spark) == spark.sparkContext._jvm.java.lang.Runtime.getRuntime().availableProcessors()
    assert processors(cast("Any", object())) >= 1
