"""The document of the page: its parts from ``assets``, and as one file with the data in it."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any

from windowpane.inspect.checkpoints import Checkpoint
from windowpane.inspect.inspection import Inspection
from windowpane.ui.data import contents_data, page_data

ASSETS = {"page.css": "text/css", "page.js": "text/javascript"}
_HEAD = "<!doctype html>\n"


@cache
def asset(name: str) -> str:
    return (files("windowpane.ui") / "assets" / name).read_text(encoding="utf-8")


def served_page() -> str:
    """Return the page as a server shows it: its parts are files, its data is fetched."""
    return (
        asset("page.html")
        .replace("<!--style-->", '<link rel="stylesheet" href="page.css">')
        .replace("<!--script-->", '<script src="page.js" defer></script>')
    )


def exported(checkpoint: str) -> str:
    """Return the page of a checkpoint as one file, which loads nothing and runs no other script than its own."""
    found = Inspection(Checkpoint(checkpoint), 300)
    data = {"queries": [page_data(found)], "contents": contents_data(found)}
    script, style = asset("page.js"), asset("page.css")
    policy = f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:"
    page = asset("page.html").replace("<!--style-->", f"<style>{style}</style>")
    page = page.replace(
        "<!--script-->", f'<script type="application/json" id="data">{as_json(data)}</script><script>{script}</script>'
    )
    return page.replace("<!--policy-->", f'<meta http-equiv="Content-Security-Policy" content="{policy}">')


def as_json(value: Any) -> str:
    """Return JSON that ends no element of HTML, whatever texts are in it."""
    text = json.dumps(value)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
