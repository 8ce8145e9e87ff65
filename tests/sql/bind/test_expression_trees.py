"""Bound expressions are trees: rules on them, plan in and plan out, and what of one fails."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

from windowpane.sql import Session
from windowpane.sql.expressions.expr import Expr, build, convert
from windowpane.sql.expressions.operators import combined, compare
from windowpane.sql.expressions.types import BIGINT, INTEGER, array_of
from windowpane.sql.failures.trying import tried_expr

A, B = Expr.of_column("a#1", INTEGER), Expr.of_column("b#2", BIGINT)
EQUAL = compare("=", A, B)


@pytest.fixture
def session() -> Iterator[Session]:
    with Session(":memory:") as opened:
        opened.run("CREATE TABLE raw (id int PRIMARY KEY, x text, a int[])")
        yield opened


def test_other_expressions_take_the_place_of_columns() -> None:
    moved = EQUAL.over({"b#2": build(BIGINT, "({0} + {0})", Expr.of_column("c#3", BIGINT))})

    assert moved.sql == '(CAST("a#1" AS BIGINT) = ("c#3" + "c#3"))'
    assert moved.columns == {"a#1", "c#3"}
    assert moved.operator == "="
    assert EQUAL.over({"d#4": A}) is EQUAL


def test_a_text_with_braces_is_no_place_for_an_operand() -> None:
    joined = build(INTEGER, "strpos({0}, {1})", Expr.of_column("x#1", INTEGER), Expr.of_text("{0} and {1"))

    assert joined.over({"x#1": Expr.of_text("}")}).sql == "strpos('}', '{0} and {1')"


def test_equal_trees_are_equal_in_another_process() -> None:
    copied = pickle.loads(pickle.dumps(EQUAL))

    assert copied == EQUAL
    assert copied.sql == EQUAL.sql
    assert compare("=", A, B) in {copied}


def test_a_parameter_is_free_only_inside_its_function() -> None:
    longer = convert(Expr.of_column("l#1", array_of(INTEGER)), array_of(BIGINT))

    assert longer.free == frozenset()
    assert longer.columns == {"l#1"}
    assert longer.parts[1].parts[0].free == {"element_1"}


def test_what_fails_in_a_branch_is_asked_only_of_the_rows_that_take_it() -> None:
    value = build(INTEGER, "windowpane_whole({0}, 'integer')", Expr.of_column("x#1", INTEGER))
    chosen = build(INTEGER, "(CASE WHEN {0} THEN {1} END)", EQUAL, value, operator="CASE")

    fails = {attempt.expr.template: attempt.fails.sql for attempt in tried_expr(chosen).attempts}

    tried = '(TRY(CAST("a#1" AS BIGINT)) = "b#2")'
    failed = "TRY([windowpane_whole(\"x#1\", 'integer')]) IS NULL"
    assert fails[value.template] == f"CASE WHEN ({tried}) IS TRUE THEN {failed} ELSE false END"  # AND computes both sides
    assert tried_expr(combined("AND", EQUAL, EQUAL)).expr.sql == f"({tried} AND {tried})"


def test_an_operand_of_any_that_fails_is_null(session: Session) -> None:
    session.run(
        "CREATE MATERIALIZED VIEW mv AS SELECT id, x::int = ANY(ARRAY[1, 2]) AS n, array_positions(a, x::int) AS p FROM raw"
    )
    session.run("INSERT INTO raw VALUES (0, 'two', ARRAY[1, 2]), (1, '1', ARRAY[1, NULL]); FLUSH")

    assert session.query("SELECT n, p FROM mv ORDER BY id").text_rows() == [[None, "{}"], ["t", "{1}"]]
    assert [row[1:3] for row in session.query("SHOW ERRORS").text_rows()] == [["CAST(x AS INTEGER)", "two"]]
