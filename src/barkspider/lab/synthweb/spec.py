"""What a synthetic web is made from: a seed, sizes, and the hazards that are switched on."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import accumulate

from barkspider.core.errors import SettingsError

# The order is part of the web, as are the numbers of names below. New ones go to the end.
HAZARDS = (
    "spam_farm",
    "calendar",
    "session_ids",
    "growing_paths",
    "listings",
    "mirrors",
    "redirects",
    "soft_404",
    "wrong_types",
    "slow",
    "dead",
    "throttled",
    "wildcard_dns",
    "broken_robots",
    "link_exchange",
)
# Domain names that a hazard owns, used or not, and the number of its first after the regular ones.
_NAMES = (*(16,) * 14, 320)
FIRST_NAMES = (0, *accumulate(_NAMES))

# One listening socket per address and scheme; more than this runs into common limits on open files.
MAX_SERVERS = 2000
# Page numbers are written with at most ten digits, and kernels multiply them within 64 bits.
MAX_PAGES = 4_000_000_000


@dataclass(frozen=True, slots=True)
class WebSpec:
    """The complete description of a web: two equal ones give the same web, byte for byte, at any time.

    `domains` and `servers` are derived from `pages` when left at 0.

    >>> spec = WebSpec(pages=20_000)
    >>> spec.domains, spec.servers
    (464, 116)
    >>> WebSpec(hazards=frozenset({"calender"}))
    Traceback (most recent call last):
    barkspider.core.errors.SettingsError: 'calender' is not a hazard; did you mean calendar?
    """

    seed: int = 1
    pages: int = 20_000
    """Regular pages in all; those of hazards come on top."""
    domains: int = 0
    """Pay-level domains."""
    servers: int = 0
    """Addresses 127.x.y.z that share the hosts."""
    links_per_page: int = 60
    """The mean on sites large enough to have so many pages."""
    page_bytes: int = 25_000
    """The mean size of a page, uncompressed."""
    https_share: float = 0.0
    """The share of domains whose URLs begin with https."""
    crawl_delay: float = 1.0
    """Seconds that robots.txt with a Crawl-delay asks for; only hosts of at most 50 pages have one."""
    hazards: frozenset[str] = frozenset()
    hazard_links: int = 16
    """One regular page in so many carries a link to a hazard, besides the homes of domains."""
    slow_delay: float = 3.0
    """Seconds before a slow server answers; trickling ones take ten times as long."""
    hang: float = 90.0
    """Seconds that a robots.txt which never comes holds its connection."""
    retry_after: int = 2
    """Seconds named in Retry-After."""
    edition: int = 0
    """How often the web has been revised: each time a quarter of the pages get another text, none other links."""
    changes: float = 0.0
    """How often a page gets another text in a day, on average: some a thousand times as often as others (`changes`)."""
    day: float = 86_400.0
    """Seconds for a day of those changes."""
    born: float = 0.0
    """When they began, in seconds since 1970."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "hazards", frozenset(self.hazards))
        _within("seed", self.seed, 0, 2**62)
        _within("pages", self.pages, 1, MAX_PAGES)
        _within("edition", self.edition, 0, 2**31)
        _within("changes", self.changes, 0, 1_000)
        _within("day", self.day, 0.001, 10**9)
        _within("links_per_page", self.links_per_page, 10, 500)
        _within("page_bytes", self.page_bytes, 2_000, 1_000_000)
        _within("https_share", self.https_share, 0, 1)
        _within("hazard_links", self.hazard_links, 1, 10**9)
        for name in ("crawl_delay", "slow_delay", "hang", "retry_after"):
            _within(name, getattr(self, name), 0, 86_400)
        for name in self.hazards:
            if name not in HAZARDS:
                near = difflib.get_close_matches(name, HAZARDS, 1, 0.3) or [HAZARDS[0]]
                raise SettingsError(f"{name!r} is not a hazard; did you mean {near[0]}?")
        if not self.domains:
            # Sublinear as on the web, where large crawls find larger sites: 464 domains for 20,000 pages,
            # 380,000 for a billion.
            object.__setattr__(self, "domains", max(1, min(round(self.pages**0.62), self.pages // 4)))
        _within("domains", self.domains, 1, min(self.pages, 20_000_000))
        if not self.servers:
            object.__setattr__(self, "servers", max(4, min(256, self.domains // 4)))
        _within("servers", self.servers, 1, MAX_SERVERS)

    def to_json(self) -> str:
        """One line that `from_json` reads back.

        >>> spec = WebSpec(hazards=frozenset({"slow", "dead"}))
        >>> WebSpec.from_json(spec.to_json()) == spec
        True
        """
        return json.dumps(asdict(self) | {"hazards": sorted(self.hazards)})

    @classmethod
    def from_json(cls, text: str) -> WebSpec:
        """The inverse of `to_json`."""
        values = json.loads(text)
        return cls(**values | {"hazards": frozenset(values["hazards"])})


def parse_hazards(text: str) -> frozenset[str]:
    """The hazards in a text as given on the command line: `all`, `none`, or names with commas between.

    >>> sorted(parse_hazards("slow, dead"))
    ['dead', 'slow']
    """
    if text in ("", "none"):
        return frozenset()
    if text == "all":
        return frozenset(HAZARDS)
    return WebSpec(hazards=frozenset(_names(text.split(",")))).hazards


def _names(parts: Iterable[str]) -> list[str]:
    return [part.strip() for part in parts if part.strip()]


def _within(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise SettingsError(f"{name} of the synthetic web is {value:,}; it must be {low:,} to {high:,}")
