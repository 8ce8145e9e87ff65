"""The page without a browser: its figures are those of the tables, it is read-only, and what is outside of it stays outside."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import windowpane as wp
from tests.golden.checkpoints import FOLDER, extract
from windowpane.errors import MissingCheckpointError
from windowpane.inspect.inspection import Inspection
from windowpane.inspect.printing import plain_rows
from windowpane.inspect.tables import TABLES
from windowpane.ui import export, reader, serve
from windowpane.ui.data import page_data
from windowpane.ui.document import as_json

if TYPE_CHECKING:
    from windowpane.ui.server import Page

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("page") / "ck"
    extract(FOLDER / "slices_tumbling.tar.xz", place)
    return place


@pytest.fixture(scope="module")
def page(checkpoint: Path) -> Iterator[Page]:
    shown = wp.ui(checkpoint)
    yield shown
    shown.close()


def get(url: str, **headers: str) -> tuple[int, dict[str, str], str]:
    try:
        with urlopen(Request(url, headers=headers), timeout=20) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except HTTPError as error:
        return error.code, dict(error.headers), error.read().decode()


def test_every_figure_is_one_of_the_tables(page: Page, checkpoint: Path) -> None:
    data: dict[str, Any] = json.loads(get(f"{page.url}data")[2])["queries"][0]
    found = wp.inspect(checkpoint, 300)
    for name in set(TABLES) - {"watermarks"}:  # how far it is behind is another figure a moment later
        assert data["tables"][name]["rows"] == plain_rows(found.table(name))
        assert data["tables"][name]["healthy"].startswith("Healthy: ")
    figures = {each["question"]: each["figure"] for each in data["health"]}
    largest = found.keys.to_pylist()[0]
    assert figures["How large is state, and will it end?"] == "50.4 kB"
    assert sum(row["bytes"] for row in found.state.to_pylist()) == 51626
    assert figures["Is one key hot?"] == f"{largest['key']} holds {largest['bytes'] / 51626:.0%} of the bytes of keys"
    assert figures["Is it keeping up?"] == f"last batch took {found.batches.to_pylist()[-1]['seconds']:.2f} s"


def test_a_key_is_looked_up(page: Page, checkpoint: Path) -> None:
    found = json.loads(get(f"{page.url}search?key=green")[2])
    assert found["rows"] == plain_rows(wp.inspect(checkpoint).contents(key="green"))
    assert json.loads(get(f"{page.url}search?key=a,b")[2])["rows"] == []  # the key is one text
    assert json.loads(get(f"{page.url}search?key=nobody")[2])["rows"] == []


def test_nothing_else_is_answered(page: Page) -> None:
    port = int(page.url.rstrip("/").rpartition(":")[2])
    for path in ("/../pyproject.toml", "/page.py", "/assets/page.js", "/data/..%2f..%2fetc/passwd"):
        connection = HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("GET", path)
        assert connection.getresponse().status == 404
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        connection = HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request(method, "/data")
        assert connection.getresponse().status == 405


def test_only_its_own_address_shows_it(page: Page) -> None:
    assert get(page.url, Host="elsewhere.example")[0] == 403
    policy = get(page.url)[1]["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_other_machines_need_the_token(checkpoint: Path) -> None:
    shown = serve([str(checkpoint)], 0, "0.0.0.0")
    try:
        local = shown.url.replace("0.0.0.0", "127.0.0.1")
        bare, _, token = local.partition("?")
        assert len(token) > 30
        assert get(local)[0] == 200
        assert [get(f"{bare}{path}")[0] for path in ("", "data", "events", "page.js", "?token=wrong")] == [403] * 5
    finally:
        shown.close()


def test_a_place_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingCheckpointError):
        wp.ui(tmp_path)


def test_the_export_is_one_file_that_loads_nothing(checkpoint: Path, tmp_path: Path) -> None:
    export(str(checkpoint), tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert not re.search(r"""(src|href)=["'](?!#|data:)""", text)
    data = json.loads(re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[0])
    assert data["queries"][0]["tables"]["windows"]["rows"] == plain_rows(wp.inspect(checkpoint, 300).windows)


def test_texts_of_users_end_no_element() -> None:
    hostile = "</script><script>alert(1)</script>&<!--"
    assert "<" not in as_json({"key": hostile})
    assert json.loads(as_json({"key": hostile})) == {"key": hostile}


def test_a_watermark_that_stands_still_is_a_worry(checkpoint: Path) -> None:
    found = wp.inspect(checkpoint)
    rows = [row | {"watermark": row["time"], "batch": n} for n, row in enumerate(found.batches.to_pylist() * 2)]
    same = [row | {"watermark": rows[0]["time"]} for row in rows]
    for batches, worry in ((rows, False), (same, True)):
        copy = Inspection(found._holder)
        copy.__dict__["batches"] = TABLES["batches"].of(batches)
        answers = {each["question"]: each["worry"] for each in page_data(copy)["health"]}
        assert answers["Who holds the watermark back?"] is worry


def test_a_batch_is_read_once_for_all_who_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read while nothing is committed, and after a dear look the next one waits."""
    extract(FOLDER / "slices_tumbling.tar.xz", tmp_path / "ck")
    (tmp_path / "ck/commits/3").rename(tmp_path / "last")
    read, monotonic = list[int](), [1000.0]

    def counted(found: Inspection, error: str | None = None) -> dict[str, Any]:
        read.append(found.batch)
        return {"batch": found.batch}

    monkeypatch.setattr(reader, "page_data", counted)
    monkeypatch.setattr(reader, "PACE", 0.01)
    monkeypatch.setattr(reader, "monotonic", lambda: monotonic[0])
    monkeypatch.setattr(reader, "thread_time", lambda: 0.1 * len(read))
    looks = reader.Reader([str(tmp_path / "ck")])

    async def clients(before: int) -> list[int]:
        return list(await asyncio.gather(*(looks.wait(before) for _ in range(3))))

    assert asyncio.run(clients(0)) == [1, 1, 1]
    assert asyncio.run(clients(1)) == [1, 1, 1]
    assert read == [2]
    (tmp_path / "last").rename(tmp_path / "ck/commits/3")
    assert asyncio.run(clients(1)) == [2, 2, 2]
    assert read == [2, 3]
    assert json.loads(asyncio.run(looks.data())) == {"queries": [{"batch": 3}]}
    (tmp_path / "ck/commits/3").rename(tmp_path / "last")
    monotonic[0] += 4.9
    assert asyncio.run(clients(2)) == [2, 2, 2]
    monotonic[0] += 0.2
    assert asyncio.run(clients(2)) == [3, 3, 3]
    assert read == [2, 3, 2]
    looks.close()
