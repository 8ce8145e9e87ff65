"""The picture of the page in the documents, of a golden checkpoint. ``python -m tests.ui.pictures`` writes it anew."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.golden.checkpoints import FOLDER, extract
from windowpane.ui import export

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "page.png"
CHECKPOINT = "checkpoints/totals"


def main() -> None:
    """Write the first screen of the page."""
    with tempfile.TemporaryDirectory() as work, sync_playwright() as started:
        extract(FOLDER / "slices_tumbling.tar.xz", Path(work) / CHECKPOINT)
        os.chdir(work)
        export(CHECKPOINT, Path(work) / "page.html")
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        page.goto((Path(work) / "page.html").as_uri())
        page.wait_for_selector(".tile")
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
