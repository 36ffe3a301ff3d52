"""A crawl that shows what it costs to enforce budgets (IRLbot, section 6.2)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from barkspider.core.batch import UrlBatch
from barkspider.core.texts import Texts
from barkspider.simulate.queues import Queues


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
