"""Places in a text: every refusal says where."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from windowpane.errors import SqlError, SqlNameError, SqlSyntaxError, SqlTypeError, UnsupportedSqlError


@dataclass(frozen=True)
class Place:
    """A line and a column, counted from 1."""

    line: int
    column: int


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
        place = self.place(tree)
        return UnsupportedSqlError(f"{construct} is not supported. {instead}", place.line, place.column)

    def name_error(self, tree: exp.Expr | None, message: str) -> SqlError:
        place = self.place(tree)
        return SqlNameError(message, place.line, place.column)

    def type_error(self, tree: exp.Expr | None, message: str) -> SqlError:
        place = self.place(tree)
        return SqlTypeError(message, place.line, place.column)

    def syntax_error(self, tree: exp.Expr | None, message: str) -> SqlError:
        place = self.place(tree)
        return SqlSyntaxError(message, place.line, place.column)
