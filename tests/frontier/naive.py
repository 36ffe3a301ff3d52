"""Crawls that show what it costs to enforce budgets (IRLbot, section 6.2)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import UrlBatch
from barkspider.core.texts import Texts
from barkspider.frontier.budget.beast import Beast
from barkspider.lab.simulate.queues import Queues


def batch_of(plds: npt.NDArray[np.uint64]) -> UrlBatch:
    """URLs of these domains, of 60 bytes each."""
    count = len(plds)
    urls = Texts(np.arange(count + 1) * 60, np.full(60 * count, ord("u"), np.uint8))
    return UrlBatch.of(urls, key=np.arange(count), host_key=plds, pld_key=plds)


def crawl(queues: Queues, domains: int, budget: int, links: int, rescans: int) -> list[tuple[int, int]]:
    """Crawl a web of endless domains, in which each page has `links` new URLs of its own domain.

    Returns the pages crawled and the bytes read and written until each re-scan of Q_F begins.
    """

    def put(batch: UrlBatch) -> None:
        queues.put(batch, np.full(len(batch), budget, np.uint32))

    put(batch_of(np.arange(1, domains + 1, dtype=np.uint64)))
    pages, marks = 0, list[tuple[int, int]]()
    while len(marks) < rescans:
        before = pages, queues.moved.read + queues.moved.written
        taken = queues.take(1 << 20)
        if queues.moved.rescans > len(marks):
            marks.append(before)
            for failed in queues.rescanned():
                put(failed)
        if len(taken):
            pages += len(taken)
            put(batch_of(np.repeat(taken.pld_key, links)))
    return marks


def feed(
    beast: Beast, urls: int, domains: int, budgets: npt.NDArray[np.uint32], links: int = 6, drain: bool = True
) -> npt.NDArray[np.uint64]:
    """Crawl a web of so many URLs, each of any of the domains 1, 2, …, which have the budgets in turn.

    Each page has `links` new URLs until all have been found; then those that wait are taken too, if `drain` says so.
    Returns the domains in the order in which they came out.
    """
    random = np.random.default_rng(1)
    taken, found = list[npt.NDArray[np.uint64]](), 0

    def put(batch: UrlBatch) -> None:
        beast.put(batch, budgets[batch.pld_key.astype(np.int64) % len(budgets)])

    wanted = 1
    while found < urls or (drain and (len(beast) or beast.awaited)):
        new = min(wanted, urls - found)
        found += new
        put(batch_of(random.integers(1, domains + 1, new).astype(np.uint64)))
        batch = beast.take(1 << 16)
        taken.append(batch.pld_key)
        wanted = links * len(batch)
        for failed in beast.rescanned():
            put(failed)
    return np.concatenate(taken)
