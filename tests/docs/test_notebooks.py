"""The notebooks run, cell by cell in their order, and show what their comments promise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.docs.documents import ROOT, run

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def code(notebook: Path) -> list[str]:
    cells = json.loads(notebook.read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def run_cells(notebook: Path) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "notebook"}
    for cell in code(notebook):
        run(cell, notebook, names)
    return names


def test_windows_by_hand_run_without_spark() -> None:
    names = run_cells(ROOT / "examples" / "notebooks" / "windows_by_hand.ipynb")
    assert "<svg" in names["harness"].timeline()._repr_svg_()


@pytest.mark.slow
@pytest.mark.spark
def test_shops_on_spark_run(spark: Any) -> None:
    names = run_cells(ROOT / "examples" / "notebooks" / "shops_on_spark.ipynb")
    assert not names["query"].isActive


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_results_and_says_what_it_expects(notebook: Path) -> None:
    stored = json.loads(notebook.read_text())
    assert stored["nbformat"] == 4
    assert [cell["id"] for cell in stored["cells"] if cell.get("outputs") or cell.get("execution_count")] == []
    assert sum("# -> " in cell for cell in code(notebook)) >= 3
