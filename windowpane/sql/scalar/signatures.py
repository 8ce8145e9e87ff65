"""What functions take: how many arguments, of which types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from typing import Concatenate, ParamSpec, TypeVar

from windowpane.errors import MistakeError
from windowpane.sql.expressions.expr import Expr, MismatchError, build, convert, counted, places
from windowpane.sql.expressions.types import BIGINT, DOUBLE, INTEGER, UNKNOWN, SqlType, is_instant, is_integer, is_number

Builder = Callable[[Sequence[Expr]], Expr]
Settings = ParamSpec("Settings")
Result = TypeVar("Result")


def builder(
    function: Callable[Concatenate[Sequence[Expr], Settings], Result],
) -> Callable[Settings, Callable[[Sequence[Expr]], Result]]:
    """Return a function of settings, which returns a function of arguments in SQL."""
    return lambda *args, **kwargs: lambda arguments: function(arguments, *args, **kwargs)


def taking(function: Callable[..., Expr]) -> Builder:
    """Return a function of some expressions as one of arguments in SQL, whose number is checked; it takes as many as it names."""
    named = signature(function).parameters.values()
    least = sum(each.default is Parameter.empty for each in named)

    def bind(arguments: Sequence[Expr]) -> Expr:
        counted(arguments, least, len(named))
        return function(*arguments)

    return bind


def fixed(result: SqlType, template: str, *kinds: SqlType, least: int | None = None) -> Builder:
    """Return a function of arguments of fixed types; those behind ``least`` may be left out."""
    needed = len(kinds) if least is None else least

    def bind(arguments: Sequence[Expr]) -> Expr:
        counted(arguments, needed, len(kinds))
        given = [accepted(argument, kind) for argument, kind in zip(arguments, kinds, strict=False)]
        return build(result, template.replace("{*}", places(len(given))), *given)

    return bind


def by_count(*builders: Builder) -> Builder:
    """Return a function that is another one for each number of arguments: the last that takes them."""

    def bind(arguments: Sequence[Expr]) -> Expr:
        problem: MismatchError | None = None
        for builder in builders:
            try:
                return builder(arguments)
            except MismatchError as error:
                problem = problem or error
        if problem is None:
            raise MistakeError("a function has a form")
        raise problem

    return bind


def accepted(argument: Expr, kind: SqlType) -> Expr:
    """Return an argument as the type that a function takes."""
    if argument.type == kind or argument.type == UNKNOWN:
        return convert(argument, kind)
    widens = is_number(argument.type) and kind == DOUBLE
    widens = widens or (is_integer(argument.type) and kind in (BIGINT, INTEGER))
    widens = widens or (is_instant(argument.type) and is_instant(kind))
    if not widens:
        raise MismatchError(f"it takes {kind}, not {argument.type}. Cast the argument.")
    return convert(argument, kind)
