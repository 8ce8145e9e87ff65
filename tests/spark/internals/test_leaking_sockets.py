"""The versions of Spark that leak sockets are named with the ones that do not."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from windowpane.spark.queries.starting import leaks_sockets, warn_of_leaking_sockets

LEAKING = ("4.0.0", "4.0.5", "4.1.0", "4.1.3", "4.2.0", "4.2.0-preview1")
MENDED = ("4.1.4", "4.2.1", "4.3.0", "4.4.0-SNAPSHOT", "5.0.0")


@pytest.mark.parametrize("version", LEAKING)
def test_a_version_that_leaks_sockets_is_known(version: str) -> None:
    assert leaks_sockets(version)


@pytest.mark.parametrize("version", MENDED)
def test_a_mended_version_is_not_warned_of(version: str, caplog: pytest.LogCaptureFixture) -> None:
    warn_of_leaking_sockets(cast("Any", SimpleNamespace(version=version)))
    assert not caplog.records


def test_the_warning_names_the_version_and_those_without_the_leak_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            warn_of_leaking_sockets(cast("Any", SimpleNamespace(version="4.1.2")))
    (record,) = caplog.records
    assert "Spark 4.1.2 leaks a socket" in record.getMessage()
    assert "4.1.4, 4.2.1 and 4.3.0 do not" in record.getMessage()
