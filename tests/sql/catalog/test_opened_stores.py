"""A store that could not be opened is free again; one that is open says so; a JVM that is gone is called that."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

from windowpane.errors import SparkGoneError, StoreError, WindowpaneError
from windowpane.sql import Session

GONE = """
def answer():
    raise ConnectionRefusedError(111, "Connection refused")
"""


class GoneSpark:
    """A session whose JVM was killed: whatever is asked of it, py4j cannot connect."""

    def __getattr__(self, name: str) -> Any:
        client = ModuleType("py4j.clientserver")
        exec(GONE, client.__dict__)
        client.__dict__["answer"]()


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = str(tmp_path / "store.duckdb")
    with Session(path) as session:
        session.run("CREATE TABLE t (a int)")
    return path


def test_a_store_that_is_open_in_the_same_process_says_so(store: str) -> None:
    with Session(store), pytest.raises(StoreError, match="a session of this process has it open"):
        Session(store)
    with Session(store) as session:
        assert session.query("SELECT count(*) FROM t").rows() == [(0,)]


def test_after_a_store_could_not_be_opened_it_can_be(store: str) -> None:
    failures = []
    for _ in range(3):
        with pytest.raises(SparkGoneError, match="does not answer") as failed:
            Session(cast("Any", GoneSpark()), store)
        failures.append(failed.value)
    with Session(store) as session:
        assert session.query("SELECT count(*) FROM t").rows() == [(0,)]
    assert len(failures) == 3


def test_a_session_whose_runner_does_not_close_lets_its_store_go(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(store)

    def refuse() -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(session._runner, "close", refuse)
    with pytest.raises(ConnectionRefusedError):
        session.close()
    Session(store).close()


def test_a_jvm_that_is_gone_is_told_from_other_connections() -> None:
    with pytest.raises(SparkGoneError, match="does not answer") as gone, SparkGoneError.instead():
        GoneSpark().version  # noqa: B018
    assert isinstance(gone.value.__cause__, ConnectionRefusedError)
    assert isinstance(gone.value, WindowpaneError)
    with pytest.raises(ConnectionRefusedError) as other, SparkGoneError.instead():
        raise ConnectionRefusedError(111, "a server of the user's")
    assert not isinstance(other.value, SparkGoneError)


def _raise_the_cause_of_another() -> None:
    try:
        raise TypeError("wrapped") from ValueError("the value")
    except TypeError as wrapped:
        raise wrapped.__cause__ or wrapped from None


def test_an_error_that_led_to_itself_is_raised_as_it_is() -> None:
    with pytest.raises(ValueError, match="the value"), SparkGoneError.instead():
        _raise_the_cause_of_another()


def test_a_jvm_killed_under_sql_is_no_mistake_of_windowpane(monkeypatch: pytest.MonkeyPatch) -> None:
    with Session() as session:
        session.run("CREATE TABLE t (a int)")
        monkeypatch.setattr(session._runner, "flush", lambda *_, **__: GoneSpark().version)
        with pytest.raises(SparkGoneError, match="store of a SQL session"):
            session.run("FLUSH")
