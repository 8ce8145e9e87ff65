"""Every part of every kind of sqlglot's nodes is read, without meaning, or refused; parts of a newer one are noticed here."""

from __future__ import annotations

import pytest
from sqlglot import exp

from windowpane.errors import UnsupportedSqlError
from windowpane.sql import Session
from windowpane.sql.parse.known_parts import READ, WRITTEN_BY_THE_PARSER, refuse_unread
from windowpane.sql.parse.positions import Text

_CLAUSES = (
    "cluster connect distribute for_ format group having laterals locks options pivots prewhere qualify sample settings "
    "sort where windows"
)
_OF_A_SET = f"{_CLAUSES} match by_name joins kind on side"
REFUSED: dict[type[exp.Expr], str] = {
    exp.Array: "struct_name_inheritance",
    exp.BitwiseAnd: "padside",
    exp.BitwiseLeftShift: "requires_int128",
    exp.BitwiseOr: "padside",
    exp.BitwiseRightShift: "requires_int128",
    exp.BitwiseXor: "padside",
    exp.Bracket: "json_access offset returns_list_for_maps safe",
    exp.ByteString: "is_bytes",
    exp.CTE: "key_expressions scalar",
    exp.Cast: "action default format safe",
    exp.Column: "catalog db join_mark shadow",
    exp.ArrayOverlaps: "null_safe",
    exp.Concat: "safe",
    exp.CurrentDate: "this",
    exp.CurrentTimestamp: "sysdate this",
    exp.DataType: "collate kind nullable values",
    exp.DataTypeParam: "expression",
    exp.Except: _OF_A_SET,
    exp.Exists: "expression",
    exp.Group: "all cube grouping_sets rollup totals",
    exp.Identifier: "global_ temporary",
    exp.In: "field is_global unnest",
    exp.Intersect: _OF_A_SET,
    exp.Is: "negate",
    exp.JSON: "with_",
    exp.JSONBExtractScalar: "json_type",
    exp.JSONExtract: "emits expressions json_query on_condition option quote requires_json variant_extract",
    exp.JSONExtractScalar: "expressions json_subtype json_type scalar_only",
    exp.JSONPathKey: "quoted",
    exp.Join: "directed expressions global_ hint nearest pivots",
    exp.Lateral: "cross_apply",
    exp.Limit: "expressions limit_options offset this",
    exp.Localtimestamp: "this",
    exp.Offset: "expressions this",
    exp.Order: "siblings",
    exp.Ordered: "with_fill",
    exp.RegexpILike: "flag",
    exp.RegexpLike: "flag full_match",
    exp.Select: (
        "cluster connect distribute exclude for_ format hint into kind laterals locks match operation_modifiers options pivots "
        "prewhere sample settings sort"
    ),
    exp.Slice: "step",
    exp.Star: "ilike rename replace",
    exp.StrPosition: "clamp_position occurrence position",
    exp.Subquery: _CLAUSES,
    exp.Substring: "zero_start",
    exp.Table: ("catalog changes format hints indexed laterals only partition pattern pivots rows_from sample system_time when"),
    exp.Trim: "collation",
    exp.Union: _OF_A_SET,
    exp.Unnest: "explode_array",
    exp.Values: "limit offset order pivots",
    exp.Window: "first",
    exp.With: "cycle search udfs",
}
"""The parts that sqlglot knows and windowpane refuses."""

OURS: dict[type[exp.Expr], str] = {exp.MatchRecognize: "subset target within", exp.Table: "match"}
"""The parts that windowpane's parser adds."""


def test_every_part_of_sqlglot_is_read_without_meaning_or_refused() -> None:
    for kind, read in READ.items():
        there = set(kind.arg_types) | set(OURS.get(kind, "").split())
        written = set(WRITTEN_BY_THE_PARSER.get(kind, {})) & there  # an earlier sqlglot does not write all of them
        assert read | written | set(REFUSED.get(kind, "").split()) == there, kind


def test_parts_without_meaning_are_of_kinds_that_are_read() -> None:
    for kind, parts in WRITTEN_BY_THE_PARSER.items():
        assert not READ[kind] & set(parts), kind


@pytest.fixture(scope="module")
def session():
    with Session(":memory:") as opened:
        opened.run("CREATE TABLE t (a int, b int, at timestamp)")
        yield opened


@pytest.mark.parametrize(
    ("query", "refused"),
    [
        ("SELECT AS VALUE a FROM t", "KIND of SELECT in 'SELECT a FROM t'"),
        ("SELECT a FROM ONLY t", "ONLY of TABLE in 'ONLY t'"),
        ("SELECT a FROM t FOR VERSION AS OF 1", "THIS of VERSION"),
        ("SELECT a FROM t LIMIT 1, 2", "EXPRESSIONS of OFFSET"),
        ("SELECT cast(a AS int FORMAT 'x') FROM t", "FORMAT of CAST"),
        ("SELECT b'101'", "b'101'\" is not supported"),
        ("SELECT a FROM t WHERE a = ?", "Write the value itself"),
        ("SELECT sum(a) OVER (ORDER BY at SESSION WITH GAP b'1') FROM t", "b'1'\" is not supported"),
    ],
)
def test_a_part_or_a_node_that_nobody_reads_is_refused_with_its_text(session: Session, query: str, refused: str) -> None:
    with pytest.raises(UnsupportedSqlError) as raised:
        session.run(query)

    assert refused in str(raised.value)


def test_a_false_value_is_a_value() -> None:
    item = exp.Bracket(this=exp.column("a"), expressions=[exp.Literal.number(1)], safe=False)

    with pytest.raises(UnsupportedSqlError, match="SAFE of BRACKET"):
        refuse_unread(item, Text(""))
