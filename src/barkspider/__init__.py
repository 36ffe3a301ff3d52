"""Barkspider: a web crawler for millions to billions of pages from machines you can afford.

This module is the public API and nothing else:

    from barkspider import crawl, load_settings, open_job

    settings = load_settings(options=["agent.contact=me@example.org", "limits.pages=100"])
    statistics = crawl(["https://example.org/"], "jobs/example", settings)
    print(statistics.pages, "pages")

    job = open_job("jobs/example")
    print(job.query("SELECT url, title FROM pages WHERE outcome = 'ok'").to_pylist())

docs/architecture.md tells how it works inside.
"""

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barkspider.core.kernel_cache import ensure_kernel_cache

if TYPE_CHECKING:
    from barkspider.core.errors import (
        BarkspiderError,
        JobError,
        SettingsError,
        ShortMemoryError,
        StorageError,
        UrlError,
        UsageError,
    )
    from barkspider.core.load import load_settings
    from barkspider.core.settings import Settings
    from barkspider.engine import (
        CrawledPage,
        Link,
        RunningCrawl,
        Statistics,
        StoredJob,
        StoredPage,
        crawl,
        open_job,
        resume,
        start,
        stream,
    )

__all__ = [
    "BarkspiderError",
    "CrawledPage",
    "JobError",
    "Link",
    "RunningCrawl",
    "Settings",
    "SettingsError",
    "ShortMemoryError",
    "Statistics",
    "StorageError",
    "StoredJob",
    "StoredPage",
    "UrlError",
    "UsageError",
    "crawl",
    "load_settings",
    "open_job",
    "resume",
    "start",
    "stream",
]

ensure_kernel_cache(Path(__file__).parent)  # before anything that has kernels
# Arrow's own allocator keeps what is free: thirty megabytes in a crawl that uses two.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")

_ROOMS = {
    "Settings": "core.settings",
    "load_settings": "core.load",
    "CrawledPage": "engine",
    "Link": "engine",
    "RunningCrawl": "engine",
    "resume": "engine",
    "start": "engine",
    "stream": "engine",
    "Statistics": "engine",
    "StoredJob": "engine",
    "StoredPage": "engine",
    "crawl": "engine",
    "open_job": "engine",
}


def __getattr__(name: str) -> Any:
    # The engine takes a second to import: only those wait for it who crawl.
    if name in __all__:
        return getattr(import_module(f"barkspider.{_ROOMS.get(name, 'core.errors')}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
