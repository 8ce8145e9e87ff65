"""Parses ``MATCH_RECOGNIZE (...)`` behind a relation of FROM: the standard's clauses in the standard's order, and three more.

These are Flink's WITHIN, SHOW TIMEOUT MATCHES as Alibaba Cloud's Flink writes it, and the pattern, which stays text: it is no SQL
but in its names.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

_ROWS = {
    ("ONE", "ROW", "PER", "MATCH", "SHOW", "TIMEOUT", "MATCHES"): "timeouts",
    ("ONE", "ROW", "PER", "MATCH"): "one",
    ("ALL", "ROWS", "PER", "MATCH", "SHOW", "EMPTY", "MATCHES"): "all",
    ("ALL", "ROWS", "PER", "MATCH", "OMIT", "EMPTY", "MATCHES"): "all omit empty",
    ("ALL", "ROWS", "PER", "MATCH", "WITH", "UNMATCHED", "ROWS"): "all unmatched",
    ("ALL", "ROWS", "PER", "MATCH"): "all",
}
_SKIPS = {
    ("PAST", "LAST", "ROW"): "past last row",
    ("TO", "NEXT", "ROW"): "to next row",
    ("TO", "FIRST"): "to first",
    ("TO", "LAST"): "to last",
    ("TO",): "to last",
}


def parse_match(parser: Any) -> exp.MatchRecognize:
    """Return the clause that is next, with the alias behind it."""
    parser._match_l_paren()
    clause = exp.MatchRecognize(partition_by=parser._parse_partition_by(), order=parser._parse_order())
    clause.meta["start"] = parser._prev.start
    if parser._match_text_seq("MEASURES"):
        clause.set("measures", parser._parse_csv(lambda: _named(parser, "MEASURES")))
    clause.set("rows", exp.var(_words(parser, _ROWS) or "one"))
    if parser._match_text_seq("AFTER", "MATCH"):
        _skip(parser, clause)
    if not parser._match_text_seq("PATTERN"):
        parser.raise_error("PATTERN (...) is missing")
    clause.set("pattern", _pattern(parser))
    if parser._match_text_seq("WITHIN"):
        start = parser._prev.start
        within = parser._parse_bitwise()
        if within is not None:
            within.meta["start"] = start
        clause.set("within", within)
    if parser._match_text_seq("SUBSET"):
        clause.set("subset", parser._parse_csv(lambda: _subset(parser)))
    if parser._match_text_seq("DEFINE"):
        clause.set("define", parser._parse_csv(lambda: _definition(parser)))
    parser._match_r_paren()
    clause.set("alias", parser._parse_table_alias())
    return clause


def parse_final(parser: Any) -> exp.MatchRecognizeMeasure | None:
    """Return ``FINAL`` or ``RUNNING`` before a call, with the call; ``None`` where there is none."""
    word = parser._curr.text.upper() if parser._curr is not None else ""
    after = parser._tokens[parser._index + 1 : parser._index + 3]
    if word not in ("FINAL", "RUNNING") or len(after) < 2 or after[1].text != "(" or not after[0].text.isidentifier():
        return None
    parser._advance()
    return exp.MatchRecognizeMeasure(window_frame=exp.var(word), this=parser._parse_unary())


def _words(parser: Any, known: dict[tuple[str, ...], str]) -> str | None:
    return next((meaning for words, meaning in known.items() if parser._match_text_seq(*words)), None)


def _skip(parser: Any, clause: exp.MatchRecognize) -> None:
    skip = _words(parser, _SKIPS) if parser._match_text_seq("SKIP") else None
    if skip is None:
        parser.raise_error("AFTER MATCH is followed by SKIP PAST LAST ROW, TO NEXT ROW, TO FIRST x or TO LAST x")
    clause.set("after", exp.var(skip))
    if skip in ("to first", "to last"):
        clause.set("target", parser._parse_id_var())


def _pattern(parser: Any) -> exp.Literal:
    """Return the text in parentheses; sqlglot's tokens only say where it ends."""
    parser._match_l_paren()
    first, depth = parser._curr, 1
    while parser._curr is not None:
        depth += {"(": 1, ")": -1}.get(parser._curr.text, 0)
        if not depth:
            break
        parser._advance()
    text = exp.Literal.string(parser.sql[first.start : parser._curr.start] if first is not None and parser._curr else "")
    text.meta["start"] = first.start if first is not None else 0
    parser._match_r_paren()
    return text


def _named(parser: Any, clause: str) -> exp.Expr:
    named: exp.Expr = parser._parse_expression()
    if not isinstance(named, exp.Alias):
        parser.raise_error(f"{clause} are expressions with a name each: expression AS name")
    return named


def _definition(parser: Any) -> exp.Alias:
    name = parser._parse_id_var()
    if not parser._match_text_seq("AS"):
        parser.raise_error("DEFINE has conditions of variables: name AS condition")
    return exp.Alias(this=parser._parse_disjunction(), alias=name)


def _subset(parser: Any) -> exp.Tuple:
    name = parser._parse_id_var()
    if not parser._match_text_seq("="):
        parser.raise_error("SUBSET names several variables together: name = (a, b)")
    return exp.Tuple(expressions=[name, *parser._parse_wrapped_csv(parser._parse_id_var)])
