"""RisingWave's dialect as sqlglot knows it, extended by session frames; functions stay names, for the binder to look up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.risingwave import RisingWave
from sqlglot.parsers.risingwave import RisingWaveParser
from sqlglot.tokenizer_core import Token, TokenType

from windowpane.sql.parse.match_clause import parse_final, parse_match

SESSION_GAP = "windowpane_session_gap"
"""Where an ORDER BY keeps the gap of the session frame behind it."""
UNKNOWN_TRUTH = "windowpane_unknown"
"""Marks the NULL that was written ``UNKNOWN``: of booleans only."""

_ENDS_A_TABLE = (TokenType.R_PAREN, TokenType.COMMA)
_NO_UNITS = ("PRECEDING", "FOLLOWING", "SUBSET", "DEFINE")
_SPECIAL_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "POSITION", "OVERLAY")


def _typed_literal(parser: RisingWaveParser, literal: exp.Expr, kind: exp.DataType) -> exp.Expr:
    """Return ``date '2024-01-05'::text`` with the type on the literal, before what is done to it; sqlglot puts it behind."""
    inside = literal
    while not isinstance(inside, exp.Literal):
        inside = inside.this
    typed = exp.Cast(this=inside.copy(), to=kind)
    if inside is literal:
        return typed
    inside.replace(typed)
    return literal


def _without_arguments(kind: type[exp.Func]) -> Callable[[list[exp.Expr]], exp.Expr]:
    """Return the parser of a name that standard SQL writes without parentheses, and Spark and RisingWave with them, too."""
    name = kind.sql_names()[0].lower()
    return lambda arguments: exp.Anonymous(this=name, expressions=arguments) if arguments else kind()


class Parser(RisingWaveParser):
    """Parses queries and expressions; statements around them are read by ``reader``."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {
        "CURRENT_TIMESTAMP": _without_arguments(exp.CurrentTimestamp),
        "CURRENT_DATE": _without_arguments(exp.CurrentDate),
        "LOCALTIMESTAMP": _without_arguments(exp.Localtimestamp),
    }
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: parse for name, parse in RisingWaveParser.FUNCTION_PARSERS.items() if name in _SPECIAL_SYNTAX
    } | {
        "FLOOR": lambda parser: parser._parse_rounded("floor"),
        "CEIL": lambda parser: parser._parse_rounded("ceil"),
    }

    UNARY_PARSERS: ClassVar[dict[Any, Any]] = RisingWaveParser.UNARY_PARSERS | {
        TokenType.RLIKE: lambda parser: parser.expression(exp.BitwiseNot(this=parser._parse_term()))
    }
    """``~`` binds less closely than ``+``, as every operator of PostgreSQL that is not one of arithmetic."""

    LAMBDAS: ClassVar[dict[Any, Any]] = {
        kind: parse for kind, parse in RisingWaveParser.LAMBDAS.items() if kind != TokenType.ARROW
    }
    """``f(j -> 'a')`` is a call of a key of JSON, and no function of its own."""

    QUERY_MODIFIER_PARSERS: ClassVar[dict[Any, Any]] = {
        kind: parse for kind, parse in RisingWaveParser.QUERY_MODIFIER_PARSERS.items() if kind != TokenType.MATCH_RECOGNIZE
    }
    """MATCH_RECOGNIZE is of one relation, and not of a query."""

    ID_VAR_TOKENS: ClassVar[set[TokenType]] = {*RisingWaveParser.ID_VAR_TOKENS, TokenType.MATCH_CONDITION}
    TABLE_ALIAS_TOKENS: ClassVar[set[TokenType]] = set(RisingWaveParser.TABLE_ALIAS_TOKENS) - {TokenType.MATCH_CONDITION}

    TYPE_LITERAL_PARSERS: ClassVar[dict[Any, Any]] = dict.fromkeys(exp.DType, _typed_literal)

    def _parse_table(self, *args: Any, joins: bool = False, **options: Any) -> exp.Expr | None:
        table = super()._parse_table(*args, **options)
        if table is not None and self._match(TokenType.MATCH_RECOGNIZE):
            table.set("match", parse_match(self))
        if table is not None and joins:
            for join in self._parse_joins():
                table.append("joins", join)
        return table

    def _parse_unary(self) -> exp.Expr | None:
        return parse_final(self) or super()._parse_unary()

    def _parse_rounded(self, name: str) -> exp.Expr:
        """Parse the arguments of FLOOR and CEIL, or Flink's ``x TO unit``, which is a call of ``floor_to`` and ``ceil_to``."""
        arguments = self._parse_csv(self._parse_lambda)
        if len(arguments) == 1 and self._match_text_seq("TO"):
            unit = self._parse_var(any_token=True)
            return exp.Anonymous(this=f"{name}_to", expressions=[exp.Literal.string(unit.name if unit else ""), *arguments])
        return exp.Anonymous(this=name, expressions=arguments)

    def _parse_csv(self, parse_method: Callable[[], Any], sep: TokenType = TokenType.COMMA) -> list[Any]:
        """Parse a list; sqlglot goes past a comma that has nothing on one side."""
        items = [parse_method()]
        while self._match(sep):
            items.append(parse_method())
            if items[-1] is None or items[-2] is None:
                self.raise_error("a comma stands between two things, and there is one")
        return [item for item in items if item is not None]

    def _parse_join(self, *args: Any, **options: Any) -> exp.Join | None:
        follows_comma = self._match(TokenType.COMMA, advance=False)
        join = super()._parse_join(*args, **options)
        if follows_comma and join is None:
            self.raise_error("a comma in FROM stands between two relations, and there is one")
        if join is not None and not follows_comma and not any(value for part, value in join.args.items() if part != "this"):
            self.raise_error("a JOIN needs ON, USING or NATURAL; CROSS JOIN has none")
        return join

    def _parse_cte(self) -> exp.CTE | exp.FunctionSpecification | None:
        before = self._tokens[self._index - 2] if self._index > 1 else None
        if self._prev.token_type == TokenType.WITH and before is not None and before.token_type in _ENDS_A_TABLE:
            self.raise_error("a query has one WITH; a comma stands between its tables")
        return super()._parse_cte()

    def _parse_using_identifiers(self) -> list[exp.Expr]:
        """Parse names of columns; of ``t.a`` sqlglot keeps the last word, and it takes one without parentheses."""
        return self._parse_wrapped_id_vars()

    def _parse_interval_span(self, this: exp.Expr, parse_function_unit: bool = True) -> exp.Interval:
        """Keep the text of an interval whole: sqlglot takes its first unit, and drops a clock behind it.

        A word of a clause behind it is no unit: ``RANGE INTERVAL '90' PRECEDING`` has seconds.
        """
        written = this.name if this and this.is_string else ""
        interval = super()._parse_interval_span(this, parse_function_unit)
        if str(interval.args.get("unit") or "").upper() in _NO_UNITS:
            self._retreat(self._index - 1)
            interval.set("unit", None)
        if exp.INTERVAL_STRING_RE.search(written):
            interval.set("this", exp.Literal.string(written))
            interval.set("unit", None)
        return interval

    def _parse_null(self) -> exp.Expr | None:
        """Parse NULL; UNKNOWN is a name but behind IS."""
        return exp.Null() if self._match(TokenType.NULL) else None

    def _parse_is_rhs(self, distinct: bool = False) -> exp.Expr | None:
        if not distinct and self._match(TokenType.UNKNOWN):
            unknown = exp.Null()
            unknown.meta[UNKNOWN_TRUTH] = True
            return unknown
        return super()._parse_is_rhs(distinct)

    def _parse_partition_and_order(self) -> tuple[list[exp.Expr], exp.Expr | None]:
        partition, order = super()._parse_partition_and_order()
        if self._match_text_seq("SESSION", "WITH", "GAP"):
            if order is None:
                self.raise_error("a session frame needs an ORDER BY")
            else:
                order.meta[SESSION_GAP] = self._parse_bitwise()
        return partition, order


class WindowpaneDialect(RisingWave):
    """The dialect of windowpane's SQL.

    Subscripts stay as written: the parser would take 1 from those that it knows to be integers, and from no others.
    """

    INDEX_OFFSET = 0

    class Tokenizer(RisingWave.Tokenizer):
        """Takes no statement for opaque text, Flink's backquotes for quotes of names; knows two words of FROM."""

        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]
        COMMANDS: ClassVar[set[TokenType]] = set()
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **RisingWave.Tokenizer.KEYWORDS,
            "MATCH_CONDITION": TokenType.MATCH_CONDITION,
            "MATCH_RECOGNIZE": TokenType.MATCH_RECOGNIZE,
        }

    Parser = Parser


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a text; positions are counted from line 1, column 1."""
    return WindowpaneDialect().tokenize(text)


def parse_tokens(tokens: list[Token], text: str) -> exp.Expr:
    trees = WindowpaneDialect().parser().parse(tokens, text)
    if len(trees) != 1 or trees[0] is None:
        raise ValueError("nothing to parse")
    return trees[0]


__all__ = ["SESSION_GAP", "Token", "TokenType", "WindowpaneDialect", "parse_tokens", "tokenize"]
