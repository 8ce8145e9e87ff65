"""Flink's spelling of window table functions, turned into calls that every SQL parser reads.

``TABLE(TUMBLE(TABLE bids, DESCRIPTOR(at), ...))`` becomes ``TUMBLE(bids, DESCRIPTOR(at), ...)``, and
``SESSION(TABLE bids PARTITION BY (a, b), ..., CLOSE WHEN c = 1)`` becomes ``SESSION(bids, PARTITION_BY(a, b), ...,
CLOSE_WHEN(c = 1))``.
"""

from __future__ import annotations

from windowpane.sql.parse.dialect import Token, TokenType

WINDOW_FUNCTIONS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")


def rewrite_table_calls(tokens: list[Token]) -> list[Token]:
    """Return the tokens with Flink's spelling rewritten; each keeps its place in the text."""
    rewritten: list[Token] = []
    dropped: set[int] = set()
    closes = -1  # where the parentheses of a SESSION end that has a CLOSE WHEN
    for index, token in enumerate(tokens):
        if index in dropped:
            continue
        if _is(tokens, index, "TABLE", "(") and _text(tokens, index + 2) in WINDOW_FUNCTIONS:
            dropped |= {index + 1, _closing_of(tokens, index + 2)}
        elif _text(tokens, index) == "TABLE" and _text(tokens, index - 1) in ("(", ">", "=>"):
            continue
        elif _text(tokens, index) == "PARTITION BY" and _is_argument(tokens, index):
            partition, end = _partition(tokens, index)
            rewritten += partition
            dropped |= set(range(index, end))
        elif _is(tokens, index, "CLOSE", "WHEN") and _is_argument(tokens, index):
            comma = [] if _text(tokens, index - 1) == "," else [_like(token, TokenType.COMMA, ",")]
            rewritten += [*comma, _like(token, TokenType.VAR, "CLOSE_WHEN"), _like(token, TokenType.L_PAREN, "(")]
            dropped.add(index + 1)
            closes = _closing_of(tokens, index)
        elif index == closes:
            rewritten += [_like(token, TokenType.R_PAREN, ")"), token]
        elif _text(tokens, index) == "SESSION" and _text(tokens, index + 1) == "(":
            rewritten.append(_like(token, TokenType.VAR, token.text))
        else:
            rewritten.append(token)
    return rewritten


def _partition(tokens: list[Token], index: int) -> tuple[list[Token], int]:
    """Return the tokens of ``, PARTITION_BY(columns)``, and where the columns end."""
    here, at = tokens[index], index + 1
    if _text(tokens, at) == "(":
        end = _closing_of(tokens, at + 1) + 1
        columns = tokens[at + 1 : end - 1]
    else:
        end = _end_of_columns(tokens, at)
        columns = tokens[at:end]
    opening = [_like(here, TokenType.COMMA, ","), _like(here, TokenType.VAR, "PARTITION_BY"), _like(here, TokenType.L_PAREN, "(")]
    return [*opening, *columns, _like(here, TokenType.R_PAREN, ")")], end


def _end_of_columns(tokens: list[Token], at: int) -> int:
    """Return where columns without parentheses end: before ``, DESCRIPTOR`` or ``, TIMECOL =>``, else behind the first."""
    closing = at
    while closing < len(tokens) and _text(tokens, closing) != ")":
        is_named = _text(tokens, closing + 2) in ("=>", "=")
        if _text(tokens, closing) == "," and (is_named or _text(tokens, closing + 1) == "DESCRIPTOR"):
            return closing
        closing += 1
    return at + 1


def _is_argument(tokens: list[Token], index: int) -> bool:
    """Whether a place is directly inside the parentheses of SESSION."""
    depth = 0
    for position in range(index - 1, 0, -1):
        depth += {"(": -1, ")": 1}.get(_text(tokens, position), 0)
        if depth < 0:
            return _text(tokens, position - 1) == "SESSION"
    return False


def _closing_of(tokens: list[Token], index: int) -> int:
    """Return where the parentheses end that a place is directly inside of."""
    depth = 0
    for position in range(index, len(tokens)):
        depth += {"(": 1, ")": -1}.get(_text(tokens, position), 0)
        if depth < 0:
            return position
    return len(tokens)


def _is(tokens: list[Token], index: int, *words: str) -> bool:
    return all(_text(tokens, index + ahead) == word for ahead, word in enumerate(words))


def _text(tokens: list[Token], index: int) -> str:
    if not 0 <= index < len(tokens) or tokens[index].token_type in (TokenType.IDENTIFIER, TokenType.STRING):
        return ""
    return " ".join(tokens[index].text.upper().split())


def _like(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end)
