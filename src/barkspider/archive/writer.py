"""Keeping a crawl: each exchange in a WARC file, a row about it in a table."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from math import modf
from pathlib import Path
from typing import Any, NamedTuple

from barkspider.archive import cdxj
from barkspider.archive.notes import decode_notes, encode_notes
from barkspider.archive.recovery import SERIES, Recovered
from barkspider.archive.rows import LinkBuffer, RowBuffer
from barkspider.archive.tables import TableFolder, open_table
from barkspider.archive.warc import NOWHERE, Original, Place, Stored, WarcWriter
from barkspider.core.batch import UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.records import UrlRow
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

    Exchanges are written when they are kept. What is to be said about them in tables is only noted: the caller
    takes the notes of each outcome, keeps them in its journal, and gives them back once the outcome counts, or
    again after a crash. So a row is in a table once, whatever happened.

    As a structure of a `Store` it commits the rows added so far. Before `close` there should be a commit:
    files of rows that are not committed are not merged, and nothing is derived from them. Whatever the disk
    refused is raised as `StorageError` by this or a later call.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> archive = ArchiveWriter(Env(), folder, Settings(), {})
    >>> fetched = Fetched("http://example.com/", "192.0.2.1", b"GET /", b"HTTP/1.1 200 OK", "", 1e9, 0.5)
    >>> row = UrlRow(1, 2, 3, 0, 0, 0, 0, b"http://example.com/")
    >>> archive.describe_page(row, fetched, archive.keep_page(fetched), "ok", Facts(title="An example"))
    >>> notes, place = archive.take_notes(), archive.places()["pages"]
    >>> archive.add_notes(notes, links=None)
    >>> archive.close()
    >>> open_table(Env(), folder, "pages").read()["title"].to_pylist()
    ['An example']
    """

    name = "kept"

    def __init__(
        self,
        env: Env,
        folder: Path,
        settings: Settings,
        info: Mapping[str, str],
        recovered: Recovered | None = None,
    ) -> None:
        """`info` are fields of the warcinfo records, `recovered` where an archive that exists goes on."""
        self._env, self._folder, self._settings = env, folder, settings.archive
        places = recovered.places if recovered else {}
        self._warcs = {
            name: WarcWriter(env, folder, name, settings.archive, info, places.get(name, NOWHERE))
            for name in SERIES
        }
        self._notes: list[tuple[Any, ...]] = []
        self._domains = Domains(settings.url.private_suffixes)
        self._host_facts = lru_cache(65_536)(self._find_host_facts)
        # One thread, so that each table has one writer; it runs only while there is something to write.
        self._pool = ThreadPoolExecutor(1, "tables")
        self._rows = {name: RowBuffer(self._table(name), self._settings, self._pool) for name in _ROW_TABLES}
        self._links = LinkBuffer(self._table("links"), self._settings, self._pool, self._domain_of)
        # The last write of each table; None: nothing was ever committed, so nobody can go back to it.
        self._committed = recovered.tables if recovered else None
        self._prepared: Mapping[str, int] = {}
        self._synced = -1.0

    def keep_page(self, fetched: Fetched) -> Stored:
        """Write the exchange of a page: as soon as it is there, before anybody reads it."""
        return self._keep("pages", fetched)

    def keep_unchanged(self, fetched: Fetched, original: Original) -> Stored:
        """Write the exchange of a page whose server says, by 304, that an earlier answer is still valid.

        `describe_page` then notes it, with the outcome `unchanged`.
        """
        return self._warcs["pages"].write_unchanged(
            fetched.url, fetched.request, fetched.response, fetched.address, fetched.time, original
        )

    def describe_page(
        self,
        row: UrlRow,
        fetched: Fetched,
        stored: Stored,
        outcome: str,
        facts: Facts,
        redirect: str = "",
    ) -> None:
        """Note what became of a page: `outcome` is ok, redirect, or a failure such as http_404."""
        links = facts.links
        self._notes.append(
            (
                "pages",
                row.key,
                fetched.url,
                stored.url_key,
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
            self._notes.append(("links", row.key, self._domain_of(fetched.url), dict(facts.anchors or {})))
        if self._settings.metadata:
            fields = _metadata(row, fetched, outcome, links)
            self._warcs["pages"].write_metadata(fetched.url, stored, fetched.time, fields)

    def keep_robots(self, origin: str, fetched: Fetched, outcome: str, redirect: str = "") -> Stored:
        """Write the exchange of a robots.txt of this origin, and note it."""
        stored = self._keep("robots", fetched)
        columns = _fetch_columns(fetched, stored, outcome, redirect)
        self._notes.append(("robots", origin, fetched.url, stored.url_key, *columns))
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
        """Note what came to nothing: `what` is page, robots or dns."""
        self._notes.append(("errors", _micros(time), what, outcome, key, url or None, host, tries))

    def take_notes(self) -> bytes:
        """What was noted since the last call, for `add_notes`; b"" when nothing was."""
        notes, self._notes = self._notes, []
        return encode_notes(notes)

    def add_notes(self, notes: bytes, links: UrlBatch | None) -> None:
        """Put into the tables what was noted about an outcome; `links` are those of its page."""
        for note in decode_notes(notes):
            table = note[0]
            if table == "links":
                _, source, domain, anchors = note
                assert links is not None, "an outcome whose links are noted has them"
                self._links.add_links(source, domain, links, anchors)
            elif table == "errors":
                self._rows[table].add(tuple(note[1:]))
            else:  # what follows from the URL, the second value, comes behind its key
                self._rows[table].add((*note[1:4], *self._url_columns(note[2]), *note[4:]))

    def places(self) -> dict[str, Place]:
        """For pages and robots, the WARC file that was written to last and its size by now."""
        return {name: warc.place() for name, warc in self._warcs.items()}

    def tick(self, now: float) -> None:
        """What is to be done about once a second: hand bytes to the system, sync, write rows that waited.

        `now` is of a clock that never goes back.
        """
        self.flush()
        for buffer in self._buffers().values():
            buffer.tick(now)
        interval = self._settings.sync_interval
        if self._synced < 0:
            self._synced = now
        elif interval and now - self._synced >= interval:
            self.sync()
            self._synced = now

    def flush(self) -> None:
        """Hand every exchange written so far to the operating system: it survives the end of this process."""
        for warc in self._warcs.values():
            warc.flush()

    def sync(self) -> None:
        """Make every exchange written so far survive a power loss."""
        for warc in self._warcs.values():
            warc.sync()

    def prepare(self) -> dict[str, Any]:
        """Make all exchanges and rows so far survive a power loss; what `recover` needs to go back here."""
        self.sync()
        for buffer in self._buffers().values():
            buffer.write()
        for buffer in self._buffers().values():
            buffer.wait()
        self._prepared = self._last_writes()
        return {"tables": self._prepared, "places": self.places()}

    def committed(self) -> None:
        """What was prepared is committed: its files may be merged."""
        self._committed = self._prepared
        for name, buffer in self._buffers().items():
            buffer.settle(self._prepared[name])

    def close(self) -> None:
        """Complete the files, merge small ones, and make the index and the tables that follow from others.

        Another writer may go on with the archive later, and close it again.
        """
        problems: list[StorageError] = []
        for step in (
            *(warc.close for warc in self._warcs.values()),
            self.prepare,
            self._pool.shutdown,  # what it still does, if something failed, must end before files are merged
            lambda: cdxj.merge(self._env, self._folder),
            self._conclude,
        ):
            try:
                step()
            except StorageError as error:
                problems.append(error)
        if problems:
            raise problems[0]

    def _keep(self, series: str, fetched: Fetched) -> Stored:
        return self._warcs[series].write_exchange(
            fetched.url,
            fetched.request,
            fetched.response,
            fetched.address,
            fetched.time,
            fetched.truncated or None,
        )

    def _table(self, name: str) -> TableFolder:
        return open_table(self._env, self._folder, name)

    def _buffers(self) -> dict[str, RowBuffer]:
        return {**self._rows, "links": self._links}

    def _last_writes(self) -> dict[str, int]:
        return {name: buffer.last() for name, buffer in self._buffers().items()}

    def _conclude(self) -> None:
        if self._committed is not None and self._committed != self._last_writes():
            return  # there was no commit: the last rows will come from the journal again
        for name in self._buffers():
            self._table(name).compact()
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

    def _url_columns(self, url: str) -> tuple[Any, ...]:
        scheme, host, port, target = split(url)
        domain, top = self._host_facts(host)
        path, mark, query = target.partition("?")
        return scheme, host, domain, top, port, path, query if mark else None


_ROW_TABLES = ("pages", "robots", "errors")


def _micros(time: float) -> int:
    """To the same microsecond as the WARC-Date of the exchange."""
    part, whole = modf(time)
    return int(whole) * 1_000_000 + round(part * 1e6)


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
        fields += [("outlink", url.decode()) for url in links.url.tolist()]
    return fields
