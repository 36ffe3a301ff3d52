"""A crawl that is only its archive: outcomes, a journal of them, commits; and its recovery, as the engine does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from warcio.archiveiterator import ArchiveIterator

from barkspider.archive import (
    ArchiveWriter,
    Fetched,
    Note,
    PageFacts,
    WarcFile,
    batches_of,
    count_kept,
    decode_batch,
    encode_batch,
    error_note,
    open_table,
    recover,
    warc_files,
)
from barkspider.archive.cdxj import index_lines, index_name
from barkspider.archive.notes import located, schema_of
from barkspider.archive.reader import warc_number
from barkspider.core.batch import NO_URLS, UrlBatch
from barkspider.core.events import Prepared
from barkspider.core.load import replace
from barkspider.core.records import UrlRow
from barkspider.core.settings import Settings
from barkspider.storage.env import Env
from barkspider.storage.store.manifest import Store
from barkspider.url import KeyMaker

NOW = 1_800_000_000.0
KEYS = KeyMaker(7)
TABLES = ("pages", "robots", "errors", "links")


class Journalled(NamedTuple):
    """A record of the journal. `rows` is what the tables must hold because of it, by their names."""

    warc_ends: Mapping[str, tuple[str, int]]
    batches: Mapping[str, bytes]
    links: UrlBatch
    rows: Sequence[tuple[str, str]]


def describe(
    archive: ArchiveWriter,
    row: UrlRow,
    fetched: Fetched,
    outcome: str,
    facts: PageFacts,
    anchors: list[str | None] | None = None,
    **more: Any,
) -> list[Note]:
    """Keep a page and say what the engine says of one; its links are the first of their harvest."""
    notes = [archive.describe_page(row, fetched, archive.keep_page(fetched), outcome, facts, **more)]
    if facts.links is not None:
        texts = {url.decode(): text for url, text in zip(facts.links, anchors or (), strict=False) if text}
        linking = archive.describe_links(row, facts.links, anchors=texts)
        if linking is not None:
            notes.append(located(linking, 0, len(facts.links)))
    return notes


class Applied:
    """How many records were applied, committed together with the archive."""

    name = "applied"

    def __init__(self, count: int = 0) -> None:
        self.count = count

    def prepare(self) -> Prepared:
        state = {"count": self.count}
        return lambda: state

    def committed(self) -> None:
        return


class Crawl:
    """Writes an archive, and a journal in RAM; with the journal of a crawl that died, goes on with its archive."""

    def __init__(self, env: Env, folder: Path, journal: Sequence[Journalled] = (), **chosen: Any) -> None:
        self.env, self.folder = env, folder
        self.store = Store.open(env, folder)
        state = self.store.state("kept")
        self.applied = Applied((self.store.state("applied") or {"count": 0})["count"])
        later = journal[self.applied.count :]
        self.kept = count_kept(env, self.archive_folder, state, [entry.warc_ends for entry in later])
        later = later[: self.kept]
        env.make_folder(self.archive_folder)
        recovered = recover(env, self.archive_folder, state, later[-1].warc_ends if later else None)
        settings = replace(Settings(), {f"archive.{name}": value for name, value in chosen.items()})
        self.archive = ArchiveWriter(env, self.archive_folder, settings, {}, recovered)
        self.store.add(self.archive)
        self.store.add(self.applied)
        self.journal = [*journal[: self.applied.count], *later]

    @property
    def archive_folder(self) -> Path:
        return self.folder / "archive"

    def page(self, number: int, content: int | None = None) -> None:
        """Fetch a page with two links; its content may be that of another."""
        url = f"http://a.example/{number}"
        response = _response(number if content is None else content)
        fetched = Fetched(url, "192.0.2.1", b"GET /", response, "", NOW + number, 0.25)
        texts = [f"http://b.example/{number}/{each}".encode() for each in range(2)]
        links = UrlBatch.of(texts, key=KEYS.column(texts), host_key=[1, 1], pld_key=[2, 2], depth=1)
        row = UrlRow(KEYS.of(url), 1, 1, 2, 1, 0, 0, url.encode())
        notes = describe(self.archive, row, fetched, "ok", PageFacts(title="T", links=texts))
        self._note(notes, [("pages", url), *(("links", text.decode()) for text in texts)], links)

    def robots(self, number: int) -> None:
        """Fetch a robots.txt."""
        origin = f"http://{number}.example"
        fetched = Fetched(
            f"{origin}/robots.txt", "192.0.2.1", b"GET /", _response(number), "", NOW + number, 0.25
        )
        self._note([self.archive.keep_robots(origin, fetched, "ok")], [("robots", fetched.url)])

    def error(self, number: int) -> None:
        """Find no server."""
        url = f"http://c.example/{number}"
        self._note([error_note(NOW, "page", "timeout_connect", "c.example", url)], [("errors", url)])

    def apply(self) -> None:
        """Apply every record of the journal."""
        for entry in self.journal[self.applied.count :]:
            batches = {name: decode_batch(data, schema_of(name)) for name, data in entry.batches.items()}
            self.archive.add(batches, entry.links)
        self.applied.count = len(self.journal)

    def close(self) -> None:
        """End the crawl."""
        self.apply()
        self.store.commit()
        self.archive.close()

    def check(self) -> None:
        """Tables have every applied row once, WARC files are whole and hold what the journal says, no more."""
        env, folder = self.env, self.archive_folder
        self.archive.prepare()()
        expected = [row for entry in self.journal[: self.applied.count] for row in entry.rows]
        for table in TABLES:
            column = "target_url" if table == "links" else "url"
            found = open_table(env, folder, table).read()[column].to_pylist()
            assert found == [value for name, value in expected if name == table]
        check_warcs(env, folder, [row for entry in self.journal for row in entry.rows])

    def _note(
        self, notes: Sequence[Note], rows: Sequence[tuple[str, str]], links: UrlBatch = NO_URLS
    ) -> None:
        self.archive.flush()
        batches = {name: encode_batch(batch) for name, batch in batches_of(notes).items()}
        self.journal.append(Journalled(self.archive.warc_ends(), batches, links, rows))


def check_warcs(env: Env, folder: Path, rows: Sequence[tuple[str, str]]) -> None:
    """The closed files hold exactly these exchanges, in order, and each has its index."""
    for series in ("pages", "robots"):
        urls = []
        for path in sorted(warc_files(env, folder, f"{series}-"), key=lambda path: warc_number(path.name)):
            with WarcFile(env, path) as file:
                records = list(file)
            urls += [record.url for record in records if record.kind == "response"]
            kinds = [record.kind for record in records]
            assert kinds == ["warcinfo", *["request", "response"] * (len(kinds) // 2)]
            assert len(kinds) > 1
            if path.name.endswith(".gz"):
                data = BytesIO(env.read(path))
                for kind, each in zip(kinds, ArchiveIterator(data, check_digests="raise"), strict=True):
                    each.content_stream().read()
                    assert each.rec_type == kind
            if not path.name.endswith(".open"):
                assert env.read(folder / index_name(path.name)) == b"".join(index_lines(env, path))
        assert urls == [url for name, url in rows if name == series]


def _response(number: int) -> bytes:
    body = b"%d" % number * 40
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
