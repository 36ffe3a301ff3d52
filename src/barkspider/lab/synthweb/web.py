"""The web as a whole: answers to requests, and the truth about it for tests."""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from urllib.parse import urljoin

import numpy as np

from barkspider.core.errors import UsageError
from barkspider.lab.synthweb import hazards, model, robots, sites
from barkspider.lab.synthweb.answer import NOT_FOUND, Answer, Manner, Request, redirect
from barkspider.lab.synthweb.changes import Changes
from barkspider.lab.synthweb.hazards import Ground, Hazard, server_address
from barkspider.lab.synthweb.model import FOR_EDITION, FOR_HAZARD, FOR_SERVER, Bytes, Int64s, draw, unit
from barkspider.lab.synthweb.names import domain_number, label_number, split_host
from barkspider.lab.synthweb.reach import LINK_SPACE, explore
from barkspider.lab.synthweb.render import DECLARATIONS, declaration_of, page_buffer, render_template, serve
from barkspider.lab.synthweb.spec import FIRST_NAMES, HAZARDS, WebSpec
from barkspider.lab.synthweb.text import MAX_URL, find_rank, is_https, write_domain, write_host, write_urls

_URL = re.compile(r"(https?)://([^/?#:]+)(/[^#]*)", re.ASCII)
_EDITIONS = 4  # from one revision of a page to the next
_SPAM = ("spam_farm", "link_exchange")
_NO_ROBOTS_PATHS = ("/robots.txt", robots.REDIRECT_TARGET)


@dataclass(frozen=True, slots=True)
class Site:
    """What a host name stands for: a regular host by its number, or a place on a hazard's domain."""

    host: int = -1
    hazard: Hazard | None = None
    number: int = 0
    before: str = ""


class Web:
    """A web computed from a `WebSpec`. Holds buffers: one thread at a time.

    Everything about regular pages is exact; about hazards, what is known is given.

    >>> web = Web(WebSpec(pages=1_000))
    >>> url = web.seeds(1)[0]
    >>> web.exists(url), web.page_id(url), web.page(url).status
    (True, 0, 200)
    """

    def __init__(self, spec: WebSpec | None = None, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives the time by which pages change, if they do, in seconds since 1970."""
        self.spec = spec or WebSpec()
        self._clock, self._changes = clock, Changes(self.spec.seed, self.spec.changes)
        self.tables = sites.build(self.spec)
        self.ground = Ground(self.spec, self.tables, self.url)
        self.hazards: dict[str, Hazard] = {
            name: hazards.KINDS[name](self.ground) for name in HAZARDS if name in self.spec.hazards
        }
        self._entries = [entry for hazard in self.hazards.values() for entry in hazard.entries()]
        self._page = page_buffer(self.spec.page_bytes)
        self._links = np.empty(LINK_SPACE, np.int64)
        self._text = np.empty(MAX_URL, np.uint8)
        # As many names as a large crawl has hosts on its mind; 150 bytes each.
        self.site = lru_cache(65_536)(self._site)
        # Navigation and footer of hosts: 5 KB each.
        self._template = lru_cache(8_192)(self._make_template)

    @property
    def seed(self) -> int:
        """That of its `WebSpec`."""
        return self.spec.seed

    @property
    def servers(self) -> int:
        """How many addresses its hosts share."""
        return self.spec.servers

    @property
    def has_https(self) -> bool:
        """Whether it is, or has to be, served over HTTPS too."""
        return self.ground.has_https or self.spec.https_share > 0

    @has_https.setter
    def has_https(self, on: bool) -> None:
        self.ground.has_https = on

    def describe(self) -> str:
        """What is served, for people."""
        spec = self.spec
        return f"{spec.pages:,} pages on {spec.domains:,} domains and {spec.servers} servers"

    # --- names -------------------------------------------------------------------------------------

    def seeds(self, count: int = 1) -> list[str]:
        """The homes of the most popular domains; from the first, all of the web is reachable."""
        tables = self.tables
        return [self.url(int(tables.start[tables.first_host[d]])) for d in range(min(count, tables.domains))]

    def url(self, page: int) -> str:
        """The one URL of a page."""
        if not 0 <= page < self.spec.pages:
            raise UsageError(f"page {page:,} is not one of the web's {self.spec.pages:,}")
        return self.urls(np.array([page]))[0]

    def urls(self, pages: Int64s) -> list[str]:
        """The URLs of many pages, much faster than one by one."""
        out = np.empty(len(pages) * (MAX_URL + 1), np.uint8)
        return bytes(out[: write_urls(self.tables, pages, out)]).decode().split("\n")[:-1]

    def page_id(self, url: str) -> int | None:
        """The number of the page that has exactly this URL."""
        match = _URL.fullmatch(url)
        site = self.site(match[2]) if match else None
        if match is None or site is None or site.host < 0 or not match[3].isascii():
            return None
        if (match[1] == "https") != is_https(self.tables, self.tables.domain_of[site.host]):
            return None
        path = np.frombuffer(match[3].encode(), np.uint8)
        rank = find_rank(self.tables, site.host, path, self._page)
        return int(self.tables.start[site.host] + rank) if rank >= 0 else None

    def host_name(self, host: int) -> str:
        """The name of a regular host."""
        return bytes(self._text[: write_host(self.tables, host, self._text, 0)]).decode()

    def domain_name(self, domain: int) -> str:
        """The name of a regular domain."""
        return bytes(self._text[: write_domain(self.tables, domain, self._text, 0)]).decode()

    def _site(self, name: str) -> Site | None:
        before, word, _ = split_host(name)
        number = domain_number(word, self.tables.name_digits, self.tables.name_offset)
        if number < 0:
            return None
        if number >= self.spec.domains:
            kind = bisect_right(FIRST_NAMES, number - self.spec.domains) - 1
            place = number - self.spec.domains - FIRST_NAMES[kind]
            hazard = self.hazards.get(HAZARDS[kind]) if kind < len(HAZARDS) else None
            if hazard is None or place >= hazard.domains:
                return None
            ours = name == hazard.names[place] or name.endswith("." + hazard.names[place])
            return Site(hazard=hazard, number=place, before=before) if ours else None
        first, end = self.tables.first_host[number], self.tables.first_host[number + 1]
        host = int(first) + (label_number(before) if before not in ("", "www") else 0)
        if not first <= host < end or self.host_name(host) != name:
            return None
        return Site(host=host)

    # --- truth -------------------------------------------------------------------------------------

    def exists(self, url: str) -> bool:
        """Whether there is a page at this URL."""
        if self.page_id(url) is not None:
            return True
        match = _URL.fullmatch(url)
        site = self.site(match[2]) if match else None
        if site is None or site.hazard is None or not site.hazard.address(site.number, site.before):
            return False
        answer = self.page(url)
        return answer.status == 200 and answer.manner is not Manner.CLOSED

    def links(self, url: str) -> list[str]:
        """The links of a page as absolute URLs, in document order, with those that occur twice."""
        page = self.page_id(url)
        if page is None:
            return [urljoin(url, link) for link in self.page(url).links]
        tables = self.tables
        host = model.host_of(tables, page)
        inner = model.nav_links(tables, host, self._links)
        inner += model.body_links(tables, page, host, self._links[inner:])
        total = inner + model.footer_links(tables, host, self._links[inner:])
        found = self.urls(self._links[:total])
        return found[:inner] + self._hazard_links(page, host) + found[inner:]

    def server(self, host: str) -> str | None:
        """The address of a host; None if the name does not exist, "" if DNS is silent about it."""
        site = self.site(host)
        if site is None:
            return None
        if site.hazard is not None:
            return site.hazard.address(site.number, site.before)
        tables = self.tables
        domain = int(tables.domain_of[site.host])
        # Subdomains are on the domain's server but for one in six. Exponent 1.5: some servers have many hosts.
        apart = site.host > tables.first_host[domain] and draw(tables.seed, FOR_SERVER, site.host) % 6 == 0
        random = draw(tables.seed, FOR_SERVER + 1 + apart, site.host if apart else domain)
        return server_address(int(self.spec.servers * unit(random) ** 1.5))

    def is_spam(self, url_or_host: str) -> bool:
        """Whether a URL or host belongs to a spam farm or a link exchange."""
        match = _URL.fullmatch(url_or_host)
        site = self.site(match[2] if match else url_or_host)
        return site is not None and site.hazard is not None and site.hazard.name in _SPAM

    def revision(self, page: int) -> int:
        """How often a page has been given another text, up to the edition of the web, and by now.

        >>> Web(WebSpec(pages=1_000)).revision(0), Web(WebSpec(pages=1_000, edition=4)).revision(0)
        (0, 1)
        """
        revised = (self.spec.edition + draw(self.spec.seed, FOR_EDITION, page) % _EDITIONS) // _EDITIONS
        return revised + self.version(page, self._clock()) if self.spec.changes else revised

    def version(self, page: int, when: float) -> int:
        """How often a page has changed by a time, in seconds since 1970.

        >>> web = Web(WebSpec(pages=1_000, changes=2.0, day=10.0))
        >>> web.version(0, 0.0), web.version(0, 1_000.0) > 0
        (0, True)
        """
        return self._changes.version(page, (when - self.spec.born) / self.spec.day)

    def robots_txt(self, host: str) -> tuple[int, bytes]:
        """Status and body of a host's robots.txt, behind its redirect if it has one."""
        answer = self.answer(Request(host, "/robots.txt"))
        if answer.status == 301:
            answer = self.answer(Request(host, robots.REDIRECT_TARGET))
        return answer.status, answer.body

    def allowed(self, url: str, agent: str = "barkspider") -> bool:
        """Whether robots.txt lets `agent` fetch a URL. Exact for pages; True for what does not exist."""
        page = self.page_id(url)
        if page is not None:
            return robots.is_allowed(self.tables, page, agent)
        match = _URL.fullmatch(url)
        site = self.site(match[2]) if match else None
        return site is None or site.hazard is None or site.hazard.is_allowed(site.number)

    def crawl_delay(self, host: str) -> float | None:
        """The Crawl-delay that a host's robots.txt asks for, in seconds."""
        site = self.site(host)
        if site is None or site.host < 0 or robots.kind_of(self.tables, site.host) != "crawl_delay":
            return None
        return self.spec.crawl_delay

    def reachable_pages(
        self,
        seeds: Sequence[str],
        clicks: int | None = None,
        obey_robots: bool = True,
        limit: int | None = None,
    ) -> Int64s:
        """The numbers of the pages that a crawl from `seeds` fetches, in breadth-first order.

        At most `clicks` links away from a seed. Hazards are left out: they lead to no page that is not
        reachable without them.
        """
        pages = np.array([self._seed(seed) for seed in seeds], np.int64)
        most = self.spec.pages if limit is None else limit
        return explore(self.tables, pages, -1 if clicks is None else clicks, most, obey_robots)[0]

    def reachable(self, seeds: Sequence[str], clicks: int | None = None, obey_robots: bool = True) -> int:
        """How many pages a crawl from `seeds` fetches."""
        return len(self.reachable_pages(seeds, clicks, obey_robots))

    def reachable_urls(
        self, seeds: Sequence[str], clicks: int | None = None, obey_robots: bool = True
    ) -> set[str]:
        """The URLs that a crawl from `seeds` fetches."""
        return set(self.urls(self.reachable_pages(seeds, clicks, obey_robots)))

    def _seed(self, url: str) -> int:
        page = self.page_id(url)
        if page is None:
            raise UsageError(f"{url} is not a page of the synthetic web; take its seeds from `seeds`")
        return page

    # --- answers -----------------------------------------------------------------------------------

    def page(self, url: str, cookie: str = "") -> Answer:
        """What the server answers for a URL; 404 if it is of no host of ours."""
        match = _URL.fullmatch(url)
        return self.answer(Request(match[2], match[3], match[1], cookie)) if match else NOT_FOUND

    def answer(self, request: Request) -> Answer:
        """The answer to a request."""
        site = self.site(request.host)
        if site is None:
            return NOT_FOUND
        if site.hazard is not None:
            placed = replace(request, number=site.number, before=site.before)
            return (
                site.hazard.robots(placed) if request.target == "/robots.txt" else site.hazard.answer(placed)
            )
        if request.target in _NO_ROBOTS_PATHS:
            return robots.answer(self.tables, site.host, request.target, self.spec.crawl_delay)
        if request.scheme == "http" and is_https(self.tables, self.tables.domain_of[site.host]):
            return redirect(f"https://{request.host}{request.target}", 301)
        found = self.regular_page(site.host, request.target.encode("utf-8", "replace"))
        return NOT_FOUND if found is None else Answer(200, found[0], self.content_type(site.host))

    def regular_host(self, name: str, scheme: str) -> tuple[int, str]:
        """The number of a regular host that answers on `scheme`, or -1, and its Content-Type."""
        site = self.site(name)
        if site is None or site.host < 0:
            return -1, ""
        if scheme == "http" and is_https(self.tables, self.tables.domain_of[site.host]):
            return -1, ""
        return site.host, self.content_type(site.host)

    def regular_page(self, host: int, target: bytes) -> tuple[bytes, int] | None:
        """The bytes of the page at `target` on a regular host, and a number that only they have; or None."""
        path = np.frombuffer(target, np.uint8)
        nav, footer = self._template(host)
        rank, split, length = serve(self.tables, host, path, nav, footer, self._links, self._page)
        if rank < 0:
            return None
        out, page = self._page, int(self.tables.start[host]) + rank
        revision = self.revision(page) if self.spec.edition or self.spec.changes else 0
        version = revision << 32 | page
        links = self._hazard_links(page, host) if self.hazards else []
        if not links and not revision:
            return out[:length].tobytes(), version
        aside = f"<p>Revision {revision}.</p>\n" if revision else ""
        if links:
            block = "".join(f'<a href="{link}">sponsored</a> ' for link in links)
            aside += f"<aside>{block}</aside>\n"
        return out[:split].tobytes() + aside.encode() + out[split:length].tobytes(), version

    def _make_template(self, host: int) -> tuple[Bytes, Bytes]:
        nav = self._page[: render_template(self.tables, host, False, self._links, self._page)].copy()
        footer = self._page[: render_template(self.tables, host, True, self._links, self._page)].copy()
        return nav, footer

    def content_type(self, host: int) -> str:
        """What a regular host sends as Content-Type."""
        return DECLARATIONS[declaration_of(self.tables, host)][1]

    def _hazard_links(self, page: int, host: int) -> list[str]:
        # Two on the home of every domain, so that small crawls meet all hazards, and one on some pages.
        entries = self._entries
        domain = int(self.tables.domain_of[host])
        if page == self.tables.start[self.tables.first_host[domain]]:
            links = [entries[(2 * domain + k) % len(entries)] for k in range(2) if entries]
            return links + [link for hazard in self.hazards.values() for link in hazard.links_from(domain)]
        random = draw(self.spec.seed, FOR_HAZARD + 1_500, page)
        if not entries or random % self.spec.hazard_links:
            return []
        return [entries[(random >> 20) % len(entries)]]
