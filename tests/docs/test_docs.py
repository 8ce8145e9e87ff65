"""The documents keep their promises: blocks and examples run, links lead somewhere, every public name is explained."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import windowpane
import windowpane.testing
from tests.docs.documents import PAGES, ROOT, anchors, needs_spark, python_blocks, relative_links, run
from windowpane import errors

WITH_BLOCKS = [page for page in PAGES if python_blocks(page)]
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.stem != "replay")
PRINTED = {
    "count_windows": "|     a|        NULL|      NULL|    1|   4|",
    "custom_trigger": "window_end=2024-05-01 11:00:00, total=2005",
    "hourly_late": "late: origin=LGA, scheduled=2013-01-01 08:20:00, delay=99, windows_missed=[Row(",
    "over_prices": "steps: trade=2, price=130, step=40, _change_type=update_postimage",
    "over_window_close": "closed: id=3, at=2024-05-01 11:20:00, value=5, n=3, hour=7",
    "process_with_state": "alert: shop=north, message=90 beats 60",
    "sessions_dynamic_gap": "|ann|2024-05-01 10:00:00|2024-05-01 10:50:00|2     |",
    "window_over_windows": "busiest: window_start=2024-05-01 10:00:00, window_end=2024-05-01 10:05:00, server=b, requests=3",
}
"""For each example a part of a line that it must print, found by hand from its data."""


def _title(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("page", [page for page in WITH_BLOCKS if not needs_spark(page)], ids=_title)
def test_the_blocks_of_a_page_run(page: Path, names: dict[str, Any]) -> None:
    for block in python_blocks(page):
        run(block, page, names)


@pytest.mark.spark
@pytest.mark.parametrize("page", [page for page in WITH_BLOCKS if needs_spark(page)], ids=_title)
def test_the_blocks_of_a_page_run_on_spark(
    page: Path, names: dict[str, Any], spark_names: dict[str, Any], redirected: Callable[[str], str]
) -> None:
    names |= spark_names
    for block in python_blocks(page):
        run(redirected(block), page, names)


@pytest.mark.spark
@pytest.mark.parametrize("example", EXAMPLES, ids=_title)
def test_an_example_runs_and_prints(
    example: Path, spark: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(example.parent))
    # Executed rather than imported: the workers take its functions by value, as those of a script.
    module: dict[str, Any] = {"__name__": "example"}
    exec(compile(example.read_text(), str(example), "exec"), module)
    module["main"](spark)
    sys.modules.pop("replay", None)
    assert PRINTED[example.stem] in capsys.readouterr().out


@pytest.mark.parametrize("example", EXAMPLES, ids=_title)
def test_an_example_is_short(example: Path) -> None:
    assert len(example.read_text().splitlines()) < 40


@pytest.mark.parametrize("page", PAGES, ids=_title)
def test_links_lead_somewhere(page: Path) -> None:
    links = relative_links(page)
    assert [link.path for link in links if not link.path.exists()] == []
    assert [link for link in links if link.anchor and link.anchor not in anchors(link.path)] == []


def test_every_error_is_explained() -> None:
    page = (ROOT / "docs" / "errors.md").read_text()
    classes = [name for name, kind in vars(errors).items() if isinstance(kind, type) and kind.__module__ == errors.__name__]
    assert "WindowpaneError" in classes
    assert [name for name in classes if f"`{name}`" not in page] == []


def test_every_public_name_is_in_the_documents() -> None:
    words = set(re.findall(r"\w+", " ".join(page.read_text() for page in PAGES)))
    assert [name for name in windowpane.__all__ if name not in words and name != "__version__"] == []


def test_every_page_is_in_the_index() -> None:
    linked = {link.path for link in relative_links(ROOT / "docs" / "index.md")}
    pages = {page for page in (ROOT / "docs").rglob("*.md") if page.stem != "index"}
    assert pages <= linked


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    named = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    pages = [str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")]
    assert sorted(named) == sorted(pages)


@pytest.mark.parametrize("package", [windowpane, windowpane.testing], ids=lambda package: package.__name__)
def test_every_public_name_is_in_the_reference_once(package: Any) -> None:
    texts = [page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md")]
    shown = re.findall(rf"^::: {re.escape(package.__name__)}\.(\w+)$", "\n".join(texts), re.MULTILINE)
    assert {name: shown.count(name) for name in package.__all__} == dict.fromkeys(package.__all__, 1)
