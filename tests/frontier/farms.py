"""A web in numbers, spam farms beside its good sites, and two ways to crawl it without network and without pauses.

Good pages are those of `barkspider.lab.synthweb.model`: finite sites of Zipf popularity. A farm is a pay-level domain
whose subdomains and pages never end. As in the farms of the synthetic web, each of its pages links to the two
domains that all of them are meant to lift, to two dozen subdomains that nobody has seen before, on any of the
farms, and to new pages beside itself. One good page in a hundred has a link to the home of a farm.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barkspider.core.batch import UrlBatch
from barkspider.core.events import (
    FetchPage,
    Frontier,
    HostResolved,
    Instruction,
    Outcome,
    PageFetched,
    ResolveHost,
    Seeds,
)
from barkspider.core.texts import Texts
from barkspider.lab.synthweb.model import page_links
from barkspider.lab.synthweb.reach import LINK_SPACE
from barkspider.lab.synthweb.sites import build
from barkspider.lab.synthweb.spec import WebSpec
from barkspider.storage.keyset import KeySet

Pages = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]

# A page of a farm is this number, 14 bits of domain, 24 of subdomain and 24 of path; a good page is a smaller one.
FARM = 1 << 62
_DOMAIN, _NAME = 48, 24
_CARELESS = 100  # one good page in so many links to a farm
_TARGETS, _ELSEWHERE, _BESIDE = 2, 24, 6  # links of a page of a farm
_LATENCY = 0.1  # seconds
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
_SHIFTS = np.arange(60, -1, -4, dtype=np.uint64)


class FarmWeb:
    """Every page follows from its number; page 0 is the seed, from which all are reached."""

    def __init__(self, pages: int, domains: int, farms: int, links: int = 60) -> None:
        self.domains, self.farms = domains, farms
        self._tables = build(WebSpec(pages=pages, domains=domains, links_per_page=links))
        self._links = np.empty(LINK_SPACE, np.int64)
        self._draws = np.arange(_ELSEWHERE + _BESIDE, dtype=np.uint64) << np.uint64(56)
        self._targets = FARM | np.arange(min(_TARGETS, farms)) << _DOMAIN

    def links(self, page: int) -> Pages:
        """Where a page links to."""
        if page >= FARM:
            return self._farm_links(page)
        count = page_links(self._tables, page, self._links)
        random = page * 0x9E3779B97F4A7C15 >> 24
        if self.farms and random % _CARELESS == 0:
            self._links[count] = FARM | (random // _CARELESS % self.farms) << _DOMAIN
            count += 1
        return self._links[:count].copy()

    def _farm_links(self, page: int) -> Pages:
        random = _mixed(np.uint64(page) ^ self._draws)
        domains = ((random >> np.uint64(48)) % np.uint64(self.farms)).astype(np.int64) << _DOMAIN
        names_and_paths = (random & np.uint64((1 << _DOMAIN) - 1)).astype(np.int64)
        elsewhere = (FARM | domains | names_and_paths)[:_ELSEWHERE]
        beside = page >> _NAME << _NAME | names_and_paths[_ELSEWHERE:] >> _NAME
        return np.concatenate([self._targets, elsewhere, beside])

    def domain(self, pages: Pages) -> Pages:
        """The number of each page's pay-level domain: good ones first, then the farms."""
        return self._places(pages)[1]

    def _places(self, pages: Pages) -> tuple[Pages, Pages]:
        good = pages < FARM
        hosts = np.searchsorted(self._tables.start, np.where(good, pages, 0), "right") - 1
        domains = np.where(good, self._tables.domain_of[hosts], self.domains + ((pages ^ FARM) >> _DOMAIN))
        return np.where(good, hosts, pages >> _NAME), domains

    def batch(self, pages: Pages) -> UrlBatch:
        """Rows for a frontier."""
        hosts, domains = self._places(pages)
        return UrlBatch.of(
            Texts.from_arrow(_urls(hosts, pages)),
            key=_mixed(pages.astype(np.uint64)),
            host_key=self._host_keys(hosts),
            pld_key=_mixed(domains.astype(np.uint64)),
        )

    def _host_keys(self, hosts: Pages) -> Keys:
        return _mixed(hosts.astype(np.uint64))

    def answers(self, instructions: Sequence[Instruction]) -> list[Outcome]:
        """What comes back. There is no robots.txt, and every host has a server of its own."""
        outcomes: list[Outcome] = [
            HostResolved(asked, (asked.host,)) for asked in instructions if isinstance(asked, ResolveHost)
        ]
        fetches = [asked for asked in instructions if isinstance(asked, FetchPage)]
        if fetches:
            links = [self.links(number_of(asked)) for asked in fetches]
            batch = self.batch(np.concatenate(links))
            ends = np.cumsum([0, *map(len, links)]).tolist()
            for asked, (start, end) in zip(fetches, pairwise(ends), strict=True):
                outcomes.append(PageFetched(asked, 200, links=batch.slice(start, end)))
        return outcomes


def breadth_first(web: FarmWeb, fetches: int) -> Pages:
    """The pages that a queue and a set of those seen would fetch, in order: the first that are found."""
    found, seen = [0], KeySet()
    seen.add(np.zeros(1, np.uint64))
    for page in found:  # which grows
        links = web.links(page)
        found += links[seen.add(links.astype(np.uint64))].tolist()
        if len(found) >= fetches:
            break
    return np.array(found[:fetches], np.int64)


def crawl(web: FarmWeb, frontier: Frontier, fetches: int) -> Pages:
    """The pages that a frontier fetches, in order, when every answer takes the same short time."""
    order: list[int] = []
    outcomes: list[Outcome] = [Seeds(web.batch(np.zeros(1, np.int64)))]
    now = 0.0
    while len(order) < fetches:
        instructions, wake = frontier.step(now, outcomes)
        order += [number_of(asked) for asked in instructions if isinstance(asked, FetchPage)]
        outcomes = web.answers(instructions)
        now = now + _LATENCY if outcomes else max(now, wake)
    return np.array(order[:fetches], np.int64)


def number_of(asked: FetchPage) -> int:
    """The page that is asked for."""
    return int(asked.row.url[-16:], 16)


def _mixed(numbers: Keys) -> Keys:
    """The finaliser of splitmix64: keys of pages, and draws for what they link to."""
    mixed: Keys = numbers * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _urls(hosts: Pages, pages: Pages) -> pa.BinaryArray:
    """http://HOST.example/PAGE, both numbers in 16 digits."""
    host, page = (
        _DIGITS[numbers.astype(np.uint64)[:, None] >> _SHIFTS & np.uint64(15)] for numbers in (hosts, pages)
    )
    before, between = (
        np.tile(np.frombuffer(text, np.uint8), (len(pages), 1)) for text in (b"http://", b".example/")
    )
    text = np.hstack([before, host, between, page])
    ends = np.arange(len(pages) + 1, dtype=np.int32) * text.shape[1]
    return pa.Array.from_buffers(pa.binary(), len(pages), [None, pa.py_buffer(ends), pa.py_buffer(text)])
