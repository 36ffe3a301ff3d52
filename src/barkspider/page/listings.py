"""Lists of a site's pages that are made for programs: sitemaps (sitemaps.org), RSS and Atom.

Read by the standard library's expat, as a stream of events: in linear time, without a tree, and without anything that a
document type declares (a document with an internal subset, in which entities are declared, is read up to there). Whatever
breaks the rules of XML ends the reading; what came before it counts. At most 50,000 entries of a list are taken. What makes
much work of few bytes ends it too: more elements and attributes than bytes are worth, and tags or comments without end.
"""

from __future__ import annotations

import re
import zlib
from typing import NamedTuple
from xml.parsers import expat

MOST = 50_000  # entries; a sitemap may have no more (sitemaps.org), and no feed comes near it
_DEEPEST = 100  # elements within each other; lists have six
_LONGEST_FIELD = 100  # characters of a date, a frequency, a priority
_HEAD = 4096  # bytes in which the root of a list is looked for
_PIECE = (
    1 << 16
)  # bytes given to the parser at a time, so that a list that is long enough is not read to its end
_WORTH = 16  # bytes for each element and attribute; real lists have 25 and more
_FREE = 1000  # of these in any list
_LONGEST_TOKEN = 1 << 17  # bytes of a tag or a comment: expat begins anew with it at each piece
_BLANKS = {ord(sign): None for sign in "\t\n\r"}  # what no URL keeps
_ROOT = re.compile(
    rb"\s*+(?:\xef\xbb\xbf)?(?:<\?[^>]*+>|<!--.*?-->|<!DOCTYPE[^>\[]*+(?:\[.*?\]\s*+)?>|\s++)*+<(?:\w++:)?(urlset|sitemapindex|rss|feed|RDF)[\s>]",
    re.S,
)
_GZIP = frozenset(("application/gzip", "application/x-gzip", "application/octet-stream"))
_LINES = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s*+https?://[^\s]++[ \t]*+(?:[\r\n]++|$))++")

_SITEMAPS = frozenset(("urlset", "sitemapindex"))
# What an entry is, by what it lies in: other things within one may have the same names.
_ENTRIES = frozenset(
    (
        *(("urlset", "url"), ("sitemapindex", "sitemap")),
        *(("channel", "item"), ("RDF", "item"), ("rss", "item"), ("feed", "entry")),
    )
)
# Where the fields of an entry stand, by the element and by what it lies in.
_FIELDS = {
    ("url", "loc"): "url",
    ("sitemap", "loc"): "url",
    ("item", "link"): "url",
    ("item", "guid"): "guid",
    ("channel", "link"): "own",
    ("url", "lastmod"): "modified",
    ("sitemap", "lastmod"): "modified",
    ("item", "pubDate"): "modified",
    ("item", "date"): "modified",
    ("entry", "updated"): "modified",
    ("news", "publication_date"): "modified",
    ("url", "changefreq"): "frequency",
    ("url", "priority"): "priority",
}
_FOLLOWED = frozenset(
    ("", "alternate", "next", "prev-archive")
)  # kinds of links of feeds; others are about the feed


class Listed(NamedTuple):
    """An entry of a list: a URL and what the list says of it, as written; "" where it says nothing."""

    url: str
    modified: str = ""
    frequency: str = ""
    priority: str = ""


class Listing(NamedTuple):
    """What a list names: `pages`, further lists (`lists`, of a sitemap index), `others` (versions in other languages, the
    next part of a feed). `cut` says that it was not read to its end, `damage` why, if that is a fault of the list."""

    pages: list[Listed]
    lists: list[Listed]
    others: list[str]
    is_sitemap: bool
    cut: bool = False
    damage: str = ""


def read_listing(media_type: str, body: bytes, most: int) -> Listing | None:
    """The list that a body is, of which at most `most` bytes, unpacked, are read; None if it is none.

    >>> feed = b"<rss><channel><item><link>http://a.example/1</link><pubDate>today</pubDate></item></channel></rss>"
    >>> read_listing("application/rss+xml", feed, 1000).pages
    [Listed(url='http://a.example/1', modified='today', frequency='', priority='')]
    >>> read_listing("text/plain", b"http://a.example/1\\nhttp://a.example/2\\n", 1000).pages[1].url
    'http://a.example/2'
    >>> read_listing("text/html", b"<p>", 1000) is None
    True
    """
    cut = False
    if media_type in _GZIP and body.startswith(b"\x1f\x8b"):
        if not _ROOT.match(_inflate(body, _HEAD)):
            return None
        body = _inflate(body, most + 1)
        media_type = "text/xml"
    if len(body) > most:
        body, cut = body[:most], True
    if media_type == "text/plain":
        return _read_lines(body, cut)
    if not media_type.endswith("xml") or not (root := _ROOT.match(_head(body))):
        return None
    reader = _Reader(root[1].decode() in _SITEMAPS)
    reader.read(body)
    own = [url for url in reader.own if url]
    return Listing(
        reader.pages,
        reader.lists,
        own + reader.others,
        reader.is_sitemap,
        cut or reader.cut,
        "" if cut else reader.damage,
    )


def _head(body: bytes) -> bytes:
    """The beginning of a document, in letters that are as in ASCII."""
    head = body[:_HEAD]
    return head.decode("utf-16", "ignore").encode() if head[:2] in (b"\xff\xfe", b"\xfe\xff") else head


def _read_lines(body: bytes, cut: bool) -> Listing | None:
    """A text with nothing but URLs, one to a line: a sitemap too."""
    whole = body[: body.rindex(b"\n") + 1] if cut and b"\n" in body else body
    if not _LINES.fullmatch(whole):
        return None
    urls = whole.decode("utf-8-sig", "replace").split(
        None, MOST
    )  # behind those that are taken, the rest as it is
    return Listing([Listed(url) for url in urls[:MOST]], [], [], True, cut or len(urls) > MOST)


def _inflate(body: bytes, most: int) -> bytes:
    """The first bytes of what was packed by gzip; what is damaged ends there."""
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(body, most)
    except zlib.error:
        return b""


class _Stop(Exception):  # noqa: N818  (not an error: enough was read)
    pass


class _Reader:
    """What expat tells, as entries. One document."""

    def __init__(self, is_sitemap: bool) -> None:
        self.is_sitemap = is_sitemap
        self.pages: list[Listed] = []
        self.lists: list[Listed] = []
        self.others: list[str] = []
        self.own: list[str] = []
        self.cut, self.damage = False, ""
        self._within: list[str] = []  # names of the elements that are open, without prefixes
        self._entry: dict[str, str] = {}
        self._field, self._text = "", list[str]()
        self._left = 0  # elements and attributes that may come yet

    def read(self, body: bytes) -> None:
        self._left = _FREE + len(body) // _WORTH
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._declare
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._say
        try:
            for start in range(0, len(body), _PIECE):
                parser.Parse(body[start : start + _PIECE], False)
                if start + _PIECE - parser.CurrentByteIndex > _LONGEST_TOKEN:
                    self.damage = "a tag or a comment in it has no end"
                    raise _Stop
            parser.Parse(b"", True)
        except _Stop:
            self.cut = True
        except (expat.ExpatError, LookupError, ValueError) as error:  # the others are about the encoding
            self.cut, self.damage = True, str(error)

    def _declare(self, _name: str, _system: str | None, _public: str | None, has_subset: int) -> None:
        if has_subset:
            self.damage = "it declares entities"
            raise _Stop

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._left -= 1 + len(attributes)
        if self._left < 0:
            self.damage = "it is made of too many small elements"
            raise _Stop
        name = name.rpartition(":")[2]
        parent = self._within[-1] if self._within else ""
        self._within.append(name)
        if len(self._within) > _DEEPEST:
            self.damage = "its elements are too deep within each other"
            raise _Stop
        if (parent, name) in _ENTRIES:
            self._entry = {"about": attributes.get("rdf:about", "")}
        elif name == "link" and "href" in attributes and parent in ("url", "entry", "feed", "channel"):
            self._link(parent, attributes)
        self._field = _FIELDS.get((parent, name), "")
        if self._field == "guid" and attributes.get("isPermaLink", "true") != "true":
            self._field = ""
        self._text.clear()

    def _link(self, parent: str, attributes: dict[str, str]) -> None:
        kind = attributes.get("rel", "")
        if kind in _FOLLOWED:
            url = _clean(attributes["href"])
            if parent == "entry" and "url" not in self._entry and kind != "next":
                self._entry["url"] = url
            elif len(self.others) < MOST:
                self.others.append(url)

    def _say(self, text: str) -> None:
        if self._field:
            self._text.append(text)

    def _end(self, name: str) -> None:
        name = self._within.pop()
        if self._field:
            text = _clean("".join(self._text))
            if self._field == "own":
                self.own = [text]
            elif self._field in ("url", "guid"):
                self._entry.setdefault(self._field, text)
            else:
                self._entry.setdefault(self._field, text[:_LONGEST_FIELD])
            self._field = ""
        if self._within and (self._within[-1], name) in _ENTRIES:
            entry = self._entry
            url = entry.get("url") or entry.get("guid") or entry.get("about", "")
            if url:
                listed = Listed(
                    url, entry.get("modified", ""), entry.get("frequency", ""), entry.get("priority", "")
                )
                (self.lists if name == "sitemap" else self.pages).append(listed)
                if len(self.pages) + len(self.lists) >= MOST:
                    raise _Stop


def _clean(text: str) -> str:
    return text.translate(_BLANKS).strip()
