"""From the texts of links to a batch: normalise, judge by scope, find keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from url import URL

from barkspider.core.allotment import names
from barkspider.core.batch import WIDTH, UrlBatch
from barkspider.core.errors import UrlError
from barkspider.core.events import FetchRobots
from barkspider.core.records import Flag, UrlRow, pack_row
from barkspider.core.settings import Scope, Settings
from barkspider.core.texts import Bytes, Texts
from barkspider.engine.replicas import read_replicas
from barkspider.page import Hrefs
from barkspider.page.classify import top_level
from barkspider.url import Domains, KeyMaker, Normaliser, ScopeRules, landing, parse, split
from barkspider.url.normalise import most_work
from barkspider.url.origins import OriginNumbers
from barkspider.url.resolve import REASONS, REFUSED, UNUSUAL, LinkResolver, Resolved
from barkspider.url.rows import pack_rows

# Style sheets that import others, frames in frames: more than people nest, and less than a trap would.
_NESTED = 5
# What only an exclusion refuses; plain numbers: arithmetic on flags is slow.
_REQUISITE = int(Flag.REQUISITE)
_ASKED_FOR = int(Flag.SEED) | _REQUISITE
# Why a link is not in scope, by number; 0 says that it is.
_REASONS = (*REASONS, "port", "host", "domain", "scope", "path", "extension", "depth")
_NUMBERS: dict[str | None, int] = {None: 0} | {reason: number for number, reason in enumerate(_REASONS)}
_TOO_DEEP, _NO_DEPTH = _NUMBERS["depth"], 1 << 40
_ANY_BYTES = 1 << 62
_Places: TypeAlias = "npt.NDArray[np.int64]"  # see `url.resolve.Resolved.found`


class Links(NamedTuple):
    """URLs that were found together and are in scope, `outside` those that are not; `cut` says that there were more than a
    page may have."""

    urls: UrlBatch
    outside: list[str]
    cut: bool = False


class _Kind(NamedTuple):
    """What the URLs that were found together have in common. Their depth differs where it begins anew at each site:
    `site` is the key of the host at which it does not."""

    depth: int
    hops: int
    flags: int
    parent: int = 0
    site: int | None = None


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
        self._replicas = read_replicas(settings, domains)
        self._normalise = Normaliser(settings.url, domains, self._replicas)
        self._keys, self._seed = KeyMaker(settings.seed), np.uint64(settings.seed)
        self._most_bytes, self._longest = settings.limits.page_link_bytes, settings.url.max_length
        self._from_site = settings.scope.depth_from == "site"
        self._seeds = [self._normalise(seed) for seed in seeds]
        self._scope = ScopeRules(settings.scope, domains, self._seeds)
        self.refused = Counter[str]() if refused is None else refused
        self.extended: list[str] = []  # what redirects of seeds and seeds given later added to the scope
        self._wanted = top_level(settings.page.keep_tlds)
        self._sitemaps = settings.scope.sitemaps
        self._seed_hosts = self.seed_hosts() if self._sitemaps == "seeds" else set()
        self._resolver = LinkResolver(settings.url, settings.seed, self._most_bytes)
        self._at_once = settings.limits.page_links + 1  # with the page's own
        self._origins = OriginNumbers(
            self._origin_facts, names(settings.memory), self._at_once, settings.seed
        )

    def seeds(self) -> UrlBatch:
        """The seeds, but those that are excluded."""
        return self._in_scope(self._seeds, _Kind(0, 0, int(Flag.SEED))).urls

    def known(self, urls: Sequence[str]) -> UrlBatch:
        """Canonical URLs that are known from elsewhere, as far as they are in scope: neither seeds nor anybody's links."""
        return self._in_scope(urls, _Kind(0, 0, 0)).urls

    def seed_hosts(self) -> set[int]:
        """The keys of the hosts of all seeds."""
        return {self._keys.of(split(seed).host) for seed in self._seeds}

    def more_seeds(self, seeds: Sequence[str], again: Collection[str] = ()) -> UrlBatch:
        """Further seeds, which extend the scope; those in `again` are fetched though they are known."""
        urls = {seed: self._normalise(seed) for seed in seeds}
        self.extend(*urls.values())
        for url in urls.values():
            if self._sitemaps == "seeds":
                self._seed_hosts.add(self._keys.of(split(url).host))
        new = [url for seed, url in urls.items() if seed not in again]
        known = [url for seed, url in urls.items() if seed in again]
        twice = int(Flag.SEED | Flag.AGAIN)
        return self.batch(
            [
                self._in_scope(part, _Kind(0, 0, flags))
                for part, flags in ((new, int(Flag.SEED)), (known, twice))
            ]
        )

    def again(self, pages: pa.RecordBatch) -> UrlBatch:
        """Pages to be fetched once more, as the table of pages has them (key, url, depth, parent).

        They were in scope once, and that is not asked again; nor who links to them, since they were kept. What was on replicas is
        left out.
        """
        if self._replicas:
            kept = [split(url).host not in self._replicas for url in pages["url"].to_pylist()]
            pages = pages.filter(pa.array(kept, pa.bool_()))
        urls = pages["url"].to_pylist()
        known = {origin: self._origin_facts(origin) for origin in {url[: url.find("/", 8)] for url in urls}}
        places = [known[url[: url.find("/", 8)]] for url in urls]
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
        self, hrefs: Hrefs | Sequence[str], base: str, page: UrlRow, requisites: Sequence[str] = ()
    ) -> list[Links]:
        """The links of a page without repetitions; `base` is what they are relative to. Texts give the same as `Hrefs` of
        them, and take longer.

        `requisites` are what the page needs to be shown: they lie as deep as the page itself, and come first. Only
        exclusions count for them. A requisite of a requisite counts those above it as hops.
        """
        flags, site = self._recommends(page), None
        if self._from_site:
            site = self._keys.of(split(page.url.decode()).host)
        kind = _Kind(page.depth + 1, 0, flags, page.key, site)
        links = self._simple_links(hrefs, base, kind) if isinstance(hrefs, Hrefs) else None
        if links is None:
            links = self._links(hrefs.texts() if isinstance(hrefs, Hrefs) else hrefs, base, kind)
        if not requisites:
            return [links]
        hops = page.hops + 1 if page.flags & _REQUISITE else 0
        kind = _Kind(page.depth, hops, flags | _REQUISITE, page.key)
        return [self._links(requisites, base, kind), links]

    def _links(self, texts: Sequence[str], base: str, kind: _Kind) -> Links:
        """The URLs of texts, each by itself."""
        urls, cut = self._normalise.many(texts, parse(base), self.refused, self._most_bytes)
        if kind.hops > _NESTED:
            self.refused["nested"] += len(urls)
            urls = []
        return self._in_scope(urls, kind, cut)

    def _simple_links(self, hrefs: Hrefs, base: str, kind: _Kind) -> Links | None:
        """The URLs of links, nearly all by compiled functions; None if they are too many, or rules are not for that."""
        if len(hrefs.targets) >= self._at_once:
            return None
        self._origins.make_room()
        root = parse(base)
        if self._replicas and split(str(root)).host in self._replicas:
            return None
        resolved = self._resolver.resolve(hrefs.lines, hrefs.targets, str(root), self._origins)
        if resolved is None:
            return None
        urls, found = resolved.urls[: resolved.used], resolved.found
        if resolved.unusual:
            urls, found = self._resolve_unusual(resolved, hrefs, root)
        links, whole = self._pack(urls, found, kind, self._most_bytes)
        return links._replace(cut=not whole or len(found) < len(hrefs.targets))

    def _resolve_unusual(self, resolved: Resolved, hrefs: Hrefs, root: URL) -> tuple[Bytes, _Places]:
        """What was resolved, with the links that take a parser: up to the one for which that was too much work."""
        found, used, work = resolved.found, resolved.used, 0
        rows = np.flatnonzero(found[:, 0] == UNUSUAL)
        texts, places = list[str](), list[tuple[int, int, int, int]]()
        for start, end, times in hrefs.targets[rows].tolist():
            try:
                url = self._normalise(hrefs.lines[start:end].decode(), root)
            except UrlError as error:
                places.append((REFUSED, times, 0, _NUMBERS[error.reason]))
                work += self._longest if error.reason == "too_long" else end - start
            else:
                texts.append(url)
                places.append((used, used + len(url), self._number(url), 0))
                used += len(url)
                work += len(url)
            if work > most_work(self._most_bytes):
                found, rows = found[: rows[len(places) - 1] + 1], rows[: len(places)]
                break
        found[rows] = places
        return np.concatenate(
            (resolved.urls[: resolved.used], np.frombuffer("".join(texts).encode(), np.uint8))
        ), found

    def listed(
        self, hrefs: Hrefs, base: str, page: UrlRow, lists: Sequence[str], is_sitemap: bool
    ) -> list[Links]:
        """The pages that a sitemap or a feed names, and before them, as deep as it is, the further lists of a sitemap.

        There may be more than a page may link to, so they are taken in portions. A site has a say in its own pages: of
        a sitemap only those of its domain count.
        """
        kind = _Kind(page.depth + 1, 0, self._recommends(page), page.key)
        above = _Kind(page.depth, page.hops + 1, kind.flags | _REQUISITE, page.key)
        if above.hops > _NESTED:
            self.refused["nested"] += len(lists)
            lists = ()
        found = [*self._in_portions(Hrefs.of(lists, len(lists)), base, above)] if lists else []
        found += self._in_portions(hrefs, base, kind)
        return [self._of_domain(part, page.pld_key) for part in found] if is_sitemap else found

    def _in_portions(self, hrefs: Hrefs, base: str, kind: _Kind) -> Iterator[Links]:
        for targets in _portions(hrefs.targets, self._at_once - 1, self._most_bytes):
            part = self._simple_links(replace(hrefs, targets=targets), base, kind)
            if part is None:
                texts = [hrefs.lines[start:end].decode() for start, end, _ in targets.tolist()]
                part = self._links(texts, base, kind)
            yield part

    def _of_domain(self, links: Links, domain: int) -> Links:
        own = links.urls.pld_key == domain
        if own.all():
            return links
        self.refused["sitemap"] += int((~own).sum())
        return links._replace(urls=links.urls.where(own))

    def sitemaps(self, urls: Sequence[str], origin: str) -> list[Links] | None:
        """The sitemaps that the robots.txt of an origin names, if they are read: those of its domain, and of scope only
        exclusions count for them."""
        base = f"{origin}/"
        host = split(base).host
        if self._sitemaps == "never" or (
            self._sitemaps == "seeds" and self._keys.of(host) not in self._seed_hosts
        ):
            return None
        domain = self._keys.of(self._domains.pay_level(host))
        return [self._of_domain(self._links(urls, base, _Kind(0, 0, _REQUISITE)), domain)]

    def counts(self, page: UrlRow) -> bool:
        """Whether the links of a page count: not of one that others need and that is itself out of scope."""
        if not page.flags & _REQUISITE:
            return True
        url = page.url.decode()
        return self._scope.refuses(url, split(url).host, page.depth) is None

    def batch(self, links: Sequence[Links]) -> UrlBatch:
        """Links of any number of pages, in their order."""
        return UrlBatch.join([each.urls for each in links])

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
        found = self._in_scope([url], _Kind(source.depth, min(source.hops + 1, 255), flags, source.key)).urls
        if not len(found):
            return None
        if flags & Flag.SEED:
            self.extend(url)
        exact = str(written.with_fragment(None).with_username("").with_password(None))
        return found.rows()[0], exact.encode()

    def robots_at(self, location: str, asked: FetchRobots) -> str:
        """Where a robots.txt sends us; "" if that is nowhere, or nowhere that the user would let us go."""
        target = landing(location, asked.url)
        return "" if target and self._scope.bars(target, asked.origin) else target

    def extend(self, *urls: str) -> None:
        """Take sites into scope: a seed leads there, or it is a seed itself."""
        for url in urls:
            self._scope.extend(url)
        self._origins.clear()
        self.extended += urls

    def exclude(self, scope: Scope) -> None:
        """Go by a scope that excludes more than the one before."""
        self._scope = ScopeRules(scope, self._domains, [*self._seeds, *self.extended])
        self._origins.clear()

    def _in_scope(self, urls: Sequence[str], kind: _Kind, cut: bool = False) -> Links:
        """The URLs that are in scope, and the others; all of them, even if some are the same."""
        parts = [
            self._portion(urls[start : start + self._at_once], kind)
            for start in range(0, len(urls), self._at_once)
        ]
        return Links(self.batch(parts), [url for part in parts for url in part.outside], cut)

    def _portion(self, urls: Sequence[str], kind: _Kind) -> Links:
        self._origins.make_room()
        found = np.zeros((len(urls), 4), np.int64)
        places = list(accumulate(map(len, urls), initial=0))
        found[:, 0], found[:, 1] = places[:-1], places[1:]
        found[:, 2] = [self._number(url) for url in urls]
        return self._pack(np.frombuffer("".join(urls).encode(), np.uint8), found, kind)[0]

    def _pack(
        self,
        urls: Bytes,
        found: _Places,
        kind: _Kind,
        most: int | None = None,
    ) -> tuple[Links, bool]:
        """Rows of those of the URLs that are in scope, and whether that is all of them. If they may have `most` bytes together,
        each counts once, and the first that would be more is the end."""
        scope, origins, count = self._scope, self._origins, len(found)
        asked_for = bool(kind.flags & _ASKED_FOR)
        if asked_for or scope.looks_at_urls:
            text = urls.tobytes()
            for row, (start, end, *_) in enumerate(found.tolist()):
                if start >= 0:
                    url = text[start:end].decode()
                    reason = scope.excludes(url) if asked_for else scope.refuses_url(url, 0)
                    found[row, 3] = _NUMBERS[reason]
        rows = np.empty(count * WIDTH + len(urls), np.uint8)
        offsets, outside = np.empty(count + 1, np.int64), np.empty(count, np.int64)
        refused = np.zeros(len(_REASONS), np.int64)
        head = pack_row(UrlRow(0, 0, 0, 0, kind.hops, 0, kind.flags, b"", kind.parent, int(self._wall())))
        kept, left, stop = pack_rows(
            urls,
            found,
            origins.hosts,
            origins.domains,
            origins.verdicts,
            asked_for,
            np.frombuffer(head, np.uint8),
            self._seed,
            0 if kind.site is None else kind.site,
            kind.depth,
            kind.depth if kind.site is None else 0,
            _NO_DEPTH if asked_for else scope.most_depth,
            _TOO_DEEP,
            _ANY_BYTES if most is None else most,
            most is not None,
            rows,
            offsets,
            outside,
            refused,
        )
        others: list[str] = []
        if refused.any():
            self.refused.update(
                {reason: n for reason, n in zip(_REASONS, refused.tolist(), strict=True) if n}
            )
            places = found[outside[:left], :2].tolist()
            others = [urls[start:end].tobytes().decode() for start, end in places]
        offsets = offsets[: kept + 1]
        return Links(UrlBatch(Texts(offsets, rows[: offsets[-1]])), others), stop == count

    def _number(self, url: str) -> int:
        return self._origins.number(url[: url.find("/", 8)])

    def _origin_facts(self, origin: str) -> tuple[int, int, int]:
        """The keys of the host and the domain of an origin, and the number of the reason why scope refuses it."""
        host = origin[origin.index("/") + 2 :]
        if ":" in host or "@" in host:
            host = split(origin + "/").host
        domain = self._domains.pay_level(host)
        reason = self._scope.refuses_origin(origin, host)
        return self._keys.of(host), self._keys.of(domain), _NUMBERS[reason]


def _portions(targets: npt.NDArray[np.int64], most: int, most_bytes: int) -> Iterator[npt.NDArray[np.int64]]:
    """Links in portions of which each is no more than a page may have."""
    # Resolving may make a URL longer than its text, by an escape for each letter.
    sizes = np.cumsum(3 * (targets[:, 1] - targets[:, 0]))
    start = 0
    while start < len(targets):
        before = sizes[start - 1] if start else 0
        end = int(np.searchsorted(sizes, before + most_bytes, "right"))
        end = min(max(end, start + 1), start + most)
        yield targets[start:end]
        start = end
