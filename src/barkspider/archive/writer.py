"""Keeping a crawl: each exchange in a WARC file, a row about it in a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa

from barkspider.archive import cdxj
from barkspider.archive.domains import domain_rows
from barkspider.archive.inherited import Inherited
from barkspider.archive.notes import LINKING, Note
from barkspider.archive.records import base_32, micros
from barkspider.archive.recovery import SERIES, Committed, Recovered
from barkspider.archive.rows import Buffer, LinkBuffer, RowBuffer
from barkspider.archive.tables import TableFolder, open_table
from barkspider.archive.warc import NOWHERE, Original, Stored, WarcEnd, WarcWriter
from barkspider.core.allotment import begin_threads, give_back, names
from barkspider.core.batch import UrlBatch
from barkspider.core.errors import StorageError
from barkspider.core.events import Prepared
from barkspider.core.records import Flag, UrlRow
from barkspider.core.settings import Settings
from barkspider.storage.env import Env
from barkspider.url import Domains, KeyMaker, is_address, split

_DOMAINS, _DIGESTS = 8, 2  # groups: in which domains and duplicates are found, when all else is done
_NONE: Mapping[str, str] = MappingProxyType({})


class Fetched(NamedTuple):
    """An answered request. `time` is when it was sent, in seconds since 1970; `seconds` what it took.

    `phases` are the seconds of its parts by name, such as connect and first_byte; `repaired` names what of the answer
    was put right to be read. `payload` is the rest of the response, for whoever has its header by itself, and
    `digests` are SHA-1 of that and of the whole, where they are known.
    """

    url: str
    address: str
    request: bytes
    response: bytes
    truncated: str
    time: float
    seconds: float
    phases: Mapping[str, float] = {}  # never changed
    repaired: str = ""
    payload: bytes = b""
    digests: tuple[bytes, bytes] | None = None


class PageFacts(NamedTuple):
    """What reading a page has shown. `media_type` is what the bytes are, whatever the server says.

    `links_cut` and `body_cut` say that there were more links, or more of the page, than were read; `links` are their
    URLs, None when they do not count. `sha1` is of what was sent without its encodings: b"" where it had none, None where
    these could not be undone.
    """

    media_type: str = ""
    charset: str = ""
    languages: str = ""
    title: str = ""
    description: str = ""
    simhash: int | None = None
    links_cut: bool = False
    body_cut: bool = False
    links: Sequence[bytes] | None = None
    sha1: bytes | None = None


class ArchiveWriter:
    """Writes the archive of one crawl process. One thread uses it; another, its own, writes tables.

    Exchanges are written when they are kept. What is to be said about them in tables is returned as a note: the
    caller keeps it in its journal, and gives it back as part of a batch once the outcome counts, or again after a
    crash. So a row is in a table once, whatever happened.

    As a structure of a `Store` it commits the rows added so far. Before `close` there should be a commit:
    files of rows that are not committed are not merged, and nothing is derived from them. Whatever the disk
    refused is raised as `StorageError` by this or a later call.

    >>> import tempfile
    >>> from barkspider.archive import batches_of
    >>> from barkspider.core.batch import NO_URLS
    >>> folder = Path(tempfile.mkdtemp())
    >>> archive = ArchiveWriter(Env(), folder, Settings(), {})
    >>> fetched = Fetched("http://example.com/", "192.0.2.1", b"GET /", b"HTTP/1.1 200 OK", "", 1e9, 0.5)
    >>> row = UrlRow(1, 2, 3, 0, 0, 0, 0, b"http://example.com/")
    >>> note = archive.describe_page(row, fetched, archive.keep_page(fetched), "ok", PageFacts(title="An example"))
    >>> batches, end = batches_of([note]), archive.warc_ends()["pages"]
    >>> archive.add(batches, links=NO_URLS)
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
        earlier: Sequence[Path] = (),
    ) -> None:
        """`info` are fields of the warcinfo records, `recovered` where an archive that exists goes on. `earlier` are the
        archives, the oldest first, of parts that there were before the crawl was divided anew: what is stored there is
        known."""
        self._env, self._folder, self._settings = env, folder, settings.archive
        self._group = settings.archive.table_memory  # bytes of rows in a row group, before they are packed
        warc_ends = recovered.warc_ends if recovered else {}
        self._warcs = {
            name: WarcWriter(env, folder, name, self._settings, info, warc_ends.get(name, NOWHERE), earlier)
            for name in SERIES
        }
        self._earlier = Inherited(earlier, settings.seed, settings.parallel.processes, settings.parallel.part)
        self._domains = Domains(settings.url.private_suffixes, remembered=0)  # `_host_facts` does that
        self._host_facts = lru_cache(names(settings.memory))(self._find_host_facts)
        # One thread, so that each table has one writer; it runs only while there is something to write.
        self._pool = begin_threads(ThreadPoolExecutor(1, "tables"), 1)
        self._rows = {
            name: RowBuffer(self._table(name), self._pool, self._group, self._settings.table_interval)
            for name in _ROW_TABLES
        }
        self._links = LinkBuffer(
            self._table("links"),
            self._pool,
            self._group,
            self._settings.table_interval,
            self._domain_of,
            KeyMaker(settings.seed),
        )
        # The last write of each table; None: nothing was ever committed, so nobody can go back to it.
        self._committed = recovered.tables if recovered else None
        self._prepared: dict[str, int] = {}
        self._synced = -1.0

    def keep_page(self, fetched: Fetched, original: Original | None = None) -> Stored:
        """Write the exchange of a page: as soon as it is there, before anybody reads it.

        `original` is what is stored of the page already: if the payload is the same, that is referred to.
        """
        return self._keep("pages", fetched, original)

    def keep_unchanged(self, fetched: Fetched, original: Original, head: bytes) -> Stored:
        """Write the exchange of a page whose server says, by 304, that an earlier answer is still valid.

        `head` is the HTTP header of that one. `describe_page` then describes the page, with the outcome `unchanged`.
        """
        return self._warcs["pages"].write_unchanged(
            fetched.url, fetched.request, head, fetched.address, fetched.time, original
        )

    def describe_page(
        self,
        row: UrlRow,
        fetched: Fetched,
        stored: Stored,
        outcome: str,
        facts: PageFacts,
        redirect: str = "",
    ) -> Note:
        """What became of a page, for the table `pages`: `outcome` is ok, redirect, or a failure such as http_404."""
        if self._settings.metadata or outcome == UNCHANGED:
            fields = _metadata(row, fetched, outcome, facts.links)
            self._warcs["pages"].write_metadata(fetched.url, stored, fetched.time, fields)
        return Note(
            "pages",
            (
                row.key,
                *self._fetch_columns(fetched, stored, outcome, redirect),
                facts.media_type or None,
                facts.charset or None,
                facts.languages or None,
                stored.revisit,
                row.parent or None,
                row.depth,
                row.hops,
                row.tries,
                len(facts.links or ()),
                facts.links_cut,
                facts.body_cut,
                facts.title or None,
                facts.description or None,
                facts.simhash,
                _decoded_digest(stored, facts.sha1),
                fetched.repaired or None,
                fetched.address or None,
            ),
        )

    def describe_links(
        self,
        row: UrlRow,
        links: Sequence[bytes],
        outside: Sequence[str] = (),
        anchors: Mapping[str, str] = _NONE,
    ) -> Note | None:
        """That the links of a page, those `outside` of scope too, belong into the table `links`; None if there is no such
        table. `anchors` are texts of links by URL. Where the links lie among those of the harvest is for the caller to say
        (`notes.located`)."""
        if not self._settings.links:
            return None
        return Note(
            LINKING,
            (
                row.key,
                self._domain_of(row.url.decode()),
                0,
                0,
                [anchors.get(url.decode()) for url in links] if anchors else None,
                outside or None,
                [anchors.get(url) for url in outside] if anchors and outside else None,
            ),
        )

    def keep_robots(self, origin: str, fetched: Fetched, outcome: str, redirect: str = "") -> Note:
        """Write the exchange of a robots.txt of this origin; what is to be said of it in the table `robots`."""
        stored = self._keep("robots", fetched)
        columns = self._fetch_columns(fetched, stored, outcome, redirect)
        return Note("robots", (origin, *columns, fetched.repaired or None))

    @staticmethod
    def describe_listing(row: UrlRow, listed: Iterable[tuple[str, ...]]) -> list[Note]:
        """What a sitemap or a feed says of pages, for the table `listings`."""
        return [Note("listings", (row.key, url, *(said or None for said in about))) for url, *about in listed]

    def add(self, batches: Mapping[str, pa.RecordBatch], links: UrlBatch) -> None:
        """Put into the tables what was noted about a harvest; `links` are those of its pages."""
        for name, buffer in self._rows.items():
            if name in batches:
                buffer.add(batches[name])
        if LINKING in batches:
            self._links.add(batches[LINKING], links)

    def warc_ends(self) -> dict[str, WarcEnd]:
        """For pages and robots, the WARC file that was written to last and its size by now."""
        return {name: warc.end() for name, warc in self._warcs.items()}

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
            for warc in self._warcs.values():
                self._pool.submit(warc.syncing())  # a file that fails in this refuses all later writes
            self._synced = now

    def flush(self) -> None:
        """Hand every exchange written so far to the operating system: it survives the end of this process."""
        for warc in self._warcs.values():
            warc.flush()

    def syncing(self) -> Callable[[], None]:
        """What makes every exchange so far survive a power loss; any thread may call it."""
        syncs = [warc.syncing() for warc in self._warcs.values()]

        def sync_all() -> None:
            for sync in syncs:
                sync()

        return sync_all

    def writing_rows(self) -> Callable[[], None]:
        """Begin to write all rows that wait; what is returned waits, in any thread, until whoever reads the tables finds them."""
        lasts = [buffer.writing() for buffer in self._buffers().values()]

        def wait() -> None:
            for last in lasts:
                last()

        return wait

    def prepare(self) -> Prepared:
        """See `core.events.Structure`: all exchanges and rows so far; what it describes `recover` needs to go back here."""
        syncs = [warc.syncing() for warc in self._warcs.values()]
        lasts = {name: buffer.writing() for name, buffer in self._buffers().items()}
        warc_ends = self.warc_ends()

        def describe() -> dict[str, Any]:
            for sync in syncs:
                sync()
            self._prepared = {name: last() for name, last in lasts.items()}
            return Committed(self._prepared, warc_ends).as_dict()

        return describe

    def committed(self) -> None:
        """What was prepared is committed: its files may be merged."""
        self._committed = self._prepared
        for name, buffer in self._buffers().items():
            buffer.merge_committed(self._prepared[name])

    def close(self) -> None:
        """Complete the files, merge small ones, and make the index and the tables that follow from others.

        Another writer may go on with the archive later, and close it again.
        """
        problems: list[StorageError] = []
        for step in (
            *(warc.close for warc in self._warcs.values()),
            lambda: self.prepare()(),
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

    def _keep(self, series: str, fetched: Fetched, original: Original | None = None) -> Stored:
        return self._warcs[series].write_exchange(
            fetched.url,
            fetched.request,
            fetched.response,
            fetched.address,
            fetched.time,
            fetched.truncated or None,
            original,
            fetched.payload,
            fetched.digests,
        )

    def _table(self, name: str) -> TableFolder:
        return open_table(self._env, self._folder, name, self._group)

    def _buffers(self) -> dict[str, Buffer[Any]]:
        return {**self._rows, "links": self._links}

    def _last_writes(self) -> dict[str, int]:
        return {name: buffer.last() for name, buffer in self._buffers().items()}

    def _conclude(self) -> None:
        if self._committed is not None and self._committed != self._last_writes():
            return  # there was no commit: the last rows will come from the journal again
        for name in self._buffers():
            self._table(name).compact()
            give_back()  # or what each step has left would add up
        # Imported here: the kernels of DRUM take a moment to load, and an archive needs them last.
        from barkspider.archive.duplicates import find_duplicates

        if self._settings.duplicates:
            find_duplicates(self._env, self._folder, _DIGESTS * self._group, self._earlier)
            give_back()
        self._table("domains").replace(domain_rows(self._env, self._folder, _DOMAINS * self._group))

    def _domain_of(self, url: str) -> str:
        return self._host_facts(split(url).host)[0]

    def _find_host_facts(self, host: str) -> tuple[str, str | None]:
        name = host.rstrip(".")
        return self._domains.pay_level(host), None if is_address(host) else name.rpartition(".")[2]

    def _fetch_columns(
        self, fetched: Fetched, stored: Stored, outcome: str, redirect: str
    ) -> tuple[Any, ...]:
        """What the tables of pages and of robots.txt have in common behind their first column."""
        scheme, host, port, target = split(fetched.url)
        domain, top = self._host_facts(host)
        path, mark, query = target.partition("?")
        return (
            fetched.url,
            stored.url_key,
            scheme,
            host,
            domain,
            top,
            port,
            path,
            query if mark else None,
            micros(fetched.time),
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


def _decoded_digest(stored: Stored, sha1: bytes | None) -> str | None:
    """That of the payload where nothing was encoded."""
    if sha1 is None:
        return None
    return base_32(sha1) if sha1 else stored.digest


_ROW_TABLES = ("pages", "robots", "errors", "listings", "batches", "decisions")
UNCHANGED = "unchanged"


def _metadata(
    row: UrlRow, fetched: Fetched, outcome: str, links: Sequence[bytes] | None
) -> list[tuple[str, str]]:
    """Named as Heritrix names them: L is a link, E a requisite, R a redirect. `answer` is the header of a 304, line by line."""
    needed = "E" if row.flags & Flag.REQUISITE else ""
    further = "R" if row.flags & Flag.REDIRECT or not needed else needed
    fields = [
        ("hopsFromSeed", "L" * row.depth + needed + further * row.hops),
        ("fetchTimeMs", str(round(fetched.seconds * 1000))),
        ("fetchPhasesMs", " ".join(f"{name}={1000 * part:.1f}" for name, part in fetched.phases.items())),
        ("outcome", outcome),
    ]
    if outcome == UNCHANGED:
        fields += [
            ("answer", line)
            for line in (fetched.response + fetched.payload).decode("latin-1").splitlines()
            if line
        ]
    return fields + [("outlink", url.decode()) for url in links or ()]
