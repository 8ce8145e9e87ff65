"""Places in a text: every refusal says where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from windowpane.errors import SqlError, SqlNameError, SqlSyntaxError, SqlTypeError, UnsupportedSqlError

E = TypeVar("E", bound=SqlError)


@dataclass(frozen=True)
class Place:
    """A line and a column, counted from 1."""

    line: int
    column: int

    def error(self, kind: type[E], message: str) -> E:
        """Return a refusal of what stands here."""
        return kind(message, self.line, self.column)


def place_at(text: str, offset: int) -> Place:
    before = text[:offset]
    return Place(before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


def shown(tree: exp.Expr) -> str:
    """Return the beginning of a parsed expression as SQL, for messages."""
    return tree.sql(dialect="risingwave", unsupported_level=ErrorLevel.IGNORE)[:60]


class Text:
    def __init__(self, text: str) -> None:
        self.text = text

    def place(self, tree: exp.Expr | None) -> Place:
        """Return the place of the first word of ``tree`` that has one; the beginning if none has."""
        starts = [] if tree is None else [node.meta["start"] for node in tree.walk() if "start" in node.meta]
        return place_at(self.text, min(starts, default=0))

    def unsupported(self, tree: exp.Expr | None, construct: str, instead: str) -> SqlError:
        return self.place(tree).error(UnsupportedSqlError, f"{construct} is not supported. {instead}")

    def name_error(self, tree: exp.Expr | None, message: str) -> SqlError:
        return self.place(tree).error(SqlNameError, message)

    def type_error(self, tree: exp.Expr | None, message: str) -> SqlError:
        return self.place(tree).error(SqlTypeError, message)

    def syntax_error(self, tree: exp.Expr | None, message: str) -> SqlError:
        return self.place(tree).error(SqlSyntaxError, message)
