"""The examples in docstrings: those with a result give that, the others are Python."""

from __future__ import annotations

import builtins
import doctest
import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import pytest

import windowpane

APART = ("windowpane.demo", "windowpane.bench", "windowpane.spark", "windowpane.__main__")
"""Rooms without public names, or ones that start Spark."""

PUBLIC = {name: getattr(windowpane, name) for name in windowpane.__all__ if not hasattr(builtins, name)} | {"wp": windowpane}
"""The names that users have."""


def written() -> Iterator[doctest.DocTest]:
    """Yield the examples of each docstring that has some."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    for found in pkgutil.walk_packages(windowpane.__path__, "windowpane."):
        if not found.name.startswith(APART):
            module = importlib.import_module(found.name)
            yield from (test for test in finder.find(module, globs=PUBLIC | vars(module)) if test.examples)


@pytest.mark.parametrize("test", [pytest.param(test, id=test.name) for test in written()])
def test_an_example_gives_what_it_says(test: doctest.DocTest, capsys: pytest.CaptureFixture[str]) -> None:
    for example in test.examples:
        compile(example.source, test.name, "single")
    if any(example.want for example in test.examples):
        failed, _ = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
        assert failed == 0, capsys.readouterr().out


@pytest.mark.parametrize("name", [name for name, value in PUBLIC.items() if inspect.isclass(value) or inspect.isfunction(value)])
def test_what_users_import_says_what_it_is(name: str) -> None:
    value = getattr(windowpane, name)
    own = value.__doc__ or ""
    assert own
    assert not own.startswith(f"{name}("), "dataclasses make a docstring of their fields"
    if inspect.isclass(value):
        members = [
            each for each, part in vars(value).items() if not each.startswith("_") and callable(getattr(part, "fget", part))
        ]
        assert [each for each in members if not inspect.getdoc(getattr(value, each))] == []
