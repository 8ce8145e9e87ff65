"""Text to statements: splits a script and reads the statements around queries; queries themselves are sqlglot's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from windowpane.errors import SqlSyntaxError, UnsupportedSqlError
from windowpane.sql.dml.literal_rows import cut_rows
from windowpane.sql.expressions.forms import REPLACING, row_values
from windowpane.sql.parse.cursor import Cursor
from windowpane.sql.parse.dialect import Token, TokenType, tokenize
from windowpane.sql.parse.positions import place_at
from windowpane.sql.parse.statements import (
    CreateIndex,
    CreateSink,
    CreateView,
    Delete,
    Describe,
    Drop,
    Explain,
    ExplainAnalyze,
    Flush,
    Insert,
    Query,
    Rename,
    SetParameter,
    Show,
    Statement,
    Update,
)
from windowpane.sql.parse.table_reader import read_table, take_small
from windowpane.sql.values import zone
from windowpane.sql.values.text_values import escapes_are_text

_TEXTS = (TokenType.STRING, TokenType.BYTE_STRING, TokenType.HEREDOC_STRING)
_COMMENT = re.compile("--[^\n\r]*")

_QUERY_WORDS = ("SELECT", "WITH", "VALUES", "(")
_SUPPORTED = (
    "CREATE TABLE / SOURCE / VIEW / MATERIALIZED VIEW / SINK / INDEX, INSERT, UPDATE, DELETE, SELECT, DROP, ALTER, SHOW, "
    "DESCRIBE, EXPLAIN, FLUSH, WAIT and SET"
)
_AT_ONCE = "Each statement is a transaction of its own, and views and sinks follow their input from CREATE on: leave it out."
_INSTEAD_OF = {
    **dict.fromkeys(("BEGIN", "START", "COMMIT", "END", "EXECUTE"), _AT_ONCE),
    **dict.fromkeys(
        ("SUBSCRIBE", "DECLARE"), "session.changelog(name) says what a FLUSH has changed in a view, and a sink gets it."
    ),
    "COPY": "CREATE TABLE ... WITH (connector = 'csv', path = '...') reads files, and INSERT takes rows.",
}


def read_script(text: str) -> list[Statement]:
    """Return the statements of a script."""
    return [read_statement(cursor) for cursor in split(text)]


def split(text: str) -> Iterator[Cursor]:
    statement: list[Token] = []
    without_rows, rows = cut_rows(text)
    for token in [*_tokens(without_rows), None]:
        if token is not None and token.token_type != TokenType.SEMICOLON:
            statement.append(token)
        elif statement:
            yield Cursor(statement, text, rows)
            statement = []


def _tokens(text: str) -> list[Token]:
    half = re.search("[\ud800-\udfff]", text)
    if half is not None:
        place = place_at(text, half.start())
        raise place.error(SqlSyntaxError, "half of a surrogate pair is no character.")
    try:
        tokens = tokenize(text)
        for token, following in pairwise(tokens):
            _check_neighbours(token, following, text)
        return [_as_text(token, text) for token in tokens]
    except TokenError as error:
        end = place_at(text, len(text))
        raise SqlSyntaxError(
            f"the text ends inside a quoted string, a name or a comment ({error})", end.line, end.column
        ) from None


def _check_neighbours(token: Token, following: Token, text: str) -> None:
    """Refuse two texts beside each other, unless they are one by the rule of standard SQL; sqlglot joins any."""
    if token.token_type not in _TEXTS or following.token_type not in _TEXTS:
        return
    between = _COMMENT.sub("", text[token.end + 1 : following.start])
    is_one = token.token_type != TokenType.HEREDOC_STRING and following.token_type == TokenType.STRING
    if not (is_one and between.isspace() and re.search("[\n\r]", between)):
        place = place_at(text, following.start)
        message = "two texts are one where the second, in plain quotes, begins on a later line. Join others with ||."
        raise place.error(SqlSyntaxError, message)


def _as_text(token: Token, text: str) -> Token:
    """Return a token; one between dollars is a text like others, and escapes of bytes must be those of text."""
    if token.token_type == TokenType.HEREDOC_STRING:
        token.token_type = TokenType.STRING
    if token.token_type == TokenType.BYTE_STRING and not escapes_are_text(text[token.start : token.end + 1]):
        place = place_at(text, token.start)
        raise place.error(SqlSyntaxError, "the bytes of the escapes in this text are no UTF-8, or one is zero.")
    return token


def read_statement(cursor: Cursor) -> Statement:
    try:
        statement = _read(cursor)
    except ParseError as error:
        raise _syntax_error(error, cursor) from None
    cursor.expect_end()
    return statement


def _syntax_error(error: ParseError, cursor: Cursor) -> SqlSyntaxError:
    found = error.errors[0] if error.errors else {}
    highlight = str(found.get("highlight") or "")
    line, column = int(found.get("line") or cursor.place.line), int(found.get("col") or cursor.place.column)
    message = str(found.get("description") or error).rstrip(".")
    if message.startswith("Required keyword"):
        message = "an expression is incomplete"
    near = f" near {highlight!r}" if highlight else ""
    return SqlSyntaxError(f"{message}{near}.", line, max(column - len(highlight) + 1, 1))


def _read(cursor: Cursor) -> Statement:
    if cursor.peek() in _QUERY_WORDS:
        return _query(cursor)
    reader = _READERS.get(cursor.peek())
    if reader is None:
        place = cursor.place
        message = f"{cursor.peek()} statements are not supported. {_INSTEAD_OF.get(cursor.peek(), f'There are {_SUPPORTED}.')}"
        raise place.error(UnsupportedSqlError, message)
    return reader(cursor)


def _query(cursor: Cursor) -> Query:
    start, closes = cursor.place, cursor.cut_emit_clause()
    return Query(start, cursor.text, cursor.parse_rest(), closes)


def _create(cursor: Cursor) -> Statement:
    cursor.expect("CREATE")
    replaces = cursor.take("OR", "REPLACE")
    if replaces and cursor.peek() != "MATERIALIZED":
        raise cursor.unsupported(
            f"CREATE OR REPLACE {cursor.peek()}", "CREATE OR REPLACE MATERIALIZED VIEW is; DROP others first."
        )
    text = f"CREATE {cursor.text_after()}"
    if cursor.take("MATERIALIZED"):
        cursor.expect("VIEW")
        view = _view(cursor, text if replaces else cursor.text, materialized=True)
        if replaces and view.if_not_exists:
            raise cursor.syntax_error("a view is replaced, or made if there is none of its name: leave out IF NOT EXISTS.")
        return replace(view, replaces=replaces)
    if cursor.take("VIEW"):
        return _view(cursor, cursor.text, materialized=False)
    if cursor.take("SINK"):
        return _sink(cursor)
    if cursor.take("INDEX"):
        return _index(cursor)
    if cursor.peek() in ("TABLE", "SOURCE"):
        return read_table(cursor)
    if cursor.peek() in ("TEMPORARY", "TEMP"):
        kept = "Leave the word out; what a session makes is dropped with it where its store is ':memory:', and else with DROP."
        raise cursor.unsupported(f"CREATE {cursor.peek()}", kept)
    if cursor.peek() == "STREAM":
        raise cursor.unsupported(
            "CREATE STREAM", "CREATE SOURCE is, and CREATE MATERIALIZED VIEW name AS SELECT for a stream of a query."
        )
    raise cursor.unsupported(f"CREATE {cursor.peek()}", "CREATE TABLE, SOURCE, VIEW, MATERIALIZED VIEW, SINK and INDEX are.")


def _index(cursor: Cursor) -> CreateIndex:
    guarded = cursor.take("IF", "NOT", "EXISTS")
    name = cursor.name()
    cursor.expect("ON")
    relation, items = cursor.name(), cursor.index_columns()
    included = cursor.names() if cursor.take("INCLUDE") else ()
    place = cursor.place
    spread = cursor.index_columns() if cursor.take("DISTRIBUTED", "BY") else []
    if spread != items[: len(spread)]:
        message = f"DISTRIBUTED BY takes what an index begins with, here {', '.join(text for _, text in items)}."
        raise place.error(SqlSyntaxError, message)
    columns = tuple(column for column, _ in items) + included
    return CreateIndex(*cursor.written, name, relation, columns, guarded)


def _view(cursor: Cursor, text: str, *, materialized: bool) -> CreateView:
    guarded = cursor.take("IF", "NOT", "EXISTS")
    name = cursor.name()
    columns = cursor.names() if cursor.peek() == "(" else ()
    small, options = take_small(cursor, cursor.options())
    if options:
        raise cursor.unsupported(f"the option {next(iter(options))!r} of a view", "A view takes the option small alone.")
    cursor.expect("AS")
    closes = cursor.cut_emit_clause()
    if closes and not materialized:
        raise cursor.unsupported("EMIT ON WINDOW CLOSE on a plain view", "Use CREATE MATERIALIZED VIEW.")
    return CreateView(cursor.written[0], text, name, cursor.parse_rest(), materialized, closes, columns, guarded, small)


def rows_of(cursor: Cursor) -> str:
    """Take ``LATE ROWS OF`` or ``MALFORMED ROWS OF``, and return its first word, empty where neither is next."""
    return next((word for word in ("LATE", "MALFORMED") if cursor.take(word, "ROWS", "OF")), "")


def _sink(cursor: Cursor) -> CreateSink:
    guarded = cursor.take("IF", "NOT", "EXISTS")
    name = cursor.name()
    if cursor.peek() == "INTO":
        raise cursor.unsupported(
            "CREATE SINK INTO a table", "Read the query itself as a materialized view, several of them by UNION ALL."
        )
    if cursor.take("FROM"):
        rows = rows_of(cursor)
        source = cursor.name()
        options = {**cursor.options(), **cursor.format_options()}
        return CreateSink(*cursor.written, name, source, None, False, options, guarded, rows)
    cursor.expect("AS")
    words = cursor.cut_format()
    options = {**cursor.cut_options(), **words}
    closes = cursor.cut_emit_clause()
    return CreateSink(*cursor.written, name, None, cursor.parse_rest(), closes, options, guarded)


_KINDS = ("MATERIALIZED VIEW", "VIEW", "TABLE", "SOURCE", "SINK", "INDEX")


_ONLY_RENAME = (
    "RENAME TO is, and ALTER MATERIALIZED VIEW name AS. To change columns of a table, create another one and INSERT INTO it "
    "SELECT from this one."
)


def _drop(cursor: Cursor) -> Drop:
    cursor.expect("DROP")
    for kind in _KINDS:
        if cursor.take(*kind.split()):
            guarded = cursor.take("IF", "EXISTS")
            name = cursor.name()
            cascade = cursor.take("CASCADE")
            cursor.take("RESTRICT")
            return Drop(*cursor.written, kind.lower(), name, guarded, cascade)
    raise cursor.unsupported(f"DROP {cursor.peek()}", "DROP TABLE, SOURCE, VIEW, MATERIALIZED VIEW, SINK and INDEX are.")


def _alter(cursor: Cursor) -> Rename | CreateView:
    cursor.expect("ALTER")
    kind = next((kind for kind in _KINDS if cursor.take(*kind.split())), None)
    if kind is None:
        raise cursor.unsupported(f"ALTER {cursor.peek()}", f"ALTER {', '.join(_KINDS)} name RENAME TO is.")
    before = len(cursor.text_before())
    name = cursor.name()
    written = cursor.text_before()[before:].strip()
    if kind == "MATERIALIZED VIEW" and cursor.take("AS"):
        made_as = f"CREATE MATERIALIZED VIEW {written} AS {cursor.text_after()}"
        closes = cursor.cut_emit_clause()
        query = cursor.parse_rest()
        return CreateView(cursor.written[0], made_as, name, query, True, closes, replaces=True, must_exist=True)
    if not cursor.take("RENAME", "TO"):
        raise cursor.unsupported(f"ALTER {kind} {cursor.peek()} {cursor.peek(1)}", _ONLY_RENAME)
    return Rename(*cursor.written, kind.lower(), name, cursor.name())


def _insert(cursor: Cursor) -> Insert:
    cursor.expect("INSERT")
    cursor.expect("INTO")
    table = cursor.name()
    columns = cursor.names() if cursor.peek() == "(" and cursor.peek(1) not in ("SELECT", "VALUES", "WITH", "(") else ()
    query = cursor.parse_until("ON CONFLICT", "RETURNING")
    if cursor.peek() == "ON":
        instead = "The table has the rule: CREATE TABLE ... ON CONFLICT DO NOTHING, or DO UPDATE IF NOT NULL."
        raise cursor.unsupported("ON CONFLICT of an INSERT", instead)
    return Insert(*cursor.written, table, columns, query, _returning(cursor), cursor.literal_rows())


def _returning(cursor: Cursor) -> exp.Select | None:
    return cursor.parse_items() if cursor.peek() == "RETURNING" else None


def _update(cursor: Cursor) -> Update:
    cursor.expect("UPDATE")
    table = cursor.name()
    cursor.expect("SET")
    if cursor.leads_to("FROM"):
        raise cursor.unsupported("UPDATE ... FROM", REPLACING)
    return Update(*cursor.written, table, _assignments(cursor), _where(cursor), _returning(cursor))


def _assignments(cursor: Cursor) -> tuple[tuple[str, exp.Expr], ...]:
    assignments = _assignment(cursor)
    while cursor.take(","):
        assignments += _assignment(cursor)
    return assignments


def _assignment(cursor: Cursor) -> tuple[tuple[str, exp.Expr], ...]:
    """Return ``a = value``, or the parts of ``(a, b) = (one, other)``."""
    is_row = cursor.peek() == "("
    names = cursor.names() if is_row else (cursor.name(),)
    cursor.expect("=")
    tree = cursor.parse_until(",", "WHERE", "RETURNING")
    if not is_row:
        return ((names[0], tree),)
    values = [tree.this] if isinstance(tree, exp.Paren) else row_values(tree)
    if values is None:
        raise cursor.unsupported("a row from what is no list of values", "Write SET (a, b) = (one, other).")
    if len(values) != len(names):
        raise cursor.syntax_error(f"{len(names)} columns are set to {len(values)} values.")
    return tuple(zip(names, values, strict=True))


def _where(cursor: Cursor) -> exp.Expr | None:
    return cursor.parse_until("RETURNING") if cursor.take("WHERE") else None


def _delete(cursor: Cursor) -> Delete:
    cursor.expect("DELETE")
    cursor.expect("FROM")
    table = cursor.name()
    if cursor.peek() == "USING":
        raise cursor.unsupported("DELETE ... USING", "Write WHERE column IN (SELECT ...), or WHERE EXISTS (SELECT ...).")
    return Delete(*cursor.written, table, _where(cursor), _returning(cursor))


def _explain(cursor: Cursor) -> Explain | ExplainAnalyze:
    cursor.expect("EXPLAIN")
    if cursor.take("ANALYZE"):
        if not cursor.take("MATERIALIZED", "VIEW"):
            raise cursor.unsupported(
                "EXPLAIN ANALYZE of a statement",
                "EXPLAIN ANALYZE MATERIALIZED VIEW name says what the last batch of a view cost.",
            )
        return ExplainAnalyze(*cursor.written, cursor.name())
    if cursor.peek() == "(":
        raise cursor.unsupported("options of EXPLAIN", "Write EXPLAIN before the statement.")
    return Explain(*cursor.written, _read(cursor))


def _show(cursor: Cursor) -> Statement:
    cursor.expect("SHOW")
    if cursor.take("COLUMNS", "FROM"):
        return Describe(*cursor.written, cursor.name())
    return Show(*cursor.written, cursor.rest_text())


def _describe(cursor: Cursor) -> Describe:
    cursor.skip()
    return Describe(*cursor.written, cursor.name())


def _flush(cursor: Cursor) -> Flush:
    cursor.skip()
    return Flush(*cursor.written)


def _set(cursor: Cursor) -> SetParameter:
    cursor.expect("SET")
    name, is_zone = "timezone", cursor.take("TIME", "ZONE")
    if not is_zone:
        name = cursor.name()
        if not cursor.take("="):
            cursor.expect("TO")
    if name.lower() != "timezone":
        return SetParameter(*cursor.written, name, cursor.rest_text().strip("'"))
    found = zone.known(cursor.peek_text().strip("'"))
    if found is None:
        raise cursor.unsupported(f"the time zone {cursor.peek_text()!r}", "Write a name such as 'Europe/Zurich', or UTC.")
    cursor.rest_text()
    return SetParameter(*cursor.written, "timezone", found)


_READERS: dict[str, Callable[[Cursor], Statement]] = {
    "CREATE": _create,
    "ALTER": _alter,
    "DROP": _drop,
    "INSERT": _insert,
    "UPDATE": _update,
    "DELETE": _delete,
    "EXPLAIN": _explain,
    "SHOW": _show,
    "DESCRIBE": _describe,
    "DESC": _describe,
    "FLUSH": _flush,
    "WAIT": _flush,
    "SET": _set,
}
