"""A crawl read back: its tables, its pages, what it holds of a URL. The crawl may still be running."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from barkspider.archive import Record, WarcFile, open_table, warc_files
from barkspider.archive.captures import captures, read_capture, whole_response
from barkspider.archive.schemas import SCHEMAS
from barkspider.archive.tables import TableFolder
from barkspider.core.errors import StorageError, UrlError, UsageError
from barkspider.core.settings import Page as PageSettings
from barkspider.core.settings import Settings, UrlRules
from barkspider.engine.borrowing import lending
from barkspider.engine.domain_aliases import ERRORS, PAGES, domain_aliases, renamed
from barkspider.engine.folder import archive_folders, check_job
from barkspider.engine.history import read_history
from barkspider.engine.samples import Samples, merge
from barkspider.engine.trust import read_settings
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import MANIFEST, read_manifest
from barkspider.url import Domains, KeyMaker, Normaliser, parse

# What reads pages takes compiled kernels: it is imported by what needs it, so that an answer to SQL need not wait for it.
if TYPE_CHECKING:
    from barkspider.engine.pages import CrawledPage
    from barkspider.page import Page, PageReader


@dataclass(frozen=True)
class StoredPage:
    """An exchange of the archive. `body` has its transfer and content codings taken off."""

    url: str
    time: datetime
    status: int
    headers: list[tuple[str, str]]
    body: bytes
    raw: bytes
    revisit: bool

    def header(self, name: str) -> str:
        """The first header of this name, or ""."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), "")

    @property
    def is_html(self) -> bool:
        """Whether the body is HTML, by what the server says and by what it is."""
        from barkspider.page import is_html

        return is_html(self.header("content-type") or None, self.body)

    @cached_property
    def charset(self) -> str:
        """The encoding of the body, by its WHATWG name."""
        from barkspider.page import find_charset

        return find_charset(self.body, self.header("content-type") or None)

    @cached_property
    def markup(self) -> str:
        """The body as characters."""
        from barkspider.page.charset import decode

        return decode(self.body, self.charset)

    @cached_property
    def read(self) -> Page:
        """What reading the page shows: its links, title, description, language."""
        return _reader().read(self.body, self.header("content-type") or None, self.url)

    @property
    def title(self) -> str:
        """The title of an HTML page, or ""."""
        return self.read.title

    @cached_property
    def links(self) -> list[str]:
        """The links of an HTML page as canonical URLs, each once, whatever the scope of the crawl was."""
        if not self.is_html:
            return []
        rules, read = UrlRules(), self.read
        normalise = Normaliser(rules, Domains(rules.private_suffixes))
        return normalise.many(read.links, parse(read.base), Counter())[0]

    @property
    def text(self) -> str:
        """The text of an HTML page without markup, or the body as it is."""
        if not self.is_html:
            return self.markup
        return _reader().text(self.body, self.header("content-type") or None)


_kept = threading.local()  # a reader keeps its buffers: each thread has its own


def _reader() -> PageReader:
    from barkspider.page import PageReader

    if not hasattr(_kept, "reader"):
        _kept.reader = PageReader(PageSettings())
    found: PageReader = _kept.reader
    return found


def open_job(path: Path | str) -> StoredJob:
    """Open the folder of a crawl to read from it.

    job = barkspider.open_job("jobs/example")
    job.query("SELECT fetch_status, count(*) FROM pages GROUP BY ALL").to_pylist()
    for page in job.pages():
        print(page.url, page.title)
    """
    return StoredJob(Path(path))


class StoredJob:
    """A job to read from; it holds nothing open and takes no lock. One thread."""

    def __init__(self, path: Path) -> None:
        check_job(path, part=True)  # reading a part of one does no harm
        self.path, self.archives = path, [folder / "archive" for folder in archive_folders(path)]
        self._env = Env()
        self.env = lending(path, self.archives)  # for pages, which may be in the store only

    @cached_property
    def settings(self) -> Settings:
        """The settings that the crawl was given."""
        return read_settings(self._env, self.path)

    def query(
        self, sql: str, parameters: Sequence[str] = (), *, scratch: str = "", **bounds: float
    ) -> pa.Table:
        """The answer to a SELECT over pages, links, domains, robots, errors, listings, batches, duplicates, parallel
        and history. Each ? stands for one of the `parameters`; `seconds`, `rows` and `memory` bound what it may take,
        `scratch` is a folder for what does not fit in memory (`archive.views.QueryBounds`).
        """
        # Here: a crawl does not wait for DuckDB to load.
        from barkspider.archive.views import QueryBounds, ask

        limits = QueryBounds(
            bounds.get("seconds", 0.0), int(bounds.get("rows", 0)), int(bounds.get("memory", 0)), scratch
        )
        return ask(self._env, self.archives, sql, {"history": self._history}, parameters, limits)

    def history(self) -> Samples:
        """The time series of the crawl, of all its parts together, as its last checkpoint has it."""
        whole = Samples.empty()
        # The parts of each generation together; the next ones have counted on from there.
        for _, archives in groupby(self.archives, lambda archive: archive.parent.parent):
            whole = whole.joined(merge([read_history(self._env, archive.parent) for archive in archives]))
        return whole

    def _history(self) -> pa.Table:
        """The table: of parts, each row has the number of its part."""
        tables = [read_history(self._env, archive.parent).table() for archive in self.archives]
        if len(tables) > 1:
            tables = [
                table.append_column("part", pa.array([number] * len(table), pa.uint16()))
                for number, table in enumerate(tables)
            ]
        return pa.concat_tables(tables)

    def table(self, name: str) -> pa.Table:
        """A whole table, in memory."""
        if name not in SCHEMAS:
            raise UsageError(f"there is no table {name!r}; there are {', '.join(SCHEMAS)}")
        if name == "domains" and len(self.archives) > 1:
            return self.query("SELECT * FROM domains")  # who links to a domain is known to all parts together
        return pa.concat_tables([open_table(self._env, archive, name).read() for archive in self.archives])

    def domain_links(self, merged: Mapping[str, str] | None = None) -> Iterator[pa.RecordBatch]:
        """The domains of both ends of every link, a few rows at a time: `source_domain`, `target_domain`.

        A pair comes as often as there are links, and more often when the crawl, still running, merges files
        of the table meanwhile. `merged` has other names for some domains (`domain_aliases`).
        """
        for batch in self._batches("links", ["source_domain", "target_domain"]):
            if merged:
                columns = [renamed(column, merged) for column in batch.columns]
                batch = pa.RecordBatch.from_arrays(columns, schema=batch.schema)
            yield batch

    def domain_aliases(self) -> dict[str, str]:
        """Domains that, as far as the crawl has seen, only redirect to another one, and to which."""
        pages, errors = self._batches("pages", PAGES), self._batches("errors", ERRORS)
        return domain_aliases(pages, errors, Domains(self.settings.url.private_suffixes))

    def known(self, urls: Sequence[str]) -> set[str]:
        """Those of some canonical URLs that were fetched, or tried to, by what the tables have."""
        keys = KeyMaker(self.settings.seed)
        wanted = {keys.of(url): url for url in urls}
        values = pa.array(wanted, pa.uint64())
        found: set[str] = set()
        for table in ("pages", "errors"):
            for batch in self._batches(table, ["key"]):
                hits = batch["key"].filter(pc.is_in(batch["key"], values)).unique().to_pylist()
                found.update(wanted[key] for key in hits if key in wanted)
        return found

    def pages(self, prefix: str = "pages") -> Iterator[StoredPage]:
        """Every exchange in the order it was archived; with `prefix` robots, those of robots.txt."""
        for archive in self.archives:
            for path in warc_files(self.env, archive, f"{prefix}-"):
                with WarcFile.find(self.env, path) as file:
                    for record in file:
                        if record.kind in ("response", "revisit"):
                            yield self.stored(archive, record)

    def changes(self, since: str = "") -> Iterator[CrawledPage]:
        """Every page in the order it was archived, behind the one whose `cursor` is given, as far as the last checkpoint
        goes (`checkpoint`, a minute). Whoever keeps the cursor together with what it made of the page gets each page
        exactly once, whatever is killed meanwhile: this reader, the crawl, or both.

        cursor = load()
        for page in barkspider.open_job("jobs/example").changes(since=cursor):
            store(page.url, page.text, page.cursor)
        """
        from barkspider.engine.changes import changes

        return changes(self, since)

    def write_wacz(self, output: Path) -> dict[str, int]:
        """Pack what the crawl last committed into a WACZ file; how many WARC files, captures and pages that is."""
        from barkspider.archive.wacz import write_wacz

        archives = [(archive, self._committed(archive.parent)) for archive in self.archives]
        return write_wacz(self.env, archives, output, title=self.path.absolute().name)

    def _committed(self, folder: Path) -> dict[str, Any] | None:
        """What the archive of a job, or of a part of one, has in the last checkpoint."""
        return read_manifest(self._env, folder)[1].get("kept") if (folder / MANIFEST).exists() else None

    def captures(self, url: str) -> list[dict[str, Any]]:
        """What the index says of a URL, oldest first; the URL may be written in any way."""
        return [capture for _, capture in self._captures(self._canonical(url))]

    def page(self, url: str) -> StoredPage:
        """The newest exchange of a URL; raises `UsageError` when there is none."""
        found = self._captures(self._canonical(url))
        if not found:
            raise UsageError(f"{url} is not in {self.path}")
        archive, capture = found[-1]
        return self.stored(archive, read_capture(self.env, archive, capture))

    def _captures(self, url: str) -> list[tuple[Path, dict[str, Any]]]:
        """What the indexes have of a canonical URL, oldest first, each with its archive."""
        found = [(archive, each) for archive in self.archives for each in captures(self.env, archive, url)]
        return sorted(found, key=lambda each: str(each[1]["timestamp"]))

    def _others(self, archive: Path) -> list[Path]:
        """Where what a record refers to may lie as well, if the crawl was divided anew since that was stored."""
        return [other for other in self.archives if other != archive]

    def _batches(self, name: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Rows of a table; from the beginning again when a crawl that runs has merged files of it meanwhile."""
        for archive in self.archives:
            yield from _batches(open_table(self._env, archive, name), columns)

    def _canonical(self, url: str) -> str:
        """The URL as the crawl would have normalised it, or exactly as written if only that was fetched."""
        try:
            written = str(parse(url).with_fragment(None))
            if not written.startswith(("http://", "https://")):
                raise UrlError("scheme")
            rules = self.settings.url
            normal = Normaliser(rules, Domains(rules.private_suffixes))(url)
        except UrlError as error:
            raise UsageError(f"{url!r} is not a URL ({error.reason})") from error
        return written if self._captures(written) else normal

    def stored(self, archive: Path, record: Record) -> StoredPage:
        """A record of an archive of this job, read; where it refers to another, with that one's payload."""
        from barkspider.fetch.decoding import decode
        from barkspider.fetch.message import read_whole

        try:
            raw = whole_response(self.env, archive, record, self._others(archive))
        except StorageError:
            raw = record.block  # its original was moved away: what is here is the header
        answer = read_whole(raw)
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.headers]
        packed = ",".join(value for name, value in headers if name.lower() == "content-encoding")
        limits = self.settings.fetch
        body, _ = decode(answer.body, packed, limits, max(limits.max_decoded, len(raw)))
        try:
            time = datetime.fromisoformat(record.header["warc-date"])
        except (KeyError, ValueError) as error:
            raise StorageError(
                f"the record of {record.url} in {archive} is damaged: it has no date"
            ) from error
        return StoredPage(
            record.url,
            time,
            answer.status,
            headers,
            body,
            raw,
            record.kind == "revisit",
        )


def _batches(table: TableFolder, columns: list[str]) -> Iterator[pa.RecordBatch]:
    while True:
        parts = table.parts()
        try:
            yield from table.batches(columns)
            return
        except StorageError:
            if parts == table.parts():
                raise
