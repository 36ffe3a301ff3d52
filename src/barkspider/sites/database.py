"""The two databases: SQLite in a file of the job, PostgreSQL by its URL. Either runs one transaction of a crawl at a time.

A lease is measured by the database's clock, so the clocks of those that hold one may differ. In SQLite that is the time since the
machine was started, which nobody sets; all processes on it died when it was started again, and their leases begin anew then.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

from barkspider.core.errors import BarkspiderError, SettingsError, StorageError
from barkspider.core.extras import needing
from barkspider.sites.schema import STEPS

Result = TypeVar("Result")
Rows = list[tuple[Any, ...]]
_BUSY = 30.0  # seconds to wait for another process's transaction
_CACHE = 20_000  # kilobytes of SQLite's pages in RAM
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_STATEMENT = "30s"  # longest time of one statement in PostgreSQL


class AwayError(BarkspiderError):
    """The database does not answer; it may later. Nobody knows whether the transaction was kept."""


class Transaction(Protocol):
    """What may be said within one transaction; `?` stands for a value."""

    def __call__(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """Run a statement; its rows, if it has any."""
        ...

    def many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each of several values."""
        ...

    def now(self) -> float:
        """The time by the clock that leases go by."""
        ...


class Database(Protocol):
    """See the module. One thread."""

    def transact(self, work: Callable[[Transaction], Result]) -> Result:
        """Run a transaction: all of it, or nothing. `AwayError` where the database does not answer."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


def open_database(url: str, file: Path, name: str) -> Database:
    """The database at a URL of PostgreSQL, where the tables of a crawl lie in a schema of this `name`; without a URL the
    file. Nothing is contacted before the first transaction.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     database = open_database("", Path(folder) / "sites.db", "")
    ...     database.transact(lambda run: run("SELECT count(*) FROM sites")), database.close()
    ([(0,)], None)
    """
    if not url:
        return Sqlite(file)
    if not url.startswith(("postgresql://", "postgres://")):
        raise SettingsError(
            "parallel.database is no URL of a database: write it like postgresql://user@host/name, or leave it out"
        )
    return Postgres(url, name)


class Sqlite:
    """A `Database` in a file, which several processes of one machine may have open."""

    def __init__(self, file: Path, clock: Callable[[], float] | None = None) -> None:
        """`clock` is that of leases."""
        self._file, self._clock = file, clock or _since_boot
        self._connection: sqlite3.Connection | None = None

    def transact(self, work: Callable[[Transaction], Result]) -> Result:
        """See `Database`."""
        try:
            connection = self._connection or self._open()
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = work(_InSqlite(connection, self._clock))
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # which has ended it already
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.OperationalError as error:  # locked, no room, no such file
            self.close()
            raise AwayError(f"{self._file} cannot be used now: {error}") from error
        except sqlite3.DatabaseError as error:
            raise StorageError(f"{self._file} is damaged: {error}") from error
        return result

    def close(self) -> None:
        """See `Database`."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._file, timeout=_BUSY, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA trusted_schema = OFF")  # the job may be another's
            connection.execute(f"PRAGMA cache_size = -{_CACHE}")
            connection.execute("BEGIN IMMEDIATE")
            run = _InSqlite(connection, self._clock)
            run("CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
            _migrate(run, {"bytes": "BLOB", "real": "REAL"}, str(self._file))
            boot = _BOOT.read_text().strip() if _BOOT.exists() else ""
            if run("SELECT value FROM about WHERE name = 'boot'") != [(boot,)]:
                run("UPDATE sites SET lease = ? WHERE state = 1", (run.now() + _BUSY,))
                run(
                    "INSERT INTO about VALUES ('boot', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                    (boot,),
                )
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection


class _InSqlite:
    """A `Transaction`."""

    def __init__(self, connection: sqlite3.Connection, clock: Callable[[], float]) -> None:
        self._connection, self.now = connection, clock

    def __call__(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        return self._connection.execute(sql, values).fetchall()

    def many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(sql, values)


class Postgres:
    """A `Database` at a URL. Writers of one crawl wait for each other, as they do in SQLite: so none of them fails because of
    another, and none sees half of what another does."""

    def __init__(self, url: str, name: str) -> None:
        with needing("psycopg", "database"):
            import psycopg
        self._psycopg, self._url, self._name = psycopg, url, name
        self._connection: Any = None

    def transact(self, work: Callable[[Transaction], Result]) -> Result:
        """See `Database`."""
        try:
            connection = self._connection or self._open()
            with connection.transaction(), connection.cursor() as cursor:
                run = _InPostgres(cursor)
                self._begin(run)
                return work(run)
        except self._psycopg.Error as error:
            self.close()
            why = " ".join(str(error).split())
            if isinstance(error, self._psycopg.OperationalError | self._psycopg.InterfaceError):
                raise AwayError(f"the database of parallel.database does not answer: {why}") from error
            raise StorageError(f"the database of parallel.database refuses: {why}") from error

    def close(self) -> None:
        """See `Database`."""
        if self._connection is not None:
            with suppress(self._psycopg.Error):
                self._connection.close()
            self._connection = None

    def _begin(self, run: Transaction) -> None:
        run("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", (self._name,))

    def _open(self) -> Any:
        connection = self._psycopg.connect(self._url, autocommit=True, connect_timeout=10)
        try:
            with connection.transaction(), connection.cursor() as cursor:
                run = _InPostgres(cursor)
                self._begin(run)
                run(f"CREATE SCHEMA IF NOT EXISTS {self._name}")
                cursor.execute(f"SET search_path TO {self._name}")
                cursor.execute(f"SET statement_timeout TO '{_STATEMENT}'")
                run("CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
                _migrate(
                    run, {"bytes": "BYTEA", "real": "DOUBLE PRECISION"}, "the database of parallel.database"
                )
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection


class _InPostgres:
    """A `Transaction`."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def __call__(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        self._cursor.execute(sql.replace("?", "%s"), values)
        return self._cursor.fetchall() if self._cursor.description else []

    def many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        self._cursor.executemany(sql.replace("?", "%s"), values)

    def now(self) -> float:
        return float(self("SELECT extract(epoch FROM clock_timestamp())::double precision")[0][0])


def _migrate(run: Transaction, kinds: dict[str, str], name: str) -> None:
    """Take the steps that a database has not seen yet."""
    found = run("SELECT value FROM about WHERE name = 'version'")
    version = int(found[0][0]) if found else 0
    if version > len(STEPS):
        raise StorageError(f"{name} has version {version}, newer than {len(STEPS)}: use a newer barkspider")
    for step in STEPS[version:]:
        for statement in step:
            run(statement.format(**kinds))
    if version < len(STEPS):
        run(
            "INSERT INTO about VALUES ('version', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (str(len(STEPS)),),
        )


def _since_boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
