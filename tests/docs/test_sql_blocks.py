"""SQL in the documents runs, a page in one session; a ``text`` block behind a ``sql`` block is what its last query gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.documents import PAGES, ROOT
from windowpane.sql import Session

_BLOCK = re.compile(r"^```sql\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def sql_blocks(page: Path) -> list[tuple[str, str]]:
    return _BLOCK.findall(page.read_text())


def printed(session: Session, block: str) -> str:
    result = session.run(block)[-1]
    lines = [result.names, *(["NULL" if cell is None else cell for cell in row] for row in result.text_rows())]
    return "".join(" | ".join(line) + "\n" for line in lines)


@pytest.mark.parametrize("page", [page for page in PAGES if sql_blocks(page)], ids=lambda page: page.stem)
def test_the_sql_of_a_page_runs_and_gives_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Session(":memory:") as session:
        for block, expected in sql_blocks(page):
            got = printed(session, block)
            if expected:
                assert got == expected


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.sql")), ids=lambda script: script.stem)
def test_an_sql_example_runs(script: Path) -> None:
    with Session(":memory:") as session:
        assert any(len(result) for result in session.run(script.read_text()) if result.has_rows)
