"""From what the scanner found to what a page says: links in order, requisites, title, directives."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import NamedTuple

from turbohtml import unescape

from barkspider.core.errors import UrlError
from barkspider.page import scan
from barkspider.page.charset import decode, encode_query
from barkspider.page.css import style_urls
from barkspider.page.directives import meta_directives, refresh_target
from barkspider.page.lexing import ATTRIBUTES
from barkspider.page.names import CODE
from barkspider.page.references import unescape_attribute
from barkspider.page.requisites import urls_of_srcset
from barkspider.url import parse

_TITLE_LENGTH = 500
_DESCRIPTION_LENGTH = 1000
# Times the limit of requisites: so many are looked at, each of which takes a microsecond.
_REPEATED_REQUISITES = 3
# Links that hold references, and these: they take a third of a microsecond each, so one of a megabyte would take long.
MOST_REFERENCES = 50_000
# Times the longest URL: as much markup may be a link, because references, fragments, dots and session ids go.
_MARKUP = 4
_MARK = scan.MARK.decode()
_LINE_ENDS = str.maketrans("", "", "\t\n\r")
_C0_OR_SPACE = "".join(map(chr, range(33)))

_PLACE = {name: 2 + 2 * place for place, name in enumerate(ATTRIBUTES)}
_NAME, _ORDER = _PLACE["name"], _PLACE["http-equiv"]
_BASE, _LINK, _META, _HTML, _FORM, _TITLE, _STYLE, _IFRAME = (
    CODE[name] for name in ("base", "link", "meta", "html", "form", "title", "style", "iframe")
)
ANCHOR = CODE["a"]
_FRAMES = frozenset((_IFRAME, CODE["frame"]))
_FOLLOWED = frozenset(("canonical", "alternate", "next", "prev"))
# What a page needs to be shown, by the relation of a <link>; an alternate stylesheet is one, too.
_NEEDED = frozenset(
    ("stylesheet", "preload", "modulepreload", "manifest", "icon", "mask-icon", "apple-touch-icon")
)
# Attributes of other tags that name what a page needs to be shown.
_ADDRESSES = ("src", "poster", "data", "background", "href", "xlink:href")


class Bounds(NamedTuple):
    """What counts of a page: so many targets of links and as many requisites, of so many characters each."""

    links: int = 10_000
    url: int = 2048


class Collector:
    """What is found in one page, as it comes up. `body` is the page in the charset `read_as`, `charset` what it was in."""

    def __init__(
        self,
        body: bytes,
        read_as: str,
        charset: str,
        url: str,
        robots_names: tuple[str, ...],
        bounds: Bounds,
        requisites: bool,
    ) -> None:
        self.body, self._read_as = body, read_as
        self._charset, self._url, self._robots_names = charset, url, robots_names
        self._bounds, self.longest = bounds, bounds.url * _MARKUP
        self._max_requisites = bounds.links if requisites else 0
        self._looked_at = 0  # requisites, those that repeat too
        self.references_left = MOST_REFERENCES
        self.requisites: dict[str, None] = {}
        self.links_cut = False
        self.too_long = 0  # links that no URL can be made of
        self.base: str | None = None
        self.canonical: str | None = None
        self.title = self.description = self.language = ""
        self.follow = self.index = True

    def obey(self, directives: Iterable[str]) -> None:
        """Take directives in: one that forbids is never taken back by another."""
        for directive in directives:
            if directive in ("nofollow", "none"):
                self.follow = False
            if directive in ("noindex", "none"):
                self.index = False

    def take(self, lines: bytes, rows: list[list[int]]) -> bytes:
        """Take in what the scanner found: the links of anchors, one to a line, and the rows of other tags. All links, one
        to a line, in UTF-8."""
        parts, done = [], 0
        for row in rows:
            code, before = row[0], row[1]
            target = None
            if code == _META:
                target = self._meta(row)
            elif code == _LINK:
                target = self._link(row)
            elif code in _FRAMES:
                target = self._address(row, "src")
                self.need([target or ""])
            elif code == _FORM:
                if (self._value(row, "method") or "get").strip().lower() != "post":
                    target = self._address(row, "action")
            else:
                self._other(code, row)
            if row[scan.STYLE] >= 0 and (style := self._value(row, "style")):
                self.need(style_urls(style, self.longest))
            if target is not None:
                parts += [self.links_of(lines[done:before]), self._clean(target).encode(), b"\n"]
                done = before
        return b"".join((*parts, self.links_of(lines[done:])))

    def links_of(self, lines: bytes) -> bytes:
        """The links of anchors, one to a line, in UTF-8 and without the references that some hold, up to the one that is
        too many."""
        if lines.isascii() and scan.MARK not in lines and b"\0" not in lines:  # in nearly every page
            return lines
        found = []
        for link in self._text(lines).split("\n")[:-1]:
            if link[:1] == _MARK:
                self.references_left -= 1 + link.count("&")
                if self.references_left < 0:
                    self.links_cut = True
                    break
                link = self._clean(unescape_attribute(link[1:]))
            elif self._charset != "utf-8":
                link = encode_query(link, self._charset)
            found.append(link + "\n")
        return "".join(found).encode()

    def _decoded(self, piece: bytes) -> str:
        if self._read_as == "utf-8":
            return piece.decode("utf-8", "replace")
        # Charsets of single bytes have the letters of ASCII, and looking a codec up takes longer than all else.
        return piece.decode("ascii") if piece.isascii() else decode(piece, self._read_as)

    def _text(self, piece: bytes) -> str:
        text = self._decoded(piece)
        return text.replace("\0", "\ufffd") if "\0" in text else text

    def _clean(self, target: str) -> str:
        """A link's text as the scanner writes those of anchors."""
        link = target.strip(_C0_OR_SPACE).translate(_LINE_ENDS)
        return link if self._charset == "utf-8" else encode_query(link, self._charset)

    def _address(self, row: list[int], attribute: str) -> str | None:
        """The value of an attribute that is a link, unless it is longer than one can be."""
        place = _PLACE[attribute]
        if row[place + 1] - row[place] <= self.longest:
            return self._value(row, attribute)
        self.too_long += self.body[row[place] : row[place] + 5].lower() != b"data:"
        return None

    def _value(self, row: list[int], attribute: str, most: int = sys.maxsize) -> str | None:
        """The value of an attribute, of which no more than `most` bytes are wanted."""
        place = _PLACE[attribute]
        start = row[place]
        if start < 0:
            return None
        value = self._text(self.body[start : min(row[place + 1], start + most)])
        return unescape_attribute(value) if "&" in value else value

    def _content(self, row: list[int]) -> str:
        start, end = row[scan.CONTENT : scan.CONTENT + 2]
        return self._decoded(self.body[start:end])

    def _meta(self, row: list[int]) -> str | None:
        if row[_NAME] >= 0:
            name = (self._value(row, "name") or "").strip().lower()
            if name in self._robots_names:
                self.obey(meta_directives(self._value(row, "content") or ""))
            elif name == "description" and not self.description:
                content = self._value(row, "content", 8 * _DESCRIPTION_LENGTH) or ""
                self.description = " ".join(content.split())[:_DESCRIPTION_LENGTH]
        if row[_ORDER] >= 0 and (self._value(row, "http-equiv") or "").strip().lower() == "refresh":
            return refresh_target(self._address(row, "content") or "")
        return None

    def _link(self, row: list[int]) -> str | None:
        relations = set((self._value(row, "rel") or "").lower().split())
        target = self._address(row, "href") if relations else None
        if "nofollow" in relations:
            return None
        if relations & _NEEDED:
            self.need([target or "", *urls_of_srcset(self._value(row, "imagesrcset") or "")])
            return None
        if target is None:
            return None
        if "canonical" in relations and self.canonical is None:
            self.canonical = self._clean(target)
        return target if relations & _FOLLOWED else None

    def _other(self, code: int, row: list[int]) -> None:
        if code == _TITLE:
            title = self._content(row)
            self.title = " ".join((unescape(title) if "&" in title else title).split())[:_TITLE_LENGTH]
        elif code == _HTML:
            self.language = self.language or (self._value(row, "lang") or "")
        elif code == _STYLE:
            self.need(style_urls(self._content(row), self.longest))
        elif code == _BASE:
            if self.base is None and (target := self._address(row, "href")) is not None:
                self.base = self._rebase(target)
        elif not code:
            self.need([self._address(row, "background") or ""])
        elif code != ANCHOR:
            if code == CODE["input"] and (self._value(row, "type") or "").strip().lower() != "image":
                return
            self.need(value for name in _ADDRESSES if (value := self._address(row, name)) is not None)
            self.need(urls_of_srcset(self._value(row, "srcset") or ""))

    def need(self, targets: Iterable[str]) -> None:
        """Take in what is needed to show the page; what is within the page itself is there already."""
        most = self._max_requisites
        for target in targets if most else ():
            self._looked_at += 1
            if self._looked_at > most * _REPEATED_REQUISITES:
                self.links_cut = True
                return
            if len(target) > self.longest:
                self.too_long += target[:5].lower() != "data:"
                continue
            link = self._clean(target)
            if not link or link[0] == "#" or link[:5].lower() == "data:" or link in self.requisites:
                continue
            if len(self.requisites) == most:
                self.links_cut = True
                return
            self.requisites[link] = None

    def _rebase(self, target: str) -> str:
        """The base that a page declares; the standard ignores other schemes (data:, javascript:)."""
        try:
            base = parse(target, parse(self._url))
        except UrlError:
            return self._url
        if base.scheme not in ("http", "https"):
            return self._url
        if len(text := str(base)) > self._bounds.url:
            self.too_long += 1
            return self._url
        return text
