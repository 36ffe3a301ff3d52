"""Both databases, for the same tests."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barkspider.sites.database import Database, Postgres, Sqlite
from tests.sites.postgres import PostgresServer, binaries

MakeDatabase = Callable[[], Database]


@pytest.fixture(scope="package")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests; each has a schema of its own."""
    if binaries() is None or importlib.util.find_spec("psycopg") is None:
        pytest.skip(
            "PostgreSQL or psycopg is not installed: apt-get install postgresql, pip install 'barkspider[database]'"
        )
    server = PostgresServer()
    server.start()
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def make_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeDatabase]:
    """Opens the same database, as often as it is called."""
    made: list[Database] = []
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres").url
        name = f"crawl_{abs(hash(request.node.name)):x}"

    def make() -> Database:
        made.append(Sqlite(tmp_path / "sites.db") if request.param == "sqlite" else Postgres(url, name))
        return made[-1]

    yield make
    for database in made:
        database.close()
