"""Which parts of parsed queries the binder reads: what else the parser understood is refused, so that nothing is ignored.

The parser knows many dialects, and keeps what it reads as arguments of a node (``TABLESAMPLE`` of a table, ``EXCEPT`` of a star);
some words it keeps as a false value (``DISTINCT`` of ``GROUP BY DISTINCT``). So a part is one of three things: read here, the one
value that the parser writes itself whatever the text says, or refused; and so is a node of a kind that is not listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from windowpane.sql.parse.dialect import SESSION_GAP
from windowpane.sql.parse.positions import Text, shown

_QUERY = "with_ order limit offset"
_BINARY = (
    exp.Add, exp.And, exp.ArrayContainedBy, exp.ArrayContainsAll, exp.ArrayOverlaps, exp.BitwiseAnd, exp.BitwiseLeftShift,
    exp.BitwiseOr, exp.BitwiseRightShift, exp.BitwiseXor, exp.Collate, exp.DPipe, exp.Div, exp.EQ, exp.Escape, exp.Extract,
    exp.Filter, exp.GT, exp.GTE, exp.IntervalSpan, exp.Is, exp.JSONBContainsAllTopKeys, exp.JSONBContainsAnyTopKeys,
    exp.JSONBContainsTopKey, exp.JSONBDeleteAtPath, exp.JSONBExtract, exp.JSONBExtractScalar, exp.JSONExtract,
    exp.JSONExtractScalar, exp.Kwarg, exp.LT, exp.LTE, exp.Mod, exp.Mul, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Or,
    exp.Pow, exp.RegexpILike, exp.RegexpLike, exp.SimilarTo, exp.Slice, exp.StartsWith, exp.Sub, exp.WithinGroup,
)  # fmt: skip
_UNARY = (
    exp.All, exp.Any, exp.BitwiseNot, exp.Boolean, exp.ByteString, exp.Cbrt, exp.DataTypeParam, exp.Exists, exp.From, exp.Having,
    exp.IgnoreNulls, exp.JSONPathKey, exp.JSONPathSubscript, exp.Neg, exp.Not, exp.ObjectIdentifier, exp.Paren, exp.Qualify,
    exp.RespectNulls, exp.Sqrt, exp.Var, exp.Where,
)  # fmt: skip
_LISTS = (exp.Concat, exp.Cube, exp.GroupingSets, exp.JSONPath, exp.Rollup, exp.Tuple)
_WORDS_ALONE = (exp.CurrentDate, exp.CurrentTimestamp, exp.JSONPathRoot, exp.Localtimestamp, exp.Null)
_PARTS: dict[type[exp.Expr], str] = {
    **dict.fromkeys(_BINARY, "this expression"),
    **dict.fromkeys(_UNARY, "this"),
    **dict.fromkeys(_LISTS, "expressions"),
    **dict.fromkeys(_WORDS_ALONE, ""),
    exp.Alias: "this alias",
    exp.Anonymous: "this expressions",
    exp.Array: "expressions",
    exp.AtTimeZone: "this zone",
    exp.Between: "this low high symmetric",
    exp.Bracket: "this expressions",
    exp.CTE: "this alias",
    exp.Case: "this ifs default",
    exp.Cast: "this to",
    exp.Column: "this table",
    exp.DataType: "this expressions nested",
    exp.Distinct: "expressions on",
    exp.Except: f"this expression distinct {_QUERY}",
    exp.Fetch: "count limit_options",
    exp.Group: "expressions all",
    exp.ILike: "this expression negate",
    exp.Identifier: "this quoted",
    exp.If: "this true false",
    exp.In: "this expressions query",
    exp.Intersect: f"this expression distinct {_QUERY}",
    exp.Interval: "this unit",
    exp.JSON: "this",
    exp.Join: "this side kind method on using match_condition",
    exp.Lateral: "this alias ordinality",
    exp.Like: "this expression negate",
    exp.Limit: "expression",
    exp.LimitOptions: "rows with_ties",
    exp.Literal: "this is_string",
    exp.MatchRecognize: "partition_by order measures rows after target pattern within subset define alias",
    exp.MatchRecognizeMeasure: "this window_frame",
    exp.Offset: "expression",
    exp.Order: "this expressions",
    exp.Ordered: "this desc nulls_first",
    exp.Overlay: "this expression from_ for_",
    exp.Select: f"expressions from_ joins where group having qualify windows distinct {_QUERY}",
    exp.Star: "except_",
    exp.StrPosition: "this substr",
    exp.Subquery: f"this alias joins match {_QUERY}",
    exp.Substring: "this start length",
    exp.Table: "this db alias joins match ordinality version",
    exp.TableAlias: "this columns",
    exp.Trim: "this expression position",
    exp.Union: f"this expression distinct {_QUERY}",
    exp.Unnest: "expressions alias offset",
    exp.Values: "expressions alias",
    exp.Version: "expression kind",
    exp.Window: "this partition_by order spec alias",
    exp.WindowSpec: "kind start start_side end end_side exclude",
    exp.With: "expressions recursive",
}
READ = {kind: frozenset(parts.split()) for kind, parts in _PARTS.items()}
"""The kinds of nodes that the binder knows, and the parts of each that it reads."""

WRITTEN_BY_THE_PARSER: dict[type[exp.Expr], dict[str, tuple[Any, ...]]] = {
    exp.Array: {"value_constructor": (False,), "bracket_notation": (True,)},
    exp.CTE: {"materialized": (True, False)},
    exp.Concat: {"coalesce": (True,)},
    exp.DPipe: {"safe": (True,)},
    exp.Div: {"typed": (True,), "safe": (False,)},
    exp.Fetch: {"direction": ("FIRST", "NEXT")},
    exp.Interval: {"fraction_in_string": (True,)},
    exp.JSON: {"unique": (False,)},
    exp.JSONExtract: {"only_json_types": (True,)},
    exp.JSONExtractScalar: {"only_json_types": (True,)},
    exp.Lateral: {"view": (False,), "outer": (False,)},
    exp.LimitOptions: {"percent": (False,)},
    exp.Mod: {"safe": (False,)},
    exp.Version: {"this": ("TIMESTAMP",)},
    exp.Window: {"over": ("OVER",)},
}
"""Parts that nobody reads, and the values of them that change nothing."""

_WORDS = {
    "sample": ("TABLESAMPLE", "A filter such as WHERE id % 10 = 0 takes part of the rows, too, but the same ones each time."),
    "except_": ("EXCEPT behind * in a call", "It stands in a select list."),
    "replace": ("REPLACE behind *", "List the columns."),
    "rename": ("RENAME behind *", "List the columns."),
    "locks": ("FOR UPDATE", "Leave it out: a statement sees one state of all tables."),
    "by_name": ("BY NAME", "List the columns of both sides in one order."),
    "db": ("a schema before the name of a column", "Write table.column."),
    "percent": ("FETCH FIRST ... PERCENT", "FETCH FIRST n ROWS is."),
}
_INSTEAD_OF: dict[type[exp.Expr], str] = {
    exp.HexString: "Write '\\x...'::bytea.",
    exp.Dot: "Structs are not there; give each field a column.",
    exp.TryCast: "CAST is.",
    exp.Placeholder: "Write the value itself.",
    exp.Parameter: "Write the value itself.",
}
_INSTEAD = "Nothing here does the same; the SQL reference has what there is."


def refuse_unread(tree: exp.Expr, text: Text) -> None:
    """Refuse a query or expression with a node or a part of one that the binder does not read."""
    for node in _nodes(tree):
        known = READ.get(type(node))
        if known is None:
            raise text.unsupported(node, repr(shown(node)), _INSTEAD_OF.get(type(node), _INSTEAD))
        for part, value in node.args.items():
            if value is not None and not _is_known(node, part, value, known):
                raise _refusal(node, part, value, text)


def _nodes(tree: exp.Expr) -> Iterator[exp.Expr]:
    for node in tree.walk():
        yield node
        gap = node.meta.get(SESSION_GAP)
        if gap is not None:
            yield from gap.walk()


def _is_known(node: exp.Expr, part: str, value: object, known: frozenset[str]) -> bool:
    if isinstance(node, exp.Star) and isinstance(node.parent, exp.Anonymous):
        return False
    if part in known:
        return True
    return any(value is same or (isinstance(same, str) and value == same) for same in _meaningless(node, part))


def _meaningless(node: exp.Expr, part: str) -> tuple[Any, ...]:
    return WRITTEN_BY_THE_PARSER.get(type(node), {}).get(part, ())


def _refusal(node: exp.Expr, part: str, value: object, text: Text) -> Exception:
    first = value[0] if isinstance(value, list) and value else value
    name = part.strip("_").replace("_", " ").upper()
    construct, instead = _WORDS.get(part, (f"{name} of {node.key.upper()} in {shown(node)!r}", _INSTEAD))
    place = first if isinstance(first, exp.Expr) and any("start" in each.meta for each in first.walk()) else node
    return text.unsupported(place, construct, instead)
