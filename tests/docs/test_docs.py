"""The documents keep their promises: blocks and examples run, links lead somewhere, every public name is explained."""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
import sys
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException

import windowpane
import windowpane.sinks
import windowpane.testing
from tests.docs.documents import (
    PAGES,
    ROOT,
    anchors,
    needs_spark,
    promised_output,
    python_blocks,
    relative_links,
    run,
    streams_among,
)
from windowpane import errors
from windowpane.errors import MissingCheckpointError, WindowpaneError
from windowpane.inspect.tables import TABLES
from windowpane.result import Runnable
from windowpane.spark.queries import running

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


@pytest.mark.slow_but("README", "index")
@pytest.mark.spark
@pytest.mark.parametrize("page", [page for page in WITH_BLOCKS if needs_spark(page)], ids=_title)
def test_the_blocks_of_a_page_run_on_spark(
    page: Path,
    names: dict[str, Any],
    spark_names: dict[str, Any],
    redirected: Callable[[str], str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names |= spark_names
    capsys.readouterr()
    for block in python_blocks(page):
        run(redirected(block), page, names)
    if promised := promised_output(page):
        assert [line for line in capsys.readouterr().out.splitlines() if line] == [line for line in promised.splitlines() if line]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "start_writing", lambda rows, *rest: rows)
        patch.setattr(running, "note_operators", lambda query, operators: None)
        for program in streams_among(names.values()):
            _start_all(program, tmp_path)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("page", [page for page in WITH_BLOCKS if needs_spark(page)], ids=_title)
def test_the_programs_of_a_page_run_by_start(
    page: Path, names: dict[str, Any], spark_names: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of finite rows, too, where a stream may take their place; a page writes into the folder that it runs in."""
    monkeypatch.chdir(tmp_path)
    names |= spark_names | {"flights": spark_names["departures"]}
    for block in python_blocks(page):
        for statement in ast.parse(block).body:
            if not isinstance(statement, ast.Expr):
                with contextlib.suppress(WindowpaneError, AnalysisException, NameError, Py4JJavaError):
                    exec(compile(ast.Module([statement], []), str(page), "exec"), names)
    for program in streams_among(names.values()):
        _start_all(program, tmp_path, trigger={"availableNow": True}).awaitTermination()


def _start_all(program: Runnable, folder: Path, **options: Any) -> Any:
    """Start a query that writes every output of a program into files."""
    place = folder / str(id(program))
    sinks: dict[str, Any] = {name: str(place / name) for name in program._built.outputs}
    return program.start(**sinks, checkpoint=str(place / "ckpt"), **options)


@pytest.mark.slow_but("custom_trigger")
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


def test_the_pages_that_errors_lead_to_are_on_the_site() -> None:
    classes = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, WindowpaneError)]
    pages = {each.page for each in classes if each.page is not None} | {each.page for each in TABLES.values()}
    navigation = (ROOT / "mkdocs.yml").read_text()
    assert {page for page in pages if not (ROOT / "docs" / page).is_file() or f": {page}\n" not in navigation} == set()
    asked = ("why-is-my-window-still-open", "who-holds-the-watermark-back", "what-was-late", "is-it-keeping-up", "monitoring")
    assert {f"how-to/{name}.md" for name in asked} <= pages
    assert str(MissingCheckpointError("here")).endswith(" More: docs/how-to/monitoring.md")


def test_every_public_name_is_in_the_documents() -> None:
    words = set(re.findall(r"\w+", " ".join(page.read_text() for page in PAGES)))
    assert [name for name in windowpane.__all__ if name not in words and name != "__version__"] == []


def test_the_first_page_is_two_sentences_a_program_a_picture_and_three_links() -> None:
    page = ROOT / "docs" / "index.md"
    opening = page.read_text().partition("# windowpane\n\n")[2].partition("\n\n")[0]
    assert opening.count(". ") + opening.endswith(".") == 2
    (block,) = python_blocks(page)
    assert len([line for line in block.splitlines() if line]) < 20
    assert promised_output(page)
    links = [link.path for link in relative_links(page)]
    assert [path.stem for path in links if path.suffix == ".md"] == ["tutorial", "coming-from-spark", "why"]
    assert [path.suffix for path in links].count(".svg") == 1


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    named = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    pages = [str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")]
    assert sorted(named) == sorted(pages)


PACKAGES = pytest.mark.parametrize("package", [windowpane, windowpane.testing], ids=lambda package: package.__name__)


@PACKAGES
def test_every_public_name_is_in_the_reference_once(package: Any) -> None:
    names = [name for name in _in_the_reference(package) if not name.startswith(("sql.", "testing."))]  # packages of their own
    shown = [name.rpartition(".")[2] for name in names]
    assert {name: shown.count(name) for name in package.__all__} == dict.fromkeys(package.__all__, 1)


def test_every_sink_is_in_the_reference() -> None:
    shown = {name.rpartition(".")[2] for name in _in_the_reference(windowpane)}
    assert set(windowpane.sinks.__all__) <= shown


@PACKAGES
def test_no_public_name_in_the_reference_is_that_of_a_module(package: Any) -> None:
    modules = {path.stem for path in Path(package.__file__).parent.iterdir()}
    assert [name for name in package.__all__ if name in modules and name in _in_the_reference(package)] == []


@PACKAGES
def test_what_a_public_class_has_from_one_that_is_not_is_in_the_reference(package: Any) -> None:
    classes = [getattr(package, name) for name in package.__all__ if inspect.isclass(getattr(package, name))]
    for each in classes:
        bases = [base for base in each.__mro__[1:] if base.__module__.startswith("windowpane")]
        public = {name for base in bases if base in classes for name in vars(base)}
        hidden = {
            name for base in bases if base not in classes for name, member in vars(base).items() if _is_method(name, member)
        }
        listed = re.search(r"inherited_members: \[(.*)\]", _in_the_reference(package).get(each.__name__, ""))
        shown = set(listed[1].split(", ")) if listed else set()
        assert hidden - public - vars(each).keys() <= shown, each.__name__


def _in_the_reference(package: Any) -> dict[str, str]:
    """Return what the pages of the reference show of a package, behind its name, with the options of each."""
    text = "\n".join(page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md"))
    shown = re.findall(rf"^::: {re.escape(package.__name__)}\.([\w.]+)$((?:\n +.*)*)", text, re.MULTILINE)
    names = dict(shown)
    assert len(names) == len(shown)
    return names


def _is_method(name: str, member: Any) -> bool:
    return not name.startswith("_") and (
        inspect.isfunction(member) or isinstance(member, (property, classmethod, cached_property))
    )


def test_the_site_needs_no_network() -> None:
    settings = (ROOT / "mkdocs.yml").read_text()
    assert "http" not in settings
    named = re.findall(r"\[([\w-]+\.(?:js|css))\]", settings)
    assert "iframe-worker.js" in named  # the name by which the plugin "offline" finds that it need not name one of its own
    for name in named:
        assert "http" not in (ROOT / "docs" / name).read_text()
