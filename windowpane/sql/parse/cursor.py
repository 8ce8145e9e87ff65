"""A cursor over the tokens of one statement; hands parts of it to sqlglot, positions kept."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from windowpane.errors import SqlError, SqlSyntaxError, UnsupportedSqlError
from windowpane.sql.dml.literal_rows import LiteralRows
from windowpane.sql.parse.dialect import Token, TokenType, parse_tokens
from windowpane.sql.parse.known_parts import refuse_unread
from windowpane.sql.parse.positions import Place, Text, place_at
from windowpane.sql.parse.table_calls import rewrite_table_calls

_NAMED = (TokenType.IDENTIFIER,)
_ORDER_OF_INDEX = ("ASC", "DESC", "NULLS", "FIRST", "LAST")
_EMIT = ("EMIT", "ON", "WINDOW", "CLOSE")
_EMIT_OF_KSQL = {
    ("EMIT", "CHANGES"): "Leave it out: a materialized view takes every change with each FLUSH.",
    ("EMIT", "FINAL"): "EMIT ON WINDOW CLOSE is: each row once, when its window has closed.",
}


class Cursor:
    def __init__(self, tokens: list[Token], text: str, rows: Mapping[int, LiteralRows] | None = None) -> None:
        """Stand before the first token; ``text`` is the whole script, ``rows`` what was cut out of it (``cut_rows``)."""
        self._tokens, self._rows = tokens, rows or {}
        self._script = text
        self._at = 0
        self.text = text[tokens[0].start : tokens[-1].end + 1]
        self.written = place_at(text, tokens[0].start), self.text

    @property
    def place(self) -> Place:
        """The place of the next token, or of the end of the statement."""
        token = self._tokens[min(self._at, len(self._tokens) - 1)]
        return place_at(self._script, token.start if self._at < len(self._tokens) else token.end + 1)

    def literal_rows(self) -> LiteralRows | None:
        """Return the rows that were cut out of the statement."""
        first, last = self._tokens[0].start, self._tokens[-1].end
        return next((rows for start, rows in self._rows.items() if first <= start <= last), None)

    @property
    def span(self) -> tuple[int, int]:
        return self._tokens[0].start, self._tokens[-1].end + 1

    def text_before(self) -> str:
        last = self._tokens[self._at - 1] if self._at else None
        return self._script[self._tokens[0].start : last.end + 1] if last else ""

    def text_after(self) -> str:
        left = self._tokens[self._at :]
        return self._script[left[0].start : left[-1].end + 1] if left else ""

    def peek(self, ahead: int = 0) -> str:
        """Return a word in upper case, "" at the end and for quoted names."""
        index = self._at + ahead
        return _word(self._tokens[index]) if index < len(self._tokens) else ""

    def peek_text(self) -> str:
        """Return the next token as written, "" at the end."""
        return str(self._tokens[self._at].text) if self._at < len(self._tokens) else ""

    def skip(self) -> Token:
        if self._at >= len(self._tokens):
            raise self.syntax_error("something is missing at the end of the statement.")
        token = self._tokens[self._at]
        self._at += 1
        return token

    def take(self, *words: str) -> bool:
        if all(self.peek(ahead) == word for ahead, word in enumerate(words)):
            self._at += len(words)
            return True
        return False

    def expect(self, word: str) -> None:
        if not self.take(word):
            raise self.syntax_error(f"expected {word}, found {self._found()}.")

    def expect_end(self) -> None:
        if self._at < len(self._tokens):
            raise self.syntax_error(f"expected the end of the statement, found {self._found()}.")

    def name(self) -> str:
        """Return a name: in lower case unless quoted; a schema before it must be ``public``."""
        name = self._one_name()
        while self.take("."):
            if name != "public":
                raise self.unsupported(f"the schema {name!r}", "There is one schema, public.")
            name = self._one_name()
        return name

    def _one_name(self) -> str:
        if self._at >= len(self._tokens):
            raise self.syntax_error("expected a name, found the end of the statement.")
        token = self._tokens[self._at]
        if token.token_type == TokenType.STRING or not (token.token_type in _NAMED or token.text[:1].isidentifier()):
            raise self.syntax_error(f"expected a name, found {self._found()}.")
        self._at += 1
        return token.text if token.token_type in _NAMED else token.text.lower()

    def names(self) -> tuple[str, ...]:
        self.expect("(")
        names = [self.name()]
        while self.take(","):
            names.append(self.name())
        self.expect(")")
        return tuple(names)

    def index_columns(self) -> list[tuple[str, str]]:
        """Return the items of an index, each with the column it begins with; the order of each is ignored."""
        items: list[tuple[str, str]] = []
        self.expect("(")
        while not items or self.take(","):
            column = self.name()
            behind = [token.text for token in self.until(",", ")") if _word(token) not in _ORDER_OF_INDEX]
            items.append((column, " ".join([column, *behind])))
        self.expect(")")
        return items

    def options(self) -> dict[str, str]:
        """Return ``WITH (name = value, ...)`` if it is next."""
        if not self.take("WITH"):
            return {}
        if self.peek() != "(":
            self.expect("(")
        return self._listed_options()

    def _listed_options(self) -> dict[str, str]:
        """Return ``(name = value, ...)`` if it is next."""
        options: dict[str, str] = {}
        if not self.take("(") or self.take(")"):
            return options
        while not options or self.take(","):
            name = self.skip().text
            while self.peek() in (".", "-"):
                name += self.skip().text + self.skip().text
            self.expect("=")
            options[name.lower()] = self.skip().text
        self.expect(")")
        return options

    def format_options(self) -> dict[str, str]:
        """Return ``FORMAT word [ENCODE word [(name = value, ...)]] [KEY ENCODE word]`` as options, if it is next."""
        options: dict[str, str] = {}
        for words, option in ((("FORMAT",), "format"), (("ENCODE",), "encode"), (("KEY", "ENCODE"), "key_encode")):
            if self.take(*words):
                options[option] = self.skip().text.lower()
                options |= self._listed_options()
        return options

    def cut_emit_clause(self) -> bool:
        """Take ``EMIT ON WINDOW CLOSE`` off the end, and say whether the statement had it."""
        if tuple(_word(token) for token in self._tokens[-4:]) == _EMIT:
            del self._tokens[-4:]
            return True
        before, *last = ("", "", "", *(_word(token) for token in self._tokens))[-3:]
        if tuple(last) in _EMIT_OF_KSQL and before not in ("FROM", "JOIN", ",", "AS", "SELECT"):
            self._at = len(self._tokens) - 2
            raise self.unsupported(" ".join(last), _EMIT_OF_KSQL[last[0], last[1]])
        return False

    def cut_format(self) -> dict[str, str]:
        """Take ``FORMAT ...`` behind ``WITH (...)`` off the end of a statement, as options."""
        for index in range(max(len(self._tokens) - 7, 1), len(self._tokens) - 1):
            if _word(self._tokens[index]) == "FORMAT" and _word(self._tokens[index - 1]) == ")":
                tail = Cursor(self._tokens[index:], self._script)
                del self._tokens[index:]
                return tail.format_options()
        return {}

    def cut_options(self) -> dict[str, str]:
        """Take ``WITH (...)`` off the end of a statement."""
        if _word(self._tokens[-1]) != ")":
            return {}
        opening = self._opening_of(len(self._tokens) - 1)
        if _word(self._tokens[opening - 1]) != "WITH" or _word(self._tokens[opening + 2]) not in ("=", "."):
            return {}
        tail = Cursor(self._tokens[opening - 1 :], self._script)
        del self._tokens[opening - 1 :]
        return tail.options()

    def _opening_of(self, closing: int) -> int:
        depth = 0
        for index in range(closing, -1, -1):
            depth += {")": 1, "(": -1}.get(_word(self._tokens[index]), 0)
            if depth == 0:
                return index
        raise self.syntax_error("a parenthesis is closed that was never opened.")

    def until(self, *words: str) -> list[Token]:
        """Return the tokens before the first of ``words``, or phrases, outside parentheses, or all further ones."""
        start, depth = self._at, 0
        while self._at < len(self._tokens):
            word = self.peek()
            if depth == 0 and (word in words or self._begins_a_phrase(words)):
                break
            depth += {"(": 1, ")": -1, "[": 1, "]": -1}.get(word, 0)
            self._at += 1
        return self._tokens[start : self._at]

    def leads_to(self, word: str) -> bool:
        """Whether ``word`` follows, outside parentheses; that of IS DISTINCT FROM does not count."""
        depth, before = 0, ""
        for token in self._tokens[self._at :]:
            found = _word(token)
            if found == word and depth == 0 and before != "DISTINCT":
                return True
            depth += {"(": 1, ")": -1, "[": 1, "]": -1}.get(found, 0)
            before = found
        return False

    def _begins_a_phrase(self, words: tuple[str, ...]) -> bool:
        phrases = [word.split() for word in words if " " in word]
        return any(all(self.peek(ahead) == word for ahead, word in enumerate(phrase)) for phrase in phrases)

    def parse_until(self, *words: str) -> exp.Expr:
        """Return the text before the first of ``words`` outside parentheses, parsed."""
        return self._parse(self.until(*words))

    def parse_items(self) -> exp.Select:
        """Return the select list behind the next word, parsed as if the word were SELECT."""
        word = self.skip()
        select = Token(TokenType.SELECT, "SELECT", word.line, word.col, word.start, word.end)
        items = self._parse([select, *self.until()])
        if not isinstance(items, exp.Select) or any(items.args.get(part) for part in ("from_", "where", "group")):
            raise self.syntax_error(f"{word.text.upper()} is followed by a list of expressions only.")
        return items

    def parse_rest(self) -> exp.Expr:
        return self._parse(self.until())

    def rest_text(self) -> str:
        """Return the words of the rest of the statement."""
        return " ".join(token.text for token in self.until()).strip()

    def _parse(self, tokens: list[Token]) -> exp.Expr:
        if not tokens:
            raise self.syntax_error(f"expected an expression, found {self._found()}.")
        self._refuse_unread(tokens)
        tree = parse_tokens(rewrite_table_calls(tokens), self._script)
        refuse_unread(tree, Text(self._script))
        return tree

    def _refuse_unread(self, tokens: list[Token]) -> None:
        """Refuse what the parser would call an error of syntax, or not see."""
        words = [_word(token) for token in tokens]
        for index, token in enumerate(tokens):
            for phrase, message in _UNREAD.items():
                if words[index : index + len(phrase)] == list(phrase):
                    place = place_at(self._script, token.start)
                    raise place.error(UnsupportedSqlError, message)

    def _found(self) -> str:
        return repr(self._tokens[self._at].text) if self._at < len(self._tokens) else "the end of the statement"

    def syntax_error(self, message: str) -> SqlError:
        return self.place.error(SqlSyntaxError, message)

    def unsupported(self, construct: str, instead: str) -> SqlError:
        return self.place.error(UnsupportedSqlError, f"{construct} is not supported. {instead}")


_UNREAD = {
    ("AS", "CHANGELOG", "FROM"): (
        "AS CHANGELOG FROM is not supported. session.changelog(name) says what a flush has changed in a view."
    ),
    ("WINDOW", "TUMBLING", "("): (
        "WINDOW TUMBLING is not supported. TUMBLE(t, at, INTERVAL '1 hour') in FROM, and GROUP BY window_start, are."
    ),
    ("WINDOW", "HOPPING", "("): (
        "WINDOW HOPPING is not supported. HOP(t, at, INTERVAL '5 minutes', INTERVAL '1 hour') in FROM, the slide first, "
        "and GROUP BY window_start are."
    ),
    ("WINDOW", "SESSION", "("): (
        "WINDOW SESSION is not supported. SESSION(t PARTITION BY (k), DESCRIPTOR(at), INTERVAL '5 minutes') in FROM, "
        "and GROUP BY k, window_start, window_end are."
    ),
}
"""Constructs that are refused by their words, and what is said of them."""


def _word(token: Token) -> str:
    return "" if token.token_type in (TokenType.IDENTIFIER, TokenType.STRING) else " ".join(token.text.upper().split())
