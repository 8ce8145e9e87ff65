"""The examples in docstrings: those with a result give that, the others are Python."""

from __future__ import annotations

import builtins
import doctest
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import windowpane

APART = ("windowpane.demo", "windowpane.bench", "windowpane.spark", "windowpane.__main__")
"""Rooms without public names, or ones that start Spark."""

PUBLIC = {name: getattr(windowpane, name) for name in windowpane.__all__ if not hasattr(builtins, name)} | {"wp": windowpane}
"""The names that users have."""


def modules_with_examples() -> list[str]:
    """Return the names of the modules that have an example, which their text says without an import."""
    found = pkgutil.walk_packages(windowpane.__path__, "windowpane.")
    specs = {each.name: each.module_finder.find_spec(each.name, None) for each in found if not each.name.startswith(APART)}
    return [name for name, spec in specs.items() if spec and spec.origin and ">>>" in Path(spec.origin).read_text()]


@pytest.mark.parametrize("name", modules_with_examples())
def test_an_example_gives_what_it_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = importlib.import_module(name)
    found = doctest.DocTestFinder(exclude_empty=True).find(module, globs=PUBLIC | vars(module))
    examples = [test for test in found if test.examples]
    for test in examples:
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
