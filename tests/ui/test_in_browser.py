"""The page in a real browser: what it shows, that it goes on with the query, and that texts of users stay texts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import windowpane as wp
from tests.golden.checkpoints import FOLDER, extract
from windowpane.ui import export
from windowpane.ui.document import as_json

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
HOSTILE = ["<img src=x onerror=alert(1)>", "\"'`</script><b>x</b>", "\u202eabc \u05e9\u05dc\u05d5\u05dd", "x" * 10_000]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        shown = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield shown
        shown.close()


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    extract(FOLDER / "slices_tumbling.tar.xz", tmp_path / "ck")
    return tmp_path / "ck"


def opened(browser: Any, url: str, width: int = 1200, scheme: str = "light", offline: bool = False) -> tuple[Any, list[str]]:
    errors: list[str] = []
    page = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, offline=offline).new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.extend([said.text] if said.type == "error" else []))
    page.on("dialog", lambda dialog: errors.append("a dialog"))
    page.goto(url)
    page.wait_for_selector(".tile")
    return page, errors


def why(page: Any, start: str) -> str:
    """Return why the window with a start is open, as the page says."""
    rows = [text.split("\t") for text in page.locator("#timeline tbody tr").all_inner_texts()]
    return next(str(row[-1]).strip() for row in rows if row[1].strip() == start)


def test_the_page_follows_its_query_and_finds_keys(browser: Any, whole: Path) -> None:
    """The last batch is committed while the page is shown: it moves the watermark, under which a window fires."""
    (whole / "commits/3").rename(whole / "last")
    shown = wp.ui(whole)
    try:
        page, errors = opened(browser, shown.url)
        assert "batch 2" in page.inner_text("#live")
        assert why(page, "2024-01-01 00:01:10") == "waits for the watermark to reach 2024-01-01T00:01:20Z"
        (whole / "last").rename(whole / "commits/3")
        playwright.expect(page.locator("#live")).to_contain_text("batch 3")
        assert why(page, "2024-01-01 00:01:10").startswith("fired")
        assert page.locator("#timeline svg rect.fired").count() == 2
        page.keyboard.press("/")
        page.keyboard.type("green")
        page.keyboard.press("Enter")
        page.wait_for_selector("#found table")
        assert page.locator("#found tbody tr").count() == wp.inspect(whole).contents(key="green").num_rows == 3
        assert errors == []
    finally:
        shown.close()


def test_the_export_works_without_a_network(browser: Any, whole: Path, tmp_path: Path) -> None:
    export(str(whole), tmp_path / "page.html")
    page, errors = opened(browser, (tmp_path / "page.html").as_uri(), offline=True)
    assert page.locator("#timeline svg rect.open").count() == 1
    page.fill("#key", "red")
    page.click("form button")
    assert page.locator("#found tbody tr").count() == 3
    assert errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_can_be_read(browser: Any, whole: Path, tmp_path: Path, scheme: str) -> None:
    """No width makes it scroll sideways, and texts have a contrast of 4.5 at least."""
    export(str(whole), tmp_path / "page.html")
    for width in (1440, 768, 390):
        page, errors = opened(browser, (tmp_path / "page.html").as_uri(), width, scheme)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        if width == 390:
            assert [each for each in page.evaluate(CONTRASTS) if each[0] < 4.5] == []
        assert errors == []


CONTRASTS = """() => {
  const light = (color) => color.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const color = getComputedStyle(each).backgroundColor;
      if (!color.startsWith("rgba(0, 0, 0, 0")) return color;
    }
  };
  return [...document.querySelectorAll("p, td, th, h2, h3, a, .figure, .figure .mark, .hint, summary, label")].map((element) => {
    const [one, other] = [light(getComputedStyle(element).color), light(behind(element))].sort();
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    return [ratio, element.tagName + ": " + element.textContent.slice(0, 40)];
  });
}"""


def test_texts_of_users_stay_texts(browser: Any, whole: Path, tmp_path: Path) -> None:
    export(str(whole), tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    head, _, rest = text.partition('id="data">')
    body, _, tail = rest.partition("</script>")
    data = json.loads(body)
    tables = data["queries"][0]["tables"]
    for at, row in enumerate(tables["keys"]["rows"]):
        row["key"] = HOSTILE[at]
    tables["windows"]["rows"][0]["why_open"] = HOSTILE[0]
    tables["watermarks"]["rows"][0]["name"] = HOSTILE[2]
    tables["query"]["rows"][0]["why"] = HOSTILE[1]
    data["queries"][0]["location"] = HOSTILE[0]
    (tmp_path / "page.html").write_text(f'{head}id="data">{as_json(data)}</script>{tail}')
    page, errors = opened(browser, (tmp_path / "page.html").as_uri())
    assert page.locator("img, b:not(.legend b, .flow b), main script").count() == 0
    assert page.inner_text("#place") == HOSTILE[0]
    keys = page.locator("#state table").nth(1).locator("td[dir=auto]").all_inner_texts()
    assert keys[:3] == [HOSTILE[0], HOSTILE[1], HOSTILE[2]]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert errors == []
