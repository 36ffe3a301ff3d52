"""The tables of a crawl as SQL, by DuckDB: read only, and nothing else of the machine can be reached."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import duckdb
import pyarrow as pa

from barkspider.archive.schemas import SCHEMAS
from barkspider.archive.tables import open_table
from barkspider.core.errors import StorageError, UsageError
from barkspider.core.units import format_size
from barkspider.storage.env import Env

# What each stored table is called in SQL; two views are made from them.
_PART = pa.field("part", pa.uint16())
_VIEWS = {
    "pages": "stored_pages",
    "links": "links",
    "robots": "robots",
    "errors": "errors",
    "listings": "listings",
    "batches": "batches",
    "decisions": "decisions",
    "duplicates": "duplicates",
    "domains": "listed_domains",
}

# `domains` follows from the others: for whoever asks, it is computed from what they hold now; `domains` is the table.
_DOMAINS = """
    WITH own AS (
        SELECT url_host_registered_domain AS domain, count(*) FILTER (fetch_status BETWEEN 200 AND 299) AS pages,
            sum(content_length) AS bytes, count(DISTINCT url_host_name) AS hosts,
            min(fetch_time) AS first_time, max(fetch_time) AS last_time
        FROM stored_pages GROUP BY domain),
    edges AS (
        SELECT source_domain, target_domain, count(*) AS links FROM links
        WHERE source_domain <> target_domain GROUP BY ALL),
    outward AS (SELECT source_domain AS domain, sum(links) AS links_out, count(*) AS domains_out FROM edges GROUP BY 1),
    inward AS (SELECT target_domain AS domain, sum(links) AS links_in, count(*) AS domains_in FROM edges GROUP BY 1)
    SELECT domain, coalesce(pages, 0)::UBIGINT AS pages, coalesce(bytes, 0)::UBIGINT AS bytes,
        coalesce(hosts, 0)::UBIGINT AS hosts, coalesce(links_out, 0)::UBIGINT AS links_out,
        coalesce(links_in, 0)::UBIGINT AS links_in, coalesce(domains_out, 0)::UBIGINT AS domains_out,
        coalesce(domains_in, 0)::UBIGINT AS domains_in, first_time, last_time
    FROM own FULL JOIN outward USING (domain) FULL JOIN inward USING (domain)
"""
_PAGES = """
    SELECT stored_pages.*, duplicate_of FROM stored_pages
    LEFT JOIN (SELECT key, any_value(duplicate_of) AS duplicate_of FROM duplicates GROUP BY key) USING (key)
"""
# What dividing a crawl costs and loses (Parallel Crawlers, section 4), exactly, from all that the tables have: N, I, and as U the
# pages, with as many of the URLs that nobody has tried as of those that were. What robots.txt forbids is in no table, and
# counts as not tried. A table of links is needed for that.
_PARALLEL = """
    WITH tried AS (
        SELECT key, fetch_status BETWEEN 200 AND 299 OR outcome = 'unchanged' AS is_page, {part} AS part FROM stored_pages
        UNION ALL SELECT key, false, {part} FROM errors WHERE what = 'page' AND key IS NOT NULL),
    fetched AS (SELECT count(DISTINCT (key, part)) AS n, count(DISTINCT key) AS i FROM tried WHERE is_page),
    open AS (
        SELECT count(DISTINCT target) AS untried FROM links
        WHERE in_scope AND target NOT IN (SELECT key FROM tried)),
    sent AS (SELECT coalesce(sum(urls), 0) AS urls, count(*) AS messages, coalesce(sum(bytes), 0) AS bytes FROM batches)
    SELECT n AS pages, i AS unique_pages, (n - i) / i AS overlap, untried,
        i / (i + untried * i / (SELECT count(DISTINCT key) FROM tried)) AS coverage_estimate,
        urls, messages, bytes, urls / n AS urls_a_page, messages / n AS messages_a_page, bytes / n AS bytes_a_page
    FROM fetched, open, sent
"""

_MADE_FROM = {
    "pages": ("stored_pages", "duplicates"),
    "domains": ("stored_pages", "links"),
    "parallel": ("stored_pages", "errors", "links", "batches"),
    "mirrors": ("decisions",),
    "servers": ("stored_pages",),
    "networks": ("stored_pages",),
}
_ALL = frozenset((*_VIEWS.values(), *_MADE_FROM))
_LISTINGS = (
    "show",
    "information_schema",
    "duckdb_",
    "sqlite_",
    "pg_",
    "pragma_",
)  # which tell of all that is there

# Hosts that were stopped, once each: a crash may have had one of them told twice.
_MIRRORS = """
    SELECT min(time) AS time, regexp_extract(url, '^https?://([^/]+)/', 1) AS replica, substr(rule, 11) AS original
    FROM decisions WHERE decision = 'stopped' AND starts_with(rule, 'mirror of ') GROUP BY 2, 3
"""

# Who serves what: by address, and by the networks that are let together, /24 of IPv4 and /48 of IPv6.
_NETWORK = """CASE WHEN contains(fetch_address, ':')
        THEN rtrim(regexp_extract(fetch_address, '^[^:]*:[^:]*:[^:]*'), ':') || '::/48'
        ELSE regexp_replace(fetch_address, '[.][0-9]+$', '.0/24') END"""
_BY_ADDRESS = """
    SELECT {by}, count(*) FILTER (fetch_status BETWEEN 200 AND 299) AS pages, sum(content_length)::UBIGINT AS bytes,
        count(DISTINCT url_host_name) AS hosts, count(DISTINCT url_host_registered_domain) AS domains
    FROM stored_pages WHERE fetch_address IS NOT NULL GROUP BY ALL
"""
_SERVERS = _BY_ADDRESS.format(by=f"fetch_address AS server, {_NETWORK} AS network")
_NETWORKS = _BY_ADDRESS.format(by=f"{_NETWORK} AS network, count(DISTINCT fetch_address) AS servers")

_NO_OTHERS: Mapping[str, Callable[[], pa.Table]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class QueryBounds:
    """What an answer may take: seconds, rows of it, bytes of RAM, 0 meaning no bound; and a folder for what does not
    fit there."""

    seconds: float = 0.0
    rows: int = 0
    memory: int = 0
    scratch: str = ""


_UNBOUNDED = QueryBounds()


def ask(
    env: Env,
    folders: Sequence[Path],
    sql: str,
    others: Mapping[str, Callable[[], pa.Table]] = _NO_OTHERS,
    parameters: Sequence[str] = (),
    bounds: QueryBounds = _UNBOUNDED,
) -> pa.Table:
    """The answer to one SELECT over the views of an archive, or of those of all parts of a job: pages, links, domains,
    robots, errors, listings, batches, decisions, mirrors, servers, networks, duplicates, parallel; of parts, each row has the number of its `part`.
    `others` are tables that lie elsewhere in the job, made if they are asked for; `parameters` are what each ? stands for.
    `listed_domains` is the table of domains as it was when a crawl ended, which is quicker to ask than `domains`; it is empty
    before that.

    Raises `UsageError` for SQL that is wrong, does more than read, or takes longer than it may. The archive may be growing.
    """
    wanted = _named(sql)
    while True:
        files, damaged = _files(env, folders), list[str]()
        try:
            with _connection(files, wanted, damaged.append, bounds) as connection:
                for name, make in others.items():
                    if name in sql.lower():
                        connection.register(name, make())
                statements = connection.extract_statements(sql)
                if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                    raise UsageError("only one SELECT can be asked; tables cannot be changed")
                return _answer(connection, sql, parameters, bounds)
        except duckdb.InterruptException as error:
            raise UsageError(f"no answer within {bounds.seconds:g} s; ask for less") from error
        except duckdb.OutOfMemoryException as error:
            raise UsageError(
                f"{format_size(bounds.memory)} of memory are not enough; give more, or ask for less"
            ) from error
        except duckdb.Error as error:
            if files != _files(env, folders):  # a merge has just taken one away: its rows are in another
                continue
            if (
                isinstance(error, duckdb.CatalogException) and wanted != _ALL
            ):  # it may be about all, or a name was misspelt
                wanted = _ALL
                continue
            why = f"cannot answer: {_first_line(error)}"
            if damaged and isinstance(error, duckdb.CatalogException):  # the view that is not there
                raise StorageError(
                    f"cannot answer: {damaged[0]}; `barkspider verify` tells what else is damaged"
                ) from error
            raise UsageError(why) from error


def _named(sql: str) -> frozenset[str]:
    """The views that a question may name, and those that these are made from: to make all takes longer than most answers.

    >>> sorted(_named("SELECT url FROM Pages"))
    ['duplicates', 'pages', 'stored_pages']
    """
    words = frozenset(re.findall(r"\w+", sql.lower()))
    if any(word.startswith(_LISTINGS) for word in words):
        return _ALL
    found = words & _ALL
    return found.union(*(_MADE_FROM.get(view, ()) for view in found))


def _answer(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[str], bounds: QueryBounds
) -> pa.Table:
    """Ask in a thread, so that this one can hear Ctrl-C: DuckDB is deaf to it while it counts."""

    def answer() -> pa.Table:
        found = connection.sql(sql, params=list(parameters)) if parameters else connection.sql(sql)
        return (found.limit(bounds.rows) if bounds.rows else found).to_arrow_table()

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(answer)
        try:
            return asked.result(bounds.seconds or None)
        except KeyboardInterrupt:
            connection.interrupt()
            raise
        except FutureTimeout:
            connection.interrupt()
            return asked.result()  # raises, unless it was done just then


def _files(env: Env, folders: Sequence[Path]) -> dict[str, list[list[str]]]:
    """The files of each stored table in each of the archives, as SQL writes them."""
    return {
        name: [
            [_quoted(str(path.absolute())) for path in open_table(env, folder, name).files()]
            for folder in folders
        ]
        for name in _VIEWS
    }


@contextmanager
def _connection(
    files: dict[str, list[list[str]]],
    wanted: frozenset[str],
    damaged: Callable[[str], object],
    bounds: QueryBounds,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory whose views, those that are wanted, are the tables; locked, so that no query can open anything else.

    A table that cannot be read has no view, nor have those that are made from it; `damaged` is told why.
    """
    with duckdb.connect(":memory:") as connection:
        # Every view looks at the columns of all files, and so does every use of it.
        connection.execute("SET parquet_metadata_cache = true")
        if bounds.memory:
            connection.execute(f"SET memory_limit = '{bounds.memory}B'")
            connection.execute("SET threads = 2")
            connection.execute("SET preserve_insertion_order = false")
        for name, view in _VIEWS.items():
            if view not in wanted:
                continue
            schema = SCHEMAS[name] if len(files[name]) == 1 else SCHEMAS[name].append(_PART)
            if not any(files[name]):
                connection.register(view, schema.empty_table())
                continue
            try:
                rows = " UNION ALL ".join(
                    _stored(connection, name, paths, number if len(files[name]) > 1 else None)
                    for number, paths in enumerate(files[name])
                    if paths
                )
                connection.execute(f"CREATE VIEW {view} AS {rows}")
            except duckdb.Error as error:
                damaged(_first_line(error))
        part = "part" if len(files["pages"]) > 1 else "0"
        for view, rows in (
            ("pages", _PAGES),
            ("domains", _DOMAINS),
            ("mirrors", _MIRRORS),
            ("servers", _SERVERS),
            ("networks", _NETWORKS),
            ("parallel", _PARALLEL.format(part=part)),
        ):
            if view in wanted:
                with suppress(duckdb.CatalogException):  # of a table that could not be read
                    connection.execute(f"CREATE VIEW {view} AS {rows}")
        allowed = [path for archives in files.values() for paths in archives for path in paths]
        connection.execute(f"SET allowed_paths = [{', '.join(allowed)}]")
        scratch = f"temp_directory = {_quoted(bounds.scratch)}"
        for setting in (scratch, "enable_external_access = false", "lock_configuration = true"):
            connection.execute(f"SET {setting}")
        yield connection


def _stored(connection: duckdb.DuckDBPyConnection, name: str, files: list[str], part: int | None) -> str:
    """A SELECT of the columns that a table has now from files of any version, of a part of a job if that has any.

    A column that no file has is a null of its type: filters still reach the files, and so does the choice of
    columns. Those that some files have, DuckDB fills with nulls by itself.
    """
    source = f"read_parquet([{', '.join(files)}], union_by_name = true)"
    found = set(connection.sql(f"SELECT * FROM {source}").columns)
    declared = connection.from_arrow(SCHEMAS[name].empty_table())
    columns = [
        f'"{column}"' if column in found else f'NULL::{kind} AS "{column}"'
        for column, kind in zip(declared.columns, declared.types, strict=True)
    ]
    columns += [] if part is None else [f"{part}::USMALLINT AS part"]
    return f"SELECT {', '.join(columns)} FROM {source}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
