"""The arithmetic of Parallel Crawlers (WWW 2002): machines for a download rate, and URLs between them."""

from __future__ import annotations

import math

URL = 40  # bytes of a URL in that paper's estimate
PAGE = 10_000  # bytes of a page


def download_speed(pages: float, page_size: float, seconds: float) -> float:
    """Bytes a second for `pages` within `seconds`.

    >>> round(download_speed(200e6, PAGE, 30 * 86400) * 8 / 1e6, 1)
    6.2
    """
    return pages * page_size / seconds


def machines_for(speed: float, link: float) -> int:
    """How many machines with a link of so many bytes a second carry `speed`.

    >>> machines_for(speed=6.2e6 / 8, link=1.5e6 / 8)
    5
    """
    return math.ceil(speed / link)


def exchanged_per_page(links: float, processes: float) -> float:
    """URLs that a page sends to other processes when `links` of its links may lead anywhere: those to other sites
    under site-hash partitioning, all of them under URL-hash partitioning.

    >>> exchanged_per_page(links=1, processes=2), exchanged_per_page(links=10, processes=2)
    (0.5, 5.0)
    """
    return links * (1 - 1 / processes)


def exchange_share(urls_per_page: float, url: float = URL, page_size: float = PAGE) -> float:
    """Bytes of exchanged URLs for each byte of pages.

    >>> exchange_share(urls_per_page=1)
    0.004
    """
    return urls_per_page * url / page_size
