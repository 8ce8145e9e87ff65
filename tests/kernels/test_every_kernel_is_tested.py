"""Every module of kernels is imported by a test beside this one, or stands here with the test that runs it through its room."""

from __future__ import annotations

import ast
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = HERE.parents[1] / "windowpane"

THROUGH_THEIR_ROOM = {
    "aggregates": "aggregates/test_aggregates.py",
    "over/protocol": "over/test_over_window.py",
}
"""Rooms and modules of protocols, and the test that runs each form: a form is asked for by its call."""


def imported_by_tests() -> set[str]:
    found: set[str] = set()
    for path in HERE.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return found


def test_every_module_has_a_test() -> None:
    tested = imported_by_tests()
    modules = [path for path in (PACKAGE / "kernels").rglob("*.py") if path.name != "__init__.py"]
    places = {path: path.relative_to(PACKAGE / "kernels").with_suffix("") for path in modules}
    through = {path for path in modules if {places[path].as_posix(), places[path].parent.as_posix()} & THROUGH_THEIR_ROOM.keys()}
    names = {path: ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in modules}
    assert [names[path] for path in modules if names[path] not in tested and path not in through] == []


def test_the_tests_named_here_are_there() -> None:
    assert [name for name in THROUGH_THEIR_ROOM.values() if not (HERE / name).is_file()] == []
    kernels = PACKAGE / "kernels"
    missing = [room for room in THROUGH_THEIR_ROOM if not (kernels / room).is_dir() and not (kernels / f"{room}.py").is_file()]
    assert missing == []
