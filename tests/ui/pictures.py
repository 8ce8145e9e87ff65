"""The picture of the page in the documents, of a golden checkpoint. ``python -m tests.ui.pictures`` writes it anew.

With a folder and perhaps a checkpoint it writes the whole page there, light and dark, wide and narrow, to be looked at.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.golden.checkpoints import FOLDER, extract
from windowpane.ui import export

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "page.png"
CHECKPOINT = "checkpoints/totals"


def whole(folder: Path, checkpoint: Path | None) -> None:
    """Write the whole page in every form."""
    with tempfile.TemporaryDirectory() as work, sync_playwright() as started:
        if checkpoint is None:
            checkpoint = Path(work) / CHECKPOINT
            extract(FOLDER / "slices_tumbling.tar.xz", checkpoint)
        export(str(checkpoint), Path(work) / "page.html")
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            for width in (1440, 390):
                page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme).new_page()
                page.goto((Path(work) / "page.html").as_uri())
                page.wait_for_selector(".tile")
                page.screenshot(path=folder / f"{scheme}-{width}.png", full_page=True)
        browser.close()


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
    if sys.argv[1:]:
        whole(Path(sys.argv[1]), Path(sys.argv[2]) if sys.argv[2:] else None)
    else:
        main()
