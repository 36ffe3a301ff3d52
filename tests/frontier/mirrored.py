"""A synthetic web one in twenty of whose hosts is a copy of another, in several ways, for a frontier on a virtual clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from barkspider.core.batch import UrlBatch
from barkspider.core.events import FetchPage, PageFetched
from barkspider.core.settings import Page as PageSettings
from barkspider.core.settings import Settings
from barkspider.engine.links import LinkMaker
from barkspider.lab.synthweb import Web, WebSpec
from barkspider.page import PageReader
from tests.frontier.virtual import KEYS, VirtualWeb, row

# How a host copies another: all of it, under the other form of its name, but for some pages, its home page alone with pages of its
# own beneath, or a page that says that it is under construction. The latter two are no duplicate hosts.
EXACT, WWW, CHANGED, HOME_ONLY, ONE_PAGE = KINDS = ("exact", "www", "changed", "home_only", "one_page")
DUPLICATES = (EXACT, WWW, CHANGED)
_WEIGHTS = (30, 30, 20, 10, 10)
_HEAVILY, _LIGHTLY = 0.3, 0.1  # parts of the pages of CHANGED that are changed
_LEAST = 8  # pages of a host that is copied
_CONSTRUCTION = b"<title>Under construction</title><p>This site is under construction.</p>"


@dataclass(frozen=True)
class Copy:
    """Of whom a host is a copy, and how; of its pages this part is changed."""

    kind: str
    original: str
    changed: float = 0.0


def copies_of(web: Web, share: float, seed: int) -> dict[str, Copy]:
    """Copies, as many as this share of the hosts, by their names."""
    random, hosts = Random(seed), len(web.tables.start) - 1
    large = [h for h in range(hosts) if web.tables.start[h + 1] - web.tables.start[h] >= _LEAST]
    originals = [web.host_name(host) for host in random.sample(large, min(len(large), round(share * hosts)))]
    found: dict[str, Copy] = {}
    for number, original in enumerate(originals):
        kind = random.choices(KINDS, _WEIGHTS)[0]
        name = f"copy{number}.example"
        if kind == WWW:
            name = original.removeprefix("www.") if original.startswith("www.") else f"www.{original}"
        changed = random.choice((_HEAVILY, _HEAVILY, _LIGHTLY)) if kind == CHANGED else 0.0
        found[name] = Copy(kind, original, changed)
    return found


class MirroredWeb(VirtualWeb):
    """See the module. `contents` has what was fetched, by host and path."""

    def __init__(self, spec: WebSpec, share: float = 0.05, seed: int = 1) -> None:
        super().__init__({})
        self.web = Web(spec)
        self.copies: Mapping[str, Copy] = copies_of(self.web, share, seed)
        self.contents: dict[tuple[str, str], int] = {}
        self._reader = PageReader(PageSettings())
        self._links = LinkMaker(_settings(), [])
        self._names = list(self.copies)
        self._random = seed

    def seeds(self) -> UrlBatch:
        """The home page from which all regular hosts are reached."""
        return UrlBatch.from_rows([row(self.web.seeds(1)[0])])

    def body(self, host: str, path: str) -> bytes | None:
        """What a host shows at a path."""
        copy = self.copies.get(host)
        if copy is None:
            answer = self.web.page(f"http://{host}{path}")
            return answer.body if answer.status == 200 else None
        if copy.kind == ONE_PAGE:
            return _CONSTRUCTION if path == "/" else None
        body = self.body(copy.original, path)
        if body is None:
            return None
        own = path != "/" if copy.kind == HOME_ONLY else Random(f"{host}{path}").random() < copy.changed
        return body + f"<p>{host}</p>".encode() if own else body

    def page(self, asked: FetchPage, url: str) -> PageFetched:
        host, _, rest = url.removeprefix("http://").partition("/")
        body = self.body(host, f"/{rest}")
        if body is None:
            return PageFetched(asked, 404, "http_404")
        digest = self.contents[host, f"/{rest}"] = KEYS.of(body)
        page = self._reader.read(body, "text/html", url)
        (found,) = self._links.links(page.hrefs, page.base, asked.row)
        links = found.urls
        if not rest and host not in self.copies:  # each copy is linked to from a home page, and from another
            random = Random(f"{self._random}{host}")
            homes = [f"http://{name}/" for name in random.sample(self._names, min(2, len(self._names)))]
            links = UrlBatch.join(
                [links, UrlBatch.from_rows([row(home, asked.row.depth + 1) for home in homes])]
            )
        return PageFetched(asked, 200, links=links, digest=digest)

    def cost(self, host: str) -> int:
        """Requests that a host was sent, for pages and for its robots.txt."""
        return sum(name == host for _, name, _, _ in self.requests)


def _settings() -> Settings:
    from barkspider.core.load import load_settings

    return load_settings(options=["seed=1", "scope.level=web"])
