"""Keeping a crawl: each exchange in a WARC file, a row about it in a table."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from barkspider.archive import cdxj
from barkspider.archive.rows import LinkBuffer, RowBuffer
from barkspider.archive.tables import TableFolder, open_table
from barkspider.archive.warc import Stored, WarcWriter
from barkspider.core.errors import StorageError
from barkspider.core.records import UrlBatch, UrlRow
from barkspider.core.settings import Settings
from barkspider.storage.env import Env
from barkspider.url import Domains, is_address, split


class Fetched(NamedTuple):
    """An answered request. `time` is when it was sent, in seconds since 1970; `seconds` what it took.

    `phases` are the seconds of its parts by name, such as connect and first_byte.
    """

    url: str
    address: str
    request: bytes
    response: bytes
    truncated: str
    time: float
    seconds: float
    phases: Mapping[str, float] = {}  # never changed


class Facts(NamedTuple):
    """What reading a page has shown. `media_type` is what the bytes are, whatever the server says.

    `links_cut` and `body_cut` say that there were more links, or more of the page, than were read; `anchors` are
    texts of links by URL.
    """

    media_type: str = ""
    charset: str = ""
    languages: str = ""
    title: str = ""
    description: str = ""
    simhash: int | None = None
    links_cut: bool = False
    body_cut: bool = False
    links: UrlBatch | None = None
    anchors: Mapping[str, str] | None = None


class ArchiveWriter:
    """Writes the archive of one crawl process. One thread uses it; another, its own, writes tables.

    Whatever the disk refused is raised as `StorageError` by this or a later call.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> archive = ArchiveWriter(Env(), folder, Settings(), {})
    >>> fetched = Fetched("http://example.com/", "192.0.2.1", b"GET /", b"HTTP/1.1 200 OK", "", 1e9, 0.5)
    >>> row = UrlRow(1, 2, 3, 0, 0, 0, 0, b"http://example.com/")
    >>> archive.describe_page(row, fetched, archive.keep_page(fetched), "ok", Facts(title="An example"))
    >>> archive.close()
    >>> open_table(Env(), folder, "pages").read()["title"].to_pylist()
    ['An example']
    """

    def __init__(self, env: Env, folder: Path, settings: Settings, info: Mapping[str, str]) -> None:
        self._env, self._folder, self._settings = env, folder, settings.archive
        self._pages = WarcWriter(env, folder, "pages", settings.archive, info)
        self._robots = WarcWriter(env, folder, "robots", settings.archive, info)
        self._domains = Domains(settings.url.private_suffixes)
        self._host_facts = lru_cache(65_536)(self._find_host_facts)
        # One thread, so that each table has one writer; it runs only while there is something to write.
        self._pool = ThreadPoolExecutor(1, "tables")
        self._rows = {name: RowBuffer(self._table(name), self._settings, self._pool) for name in _ROW_TABLES}
        self._links = LinkBuffer(self._table("links"), self._settings, self._pool, self._domain_of)
        self._synced = -1.0

    def keep_page(self, fetched: Fetched) -> Stored:
        """Write the exchange of a page: as soon as it is there, before anybody reads it."""
        return self._keep(self._pages, fetched)

    def describe_page(
        self,
        row: UrlRow,
        fetched: Fetched,
        stored: Stored,
        outcome: str,
        facts: Facts,
        redirect: str = "",
    ) -> None:
        """Write down what became of a page: `outcome` is ok, redirect, or a failure such as http_404."""
        links = facts.links
        self._rows["pages"].add(
            (
                row.key,
                *self._url_columns(fetched.url, stored),
                *_fetch_columns(fetched, stored, outcome, redirect),
                facts.media_type or None,
                facts.charset or None,
                facts.languages or None,
                stored.revisit,
                row.parent or None,
                row.depth,
                row.hops,
                row.tries,
                len(links) if links is not None else 0,
                facts.links_cut,
                facts.body_cut,
                facts.title or None,
                facts.description or None,
                facts.simhash,
            )
        )
        if links is not None and self._settings.links:
            self._links.add_links(row.key, self._domain_of(fetched.url), links, facts.anchors or {})
        if self._settings.metadata:
            fields = _metadata(row, fetched, outcome, links)
            self._pages.write_metadata(fetched.url, stored, fetched.time, fields)

    def keep_robots(self, origin: str, fetched: Fetched, outcome: str, redirect: str = "") -> Stored:
        """Write the exchange of a robots.txt of this origin."""
        stored = self._keep(self._robots, fetched)
        columns = _fetch_columns(fetched, stored, outcome, redirect)
        self._rows["robots"].add((origin, *self._url_columns(fetched.url, stored), *columns))
        return stored

    def note_error(
        self,
        time: float,
        what: str,
        outcome: str,
        host: str,
        url: str = "",
        key: int | None = None,
        tries: int = 0,
    ) -> None:
        """Write down what came to nothing: `what` is page, robots or dns."""
        self._rows["errors"].add((_micros(time), what, outcome, key, url or None, host, tries))

    def tick(self, now: float) -> None:
        """What is to be done about once a second: hand bytes to the system, sync, write rows that waited.

        `now` is of a clock that never goes back.
        """
        self._pages.flush()
        self._robots.flush()
        for buffer in self._buffers():
            buffer.tick(now)
        interval = self._settings.sync_interval
        if self._synced < 0:
            self._synced = now
        elif interval and now - self._synced >= interval:
            self.sync()
            self._synced = now

    def sync(self) -> None:
        """Make every exchange written so far survive a power loss."""
        self._pages.sync()
        self._robots.sync()

    def checkpoint(self) -> None:
        """Make all that was written so far survive a power loss, the rows of tables too."""
        self.sync()
        for buffer in self._buffers():
            buffer.write()
        for buffer in self._buffers():
            buffer.wait()

    def close(self) -> None:
        """Complete the files, merge small ones, and make the index and the tables that follow from others."""
        problems: list[StorageError] = []
        for step in (
            self._pages.close,
            self._robots.close,
            self.checkpoint,
            self._compact,
            lambda: cdxj.merge(self._env, self._folder),
            self._derive,
        ):
            try:
                step()
            except StorageError as error:
                problems.append(error)
        self._pool.shutdown()
        if problems:
            raise problems[0]

    def _keep(self, warc: WarcWriter, fetched: Fetched) -> Stored:
        return warc.write_exchange(
            fetched.url,
            fetched.request,
            fetched.response,
            fetched.address,
            fetched.time,
            fetched.truncated or None,
        )

    def _table(self, name: str) -> TableFolder:
        return open_table(self._env, self._folder, name)

    def _buffers(self) -> list[RowBuffer]:
        return [*self._rows.values(), self._links]

    def _compact(self) -> None:
        for name in (*_ROW_TABLES, "links"):
            self._table(name).compact()

    def _derive(self) -> None:
        # Imported here: DuckDB and the kernels of DRUM take a moment to load, and a crawl needs them last.
        from barkspider.archive.duplicates import find_duplicates
        from barkspider.archive.views import domain_table

        if self._settings.duplicates:
            find_duplicates(self._env, self._folder)
        self._table("domains").replace(domain_table(self._env, self._folder))

    def _domain_of(self, url: str) -> str:
        return self._host_facts(split(url).host)[0]

    def _find_host_facts(self, host: str) -> tuple[str, str | None]:
        name = host.rstrip(".")
        return self._domains.pay_level(host), None if is_address(host) else name.rpartition(".")[2]

    def _url_columns(self, url: str, stored: Stored) -> tuple[Any, ...]:
        scheme, host, port, target = split(url)
        domain, top = self._host_facts(host)
        path, mark, query = target.partition("?")
        return url, stored.url_key, scheme, host, domain, top, port, path, query if mark else None


_ROW_TABLES = ("pages", "robots", "errors")


def _micros(time: float) -> int:
    return int(time * 1_000_000)


def _fetch_columns(fetched: Fetched, stored: Stored, outcome: str, redirect: str) -> tuple[Any, ...]:
    return (
        _micros(fetched.time),
        fetched.seconds,
        stored.status,
        redirect or None,
        outcome,
        stored.digest or None,
        stored.size,
        stored.media_type or None,
        fetched.truncated or None,
        stored.file,
        stored.offset,
        stored.end - stored.offset,
    )


def _metadata(row: UrlRow, fetched: Fetched, outcome: str, links: UrlBatch | None) -> list[tuple[str, str]]:
    """Named as Heritrix names them: L is a link, R a redirect."""
    fields = [
        ("hopsFromSeed", "L" * row.depth + "R" * row.hops),
        ("fetchTimeMs", str(round(fetched.seconds * 1000))),
        ("fetchPhasesMs", " ".join(f"{name}={1000 * part:.1f}" for name, part in fetched.phases.items())),
        ("outcome", outcome),
    ]
    if links is not None:
        fields += [("outlink", url.decode()) for url in links.url.to_pylist()]
    return fields
