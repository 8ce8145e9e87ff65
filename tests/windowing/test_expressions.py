"""Trees of expressions: what is in them."""

import windowpane as wp
from windowpane.windowing.expressions import names_in


def test_the_names_of_a_tree_stand_in_its_order() -> None:
    tree = (wp.col("a") + 1) / wp.apply(max, wp.col("b"), "text", wp.col("a").cast("int"))
    assert list(names_in(tree)) == ["a", "b", "a"]
