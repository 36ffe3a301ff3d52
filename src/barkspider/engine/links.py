"""From the texts of links to a batch: normalise, judge by scope, find keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from barkspider.core.errors import UrlError
from barkspider.core.records import Flag, UrlBatch, UrlRow
from barkspider.core.settings import Settings
from barkspider.url import Domains, Keys, Normaliser, ScopeRules, parse, split

_SEED_REDIRECT = int(Flag.SEED | Flag.REDIRECT)  # plain numbers: arithmetic on flags is slow


class LinkMaker:
    """Makes the URLs of one crawl. Runs on the loop: it holds the GIL.

    `refused` counts, by reason, the links that ended here and never reached the frontier.
    """

    def __init__(self, settings: Settings, seeds: Sequence[str]) -> None:
        domains = Domains(settings.url.private_suffixes)
        self._normalise = Normaliser(settings.url, domains)
        self._keys = Keys(settings.seed)
        self._from_site = settings.scope.depth_from == "site"
        self._seeds = [self._normalise(seed) for seed in seeds]
        self._scope = ScopeRules(settings.scope, domains, self._seeds)
        self.refused: Counter[str] = Counter()

        @lru_cache(maxsize=65536)
        def host_keys(host: str) -> tuple[int, int]:
            return self._keys.of(host), self._keys.of(domains.pay_level(host))

        self._host_keys = host_keys

    def seeds(self) -> UrlBatch:
        """The seeds, those in scope."""
        return self._batch(self._seeds, [0] * len(self._seeds), 0, int(Flag.SEED))

    def links(self, hrefs: Iterable[str], base: str, page: UrlRow) -> UrlBatch:
        """The links of a page as a batch without repetitions; `base` is what they are relative to."""
        root, normalise = parse(base), self._normalise
        found: dict[str, None] = {}
        for href in hrefs:
            try:
                found[normalise(href, root)] = None
            except UrlError as error:
                self.refused[error.reason] += 1
        urls = list(found)
        depths = [page.depth + 1] * len(urls)
        if self._from_site:
            here = split(page.url.decode()).host
            depths = [page.depth + 1 if split(url).host == here else 0 for url in urls]
        return self._batch(urls, depths, 0, 0)

    def redirect(self, location: str, source: UrlRow) -> tuple[UrlRow, bytes] | None:
        """A redirect's target as a row and exactly as written, or None when it is out of bounds."""
        try:
            written = parse(location, parse(source.url.decode()))
            url = self._normalise(str(written))
        except UrlError as error:
            self.refused[error.reason] += 1
            return None
        flags = int((source.flags & Flag.SEED) | Flag.REDIRECT)
        batch = self._batch([url], [source.depth], min(source.hops + 1, 255), flags)
        if not len(batch):
            return None
        if flags & Flag.SEED:
            self._scope.extend(url)
        exact = str(written.with_fragment(None).with_username("").with_password(None))
        return batch.rows()[0], exact.encode()

    def _batch(self, urls: Sequence[str], depths: Sequence[int], hops: int, flags: int) -> UrlBatch:
        """The URLs that are in scope, with their keys."""
        from_seed = flags == _SEED_REDIRECT
        kept, texts, hosts, domains = [], [], [], []
        refuses, host_keys = self._scope.refuses, self._host_keys
        for url, depth in zip(urls, depths, strict=True):
            host = split(url).host
            reason = refuses(url, host, depth, from_seed)
            if reason is not None:
                self.refused[reason] += 1
                continue
            host_key, domain_key = host_keys(host)
            kept.append(min(depth, 65535))
            texts.append(url.encode())
            hosts.append(host_key)
            domains.append(domain_key)
        return UrlBatch.fresh(texts, self._keys.column(texts), hosts, domains, kept, hops, flags)
