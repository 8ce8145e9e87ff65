"""The rooms of the package: small, reached from what users import, and without circles."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from functools import cache
from pathlib import Path

import grimp
import pytest

import windowpane as wp
from windowpane import windowing

PACKAGE = Path(__file__).resolve().parents[1] / "windowpane"
MOST = 15
"""Modules beside each other that a reader can take in."""

MOST_METHODS = 20
"""Methods of a class beside its properties that a reader can take in."""
LARGE = {
    "CalledSessions": 22,
    "Cursor": 33,
    "Definitions": 37,
    "EmbeddedRunner": 31,
    "HashPages": 24,
    "QueryBinder": 31,
    "SelectPlan": 27,
    "Session": 38,
    "SparkRunner": 34,
    "Storage": 31,
    "TableWriter": 28,
    "ViewRunner": 21,
    "WindowOperator": 29,
    "_AsOfBatch": 24,
    "_Batch": 24,
    "_Moving": 21,
}
"""Classes with more, and how many: a number here may only become smaller, and none may be added."""

ENTRIES = ("windowpane", "windowpane.__main__", "windowpane.spark.daemon", "windowpane.demo")
"""What users import or run, ``windowpane.testing`` aside."""


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("windowpane", exclude_type_checking_imports=True)


@cache
def _nodes() -> list[tuple[Path, ast.AST]]:
    """Return classes, asserts, and where ``AssertionError`` is named, in every module."""
    trees = ((module, ast.parse(module.read_text())) for module in PACKAGE.rglob("*.py"))
    return [(module, node) for module, tree in trees for node in ast.walk(tree) if _is_asked_for(node)]


def _is_asked_for(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef | ast.Assert) or (isinstance(node, ast.Name) and node.id == "AssertionError")


def test_no_room_has_more_modules_than_a_reader_takes_in() -> None:
    rooms = {folder: [*folder.glob("*.py")] for folder in (PACKAGE, *PACKAGE.rglob("*")) if folder.is_dir()}
    crowded = {str(room): len(modules) for room, modules in rooms.items() if len(modules) > MOST + 1}  # and __init__
    assert crowded == {}


def test_no_class_has_more_methods_than_a_reader_takes_in() -> None:
    found = {}
    for _, each in _nodes():
        if isinstance(each, ast.ClassDef):
            functions = [part for part in each.body if isinstance(part, ast.FunctionDef)]
            methods = [part for part in functions if "property" not in " ".join(map(ast.unparse, part.decorator_list))]
            if len(methods) > MOST_METHODS:
                found[each.name] = len(methods)
    assert {name: count for name, count in found.items() if count > LARGE.get(name, MOST_METHODS)} == {}


def test_no_assert_reaches_a_user() -> None:
    """What cannot be is a ``MistakeError``, which says whose mistake it is; harnesses for tests may assert."""
    nodes = [(module, node) for module, node in _nodes() if PACKAGE / "testing" not in module.parents]
    assert {module for module, node in nodes if not isinstance(node, ast.ClassDef)} == set()


def test_every_room_says_what_it_holds() -> None:
    silent = [str(init) for init in PACKAGE.rglob("__init__.py") if not init.read_text().startswith('"""')]
    assert silent == []


def test_every_module_is_reached_from_what_users_import(graph: grimp.ImportGraph) -> None:
    waiting, reached = [each for each in graph.modules if each.startswith(ENTRIES[1:]) or each == ENTRIES[0]], set()
    while waiting:
        module = waiting.pop()
        if module not in reached and not module.startswith("windowpane.testing"):
            reached.add(module)
            parts = module.split(".")
            waiting += [".".join(parts[:count]) for count in range(1, len(parts))]
            waiting += graph.find_modules_directly_imported_by(module)
    rest = {module for module in graph.modules if not module.startswith("windowpane.testing")} - reached
    assert rest == set()


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Nor for types alone: whoever reads one of them has to know the others."""
    graph = grimp.build_graph("windowpane", cache_dir=None)  # which would know a file by its time
    left = {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}
    while leaves := [module for module, imported in left.items() if not imported & left.keys()]:
        for module in leaves:
            del left[module]
    assert sorted(left) == []


@pytest.mark.parametrize("base", [wp.WindowAssigner, wp.Trigger, wp.ComposableTrigger, wp.Evictor])
def test_every_part_of_a_window_is_a_name_of_the_package(base: type) -> None:
    for module in pkgutil.walk_packages(windowing.__path__, "windowpane.windowing."):
        importlib.import_module(module.name)
    inner = {"ContinuousTrigger", "InTurn", "FlinkTrigger", "Leaf", "PaneTrigger"}
    kinds = [base]
    for kind in kinds:
        kinds += type.__subclasses__(kind)
    found = {kind for kind in kinds if kind.__module__.startswith("windowpane.")}
    assert {kind.__name__ for kind in found if not kind.__name__.startswith("_")} - inner <= set(wp.__all__)
