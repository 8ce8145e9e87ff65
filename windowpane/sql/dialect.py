"""RisingWave's dialect as sqlglot knows it, extended by session frames; functions stay names, for the binder to look up."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.risingwave import RisingWave
from sqlglot.parsers.risingwave import RisingWaveParser
from sqlglot.tokenizer_core import Token, TokenType

SESSION_GAP = "windowpane_session_gap"
"""Where an ORDER BY keeps the gap of the session frame behind it."""

_SPECIAL_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "POSITION", "OVERLAY")


class Parser(RisingWaveParser):
    """Parses queries and expressions; statements around them are read by ``reader``."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: parse for name, parse in RisingWaveParser.FUNCTION_PARSERS.items() if name in _SPECIAL_SYNTAX
    }

    def _parse_interval_span(self, this: exp.Expr, parse_function_unit: bool = True) -> exp.Interval:
        """Keep the text of an interval whole: sqlglot takes its first unit, and drops a clock behind it."""
        written = this.name if this and this.is_string else ""
        interval = super()._parse_interval_span(this, parse_function_unit)
        if exp.INTERVAL_STRING_RE.search(written):
            interval.set("this", exp.Literal.string(written))
            interval.set("unit", None)
        return interval

    def _parse_partition_and_order(self) -> tuple[list[exp.Expr], exp.Expr | None]:
        partition, order = super()._parse_partition_and_order()
        if self._match_text_seq("SESSION", "WITH", "GAP"):
            if order is None:
                self.raise_error("a session frame needs an ORDER BY")
            else:
                order.meta[SESSION_GAP] = self._parse_bitwise()
        return partition, order


class WindowpaneDialect(RisingWave):
    """The dialect of windowpane's SQL."""

    class Tokenizer(RisingWave.Tokenizer):
        """Takes no statement for opaque text, and Flink's backquotes for quotes of names."""

        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]
        COMMANDS: ClassVar[set[TokenType]] = set()

    Parser = Parser


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a text; positions are counted from line 1, column 1."""
    return WindowpaneDialect().tokenize(text)


def parse_tokens(tokens: list[Token], text: str) -> exp.Expr:
    """Return the query or expression that the tokens are."""
    trees = WindowpaneDialect().parser().parse(tokens, text)
    if len(trees) != 1 or trees[0] is None:
        raise ValueError("nothing to parse")
    return trees[0]


__all__ = ["SESSION_GAP", "Token", "TokenType", "WindowpaneDialect", "parse_tokens", "tokenize"]
