"""Settings of a crawl that several processes divide, and of the store that outlives their machines."""

from __future__ import annotations

from dataclasses import dataclass

from barkspider.core.declared import duration, setting, size


@dataclass(frozen=True, slots=True)
class Parallel:
    """Several processes that divide a crawl among them (Parallel Crawlers, sections 2 and 3)."""

    processes: int = setting(1, "Processes that divide the crawl", low=1, high=4096)
    part: int = setting(0, "Which of them this is: set by `crawl --processes`", low=0, high=4095)
    here: tuple[int, ...] = setting(
        (),
        "Those that run on this machine, such as 0,1; none means all. `exchange` carries what others send",
        low=0,
    )
    partition: str = setting(
        "domain",
        "What a process has as a whole: a pay-level domain (domain), a host (site), nothing (url), the sites of a top-level "
        "domain (hierarchical, with weights), the hosts of a server (address), or what your own package.module:function says",
        harmless=("domain", "site", "url", "hierarchical", "address"),
    )
    weights: str = setting(
        "",
        "With hierarchical, how many pages top-level domains have: a file of lines such as `de 300`, and `* 9` for all others, "
        "or the folder of an earlier crawl; read when the job is made",
    )
    mode: str = setting(
        "exchange",
        "What becomes of links to pages of another process: they are sent to it (exchange), dropped (firewall), held back until "
        "own pages run out (cross-over), or followed as if they were its own (independent)",
        choices=("exchange", "firewall", "cross-over", "independent"),
    )
    replicate: str = setting(
        "",
        "URLs that all processes know from the beginning and never send: a file of URLs, or JOB:10000 for those to which most "
        "pages of an earlier crawl link; read when the job is made",
    )
    batch: int = setting(1_000, "Pages after which a process sends what it found for others", low=1)
    interval: float = duration("10s", "Longest time that this waits to be sent", low=0.01)
    outbox: int = size(
        "1GB",
        "Disk space for what others have not taken in yet; beyond it nothing is fetched until they have",
    )
    lease: float = duration(
        "30s",
        "On a cluster: a part that has had no word of the overseer for so long stops, and another takes its place",
        low=1.0,
    )
    database: str = setting(
        "",
        "With frontier = site, the PostgreSQL that has the sites, such as postgresql://user@host/name; without one it is a file of "
        "the job",
        secret=True,
        harmless=("",),
    )
    watchdog: float = duration(
        "5m", "A process that has work and does nothing for so long is started anew", low=1.0
    )


@dataclass(frozen=True, slots=True)
class Site:
    """A crawl site by site, `frontier = site` (The Viúva Negra crawler, section 4)."""

    at_once: int = setting(
        500, "Sites that a process crawls at once, so that their pauses do not leave it idle", low=1
    )
    lease: float = duration(
        "5m",
        "For how long a process has a site unless it says that it goes on; of one that died others take the sites then",
        low=0.1,
    )
    tries: int = setting(
        3, "Visits to a site that does not answer, the later ones behind all other sites", low=1
    )


@dataclass(frozen=True, slots=True)
class Store:
    """Where copies of a crawl are kept, so that it outlives its machine."""

    url: str = setting(
        "",
        "A folder, or any URL that fsspec knows, such as s3://bucket/crawl: every checkpoint is copied there",
        harmless=("",),
    )
