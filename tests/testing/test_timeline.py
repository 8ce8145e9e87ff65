"""Pictures of runs: those of the documents are what the runs give, and each part of one says what happened."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.docs.pictures import FOLDER, MOVING, PICTURES, SECONDS
from windowpane.testing import WindowTestHarness
from windowpane.windowing.assigners import GlobalWindows, TumblingEventTimeWindows
from windowpane.windowing.triggers import CountTrigger

SVG = "{http://www.w3.org/2000/svg}"


def drawn(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def bars(svg: str) -> list[str]:
    """The texts on the bars, in order of firing; those of dots and axes stand at other places."""
    return [text.text or "" for text in drawn(svg).iter(f"{SVG}text") if re.fullmatch(r".*\[.*\]", text.text or "")]


@pytest.mark.parametrize("name", MOVING)
def test_a_picture_that_moves_is_the_same_under_a_sheet_that_goes_down(name, tmp_path):
    MOVING[name]().save(tmp_path / "picture.svg", SECONDS)
    written = (tmp_path / "picture.svg").read_text()
    assert (FOLDER / f"{name}.svg").read_text() == written
    before, _, after = written.partition("<style>")
    still = before + after.partition('<g clip-path="url(#so-far)">\n')[2].replace("</g>\n", "")
    assert still == MOVING[name]().svg
    assert "prefers-reduced-motion: no-preference" in written


@pytest.mark.parametrize("name", PICTURES)
def test_the_pictures_of_the_documents_are_what_runs_give(name: str) -> None:
    assert (FOLDER / f"{name}.svg").read_text() == PICTURES[name]().svg


def test_every_picture_has_a_run() -> None:
    """But the scoreboard, which is made of figures that were measured."""
    assert {path.stem for path in FOLDER.glob("*.svg")} == {*PICTURES, *MOVING, "scoreboard"}


def test_firings_are_bars_over_their_windows_early_on_time_and_late(tmp_path: Path) -> None:
    harness = WindowTestHarness(TumblingEventTimeWindows.of(10), allowed_lateness=5)
    harness.process_element("a", 1)
    harness.process_watermark(9)
    harness.process_element("b", 2)
    harness.process_element("c", 12)
    harness.process_watermark(14)
    harness.process_element("x", 3)
    svg = harness.timeline().svg
    assert bars(svg) == ["['a']", "['a', 'b']"]
    shapes = [each for each in drawn(svg).iter(f"{SVG}rect") if each.get("rx") == "4"][3:]  # after those of the legend
    assert [each.get("stroke") for each in shapes] == ["#1f9e89", "#c8553d"]
    assert len({(each.get("x"), each.get("width")) for each in shapes}) == 1, "one window, one span"
    rings = [each for each in drawn(svg).iter(f"{SVG}circle") if each.get("fill") == "#ffffff"]
    assert len(rings) == 1, "one element was dropped"
    harness.timeline().save(tmp_path / "run.svg")
    assert (tmp_path / "run.svg").read_text() == svg
    assert harness.timeline()._repr_svg_() == svg


def test_what_was_taken_is_still_in_the_picture_and_global_windows_span_all() -> None:
    harness = WindowTestHarness(GlobalWindows.create(), CountTrigger.of(2))
    for at in (5, 25):
        harness.process_element("<&>", at, key="k")
    harness.take_emitted()
    texts = [text.text for text in drawn(harness.timeline().svg).iter(f"{SVG}text")]
    assert "k: ['<&>', '<&>']" in texts


def test_nothing_happened_yet() -> None:
    assert drawn(WindowTestHarness(TumblingEventTimeWindows.of(10)).timeline().svg).tag == f"{SVG}svg"


def test_firings_of_one_instant_that_would_cover_one_another_stand_below_one_another() -> None:
    harness = WindowTestHarness(TumblingEventTimeWindows.of(10))
    for key, at in (("a", 1), ("b", 2), ("a", 12)):
        harness.process_element(key, at, key)
    harness.process_watermark(19)
    svg = drawn(harness.timeline().svg)
    found = [each for each in svg.iter(f"{SVG}rect") if each.get("rx") == "4"][3:]
    places = [(float(each.get("x") or 0), float(each.get("y") or 0)) for each in found]
    (left, first), (_, second), (right, third) = places
    assert second == first + 26
    assert (third, right > left) == (first, True), "the next window is free beside it"
    assert max(y for _, y in places) + 18 < float(svg.get("height") or 0) - 34
