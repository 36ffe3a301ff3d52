"""From the texts of links to a batch: normalise, judge by scope, find keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache

from barkspider.core.errors import UrlError
from barkspider.core.records import Flag, UrlBatch, UrlRow
from barkspider.core.settings import Settings
from barkspider.url import Domains, Keys, Normaliser, ScopeRules, parse, split


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
        return self._batch((url, 0, 0, Flag.SEED) for url in self._seeds)

    def links(self, hrefs: Iterable[str], base: str | None, page: UrlRow) -> UrlBatch:
        """The links of a page as a batch without repetitions; `base` is the href of its <base>."""
        root = parse(page.url.decode())
        if base is not None:
            with suppress(UrlError):  # a browser ignores a base that it cannot read
                root = parse(base, root)
        page_host = split(page.url.decode()).host
        found: dict[str, None] = {}
        for href in hrefs:
            try:
                found[self._normalise(href, root)] = None
            except UrlError as error:
                self.refused[error.reason] += 1
        return self._batch(
            (url, 0 if self._from_site and split(url).host != page_host else page.depth + 1, 0, 0)
            for url in found
        )

    def redirect(self, location: str, source: UrlRow) -> tuple[UrlRow, bytes] | None:
        """A redirect's target as a row and exactly as written, or None when it is out of bounds."""
        try:
            written = parse(location, parse(source.url.decode()))
            url = self._normalise(str(written))
        except UrlError as error:
            self.refused[error.reason] += 1
            return None
        flags = (source.flags & Flag.SEED) | Flag.REDIRECT
        batch = self._batch([(url, source.depth, min(source.hops + 1, 255), flags)])
        if not len(batch):
            return None
        exact = str(written.with_fragment(None).with_username("").with_password(None))
        return batch.rows()[0], exact.encode()

    def _batch(self, urls: Iterable[tuple[str, int, int, int]]) -> UrlBatch:
        rows = []
        for url, depth, hops, flags in urls:
            host = split(url).host
            from_seed = flags == Flag.SEED | Flag.REDIRECT
            reason = self._scope.refuses(url, host, depth, is_redirect_from_seed=from_seed)
            if reason is not None:
                self.refused[reason] += 1
                continue
            text = url.encode()
            if from_seed:
                self._scope.extend(url)
            rows.append(
                UrlRow(self._keys.of(text), *self._host_keys(host), min(depth, 65535), hops, 0, flags, text)
            )
        return UrlBatch.from_rows(rows)
