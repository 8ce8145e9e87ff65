"""What holds for every view that a test of this room keeps up to date."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sql.watched_keys import Watch, watching_keys


@pytest.fixture(autouse=True)
def every_key_is_unique(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    """After every flush, no two rows of a node's result so far have one key."""
    with watching_keys(monkeypatch) as watch:
        yield watch
