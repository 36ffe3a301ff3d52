"""A stored graph as a web: its pages have the links of the graph and nothing else, and no robots.txt.

With names a page is at its URL (a name without a scheme is a host: its home page). Without, and where a name is no URL or
has come before, it is at `http://sSITE.example/NUMBER`. So a strategy can be tried live on the graph it was simulated on.
"""

from __future__ import annotations

import re
from functools import cached_property
from html import escape
from pathlib import Path
from zlib import crc32

import numpy as np

from barkspider.core.errors import UrlError
from barkspider.core.settings import UrlRules
from barkspider.lab.synthweb.answer import NOT_FOUND, Answer, Request
from barkspider.lab.synthweb.hazards import server_address
from barkspider.lab.webgraph import WebGraph, load_web
from barkspider.url import Domains, Normaliser, split

_NUMBERED = re.compile(r"s(\d{1,10})\.example", re.ASCII)
_CONTENT_TYPE = "text/html; charset=utf-8"
_HOSTS_A_SERVER = 4  # as the synthetic web has, about
_MOST_SERVERS = 250


class StoredWeb:
    """The pages of a `WebGraph`, ready to be served. One thread at a time; a URL in RAM for each page with a name.

    >>> web = StoredWeb(WebGraph.of([[1, 2], [0], []], site=[0, 0, 1]))
    >>> web.url(2), web.links("http://s0.example/0"), web.answer(Request("s1.example", "/9")).status
    ('http://s1.example/2', ['http://s0.example/1', 'http://s1.example/2'], 404)
    """

    seed = 0

    def __init__(self, graph: WebGraph, servers: int = 0, delay: float = 0.0) -> None:
        """With `servers` 0 their number follows from that of the sites; a page comes after `delay` seconds."""
        self._delay = delay
        self.graph = graph
        self.servers = servers or max(1, min(_MOST_SERVERS, graph.sites // _HOSTS_A_SERVER))
        self._numbers: dict[str, int] = {}
        self._urls: list[str] = []
        if graph.urls is not None:
            self._name(graph.urls.to_pylist())
        self._hosts = {split(url).host for url in self._numbers}
        self.has_https = any(url.startswith("https:") for url in self._numbers)

    @classmethod
    def load(cls, path: Path, servers: int = 0, delay: float = 0.0) -> StoredWeb:
        """The web in a file; see `lab.webgraph.load_web`."""
        return cls(load_web(path), servers, delay)

    def _name(self, names: list[str]) -> None:
        normalise = Normaliser(UrlRules(), Domains())
        for number, name in enumerate(names):
            try:
                url = normalise(name if "://" in name else f"http://{name}/")
            except UrlError:
                url = ""
            if not url or url in self._numbers or split(url).port not in (80, 443):
                url = self._numbered(number)
            self._numbers[url] = number
            self._urls.append(url)

    def _numbered(self, page: int) -> str:
        return f"http://s{self.graph.site[page]}.example/{page}"

    def url(self, page: int) -> str:
        """Where a page is."""
        return self._urls[page] if self._urls else self._numbered(page)

    def page_id(self, url: str) -> int | None:
        """The number of the page that is there."""
        if self._urls:
            return self._numbers.get(url)
        number = url.rpartition("/")[2]
        if not number.isascii() or not number.isdecimal() or int(number) >= self.graph.nodes:
            return None
        return int(number) if self._numbered(int(number)) == url else None

    def links(self, url: str) -> list[str]:
        """The links of a page."""
        page = self.page_id(url)
        return [] if page is None else [self.url(target) for target in self.graph.links(page).tolist()]

    def seeds(self, count: int = 1) -> list[str]:
        """The pages with the most links, of equal ones the first."""
        return [self.url(page) for page in self._by_links[:count].tolist()]

    @cached_property
    def _by_links(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.argsort(-np.diff(self.graph.indptr), kind="stable")

    def describe(self) -> str:
        """What is served, for people."""
        graph = self.graph
        return f"{graph.nodes:,} pages with {graph.arcs:,} links on {graph.sites:,} sites and {self.servers} servers"

    # ── what a server asks ─────────────────────────────────────────────────────────────────────

    def server(self, host: str) -> str | None:
        """The address of a host; None if there is none of this name."""
        numbered = _NUMBERED.fullmatch(host)
        if host not in self._hosts and (numbered is None or int(numbered[1]) >= self.graph.sites):
            return None
        # Sites in a row, which link to each other, are apart: as if they had nothing to do with each other.
        number = int(numbered[1]) if numbered else crc32(host.encode())
        return server_address(number % self.servers)

    def regular_host(self, name: str, scheme: str) -> tuple[int, str]:  # noqa: ARG002
        """None has pages that are made by kernels: `answer` is asked for all of them."""
        return -1, ""

    def regular_page(self, host: int, target: bytes) -> tuple[bytes, int] | None:  # noqa: ARG002
        """There is none; see `regular_host`."""
        return None

    def answer(self, request: Request) -> Answer:
        """The page that a request asks for."""
        page = self.page_id(f"{request.scheme}://{request.host}{request.target}")
        if page is None:
            return NOT_FOUND
        links = tuple(self.url(target) for target in self.graph.links(page).tolist())
        items = "".join(f'<li><a href="{escape(url)}">{number}</a>\n' for number, url in enumerate(links))
        body = f"<!DOCTYPE html>\n<title>Page {page}</title>\n<ul>\n{items}</ul>\n"
        return Answer(200, body.encode(), _CONTENT_TYPE, links=links, delay=self._delay)
