"""Scrapy on our frontier: `SCHEDULER = "barkspider.scrapy.Scheduler"` in the settings of a project (extra `scrapy`).

    spider ─ requests ─► `codec`: rows of URLs ─► `keeper`: journal ─► frontier ─► `scheduler` ─► Scrapy's downloader
                                                     ▲                     │
                                                     └─ what came of it ◄──┴─ `asking`: addresses, robots.txt

A request travels as a row of the frontier, so it is on disk, in the journal and in every checkpoint as any URL is;
what else it has besides its URL (callback, meta …) lies in the row behind the URL, where others have a fragment. Nothing
that is read back is unpickled. `scheduler` is what Scrapy calls, `choosing` makes settings of the project's. docs/scrapy.md
tells how to use it.
"""

try:
    import scrapy as _scrapy  # noqa: F401
except ImportError as error:
    raise ImportError("barkspider.scrapy needs Scrapy: pip install 'barkspider[scrapy]'") from error

from barkspider.scrapy.scheduler import Scheduler

__all__ = ["Scheduler"]
