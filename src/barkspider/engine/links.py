"""From the texts of links to a batch: normalise, judge by scope, find keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barkspider.core.allotment import names
from barkspider.core.batch import NO_URLS, UrlBatch
from barkspider.core.errors import UrlError
from barkspider.core.events import FetchRobots
from barkspider.core.records import Flag, UrlRow
from barkspider.core.settings import Settings
from barkspider.page.classify import top_level
from barkspider.url import Domains, Keys, Normaliser, ScopeRules, landing, parse, split

_MOST_DEPTH = 65_535  # what the column of depths holds
# Style sheets that import others, frames in frames: more than people nest, and less than a trap would.
_NESTED = 5
# What only an exclusion refuses; a plain number: arithmetic on flags is slow.
_ASKED_FOR = int(Flag.SEED | Flag.REQUISITE)


class Links(NamedTuple):
    """URLs that were found together, in scope, with the keys of their hosts and domains: not yet rows of a batch.

    `outside` are those that are not in scope; `cut` says that there were more than a page may have.
    """

    urls: list[bytes]
    hosts: list[int]
    domains: list[int]
    depths: list[int]
    hops: int
    flags: int
    parent: int
    outside: list[str]
    cut: bool = False


class LinkMaker:
    """Makes the URLs of one crawl. Runs on the loop: it holds the GIL."""

    def __init__(
        self,
        settings: Settings,
        seeds: Sequence[str],
        wall: Callable[[], float] = lambda: 0.0,
        refused: Counter[str] | None = None,
    ) -> None:
        """`wall` gives the time at which URLs are found, in seconds since 1970; `refused` counts, by reason, the links
        that ended here and never reached the frontier."""
        self._wall = wall
        domains = self._domains = Domains(settings.url.private_suffixes, names(settings.memory))
        self._normalise = Normaliser(settings.url, domains)
        self._keys = Keys(settings.seed)
        self._most_bytes = settings.limits.page_link_bytes
        self._from_site = settings.scope.depth_from == "site"
        self._seeds = [self._normalise(seed) for seed in seeds]
        self._scope = ScopeRules(settings.scope, domains, self._seeds)
        self.refused = Counter[str]() if refused is None else refused
        self.extended: list[str] = []  # what redirects of seeds and seeds given later added to the scope
        self._wanted = top_level(settings.page.keep_tlds)

        @lru_cache(names(settings.memory))
        def place(origin: str) -> tuple[int, int, str | None]:
            """The keys of the host and the domain of an origin, and why scope refuses it, if it does."""
            host = split(origin + "/").host
            return (
                self._keys.of(host),
                self._keys.of(domains.pay_level(host)),
                self._scope.refuses_origin(origin, host),
            )

        self._place = place

    def seeds(self) -> UrlBatch:
        """The seeds, but those that are excluded."""
        return self.batch([self._in_scope(self._seeds, [0] * len(self._seeds), 0, int(Flag.SEED))])

    def seed_hosts(self) -> set[int]:
        """The keys of the hosts of all seeds."""
        return {self._keys.of(split(seed).host) for seed in self._seeds}

    def more_seeds(self, seeds: Sequence[str], again: Collection[str] = ()) -> UrlBatch:
        """Further seeds, which extend the scope; those in `again` are fetched though they are known."""
        urls = {seed: self._normalise(seed) for seed in seeds}
        for url in urls.values():
            self.extend(url)
        new = [url for seed, url in urls.items() if seed not in again]
        known = [url for seed, url in urls.items() if seed in again]
        twice = int(Flag.SEED | Flag.AGAIN)
        return self.batch(
            [
                self._in_scope(part, [0] * len(part), 0, flags)
                for part, flags in ((new, int(Flag.SEED)), (known, twice))
            ]
        )

    def again(self, pages: pa.RecordBatch) -> UrlBatch:
        """Pages to be fetched once more, as the table of pages has them (key, url, depth, parent).

        They were in scope once, and that is not asked again; nor who links to them, since they were kept.
        """
        urls = pages["url"].to_pylist()
        places = [self._place(url[: url.find("/", 8)]) for url in urls]
        return UrlBatch.of(
            [url.encode() for url in urls],
            key=pages["key"].to_numpy(),
            host_key=[host for host, _, _ in places],
            pld_key=[domain for _, domain, _ in places],
            depth=pages["depth"].to_numpy(),
            flags=int(Flag.AGAIN | Flag.LINKED),
            parent=pages["parent"].to_numpy(),
            found=int(self._wall()),
        )

    def links(
        self, hrefs: Sequence[str], base: str, page: UrlRow, requisites: Sequence[str] = ()
    ) -> list[Links]:
        """The links of a page without repetitions; `base` is what they are relative to.

        `requisites` are what the page needs to be shown: they lie as deep as the page itself, and come first. Only
        exclusions count for them. A requisite of a requisite counts those above it as hops.
        """
        urls, cut = self._normalise.many(hrefs, parse(base), self.refused, self._most_bytes)
        depths = [page.depth + 1] * len(urls)
        if self._from_site:
            here = split(page.url.decode()).host
            depths = [page.depth + 1 if split(url).host == here else 0 for url in urls]
        flags = self._recommends(page)
        found = [self._in_scope(urls, depths, 0, flags, page.key, cut)]
        if requisites:
            needed, cut = self._normalise.many(requisites, parse(base), self.refused, self._most_bytes)
            hops = page.hops + 1 if page.flags & Flag.REQUISITE else 0
            if hops > _NESTED:
                self.refused["nested"] += len(needed)
                needed = []
            depths = [page.depth] * len(needed)
            flags |= int(Flag.REQUISITE)
            found.insert(0, self._in_scope(needed, depths, hops, flags, page.key, cut))
        return found

    def counts(self, page: UrlRow) -> bool:
        """Whether the links of a page count: not of one that others need and that is itself out of scope."""
        url = page.url.decode()
        return (
            not page.flags & Flag.REQUISITE or self._scope.refuses(url, split(url).host, page.depth) is None
        )

    def batch(self, links: Sequence[Links]) -> UrlBatch:
        """Links of any number of pages as rows, in their order."""
        if not links:
            return NO_URLS
        urls = list(chain.from_iterable(each.urls for each in links))
        counts = [len(each.urls) for each in links]
        return UrlBatch.of(
            urls,
            key=self._keys.column(urls),
            host_key=_column((each.hosts for each in links), len(urls)),
            pld_key=_column((each.domains for each in links), len(urls)),
            depth=_column((each.depths for each in links), len(urls)),
            hops=np.repeat([each.hops for each in links], counts),
            flags=np.repeat([each.flags for each in links], counts),
            parent=np.repeat(np.array([each.parent for each in links], np.uint64), counts),
            found=int(self._wall()),
        )

    def anchors(self, texts: Mapping[str, str], base: str) -> dict[str, str]:
        """Texts of links by their URLs."""
        root = parse(base)
        found: dict[str, str] = {}
        for href, text in texts.items():
            with suppress(UrlError):
                found.setdefault(self._normalise(href, root), text)
        return found

    def domain(self, url: str) -> str:
        """The pay-level domain of a URL of this crawl."""
        return self._domains.pay_level(split(url).host)

    def _recommends(self, page: UrlRow) -> int:
        """The flag of links from a page under the top-level domains that are wanted."""
        wanted = self._wanted and split(page.url.decode()).host.endswith(self._wanted)
        return int(Flag.LINKED) if wanted else 0

    def redirect(self, location: str, source: UrlRow) -> tuple[UrlRow, bytes] | None:
        """A redirect's target as a row and exactly as written, or None when it is out of bounds."""
        try:
            written = parse(location, parse(source.url.decode()))
            url = self._normalise(str(written))
        except UrlError as error:
            self.refused[error.reason] += 1
            return None
        flags = int((source.flags & (Flag.SEED | Flag.REQUISITE | Flag.LINKED)) | Flag.REDIRECT)
        found = self._in_scope([url], [source.depth], min(source.hops + 1, 255), flags, source.key)
        if not found.urls:
            return None
        if flags & Flag.SEED:
            self.extend(url)
        exact = str(written.with_fragment(None).with_username("").with_password(None))
        return self.batch([found]).rows()[0], exact.encode()

    def robots_at(self, location: str, asked: FetchRobots) -> str:
        """Where a robots.txt sends us; "" if that is nowhere, or nowhere that the user would let us go."""
        target = landing(location, asked.url)
        return "" if target and self._scope.bars(target, asked.origin) else target

    def extend(self, url: str) -> None:
        """Take a site into scope: a seed leads there, or it is a seed itself."""
        self._scope.extend(url)
        self._place.cache_clear()
        self.extended.append(url)

    def _in_scope(
        self,
        urls: list[str],
        depths: list[int],
        hops: int,
        flags: int,
        parent: int = 0,
        cut: bool = False,
    ) -> Links:
        """The URLs that are in scope, and the others."""
        scope = self._scope
        # The links of a page lie at a few origins: what depends on these alone is found once for each.
        places = [url[: url.find("/", 8)] for url in urls]
        known = {origin: self._place(origin) for origin in set(places)}
        refused = {origin: reason for origin, (_, _, reason) in known.items() if reason is not None}
        deepest = max(depths, default=0)
        reasons: list[str | None] = []
        if flags & _ASKED_FOR:
            reasons = [scope.excludes(url) for url in urls]
        elif refused or scope.looks_at_urls or deepest > scope.most_depth:
            reasons = [
                refused.get(place) or scope.refuses_url(url, depth)
                for url, place, depth in zip(urls, places, depths, strict=True)
            ]
        outside: list[str] = []
        if any(reasons):
            chosen = []
            for number, reason in enumerate(reasons):
                if reason is None:
                    chosen.append(number)
                else:
                    self.refused[reason] += 1
                    outside.append(urls[number])
            urls, places = [urls[k] for k in chosen], [places[k] for k in chosen]
            depths = [depths[k] for k in chosen]
        texts = "\n".join(urls).encode().split(b"\n") if urls else []
        hosts, domains = [known[place][0] for place in places], [known[place][1] for place in places]
        if deepest > _MOST_DEPTH:
            depths = [min(depth, _MOST_DEPTH) for depth in depths]
        return Links(texts, hosts, domains, depths, hops, flags, parent, outside, cut)


def _column(parts: Iterable[list[int]], count: int) -> npt.NDArray[np.uint64]:
    return np.fromiter(chain.from_iterable(parts), np.uint64, count)
