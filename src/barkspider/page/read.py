"""Reading a page: its links, its title, its text, and what it asks of robots.

`scan` finds everything in one pass over the bytes and `Collector` makes text of the pieces. What was not
asked for is not looked at, so it costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from barkspider.core.settings import Page as PageSettings
from barkspider.page import scan
from barkspider.page.charset import SINGLE_BYTES, decode, find_charset, style_charset, to_utf8
from barkspider.page.collect import ANCHOR, MOST_REFERENCES, Bounds, Collector
from barkspider.page.css import style_urls
from barkspider.page.directives import header_directives
from barkspider.page.hrefs import REPEATS, Hrefs
from barkspider.page.listings import MOST, Listing
from barkspider.page.text import clean_text, detect_language, primary_language

_ANCHOR_BYTES = 1000  # of markup; what is longer is no text of a link
_FEW_ROWS, _MANY_ROWS = 4096, 16_384  # each takes up to 3 µs
_USUAL_BOUNDS = Bounds()


@dataclass(frozen=True, slots=True)
class Page:
    """What a crawl wants to know of a page.

    `hrefs` are its links, in document order, and relative to `base`, which is an absolute URL: that of `<base href>`,
    or the page's own; `links` are the same as strings, each once. So are `requisites` (what the page needs to be shown)
    and `canonical`. They are as written but for what no URL keeps: references, line ends, and, where the page is not in
    UTF-8, other letters in queries. `links_cut` says that there were more of either than allowed, `too_long` how many
    were longer than any may be and are not among them, `body_cut` that only the beginning of the page was read.
    `language` is what the page declares, `detected_language` what its text looks like: codes such as `pt`, or empty.
    `simhash` (of the text) and `anchors` (the first text of each link that has one) are None when they were not asked
    for. `listing` is what a sitemap or a feed says; its pages are the links, its further lists the requisites.
    """

    hrefs: Hrefs
    base: str
    charset: str
    title: str = ""
    description: str = ""
    language: str = ""
    detected_language: str = ""
    canonical: str | None = None
    follow: bool = True
    index: bool = True
    links_cut: bool = False
    body_cut: bool = False
    too_long: int = 0
    requisites: list[str] = field(default_factory=list)
    simhash: int | None = None
    anchors: dict[str, str] | None = None
    listing: Listing | None = None

    @property
    def links(self) -> list[str]:
        """The links as strings, which no crawl needs."""
        return self.hrefs.texts()


class PageReader:
    """Reads pages by the settings of a crawl. Keeps its buffers from page to page: one thread at a time.

    `agent` is the name under which robots directives may speak to us, `bounds` says how many targets of links count;
    a fragment makes no other target, and at most 16 times as many links are looked at.

    >>> reader = PageReader(PageSettings())
    >>> page = reader.read(b"<title>A  page</title><a href=b.html>B</a>", "text/html", "http://example.com/a/")
    >>> page.title, page.links, page.base, page.follow
    ('A page', ['b.html'], 'http://example.com/a/', True)
    """

    def __init__(
        self, settings: PageSettings, agent: str = "barkspider", bounds: Bounds = _USUAL_BOUNDS
    ) -> None:
        self._settings, self._agent, self._bounds = settings, agent, bounds
        self._robots_names = ("robots", agent.lower())
        self._needs_text = settings.simhash or settings.detect_language
        self._simhash: Callable[[str], int] | None = None
        if settings.simhash:  # its kernels are compiled for those who want it
            from barkspider.page.fingerprint import simhash

            self._simhash = simhash
        self._reads_text = self._needs_text or settings.anchors
        self._want = (
            scan.WANT_TEXT * self._needs_text
            | scan.WANT_REQUISITES * settings.requisites
            | scan.WANT_ANCHORS * settings.anchors
            | scan.WANT_FORMS * settings.forms
        )
        many = settings.requisites or settings.anchors
        self._rows = np.empty((_MANY_ROWS if many else _FEW_ROWS, scan.ROW), np.int64)
        self._lines = np.empty(1 << 16, np.uint8)
        self._plain = np.empty(settings.max_text if self._needs_text else 0, np.uint8)

    def read(
        self,
        body: bytes,
        content_type: str | None,
        url: str,
        robots_header: str | None = None,
        content_language: str | None = None,
    ) -> Page:
        """Read the HTML page at `url`. Whatever the bytes, this gives a `Page`.

        `robots_header` is X-Robots-Tag, several joined by line feeds; `content_language` is Content-Language.
        """
        settings = self._settings
        body_cut = len(body) > settings.max_parse
        if body_cut:
            body = body[: settings.max_parse]
        charset = find_charset(body, content_type)
        # Markup is the same in all charsets of single bytes; whoever wants text reads UTF-8.
        read_as = charset if charset in SINGLE_BYTES and not self._reads_text else "utf-8"
        found = Collector(
            body if read_as == charset != "utf-8" else to_utf8(body, charset),
            read_as,
            charset,
            url,
            self._robots_names,
            self._bounds,
            settings.requisites,
        )
        if robots_header:
            found.obey(header_directives(robots_header, self._agent))
        used, filled, written, left_out, too_long = self._scan(
            found.body, self._plain, self._want, found.longest
        )
        lines, rows = self._lines[:used].tobytes(), self._rows[:filled].tolist()
        hrefs = Hrefs.read(found.take(lines, rows), self._bounds.links)
        text = clean_text(self._plain[:written].tobytes()) if self._needs_text else None
        return Page(
            hrefs=hrefs,
            base=found.base or url,
            charset=charset,
            title=found.title,
            description=found.description,
            language=primary_language(found.language or content_language or ""),
            detected_language=detect_language(text) if settings.detect_language and text else "",
            canonical=found.canonical,
            follow=found.follow,
            index=found.index,
            links_cut=found.links_cut or hrefs.cut or left_out > 0,
            body_cut=body_cut,
            too_long=found.too_long + too_long,
            requisites=list(found.requisites),
            simhash=self._simhash(text) if self._simhash is not None and text else None,
            anchors=self._anchors(found, hrefs, lines, rows) if settings.anchors else None,
        )

    def read_style(self, body: bytes, content_type: str | None, url: str) -> Page:
        """Read the style sheet at `url`: it has requisites and nothing else."""
        most = self._settings.max_parse
        charset = style_charset(body, content_type)
        found = Collector(b"", charset, charset, url, (), self._bounds, requisites=True)
        found.need(style_urls(decode(body[:most], charset), found.longest))
        return Page(
            Hrefs(),
            url,
            charset,
            links_cut=found.links_cut,
            body_cut=len(body) > most,
            too_long=found.too_long,
            requisites=list(found.requisites),
        )

    @staticmethod
    def list_of(listing: Listing, url: str) -> Page:
        """A sitemap or a feed at `url` as a page."""
        links = [*(page.url for page in listing.pages), *listing.others]
        return Page(
            Hrefs.of(links, MOST),
            url,
            "",
            links_cut=listing.cut,
            requisites=[each.url for each in listing.lists],
            listing=listing,
        )

    def text(self, body: bytes, content_type: str | None) -> str:
        """The text of a page alone.

        >>> PageReader(PageSettings()).text(b"<p>One<p>two &amp; three<script>4</script>", None)
        'One\\ntwo & three'
        """
        body = body[: self._settings.max_parse]
        return self._text_of(to_utf8(body, find_charset(body, content_type)), self._settings.max_text)

    def _text_of(self, body: bytes, most: int) -> str:
        plain = np.empty(min(len(body), most), np.uint8)
        written = self._scan(body, plain, scan.WANT_TEXT, 0)[2]
        return clean_text(plain[:written].tobytes())

    def _scan(
        self, body: bytes, plain: npt.NDArray[np.uint8], want: int, longest: int
    ) -> tuple[int, int, int, int, int]:
        if len(self._lines) <= len(body):
            self._lines = np.empty(2 * len(body), np.uint8)
        text, words = np.frombuffer(body, np.uint8), np.frombuffer(body, np.uint64, len(body) >> 3)
        kernel: Any = scan.scan
        counts: tuple[int, int, int, int, int] = kernel(
            text, words, self._lines, self._rows, plain, want, longest
        )
        return counts

    def _anchors(self, found: Collector, hrefs: Hrefs, lines: bytes, rows: list[list[int]]) -> dict[str, str]:
        anchors: dict[str, str] = {}
        raw = lines.split(b"\n", REPEATS * hrefs.most)[:-1]
        starts = list(accumulate((len(line) + 1 for line in raw), initial=0))
        found.references_left = MOST_REFERENCES
        texts = found.links_of(lines[: starts[-1]]).decode().split("\n")[:-1]
        written, known = dict(zip(starts, texts, strict=False)), frozenset(hrefs.texts())
        for row in rows:
            link = written.get(row[1]) if row[0] == ANCHOR else None
            if link is not None and link in known and link not in anchors:
                start, end = row[scan.CONTENT], row[scan.CONTENT + 1]
                piece = found.body[start : min(end, start + _ANCHOR_BYTES)]
                text = self._text_of(piece, _ANCHOR_BYTES) if b"<" in piece else clean_text(piece)
                if text := " ".join(text.split()):
                    anchors[link] = text
        return anchors
