"""Which parts of parsed queries the binder reads: what else the parser understood is refused, so that nothing is ignored.

The parser knows many dialects, and keeps what it reads as arguments of a node (``TABLESAMPLE`` of a table, ``EXCEPT`` of a star).
A node that is not listed here is one that the binder refuses itself, or one without such arguments.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from windowpane.sql.parse.positions import Text

_QUERY = "with_ order limit offset"
_READ: dict[type[exp.Expr], frozenset[str]] = {
    kind: frozenset(parts.split())
    for kind, parts in {
        exp.Select: f"expressions from_ joins where group having qualify windows distinct kind {_QUERY}",
        exp.Subquery: f"this alias joins {_QUERY}",
        exp.Union: f"this expression distinct {_QUERY}",
        exp.Except: f"this expression distinct {_QUERY}",
        exp.Intersect: f"this expression distinct {_QUERY}",
        exp.Values: "expressions alias",
        exp.Table: "this db alias joins version",
        exp.Join: "this side kind method on using match_condition",
        exp.Lateral: "this alias",
        exp.Unnest: "expressions alias offset",
        exp.With: "expressions recursive",
        exp.CTE: "this alias",
        exp.Group: "expressions",
        exp.Order: "this expressions",
        exp.Ordered: "this desc nulls_first",
        exp.Limit: "expression",
        exp.Offset: "expression",
        exp.Fetch: "count limit_options direction",
        exp.LimitOptions: "rows with_ties",
        exp.Column: "this table",
        exp.Star: "except_",
        exp.Window: "this partition_by order spec alias over",
        exp.WindowSpec: "kind start start_side end end_side exclude",
        exp.Cast: "this to",
        exp.In: "this expressions query",
        exp.Between: "this low high symmetric",
        exp.Like: "this expression negate",
        exp.ILike: "this expression negate",
        exp.RegexpLike: "this expression",
        exp.Is: "this expression",
        exp.Trim: "this expression position",
        exp.Substring: "this start length",
        exp.StrPosition: "this substr",
        exp.Array: "expressions bracket_notation",
        exp.Bracket: "this expressions",
    }.items()
}
_WORDS = {
    "sample": ("TABLESAMPLE", "A filter such as WHERE id % 10 = 0 takes part of the rows, too, but the same ones each time."),
    "except_": ("EXCEPT behind * in a call", "It stands in a select list."),
    "replace": ("REPLACE behind *", "List the columns."),
    "rename": ("RENAME behind *", "List the columns."),
    "all": ("GROUP BY ALL", "List the columns."),
    "locks": ("FOR UPDATE", "Leave it out: a statement sees one state of all tables."),
    "by_name": ("BY NAME", "List the columns of both sides in one order."),
    "db": ("a schema before the name of a column", "Write table.column."),
    "percent": ("FETCH FIRST ... PERCENT", "FETCH FIRST n ROWS is."),
}
_INSTEAD = "Nothing here does the same; the SQL reference has what there is."


def refuse_unread(tree: exp.Expr, text: Text) -> None:
    """Refuse a query or expression with a part that the binder does not read.

    Raises:
        UnsupportedSqlError: with the place of the part.
    """
    for node, part in _unread(tree):
        value = node.args[part]
        first = value[0] if isinstance(value, list) else value
        name = part.strip("_").replace("_", " ").upper()
        construct, instead = _WORDS.get(part, (f"{name} of {node.key.upper()}", _INSTEAD))
        place = first if isinstance(first, exp.Expr) and any("start" in each.meta for each in first.walk()) else node
        raise text.unsupported(place, construct, instead)


def _unread(tree: exp.Expr) -> Iterator[tuple[exp.Expr, str]]:
    for node in tree.walk():
        known = _READ.get(type(node))
        if known is not None:
            yield from ((node, part) for part, value in node.args.items() if value and part not in known)
        if isinstance(node, exp.Star) and isinstance(node.parent, exp.Anonymous) and node.args.get("except_"):
            yield node, "except_"
