"""A page as programs get it: what its row in the table says at once, its bytes when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barkspider.archive import WarcFile

if TYPE_CHECKING:
    from barkspider.engine.stored import StoredJob, StoredPage

_OPEN = 4  # WARC files that stay open: pages come in the order of one, and revisits refer to others


class Exchanges:
    """Reads exchanges of a job by their rows. One thread; `close` lets go of its files."""

    def __init__(self, job: StoredJob) -> None:
        self._job, self._env = job, job.env
        self._files: dict[Path, WarcFile] = {}

    def read(self, archive: Path, row: Mapping[str, Any]) -> StoredPage:
        """The exchange that a row of the table `pages` stands for."""
        path = archive / str(row["warc_filename"])
        file = self._files.get(path)
        if file is None:
            if len(self._files) >= _OPEN:
                self._files.pop(next(iter(self._files))).close()
            file = self._files[path] = WarcFile.find(self._env, path)
        return self._job.stored(archive, file.record(int(row["warc_record_offset"])))

    def close(self) -> None:
        """Close the files; a later `read` opens them again."""
        while self._files:
            self._files.popitem()[1].close()


class CrawledPage:
    """A page that was answered: `outcome` is ok, redirect, unchanged, or a failure such as http_404.

    What its row says is there at once. `headers`, `body`, `text`, `links` and `raw` are read from the archive when they
    are asked for, in the thread that asks, so that a million pages in hand cost no more than their rows; `StorageError`
    where the WARC file was moved away. One thread.
    """

    def __init__(
        self,
        exchanges: Exchanges,
        archive: Path,
        row: Mapping[str, Any],
        cursor: Callable[[], str] | None = None,
    ) -> None:
        self._exchanges, self._archive, self._cursor = exchanges, archive, cursor
        self.row = row  # all columns of the table, by name (docs/formats/tables.md)

    @property
    def url(self) -> str:
        """The canonical URL that was asked for."""
        return str(self.row["url"])

    @property
    def time(self) -> datetime:
        """When the request was sent."""
        found: datetime = self.row["fetch_time"]
        return found.replace(tzinfo=UTC)

    @property
    def status(self) -> int:
        """The status of HTTP."""
        return int(self.row["fetch_status"])

    @property
    def outcome(self) -> str:
        """What became of it."""
        return str(self.row["outcome"])

    @property
    def redirect(self) -> str:
        """Where a redirect leads, or ""."""
        return self.row["fetch_redirect"] or ""

    @property
    def media_type(self) -> str:
        """What the bytes are, whatever the server says; "" where nobody looked."""
        return self.row["content_mime_detected"] or ""

    @property
    def language(self) -> str:
        """The language that the page declares, or was found to be in if `page.detect_language` is on; else ""."""
        return self.row["content_languages"] or ""

    @property
    def title(self) -> str:
        """The title, or ""."""
        return self.row["title"] or ""

    @property
    def depth(self) -> int:
        """Links from where depth is counted."""
        return int(self.row["depth"])

    @property
    def cursor(self) -> str:
        """Where `changes` goes on behind this page. Pages that come while they are crawled have none: ""."""
        return "" if self._cursor is None else self._cursor()

    @cached_property
    def stored(self) -> StoredPage:
        """The exchange as the archive has it."""
        return self._exchanges.read(self._archive, self.row)

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The header of the answer."""
        return self.stored.headers

    def header(self, name: str) -> str:
        """The first header of this name, or ""."""
        return self.stored.header(name)

    @property
    def body(self) -> bytes:
        """The content, with its transfer and content codings taken off."""
        return self.stored.body

    @property
    def raw(self) -> bytes:
        """The answer as it was received."""
        return self.stored.raw

    @property
    def text(self) -> str:
        """The text of an HTML page without markup, or the body as characters."""
        return self.stored.text

    @property
    def links(self) -> list[str]:
        """The links of an HTML page as canonical URLs, each once, in or out of scope."""
        return self.stored.links

    def __repr__(self) -> str:
        return f"<{self.outcome} {self.url}>"
