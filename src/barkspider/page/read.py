"""Reading a page: its links, its title, and what it asks of robots.

The page is read as a stream of tokens, never as a tree: a conforming tree grows with the square of the
formatting tags that a hostile page leaves open, a stream costs the same per byte whatever the page holds.
The tokenizer knows that the content of scripts, styles, textareas and comments is no markup.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from turbohtml import Token, TokenType, tokenize
from url import URL

from barkspider.core.errors import UrlError
from barkspider.page.charset import decode, find_charset
from barkspider.page.directives import header_directives, meta_directives, refresh_target
from barkspider.url import parse

_TITLE_LENGTH = 500
# Where a tag keeps its link; the others among _WATCHED have meanings of their own.
_LINK_ATTRIBUTES = {"a": "href", "area": "href", "frame": "src", "iframe": "src"}
_WATCHED = frozenset((*_LINK_ATTRIBUTES, "base", "link", "meta", "noscript", "svg", "template", "title"))


@dataclass(frozen=True, slots=True)
class Page:
    """What a crawl wants to know of a page.

    `links` are as written, each once, in document order, and relative to `base`, which is an absolute URL:
    that of `<base href>`, or the page's own. `canonical` is as written, too. `links_cut` says that there
    were more links than allowed.
    """

    links: list[str]
    base: str
    title: str
    charset: str
    follow: bool
    index: bool
    canonical: str | None
    links_cut: bool


def read_page(
    body: bytes,
    content_type: str | None,
    url: str,
    max_links: int = 10_000,
    agent: str = "barkspider",
    headers_robots: str | None = None,
) -> Page:
    """Read the HTML page at `url`. Whatever the bytes, this gives a `Page`.

    `agent` is the name under which meta tags and `headers_robots`, the X-Robots-Tag header, may speak to us.

    >>> page = read_page(b"<title>A  page</title><a href=b.html>B</a>", "text/html", "http://example.com/a/")
    >>> page.title, page.links, page.base, page.follow
    ('A page', ['b.html'], 'http://example.com/a/', True)
    """
    charset = find_charset(body, content_type)
    reader = _Reader(url, max_links, agent.lower())
    if headers_robots:
        reader.obey(header_directives(headers_robots, agent))
    reader.read(decode(body, charset))
    return Page(
        links=list(reader.links),
        base=url if reader.base is None else str(reader.base),
        title=reader.title or "",
        charset=charset,
        follow=reader.follow,
        index=reader.index,
        canonical=reader.canonical,
        links_cut=reader.links_cut,
    )


class _Reader:
    """Collects from the tokens of one page."""

    def __init__(self, url: str, max_links: int, agent: str) -> None:
        self._url = url
        self._max_links = max_links
        self._robots_names = ("robots", agent)
        self._templates = 0
        self._drawings = 0
        self._in_noscript = False
        self.links: dict[str, None] = {}
        self.links_cut = False
        self.base: URL | None = None
        self.title: str | None = None
        self.canonical: str | None = None
        self.follow = True
        self.index = True

    def obey(self, directives: Iterable[str]) -> None:
        """Take directives in: one that forbids is never taken back by another."""
        for directive in directives:
            if directive in ("nofollow", "none"):
                self.follow = False
            if directive in ("noindex", "none"):
                self.index = False

    def read(self, text: str) -> None:
        tokens = tokenize(text)
        for token in tokens:
            # Most tokens end here, so this line is most of the cost that is not the tokenizer's.
            if token.tag not in _WATCHED:
                continue
            tag = token.tag
            attribute = _LINK_ATTRIBUTES.get(tag)
            if attribute is not None:
                target = token.attr(attribute)  # an end tag has none
                if target is not None and not self._templates and not _is_nofollow(token):
                    self._add(target)
            elif token.type == TokenType.END_TAG:
                self._leave(tag)
            else:
                self._enter(tag, token)
                if tag in ("title", "noscript"):
                    # Both hold one run of text: the next token, if anything follows at all.
                    self._content(tag, next(tokens, None))

    def _add(self, target: str) -> None:
        if target not in self.links:
            if len(self.links) >= self._max_links:
                self.links_cut = True
            else:
                self.links[target] = None

    def _enter(self, tag: str, token: Token) -> None:
        if tag == "template":
            self._templates += 1
        elif tag == "svg":
            self._drawings += not token.self_closing
        elif self._templates:
            return
        elif tag == "link":
            self._link(token)
        elif tag == "meta":
            self._meta(token)
        elif tag == "base" and self.base is None:
            self._rebase(token.attr("href"))

    def _leave(self, tag: str) -> None:
        if tag == "template":
            self._templates = max(0, self._templates - 1)
        elif tag == "svg":
            self._drawings = max(0, self._drawings - 1)

    def _content(self, tag: str, token: Token | None) -> None:
        if token is None or token.type != TokenType.TEXT or self._templates:
            return
        text = token.data or ""
        if tag == "noscript":
            # The tokenizer takes it for text, as a browser with scripts does; to us it is markup. One inside
            # another is left out: each level would be another pass over the same text.
            if not self._in_noscript:
                self._in_noscript = True
                self.read(text)
                self._in_noscript = False
        elif self.title is None and not self._drawings:
            self.title = " ".join(text.split())[:_TITLE_LENGTH]

    def _link(self, token: Token) -> None:
        target, relations = token.attr("href"), (token.attr("rel") or "").lower().split()
        if target is None or "nofollow" in relations:
            return
        if "canonical" in relations:
            self.canonical = target if self.canonical is None else self.canonical
            self._add(target)
        elif "alternate" in relations:
            self._add(target)

    def _meta(self, token: Token) -> None:
        content = token.attr("content")
        if content is None:
            return
        if (token.attr("name") or "").strip().lower() in self._robots_names:
            self.obey(meta_directives(content))
        elif (token.attr("http-equiv") or "").strip().lower() == "refresh":
            target = refresh_target(content)
            if target is not None:
                self._add(target)

    def _rebase(self, target: str | None) -> None:
        if target is None:
            return
        try:
            base = parse(target, parse(self._url))
        except UrlError:
            return
        # The HTML standard ignores bases of other schemes (data:, javascript:).
        if base.scheme in ("http", "https"):
            self.base = base


def _is_nofollow(token: Token) -> bool:
    relations = token.attr("rel")
    return relations is not None and "nofollow" in relations.lower().split()
